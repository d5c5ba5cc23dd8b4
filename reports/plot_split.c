/* SPDX-License-Identifier: MIT
 * Plots of a cluster divided among jobs: each against an equal share, and the curves behind it. */
#include "reports/report.h"
#include "sim/error.h"

#include <math.h>

/* ---- shares ------------------------------------------------------------------------------- */

static ty_status write_names(const struct report *report, const struct study *study, FILE *gp)
{
    struct store_rows *rows;
    ty_status status =
        store_ask(report->store, "SELECT name FROM split_job WHERE study_id = ?1 ORDER BY place",
                  study->id, &rows, report->error);
    if (status != TY_OK)
        return status;
    fputs("set ytics scale 0 (", gp);
    for (int i = 0; store_next(rows); i++) {
        fputs(i ? ", " : "", gp);
        plot_quote(gp, store_text(rows, 0));
        fprintf(gp, " %d", -i);
    }
    fputs(")\n", gp);
    return store_done(rows, report->error);
}

ty_status plot_shares(struct report *report, const struct study *study, struct plot *plot)
{
    FILE *gp;
    ty_status status =
        plot_table(report, study, plot, "place\tspeed_over_equal\tgpus",
                   "SELECT -place, tokens_per_s / equal_tokens_per_s, gpus FROM split_job"
                   " WHERE study_id = ?1 ORDER BY place",
                   NULL);
    if (status == TY_OK)
        status = plot_begin(report, study, plot, "speed over that of an equal share", &gp);
    if (status != TY_OK)
        return status;
    status = write_names(report, study, gp);
    fprintf(gp,
            "set xlabel 'speed / speed on an equal share'\nset grid xtics\nset grid noytics\n"
            "set lmargin 24\nset rmargin 16\nunset key\nset xrange [0:*]\nset yrange [*:*]\n"
            "set offsets 0, 0, 0.7, 0.7\n"
            "set arrow 1 from 1, graph 0 to 1, graph 1 nohead lc rgb '#d55e00' lw 2 front\n"
            "plot '%s%s.tsv' using (0):1:(0):2:($1-0.35):($1+0.35) with boxxyerror lc rgb '#0072b2'"
            " notitle, \\\n"
            "  '' using 2:1:(sprintf('%%.2f, %%.0f GPUs', $2, $3)) with labels left offset 0.7,0"
            " notitle\n",
            study->prefix, plot->name);
    const ty_status drawn = plot_end(report, study, plot, gp);
    return status == TY_OK ? drawn : status;
}

/* ---- curves ------------------------------------------------------------------------------- */

/* The colours of a job's line and mark; after eight they repeat. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#000000", "#999999"};

static ty_status write_lines(const struct report *report, const struct study *study,
                             const struct plot *plot, FILE *gp)
{
    struct store_rows *rows;
    ty_status status = store_ask(
        report->store, "SELECT name, place FROM split_job WHERE study_id = ?1 ORDER BY place",
        study->id, &rows, report->error);
    const char *separator = "plot";
    while (status == TY_OK && store_next(rows)) {
        const int place = (int)store_integer(rows, 1);
        const char *colour = colours[(size_t)place % (sizeof colours / sizeof *colours)];
        fprintf(gp,
                "%s '%s%s.tsv' index 0 using ($1==%d?$2:NaN):3 with linespoints pt 7 ps 0.5 lw 2 "
                "lc rgb '%s' title ",
                separator, study->prefix, plot->name, place, colour);
        plot_quote(gp, store_text(rows, 0));
        fprintf(gp,
                ", \\\n  '' index 1 using ($1==%d?$2:NaN):3 with points pt 6 ps 2.2 lw 2.5 "
                "lc rgb '%s' notitle",
                place, colour);
        separator = ", \\\n ";
    }
    return status == TY_OK ? store_done(rows, report->error) : status;
}

ty_status plot_curves(struct report *report, const struct study *study, struct plot *plot)
{
    FILE *gp;
    ty_status status = plot_table(report, study, plot, "job\tgpus\tspeed_over_equal",
                                  "SELECT place, c.gpus, c.tokens_per_s / equal_tokens_per_s"
                                  " FROM split_curve AS c JOIN split_job USING (study_id, place)"
                                  " WHERE study_id = ?1 ORDER BY place, c.gpus",
                                  "SELECT place, gpus, tokens_per_s / equal_tokens_per_s"
                                  " FROM split_job WHERE study_id = ?1 ORDER BY place");
    if (status == TY_OK)
        status = plot_begin(report, study, plot, "best plan of each count", &gp);
    if (status != TY_OK)
        return status;
    fputs("set xlabel 'GPUs'\nset ylabel 'speed / speed on an equal share'\nset yrange [0:*]\n"
          "set grid xtics ytics\n",
          gp);
    status = write_lines(report, study, plot, gp);
    fputc('\n', gp);
    const ty_status drawn = plot_end(report, study, plot, gp);
    return status == TY_OK ? drawn : status;
}

/* SPDX-License-Identifier: MIT
 * Plots of replays of a trace: GPUs held and jobs waiting over time, distribution of completion
 * times, policies side by side. A line, block of data and bar for each run of the study. */
#include "reports/report.h"
#include "sim/error.h"

#include <math.h>

#define MAX_RUNS 16 /* lines that can still be told apart */

static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#000000", "#999999"};

/* ---- data --------------------------------------------------------------------------------- */

/* Rows (run, x, y), by run, as blocks. */
static ty_status write_blocks(const struct report *report, const struct study *study,
                              const struct plot *plot, const char *heading, const char *sql)
{
    FILE *data;
    struct store_rows *rows;
    ty_status status = report_create(report, study, plot->name, ".tsv", &data);
    if (status != TY_OK)
        return status;
    fprintf(data, "# %s\n", heading);
    status = store_ask(report->store, sql, study->id, &rows, report->error);
    int64_t run = -1;
    while (status == TY_OK && store_next(rows)) {
        const int64_t next = store_integer(rows, 0);
        fputs(run >= 0 && next != run ? "\n\n" : "", data);
        run = next;
        plot_value(data, store_number(rows, 1), '\t');
        plot_value(data, store_number(rows, 2), '\n');
    }
    if (status == TY_OK)
        status = store_done(rows, report->error);
    const ty_status closed = report_close(report, data);
    return status == TY_OK ? closed : status;
}

/* "fifo" or, with several sizes of the pool, "fifo, 64 GPUs". */
static ty_status ask_names(const struct report *report, const struct study *study,
                           struct store_rows **out)
{
    return store_ask(report->store,
                     "SELECT CASE WHEN (SELECT count(DISTINCT gpus) FROM pool_run"
                     "   WHERE study_id = ?1) > 1 THEN policy || ', ' || gpus || ' GPUs'"
                     "  ELSE policy END FROM pool_run WHERE study_id = ?1 ORDER BY run",
                     study->id, out, report->error);
}

static ty_status write_lines(const struct report *report, const struct study *study,
                             const struct plot *plot, const char *style, FILE *gp)
{
    struct store_rows *rows;
    ty_status status = ask_names(report, study, &rows);
    if (status != TY_OK)
        return status;
    for (int run = 0; run < MAX_RUNS && store_next(rows); run++) {
        const size_t n = sizeof colours / sizeof *colours;
        fprintf(gp, "%s '%s%s.tsv' index %d using 1:2 with %s lw 2 lc rgb '%s' dt %d title ",
                run ? ", \\\n " : "plot", study->prefix, plot->name, run, style,
                colours[(size_t)run % n], (size_t)run < n ? 1 : 2);
        plot_quote(gp, store_text(rows, 0));
    }
    fputc('\n', gp);
    return store_done(rows, report->error);
}

static ty_status draw(struct report *report, const struct study *study, struct plot *plot,
                      const char *axes, const char *style)
{
    FILE *gp;
    ty_status status = plot_begin(report, study, plot, "replay of a trace", &gp);
    if (status != TY_OK)
        return status;
    fputs(axes, gp);
    status = write_lines(report, study, plot, style, gp);
    const ty_status drawn = plot_end(report, study, plot, gp);
    return status == TY_OK ? drawn : status;
}

/* ---- over time ---------------------------------------------------------------------------- */

/* Means over 400 stretches of the longest run, each state counted where it begins. */
#define OVER_TIME(value)                                                                           \
    "SELECT run, min(time_s) / 3600, sum(y * span_s) / sum(span_s) FROM"                           \
    " (SELECT e.run, time_s, " value " AS y, lead(time_s) OVER"                                    \
    "    (PARTITION BY e.run ORDER BY number) - time_s AS span_s"                                  \
    "  FROM pool_event AS e JOIN pool_run AS r USING (study_id, run) WHERE study_id = ?1),"        \
    " (SELECT max(time_s) / 400 AS bin_s FROM pool_event WHERE study_id = ?1)"                     \
    " WHERE span_s > 0 GROUP BY run, CAST(time_s / bin_s AS INTEGER) ORDER BY run, 2"

ty_status plot_held(struct report *report, const struct study *study, struct plot *plot)
{
    const ty_status status =
        write_blocks(report, study, plot, "time_h\theld_over_all", OVER_TIME("held_gpus / r.gpus"));
    return status == TY_OK ? draw(report, study, plot,
                                  "set xlabel 'hours'\nset ylabel 'GPUs held / all'\n"
                                  "set yrange [0:1.05]\nset grid xtics ytics\n",
                                  "steps")
                           : status;
}

ty_status plot_waiting(struct report *report, const struct study *study, struct plot *plot)
{
    const ty_status status =
        write_blocks(report, study, plot, "time_h\twaiting_jobs", OVER_TIME("waiting"));
    return status == TY_OK ? draw(report, study, plot,
                                  "set xlabel 'hours'\nset ylabel 'jobs that wait'\n"
                                  "set yrange [0:*]\nset grid xtics ytics\n",
                                  "steps")
                           : status;
}

/* ---- completion --------------------------------------------------------------------------- */

ty_status plot_completion(struct report *report, const struct study *study, struct plot *plot)
{
    const ty_status status = write_blocks(
        report, study, plot, "completion_h\tshare_of_jobs",
        "SELECT run, jct_s / 3600, place / n FROM (SELECT run, end_s - submit_s AS jct_s,"
        "   row_number() OVER (PARTITION BY run ORDER BY end_s - submit_s) AS place,"
        "   1.0 * count(*) OVER (PARTITION BY run) AS n"
        "  FROM pool_job WHERE study_id = ?1 AND end_s IS NOT NULL)"
        " WHERE place = n OR CAST(place * 400 / n AS INTEGER) <> CAST((place - 1) * 400 / n AS"
        "  INTEGER) ORDER BY run, place");
    return status == TY_OK ? draw(report, study, plot,
                                  "set xlabel 'completion time, hours'\nset logscale x\n"
                                  "set ylabel 'share of jobs done within it'\n"
                                  "set yrange [0:1]\nset grid xtics ytics\n",
                                  "lines")
                           : status;
}

ty_status plot_policies(struct report *report, const struct study *study, struct plot *plot)
{
    FILE *gp;
    struct store_rows *rows;
    ty_status status = write_blocks(report, study, plot, "mean_completion_h\tp99_completion_h",
                                    "SELECT 0, jct_mean_s / 3600, jct_p99_s / 3600 FROM pool_run"
                                    " WHERE study_id = ?1 ORDER BY run");
    if (status == TY_OK)
        status = plot_begin(report, study, plot, "replay of a trace", &gp);
    if (status != TY_OK)
        return status;
    status = ask_names(report, study, &rows);
    fputs("set ytics scale 0 (", gp);
    for (int run = 0; status == TY_OK && store_next(rows); run++) {
        fputs(run ? ", " : "", gp);
        plot_quote(gp, store_text(rows, 0));
        fprintf(gp, " %d", -run);
    }
    if (status == TY_OK)
        status = store_done(rows, report->error);
    fprintf(gp,
            ")\nset xlabel 'completion time, hours'\nset grid xtics\nset grid noytics\n"
            "set lmargin 22\nset xrange [0:*]\nset offsets 0, 0, 0.7, 0.7\n"
            "plot '%s%s.tsv' using (0):(-$0):(0):1:(-$0-0.35):(-$0+0.35) with boxxyerror lc rgb "
            "'#0072b2' title 'mean', \\\n"
            "  '' using 2:(-$0) with points pt 9 ps 1.4 lc rgb '#d55e00' title 'P99'\n",
            study->prefix, plot->name);
    const ty_status drawn = plot_end(report, study, plot, gp);
    return status == TY_OK ? drawn : status;
}

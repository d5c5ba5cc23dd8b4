/* SPDX-License-Identifier: MIT
 * Plots of a what-if: speed over its only setting, or what each of several does alone. */
#include "reports/report.h"
#include "sim/error.h"

#include <math.h>

#define MAX_SETTINGS 8

/* Axes of a study, and whether the values of the first are numbers. */
static ty_status count_axes(const struct report *report, const struct study *study, double *n,
                            double *numeric)
{
    ty_status status =
        store_ask_number(report->store, "SELECT count(DISTINCT axis) FROM axis WHERE study_id = ?1",
                         study->id, 0, n, report->error);
    if (status == TY_OK)
        status = store_ask_number(report->store,
                                  "SELECT count(*) FROM axis WHERE study_id = ?1 AND axis = 0"
                                  " AND number IS NOT NULL",
                                  study->id, 0, numeric, report->error);
    return status;
}

/* ---- knee --------------------------------------------------------------------------------- */

static ty_status ask_path(const struct report *report, const struct study *study, char path[64])
{
    struct store_rows *rows;
    const ty_status status =
        store_ask(report->store, "SELECT path FROM axis WHERE study_id = ?1 AND axis = 0 LIMIT 1",
                  study->id, &rows, report->error);
    if (status != TY_OK)
        return status;
    text_format(path, 64, "%s", store_next(rows) ? store_text(rows, 0) : "");
    return store_done(rows, report->error);
}

ty_status plot_knee(struct report *report, const struct study *study, struct plot *plot)
{
    double n_axes, n_numbers;
    char path[64] = "";
    FILE *gp;
    ty_status status = count_axes(report, study, &n_axes, &n_numbers);
    plot->reason = "It needs a study of whatif with one numeric setting.";
    if (status != TY_OK || n_axes != 1 || n_numbers < 2)
        return status;
    status = plot_table(report, study, plot, "value\ttokens_per_s_per_gpu\tas_it_is",
                        "SELECT number, alone_tokens_per_s_per_gpu, base_tokens_per_s_per_gpu"
                        " FROM axis WHERE study_id = ?1 AND axis = 0 ORDER BY number",
                        NULL);
    if (status == TY_OK)
        status = ask_path(report, study, path);
    if (status == TY_OK)
        status = plot_begin(report, study, plot, "one setting varied", &gp);
    if (status != TY_OK)
        return status;
    fputs("set xlabel ", gp);
    plot_quote(gp, path);
    fprintf(gp,
            "\nset ylabel 'tokens/s/GPU'\nset yrange [0:*]\nset key bottom right\n"
            "set grid xtics ytics\n"
            "plot '%s%s.tsv' using 1:3 with lines ls 2 title 'as it is', \\\n"
            "  '' using 1:2 with linespoints ls 1 title 'with this value'\n",
            study->prefix, plot->name);
    return plot_end(report, study, plot, gp);
}

/* ---- settings ----------------------------------------------------------------------------- */

struct bar {
    char path[64];
    double low_pct, high_pct;
};

static ty_status read_bars(const struct report *report, const struct study *study,
                           struct bar bars[MAX_SETTINGS], uint32_t *n)
{
    struct store_rows *rows;
    ty_status status = store_ask(
        report->store,
        "SELECT path, 100 * (min(alone_tokens_per_s_per_gpu) / max(base_tokens_per_s_per_gpu) - 1)"
        ", 100 * (max(alone_tokens_per_s_per_gpu) / max(base_tokens_per_s_per_gpu) - 1)"
        " FROM axis WHERE study_id = ?1 GROUP BY axis ORDER BY"
        " max(alone_tokens_per_s_per_gpu) - min(alone_tokens_per_s_per_gpu), axis",
        study->id, &rows, report->error);
    *n = 0;
    while (status == TY_OK && *n < MAX_SETTINGS && store_next(rows)) {
        struct bar *bar = &bars[(*n)++];
        text_format(bar->path, sizeof bar->path, "%s", store_text(rows, 0));
        bar->low_pct = store_number(rows, 1);
        bar->high_pct = store_number(rows, 2);
    }
    return status == TY_OK ? store_done(rows, report->error) : status;
}

static ty_status write_bars(const struct report *report, const struct study *study,
                            const struct plot *plot, const struct bar *bars, uint32_t n)
{
    FILE *data;
    ty_status status = report_create(report, study, plot->name, ".tsv", &data);
    if (status != TY_OK)
        return status;
    fputs("# place\tlow_pct\thigh_pct\n", data);
    for (uint32_t i = 0; i < n; i++) {
        plot_value(data, i + 1.0, '\t');
        plot_value(data, bars[i].low_pct, '\t');
        plot_value(data, bars[i].high_pct, '\n');
    }
    return report_close(report, data);
}

ty_status plot_settings(struct report *report, const struct study *study, struct plot *plot)
{
    double n_axes, n_numbers;
    struct bar bars[MAX_SETTINGS];
    uint32_t n = 0;
    FILE *gp;
    ty_status status = count_axes(report, study, &n_axes, &n_numbers);
    plot->reason = "It needs a study of whatif with two settings or more.";
    if (status != TY_OK || n_axes < 2)
        return status;
    status = read_bars(report, study, bars, &n);
    if (status == TY_OK)
        status = write_bars(report, study, plot, bars, n);
    if (status == TY_OK)
        status = plot_begin(report, study, plot, "each setting alone", &gp);
    if (status != TY_OK)
        return status;
    fprintf(gp,
            "set xlabel 'change of tokens/s/GPU, %%'\nset yrange [0.3:%u.7]\nset grid xtics\n"
            "set grid noytics\nset xzeroaxis\nset lmargin 30\nunset key\nset ytics scale 0 (",
            n);
    for (uint32_t i = 0; i < n; i++) {
        fputs(i ? ", " : "", gp);
        plot_quote(gp, bars[i].path);
        fprintf(gp, " %u", i + 1);
    }
    fprintf(gp,
            ")\nplot '%s%s.tsv' using (0):1:2:3:($1-0.38):($1+0.38) with boxxyerror lc rgb "
            "'#0072b2' notitle\n",
            study->prefix, plot->name);
    return plot_end(report, study, plot, gp);
}

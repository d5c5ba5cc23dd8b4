/* SPDX-License-Identifier: MIT
 * Curves over the GPU count: scaling with its ideal line, and speed of every plan with the front.
 */
#include "reports/report.h"

#include <math.h>

#define MAX_TICKS 12 /* GPU counts that fit as tick labels under an axis */

/* Least factor between the ends of an axis to make it logarithmic. */
#define LOG_RANGE 4.0

struct axis_range {
    double low_gpus, high_gpus, low, high;
};

static ty_status ask_range(const struct report *report, const struct study *study,
                           struct axis_range *out)
{
    struct store_rows *rows;
    ty_status status = store_ask(report->store,
                                 "SELECT min(gpus), max(gpus), min(tokens_per_s), max(tokens_per_s)"
                                 " FROM prediction WHERE study_id = ?1 AND feasible",
                                 study->id, &rows, report->error);
    if (status != TY_OK)
        return status;
    if (store_next(rows))
        *out = (struct axis_range){store_number(rows, 0), store_number(rows, 1),
                                   store_number(rows, 2), store_number(rows, 3)};
    return store_done(rows, report->error);
}

static void write_gpu_axis(FILE *gp, const struct study *study, const struct axis_range *range)
{
    fputs("set xlabel 'GPUs'\nset grid xtics ytics back lt 1 lc rgb '#e4e4e4' lw 1\n", gp);
    if (range->high_gpus >= LOG_RANGE * range->low_gpus) {
        fprintf(gp, "set logscale x 2\nset xrange [%.10g:%.10g]\n", range->low_gpus / 1.3,
                range->high_gpus * 1.5);
    } else {
        double margin = 0.08 * (range->high_gpus - range->low_gpus);
        fprintf(gp, "set xrange [%.10g:%.10g]\n", range->low_gpus - margin,
                range->high_gpus + 2 * margin);
    }
    if (study->n_counts > MAX_TICKS)
        fputs("set format x '%.0f'\n", gp);
}

/* Tokens/s, from zero or, over a wide range, logarithmic with ticks at 1, 2 and 5. */
static void write_speed_axis(FILE *gp, const struct axis_range *range, struct plot_unit unit)
{
    fprintf(gp,
            "set ylabel '%stokens/s'\nset key at graph 1, screen 0.975 right top horizontal "
            "maxrows 1 samplen 2.5\n",
            unit.word);
    if (range->high_gpus < LOG_RANGE * range->low_gpus || !(range->low > 0)) {
        fprintf(gp, "set yrange [0:%.4g]\n", 1.15 * range->high / unit.size);
        return;
    }
    double low = range->low / unit.size, high = range->high / unit.size;
    double decade = pow(10.0, floor(log10(low)));
    fprintf(gp, "set logscale y\nset yrange [%.4g:%.4g]\nset ytics (", low / 1.5, high * 1.4);
    const char *separator = "";
    for (; decade <= high; decade *= 10) {
        static const double steps[] = {1, 2, 5};
        for (int i = 0; i < 3; i++) {
            fprintf(gp, "%s%g", separator, steps[i] * decade);
            separator = ", ";
        }
    }
    fputs(")\n", gp);
}

/* The column of the x position, with the counts themselves as ticks where they fit. */
static const char *ticks(const struct study *study)
{
    return study->n_counts > MAX_TICKS ? "" : ":xticlabels(1)";
}

static ty_status write_scaling_data(const struct report *report, const struct study *study,
                                    const struct plot *plot)
{
    FILE *data;
    struct store_rows *rows;
    ty_status status = report_create(report, study, plot->name, ".tsv", &data);
    if (status != TY_OK)
        return status;
    fputs("# gpus\ttokens_per_s\tideal_tokens_per_s\tefficiency_ratio\n", data);
    status = store_ask(report->store,
                       "SELECT gpus, max(tokens_per_s) FROM prediction"
                       " WHERE study_id = ?1 AND feasible GROUP BY gpus ORDER BY gpus",
                       study->id, &rows, report->error);
    double pace = NAN; /* tokens/s/GPU at the smallest count */
    while (status == TY_OK && store_next(rows)) {
        double gpus = store_number(rows, 0), tokens_per_s = store_number(rows, 1);
        if (isnan(pace))
            pace = tokens_per_s / gpus;
        plot_value(data, gpus, '\t');
        plot_value(data, tokens_per_s, '\t');
        plot_value(data, pace * gpus, '\t');
        plot_value(data, tokens_per_s / (pace * gpus), '\n');
    }
    if (status == TY_OK)
        status = store_done(rows, report->error);
    ty_status closed = report_close(report, data);
    return status == TY_OK ? closed : status;
}

ty_status plot_scaling(struct report *report, const struct study *study, struct plot *plot)
{
    if (study->n_counts < 2) {
        plot->reason = "It needs feasible plans at two GPU counts or more.";
        return TY_OK;
    }
    struct axis_range range = {0};
    FILE *gp;
    ty_status status = ask_range(report, study, &range);
    if (status == TY_OK)
        status = write_scaling_data(report, study, plot);
    if (status == TY_OK)
        status = plot_begin(report, study, plot, "best plan of each GPU count", &gp);
    if (status != TY_OK)
        return status;
    write_gpu_axis(gp, study, &range);
    struct plot_unit unit = plot_unit_of(range.high);
    write_speed_axis(gp, &range, unit);
    bool crowded = study->n_counts > MAX_TICKS; /* then only the last point has its figures */
    fprintf(gp,
            "plot '%s%s.tsv' using 1:($3/%g)%s with lines ls 2 title 'every GPU as fast as at "
            "%.0f', \\\n"
            "  '' using 1:($2/%g) with linespoints ls 1 title 'best plan', \\\n"
            "  '' every ::%.0f using 1:($2/%g):(sprintf('%%.4g, %%.0f %%%%', $2/%g, 100*$4)) with "
            "labels left offset 0.7,-0.8 textcolor rgb '#0072b2' notitle\n",
            study->prefix, plot->name, unit.size, ticks(study), range.low_gpus, unit.size,
            crowded ? study->n_counts - 1 : 0.0, unit.size, unit.size);
    return plot_end(report, study, plot, gp);
}

/* At most 200 marks a GPU count: plans within half a percent of the fastest share one. */
static ty_status write_pareto_data(const struct report *report, const struct study *study,
                                   const struct plot *plot)
{
    return plot_table(report, study, plot, "gpus\ttokens_per_s\tplans\ttp\tpp",
                      "SELECT gpus, max(tokens_per_s), count(*), tp, pp FROM prediction,"
                      " (SELECT max(tokens_per_s) AS top FROM prediction"
                      "  WHERE study_id = ?1 AND feasible)"
                      " WHERE study_id = ?1 AND feasible"
                      " GROUP BY gpus, CAST(200.0 * tokens_per_s / top AS INTEGER)"
                      " ORDER BY gpus",
                      "SELECT p.gpus, p.tokens_per_s, 1, tp, pp FROM pareto AS p"
                      " JOIN prediction ON id = prediction_id WHERE p.study_id = ?1"
                      " ORDER BY p.gpus");
}

ty_status plot_pareto(struct report *report, const struct study *study, struct plot *plot)
{
    if (study->n_counts < 2) {
        plot->reason = "It needs feasible plans at two GPU counts or more.";
        return TY_OK;
    }
    struct axis_range range = {0};
    FILE *gp;
    ty_status status = ask_range(report, study, &range);
    if (status == TY_OK)
        status = write_pareto_data(report, study, plot);
    if (status == TY_OK)
        status = plot_begin(report, study, plot, "every feasible plan", &gp);
    if (status != TY_OK)
        return status;
    write_gpu_axis(gp, study, &range);
    struct plot_unit unit = plot_unit_of(range.high);
    write_speed_axis(gp, &range, unit);
    bool crowded = study->n_counts > MAX_TICKS;
    fprintf(gp,
            "plot '%s%s.tsv' index 1 using 1:($2/%g)%s with steps lw 2 lc rgb '#f2b48c' notitle, "
            "\\\n"
            "  '' index 0 using 1:($2/%g) with points pt 7 ps 0.6 lc rgb '#8c555555' title "
            "'plans', \\\n"
            "  '' index 1 using 1:($2/%g) with points ls 3 title 'not beaten by fewer GPUs'",
            study->prefix, plot->name, unit.size, ticks(study), unit.size, unit.size);
    if (!crowded)
        fprintf(gp,
                ", \\\n  '' index 1 using 1:($2/%g):(sprintf('TP %%d, PP %%d', $4, $5)) with "
                "labels offset 0,1 textcolor rgb '#d55e00' notitle",
                unit.size);
    fputc('\n', gp);
    return plot_end(report, study, plot, gp);
}

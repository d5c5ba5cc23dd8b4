/* SPDX-License-Identifier: MIT
 * Plot of the size of a machine: speed and cost of the run against the number of GPUs. */
#include "reports/report.h"
#include "sim/error.h"

#include <math.h>

/* What is drawn beside the speed. */
struct cost_axis {
    const char *column, *low, *high; /* of size_point; low, high: quantiles or the same */
    char label[64];
};

static ty_status choose_cost(const struct report *report, const struct study *study,
                             struct cost_axis *out)
{
    struct store_rows *rows;
    const ty_status status =
        store_ask(report->store,
                  "SELECT (SELECT count(money_p50) FROM size_point WHERE study_id = ?1),"
                  " (SELECT json_extract(json, '$.currency') FROM input WHERE study_id = ?1 AND"
                  "  kind = 'price')",
                  study->id, &rows, report->error);
    if (status != TY_OK)
        return status;
    const bool priced = store_next(rows) && store_number(rows, 0) > 0.0;
    *out = priced ? (struct cost_axis){"money_p50", "money_p10", "money_p90", "cost of the run"}
                  : (struct cost_axis){"energy_j / 3.6e9", "energy_j / 3.6e9", "energy_j / 3.6e9",
                                       "energy of the run, MWh"};
    if (priced && *store_text(rows, 1))
        text_append(out->label, sizeof out->label, ", %.20s", store_text(rows, 1));
    return store_done(rows, report->error);
}

static ty_status write_script(struct report *report, const struct study *study, struct plot *plot,
                              const struct cost_axis *cost, double most_tokens_per_s)
{
    FILE *gp;
    const struct plot_unit unit = plot_unit_of(most_tokens_per_s);
    const ty_status status = plot_begin(report, study, plot, "best plan of each count", &gp);
    if (status != TY_OK)
        return status;
    fprintf(gp, "set xlabel 'GPUs'\nset ylabel '%stokens/s'\nset y2label ", unit.word);
    plot_quote(gp, cost->label);
    fprintf(gp,
            " textcolor rgb '#333333'\nset yrange [0:*]\nset y2range [0:*]\nset y2tics\n"
            "set border 11\nset key outside center bottom horizontal\nset grid xtics ytics\n"
            "plot '%s%s.tsv' using 1:($2/%g) with linespoints ls 1 title 'tokens/s', \\\n"
            "  '' using 1:3:4:5 axes x1y2 with yerrorlines ls 3 title ",
            study->prefix, plot->name, unit.size);
    plot_quote(gp, cost->label);
    fprintf(gp,
            ", \\\n  '' using 1:($6==1?$2/%g:NaN) with points pt 6 ps 2.2 lw 2.5 lc rgb '#009e73'"
            " title 'keeps the limits'\n",
            unit.size);
    return plot_end(report, study, plot, gp);
}

ty_status plot_size(struct report *report, const struct study *study, struct plot *plot)
{
    double exists = 0.0, most = 0.0;
    struct cost_axis cost;
    char sql[320];
    ty_status status = store_ask_number(
        report->store, "SELECT count(*) FROM sqlite_master WHERE name = 'size_point'", 0, 0,
        &exists, report->error);
    if (status == TY_OK && exists > 0.0)
        status = store_ask_number(report->store,
                                  "SELECT max(tokens_per_s) FROM size_point WHERE study_id = ?1",
                                  study->id, 0, &most, report->error);
    if (status != TY_OK || !(most > 0.0))
        return status; /* a study of something else */
    status = choose_cost(report, study, &cost);
    if (status != TY_OK)
        return status;
    text_format(sql, sizeof sql,
                "SELECT gpus, tokens_per_s, %s, %s, %s, feasible FROM size_point"
                " WHERE study_id = ?1 AND fits ORDER BY gpus",
                cost.column, cost.low, cost.high);
    status = plot_table(report, study, plot, "gpus\ttokens_per_s\tcost\tlow\thigh\tkeeps_limits",
                        sql, NULL);
    return status == TY_OK ? write_script(report, study, plot, &cost, most) : status;
}

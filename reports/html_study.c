/* SPDX-License-Identifier: MIT
 * The section of one study: what was asked, the best plans, what was dropped, plots, notes. */
#include "reports/report.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PLANS   200 /* rows of the table of best plans */
#define MAX_COLUMNS 64
#define CELL_BYTES  48

/* ---- head --------------------------------------------------------------------------------- */

static ty_status write_items(const struct report *report, const struct study *study,
                             const char *sql, FILE *page)
{
    struct store_rows *rows;
    ty_status status = store_ask(report->store, sql, study->id, &rows, report->error);
    if (status != TY_OK)
        return status;
    while (store_next(rows)) {
        fputs("<dt>", page);
        html_text(page, store_text(rows, 0));
        fputs("</dt><dd>", page);
        html_text(page, store_text(rows, 1));
        fputs(" <code>", page);
        html_text(page, store_text(rows, 2));
        fputs("</code></dd>\n", page);
    }
    return store_done(rows, report->error);
}

static ty_status write_head(const struct report *report, const struct study *study, FILE *page)
{
    fputs("<h1>", page);
    html_text(page, study->about);
    fputs("</h1>\n<dl>\n", page);
    struct store_rows *rows;
    ty_status status =
        store_ask(report->store, "SELECT command, created_utc FROM study WHERE id = ?1", study->id,
                  &rows, report->error);
    if (status != TY_OK)
        return status;
    if (store_next(rows)) {
        fputs("<dt>command</dt><dd><code>", page);
        html_text(page, store_text(rows, 0));
        fputs("</code></dd>\n<dt>created</dt><dd>", page);
        html_text(page, store_text(rows, 1));
        fputs("</dd>\n", page);
    }
    status = store_done(rows, report->error);
    if (status == TY_OK)
        status = write_items(report, study,
                             "SELECT kind, name, hash FROM input WHERE study_id = ?1"
                             " ORDER BY kind = 'profile', kind = 'cluster'",
                             page);
    if (status == TY_OK)
        status = write_items(report, study,
                             "SELECT component, version, '' FROM version WHERE study_id = ?1"
                             " ORDER BY component = 'trainyard' DESC, component",
                             page);
    if (study->kind == STUDY_PLANS) {
        fputs("<dt>plans predicted</dt><dd>", page);
        html_quantity(page, study->n_predictions, HTML_COUNT);
        fputs(", feasible ", page);
        html_quantity(page, study->n_feasible, HTML_COUNT);
        fputs("</dd>\n", page);
    }
    fputs("</dl>\n", page);
    return status;
}

/* ---- best plans --------------------------------------------------------------------------- */

/* Cells of the plan columns, kept to find the columns that are the same in every row. */
struct plans {
    uint32_t n_rows, n_columns;
    const char *column[MAX_COLUMNS];
    bool varies[MAX_COLUMNS];
    char (*cell)[MAX_COLUMNS][CELL_BYTES]; /* [MAX_PLANS] */
    double (*answer)[6]; /* [MAX_PLANS]: gpus, tokens/s, per GPU, MFU, step, peak memory */
};

static ty_status load_plans(const struct report *report, const struct study *study,
                            struct plans *plans)
{
    char sql[4096] =
        "SELECT gpus, tokens_per_s, tokens_per_s_per_gpu, mfu, step_time_s, peak_bytes";
    for (uint32_t i = 0; i < MAX_COLUMNS; i++) {
        plans->column[i] = store_plan_column(report->store, i);
        if (!plans->column[i])
            break;
        text_append(sql, sizeof sql, ", \"%s\"", plans->column[i]); /* names of our own table */
        plans->n_columns++;
    }
    text_append(sql, sizeof sql,
                " FROM best WHERE study_id = ?1 AND rank <= %d ORDER BY gpus, rank LIMIT %d",
                study->n_counts > 12  ? 1
                : study->n_counts > 1 ? 3
                                      : 10,
                MAX_PLANS);
    struct store_rows *rows;
    ty_status status = store_ask(report->store, sql, study->id, &rows, report->error);
    if (status != TY_OK)
        return status;
    while (plans->n_rows < MAX_PLANS && store_next(rows)) {
        uint32_t row = plans->n_rows++;
        for (int k = 0; k < 6; k++)
            plans->answer[row][k] = store_number(rows, k);
        for (uint32_t i = 0; i < plans->n_columns; i++) {
            text_format(plans->cell[row][i], CELL_BYTES, "%s", store_text(rows, 6 + (int)i));
            plans->varies[i] |= strcmp(plans->cell[row][i], plans->cell[0][i]) != 0;
        }
    }
    return store_done(rows, report->error);
}

static void write_constant_columns(const struct plans *plans, FILE *page)
{
    const char *separator = plans->n_rows > 1 ? "<p class=\"about\">The same in all of them: "
                                              : "<p class=\"about\">The plan: ";
    for (uint32_t i = 0; i < plans->n_columns; i++) {
        if (plans->varies[i] || !plans->cell[0][i][0])
            continue;
        fprintf(page, "%s%s ", separator, plans->column[i]);
        html_text(page, plans->cell[0][i]);
        separator = ", ";
    }
    if (*separator == ',')
        fputs(".</p>\n", page);
}

static void write_plan_table(const struct plans *plans, FILE *page)
{
    fputs("<div class=\"scroll\"><table>\n<tr>", page);
    for (uint32_t i = 0; i < plans->n_columns; i++)
        if (plans->varies[i])
            fprintf(page, "<th>%s</th>", plans->column[i]);
    fputs("<th>tokens/s/GPU</th><th>tokens/s</th><th>MFU</th><th>step</th><th>memory</th></tr>\n",
          page);
    for (uint32_t row = 0; row < plans->n_rows; row++) {
        const double *answer = plans->answer[row];
        bool starts = row && answer[0] != plans->answer[row - 1][0];
        fputs(starts ? "<tr class=\"group\">" : "<tr>", page);
        for (uint32_t i = 0; i < plans->n_columns; i++) {
            if (!plans->varies[i])
                continue;
            fputs("<td>", page);
            html_text(page, plans->cell[row][i]);
            fputs("</td>", page);
        }
        static const enum html_unit units[] = {HTML_COUNT, HTML_COUNT, HTML_PERCENT, HTML_SECONDS,
                                               HTML_BYTES};
        static const int order[] = {2, 1, 3, 4, 5};
        for (int k = 0; k < 5; k++) {
            fputs("<td>", page);
            html_quantity(page, answer[order[k]], units[k]);
            fputs("</td>", page);
        }
        fputs("</tr>\n", page);
    }
    fputs("</table></div>\n", page);
}

static ty_status write_plans(const struct report *report, const struct study *study, FILE *page)
{
    struct plans plans = {.cell = calloc(MAX_PLANS, sizeof *plans.cell),
                          .answer = calloc(MAX_PLANS, sizeof *plans.answer)};
    ty_status status = plans.cell && plans.answer
                           ? load_plans(report, study, &plans)
                           : error_set(report->error, TY_ERR_NOMEM, "report", "out of memory");
    fputs("<h2>Best plans</h2>\n", page);
    if (status == TY_OK && plans.n_rows) {
        fputs("<p class=\"about\">By tokens/s/GPU within each GPU count, the best of each (TP, PP, "
              "CP, EP).</p>\n",
              page);
        write_constant_columns(&plans, page);
        write_plan_table(&plans, page);
        if (plans.n_rows == MAX_PLANS)
            fputs("<p class=\"about\">And more: the view <code>best</code> of the database has all."
                  "</p>\n",
                  page);
    } else if (status == TY_OK) {
        fputs("<p class=\"missing\">No plan of this study is feasible.</p>\n", page);
    }
    free(plans.cell);
    free(plans.answer);
    return status;
}

/* ---- rejections, violations, notes -------------------------------------------------------- */

/* A table of texts; `numbers`: how many columns at the end are numbers, in `units`. Nothing at
 * all when there is no row. */
struct table {
    const char *title, *about, *sql;
    const char *headings[14];
    int n_texts, n_numbers;
    enum html_unit units[12];
};

static void write_heading(const struct table *table, FILE *page)
{
    fprintf(page, "<h2>%s</h2>\n<p class=\"about\">%s</p>\n<div class=\"scroll\"><table>\n<tr>",
            table->title, table->about);
    for (int i = 0; i < table->n_texts + table->n_numbers; i++)
        fprintf(page, "<th%s>%s</th>", i < table->n_texts ? " class=\"text\"" : "",
                table->headings[i]);
    fputs("</tr>\n", page);
}

static ty_status write_table(const struct report *report, const struct study *study,
                             const struct table *table, FILE *page)
{
    struct store_rows *rows;
    ty_status status = store_ask(report->store, table->sql, study->id, &rows, report->error);
    if (status != TY_OK)
        return status;
    int n_rows = 0;
    while (store_next(rows)) {
        if (n_rows++ == 0)
            write_heading(table, page);
        fputs("<tr>", page);
        for (int i = 0; i < table->n_texts; i++) {
            fputs("<td class=\"text\">", page);
            html_text(page, store_text(rows, i));
            fputs("</td>", page);
        }
        for (int i = 0; i < table->n_numbers; i++) {
            fputs("<td>", page);
            html_quantity(page, store_number(rows, table->n_texts + i), table->units[i]);
            fputs("</td>", page);
        }
        fputs("</tr>\n", page);
    }
    if (n_rows)
        fputs("</table></div>\n", page);
    return store_done(rows, report->error);
}

static const struct table rejections = {
    .title = "Plans that were dropped",
    .about = "Before any time was computed, by the first reason found.",
    .sql = "SELECT reason, count, share FROM rejected WHERE study_id = ?1 ORDER BY count DESC",
    .headings = {"reason", "plans", "share"},
    .n_texts = 1,
    .n_numbers = 2,
    .units = {HTML_COUNT, HTML_PERCENT},
};

static const struct table violations = {
    .title = "Broken rules",
    .about = "Of plans that were predicted one by one.",
    .sql = "SELECT rule, text, legal, count(*) FROM violation JOIN prediction ON id = prediction_id"
           " WHERE study_id = ?1 GROUP BY rule, text, legal ORDER BY count(*) DESC LIMIT 50",
    .headings = {"rule", "what is wrong", "legal values", "plans"},
    .n_texts = 3,
    .n_numbers = 1,
    .units = {HTML_COUNT},
};

static const struct table notes = {
    .title = "Assumptions",
    .about = "Inputs that were not given, lie outside what was calibrated, or change nothing. "
             "Effect: change of the step time, in percent, if the value were the plausible "
             "alternative.",
    .sql = "SELECT kind, field, value, reason, max(effect_pct) FROM note"
           " JOIN prediction ON id = prediction_id WHERE study_id = ?1"
           " GROUP BY kind, field, value, reason ORDER BY abs(max(effect_pct)) DESC, kind, field"
           " LIMIT 200",
    .headings = {"kind", "field", "value", "reason", "effect, %"},
    .n_texts = 4,
    .n_numbers = 1,
    .units = {HTML_NUMBER},
};

static const struct table shares = {
    .title = "Shares",
    .about = "Speed is over that of an equal share of everything; then what one more of each would "
             "add: a unit of GPUs, a core, a GiB of cache, a GB/s of storage.",
    .sql = "SELECT name, limited_by, gpus, tokens_per_s, tokens_per_s / equal_tokens_per_s, cores,"
           " cache_bytes, read_bytes_per_s, gain_gpus_tokens_per_s / tokens_per_s,"
           " gain_core_tokens_per_s / tokens_per_s, gain_cache_tokens_per_s / tokens_per_s,"
           " gain_storage_tokens_per_s / tokens_per_s, finish_s"
           " FROM split_job WHERE study_id = ?1 ORDER BY place",
    .headings = {"job", "limit", "GPUs", "tokens/s", "speed", "cores", "cache", "bytes/s", "+ GPUs",
                 "+ core", "+ cache", "+ storage", "end"},
    .n_texts = 2,
    .n_numbers = 11,
    .units = {HTML_COUNT, HTML_COUNT, HTML_NUMBER, HTML_NUMBER, HTML_BYTES, HTML_NUMBER,
              HTML_PERCENT, HTML_PERCENT, HTML_PERCENT, HTML_PERCENT, HTML_SECONDS},
};

static const struct table replays = {
    .title = "Replays",
    .about = "Times from submission to end in seconds; rho is finish-time fairness, above 1 is "
             "worse than an equal share.",
    .sql = "SELECT policy, gpus, done, jct_mean_s, jct_median_s, jct_p99_s, wait_mean_s,"
           " slowdown_mean, allocated_ratio, useful_ratio, preemptions, rho_max, missed"
           " FROM pool_run WHERE study_id = ?1 ORDER BY run",
    .headings = {"policy", "GPUs", "done", "mean", "median", "P99", "mean wait", "slowdown",
                 "allocated", "useful", "preemptions", "worst rho", "deadlines missed"},
    .n_texts = 1,
    .n_numbers = 12,
    .units = {HTML_COUNT, HTML_COUNT, HTML_NUMBER, HTML_NUMBER, HTML_NUMBER, HTML_NUMBER,
              HTML_NUMBER, HTML_PERCENT, HTML_PERCENT, HTML_COUNT, HTML_NUMBER, HTML_COUNT},
};

/* ---- plots -------------------------------------------------------------------------------- */

static ty_status write_plot(const struct report *report, const struct study *study,
                            const struct plot *plot, FILE *page)
{
    if (plot->state == PLOT_SKIPPED && !plot->reason)
        return TY_OK;
    fprintf(page, "<h2>%s</h2>\n", plot->title);
    if (plot->state == PLOT_SKIPPED) {
        fprintf(page, "<p class=\"missing\">Not drawn. %s</p>\n", plot->reason);
        return TY_OK;
    }
    const char *prefix = study->prefix, *name = plot->name;
    fputs("<figure>\n", page);
    ty_status status = TY_OK;
    if (plot->state == PLOT_DRAWN)
        status = html_svg(report, study, name, page);
    else
        fprintf(
            page,
            "<p class=\"missing\">%s; <code>gnuplot %s%s.gp</code> in this folder draws it.</p>",
            plot->state == PLOT_FAILED ? "gnuplot could not draw this plot"
                                       : "gnuplot is not installed",
            prefix, name);
    fprintf(page, "\n<figcaption>%s Files: ", plot->about);
    if (plot->state == PLOT_DRAWN)
        fprintf(page, "<a href=\"%s%s.svg\">SVG</a>, <a href=\"%s%s.png\">PNG</a>, ", prefix, name,
                prefix, name);
    fprintf(page,
            "<a href=\"%s%s.tsv\">data</a>, <a href=\"%s%s.gp\">gnuplot script</a>.</figcaption>\n"
            "</figure>\n",
            prefix, name, prefix, name);
    return status;
}

ty_status html_study(const struct report *report, const struct study *study,
                     const struct plot plots[REPORT_N_PLOTS], FILE *page)
{
    fputs("<section>\n", page);
    ty_status status = write_head(report, study, page);
    if (status == TY_OK && study->kind == STUDY_PLANS)
        status = write_plans(report, study, page);
    if (status == TY_OK && study->kind == STUDY_SPLIT)
        status = write_table(report, study, &shares, page);
    if (status == TY_OK && study->kind == STUDY_POOL)
        status = write_table(report, study, &replays, page);
    for (int i = 0; i < REPORT_N_PLOTS && status == TY_OK; i++)
        status = write_plot(report, study, &plots[i], page);
    if (status == TY_OK)
        status = write_table(report, study, &rejections, page);
    if (status == TY_OK)
        status = write_table(report, study, &violations, page);
    if (status == TY_OK)
        status = write_table(report, study, &notes, page);
    fputs("</section>\n", page);
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * `report`: a database becomes a folder with index.html, and for each plot its SVG, PNG, gnuplot
 * script and data.
 */
#define _XOPEN_SOURCE 700 /* uselocale */
#include "reports/report.h"
#include "sim/error.h"

#include <errno.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>

typedef ty_status plot_fn(struct report *report, const struct study *study, struct plot *plot);

static const struct {
    plot_fn *draw;
    struct plot plot;
} plot_list[REPORT_N_PLOTS] = {
    {plot_scaling,
     {.name = "scaling",
      .title = "Scaling",
      .about =
          "Tokens per second of the best plan at each GPU count, against the speed that the "
          "smallest count would give if every GPU kept its pace. The figures are that share."}},
    {plot_breakdown,
     {.name = "breakdown",
      .title = "Where the step goes",
      .about = "Share of the step's critical path spent in each part; the parts add up to the step "
               "time above the bar. Blue computes, orange communicates, grey waits."}},
    {plot_memory,
     {.name = "memory",
      .title = "Memory by pipeline stage",
      .about = "Peak memory of one GPU of each stage by component, against what the plan may "
               "use."}},
    {plot_grid,
     {.name = "grid",
      .title = "Tensor against pipeline parallel size",
      .about = "The best tokens/s/GPU of any plan with these two sizes; grey: no such plan is "
               "feasible."}},
    {plot_pareto,
     {.name = "pareto",
      .title = "Speed against GPUs",
      .about = "Every feasible plan, and the front: plans that no plan on as many or fewer GPUs "
               "beats. Plans of nearly equal speed share a mark."}},
    {plot_size,
     {.name = "size",
      .title = "Speed and cost against GPUs",
      .about = "Tokens per second of the best plan at each number of GPUs, and what the run costs "
               "there, from its 10 % to its 90 % quantile. A ring: it keeps deadline and "
               "budget."}},
    {plot_knee,
     {.name = "knee",
      .title = "Speed against a setting",
      .about = "Tokens per second and GPU with each value of the one setting that was varied, and "
               "as it is."}},
    {plot_settings,
     {.name = "settings",
      .title = "What each setting does alone",
      .about =
          "Change of tokens/s/GPU from the worst to the best value of each setting, all others "
          "as they are."}},
    {plot_shares,
     {.name = "shares",
      .kind = STUDY_SPLIT,
      .title = "Jobs against an equal share",
      .about = "Speed of each job over its speed on an equal share of everything, which is 1."}},
    {plot_curves,
     {.name = "curves",
      .kind = STUDY_SPLIT,
      .title = "Speed against GPUs of each job",
      .about = "Best plan at each number of GPUs over the speed on an equal share; the mark is "
               "what the job got, below its curve where input limits it."}},
    {plot_held,
     {.name = "held",
      .kind = STUDY_POOL,
      .title = "GPUs held over time",
      .about = "Share of the GPUs that jobs hold, means over 1/400 of the longest replay."}},
    {plot_waiting,
     {.name = "waiting",
      .kind = STUDY_POOL,
      .title = "Jobs that wait",
      .about = "Length of the queue, means over 1/400 of the longest replay."}},
    {plot_completion,
     {.name = "completion",
      .kind = STUDY_POOL,
      .title = "Completion times",
      .about = "Share of the jobs whose time from submission to end is at most this long."}},
    {plot_policies,
     {.name = "policies",
      .kind = STUDY_POOL,
      .title = "Policies side by side",
      .about = "Mean completion time and the 99th percentile of each replay."}},
};

const char *report_path(const struct report *report, const struct study *study, const char *name,
                        const char *extension, char out[1024])
{
    text_format(out, 1024, "%s/%s%s%s", report->folder, study ? study->prefix : "", name,
                extension);
    return out;
}

static ty_status file_error(const struct report *report, const char *path)
{
    return error_set(report->error, TY_ERR_IO, path, "cannot be written: %s", strerror(errno));
}

ty_status report_create(const struct report *report, const struct study *study, const char *name,
                        const char *extension, FILE **out)
{
    char path[1024];
    report_path(report, study, name, extension, path);
    *out = fopen(path, "w");
    return *out ? TY_OK : file_error(report, path);
}

ty_status report_close(const struct report *report, FILE *file)
{
    bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed)
        return file_error(report, report->folder);
    return TY_OK;
}

static ty_status input_name(const struct report *report, int64_t study_id, const char *sql,
                            char *out, size_t bytes)
{
    struct store_rows *rows;
    ty_status status = store_ask(report->store, sql, study_id, &rows, report->error);
    if (status != TY_OK)
        return status;
    text_format(out, bytes, "%s", store_next(rows) ? store_text(rows, 0) : "");
    return store_done(rows, report->error);
}

/* Tables that come with the first study of their kind, so a file may lack them. */
static const struct {
    enum study_kind kind;
    const char *exists, *of_study, *all;
} kind_tables[] = {
    {STUDY_SPLIT, "SELECT count(*) FROM sqlite_master WHERE name = 'split_job'",
     "SELECT count(*) FROM split_job WHERE study_id = ?1", "SELECT count(*) FROM split_job"},
    {STUDY_POOL, "SELECT count(*) FROM sqlite_master WHERE name = 'pool_run'",
     "SELECT count(*) FROM pool_run WHERE study_id = ?1", "SELECT count(*) FROM pool_run"}};

enum { N_KIND_TABLES = sizeof kind_tables / sizeof kind_tables[0] };

static ty_status count_rows(const struct report *report, int table, const struct study *study,
                            double *out)
{
    ty_status status =
        store_ask_number(report->store, kind_tables[table].exists, 0, 0, out, report->error);
    if (status == TY_OK && *out > 0.0)
        status = store_ask_number(report->store,
                                  study ? kind_tables[table].of_study : kind_tables[table].all,
                                  study ? study->id : 0, 0, out, report->error);
    return status;
}

static ty_status find_kind(const struct report *report, struct study *study)
{
    ty_status status = TY_OK;
    for (int i = 0; status == TY_OK && i < N_KIND_TABLES; i++) {
        double n = 0.0;
        status = count_rows(report, i, study, &n);
        study->kind = n > 0.0 ? kind_tables[i].kind : study->kind;
    }
    return status;
}

static ty_status load_study(const struct report *report, int64_t id, bool only, struct study *out)
{
    *out = (struct study){.id = id};
    if (!only)
        text_format(out->prefix, sizeof out->prefix, "study%lld-", (long long)id);
    char model[64], cluster[64];
    ty_status status =
        input_name(report, id, "SELECT name FROM input WHERE study_id = ?1 AND kind = 'model'",
                   model, sizeof model);
    if (status == TY_OK)
        status = input_name(report, id,
                            "SELECT name FROM input WHERE study_id = ?1 AND kind = 'cluster'",
                            cluster, sizeof cluster);
    if (status == TY_OK)
        status = find_kind(report, out);
    if (status != TY_OK)
        return status;
    text_format(out->about, sizeof out->about, "%s on %s",
                out->kind != STUDY_PLANS ? "jobs"
                : model[0]               ? model
                                         : "a model",
                cluster[0] ? cluster : "a cluster");
    struct store_rows *rows;
    status = store_ask(report->store,
                       /* a plan scored by a search and then predicted in full counts once */
                       "SELECT coalesce(nullif(count(*) FILTER (WHERE NOT detailed), 0), count(*)),"
                       " coalesce(nullif(count(*) FILTER (WHERE feasible AND NOT detailed), 0),"
                       "  count(*) FILTER (WHERE feasible)),"
                       " count(DISTINCT gpus) FILTER (WHERE feasible)"
                       " FROM prediction WHERE study_id = ?1",
                       id, &rows, report->error);
    if (status != TY_OK)
        return status;
    if (store_next(rows)) {
        out->n_predictions = store_number(rows, 0);
        out->n_feasible = store_number(rows, 1);
        out->n_counts = store_number(rows, 2);
    }
    return store_done(rows, report->error);
}

static ty_status write_study(struct report *report, int64_t id, bool only, FILE *page)
{
    struct study study;
    struct plot plots[REPORT_N_PLOTS];
    ty_status status = load_study(report, id, only, &study);
    for (int i = 0; i < REPORT_N_PLOTS && status == TY_OK; i++) {
        plots[i] = plot_list[i].plot;
        if (plots[i].kind != study.kind)
            continue;
        status = plot_list[i].draw(report, &study, &plots[i]);
        report->n_plots += status == TY_OK && plots[i].state == PLOT_DRAWN;
    }
    return status == TY_OK ? html_study(report, &study, plots, page) : status;
}

static ty_status write_page(struct report *report, FILE *page)
{
    double n_studies;
    ty_status status = store_ask_number(report->store, "SELECT count(*) FROM study", 0, 0,
                                        &n_studies, report->error);
    struct store_rows *rows = NULL;
    if (status == TY_OK)
        status =
            store_ask(report->store, "SELECT id FROM study ORDER BY id", 0, &rows, report->error);
    if (status != TY_OK)
        return status;
    html_begin(page);
    while (status == TY_OK && store_next(rows))
        status = write_study(report, store_integer(rows, 0), n_studies <= 1, page);
    html_end(page);
    ty_status read = store_done(rows, status == TY_OK ? report->error : NULL);
    return status == TY_OK ? read : status;
}

static ty_status write_folder(struct report *report)
{
    double n_rows;
    ty_status status = store_ask_number(report->store, "SELECT count(*) FROM prediction", 0, 0,
                                        &n_rows, report->error);
    for (int i = 0; status == TY_OK && n_rows == 0.0 && i < N_KIND_TABLES; i++)
        status = count_rows(report, i, NULL, &n_rows);
    if (status != TY_OK)
        return status;
    if (n_rows == 0.0)
        return error_set(report->error, TY_ERR_INPUT, "report",
                         "the database holds no prediction: nothing to draw");
    if (mkdir(report->folder, 0777) != 0 && errno != EEXIST)
        return file_error(report, report->folder);
    FILE *page;
    status = report_create(report, NULL, "index", ".html", &page);
    if (status != TY_OK)
        return status;
    status = write_page(report, page);
    ty_status closed = report_close(report, page);
    return status == TY_OK ? closed : status;
}

ty_status ty_report_write(const char *db_path, const char *out_folder, uint32_t *n_plots,
                          struct ty_error *error)
{
    struct report report = {.folder = out_folder, .error = error};
    ty_status status = ty_store_open(db_path, true, &report.store, error);
    if (status != TY_OK)
        return status;
    /* Data files and pages have a decimal point, whatever the caller's locale. */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = plain ? uselocale(plain) : (locale_t)0;
    status = write_folder(&report);
    if (plain) {
        uselocale(before);
        freelocale(plain);
    }
    ty_store_close(report.store);
    if (status == TY_OK)
        *n_plots = report.n_plots;
    return status;
}

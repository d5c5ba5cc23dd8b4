/* SPDX-License-Identifier: MIT
 * The golden schedules: policies on published traces, against the results of an independent
 * simulator, to the printed digits. Usage: schedules [PATH of golden-schedules.json]; the traces
 * lie beside it. */
#include "calibrate/csv.h"
#include "include/trainyard_pool.h"
#include "models/spec/json.h"
#include "tests/tap.h"

struct trace {
    struct ty_pool_job *jobs;
    uint64_t n;
};

/* Columns of the three forms; times in the unit given. */
static bool load_trace(const char *path, const char *vc, struct trace *out)
{
    struct csv csv;
    struct ty_error error;
    if (csv_read(path, &csv, &error) != TY_OK)
        return false;
    const bool ms = csv_column(&csv, "submit_ms") >= 0;
    const bool tiresias = csv_column(&csv, "num_gpu") >= 0;
    const int submit = csv_column(&csv, ms ? "submit_ms" : tiresias ? "submit_time" : "submit_s");
    const int duration = csv_column(&csv, ms         ? "duration_ms"
                                          : tiresias ? "duration"
                                                     : "duration_s");
    const int gpus = csv_column(&csv, tiresias ? "num_gpu" : "gpus");
    const int priority = csv_column(&csv, "priority"), group = csv_column(&csv, "vc");
    out->jobs = calloc(csv.n_rows, sizeof *out->jobs);
    out->n = 0;
    for (uint64_t i = 0; out->jobs && i < csv.n_rows; i++) {
        if (*vc && strcmp(csv_cell(&csv, i, group), vc) != 0)
            continue;
        struct ty_pool_job *job = &out->jobs[out->n++];
        ty_pool_job_init(job);
        job->submit_s = floor(strtod(csv_cell(&csv, i, submit), NULL) / (ms ? 1000.0 : 1.0));
        job->duration_s = floor(strtod(csv_cell(&csv, i, duration), NULL) / (ms ? 1000.0 : 1.0));
        job->gpus = (uint32_t)strtoul(csv_cell(&csv, i, gpus), NULL, 10);
        job->priority = (int32_t)strtol(csv_cell(&csv, i, priority), NULL, 10);
    }
    csv_free(&csv);
    return out->jobs != NULL;
}

static double number(const struct json_at *golden, const char *key)
{
    struct json_at at;
    double value = NAN;
    if (json_find(golden, key, &at) && json_get_double(&at, -1e300, 1e300, &value, NULL) != TY_OK)
        return NAN;
    return value;
}

static const char *text(const struct json_at *golden, const char *key)
{
    struct json_at at;
    const char *value = "";
    if (json_find(golden, key, &at) && json_get_text(&at, &value, NULL) != TY_OK)
        return "";
    return value;
}

/* Within half a unit of the sixth decimal, as printed. */
static bool matches(const struct json_at *golden, const char *key, double got)
{
    const double want = number(golden, key);
    const bool good = fabs(got - want) <= 0.5000001e-6;
    if (!good)
        printf("# %s: got %.6f, want %.6f\n", key, got, want);
    return good;
}

static bool ends_match(const struct json_at *golden, const struct ty_pool_result *result)
{
    struct json_at ends, item = {0};
    if (!json_find(golden, "first_20_end_s", &ends))
        return false;
    uint32_t i = 0;
    while (json_next(&ends, &item)) {
        double want = NAN;
        if (json_get_double(&item, 0.0, 1e18, &want, NULL) != TY_OK ||
            result->outcomes[i].end_s != want) {
            printf("# end of job %u: got %.6f, want %.6f\n", i, result->outcomes[i].end_s, want);
            return false;
        }
        i++;
    }
    return i == 20;
}

static const char *policy_of(const char *golden_name)
{
    static const char *const names[][2] = {
        {"fifo_fit", "fit"}, {"las_gpu", "las"}, {"prio_preempt", "prio-preempt"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(golden_name, names[i][0]) == 0)
            return names[i][1];
    return golden_name;
}

static void check_case(const char *folder, const struct json_at *golden)
{
    const char *filter = text(golden, "filter"), *file = text(golden, "file");
    char path[1200], name[160];
    snprintf(path, sizeof path, "%s%s", folder, file);
    snprintf(name, sizeof name, "%s, %s", text(golden, "case"), text(golden, "policy"));
    struct trace trace = {0};
    if (!load_trace(path, strncmp(filter, "vc=", 3) == 0 ? filter + 3 : "", &trace)) {
        skip(name, "its trace is not there");
        return;
    }
    struct ty_pool pool;
    ty_pool_init(&pool);
    const struct ty_pool_nodes nodes = {.n_nodes = 1,
                                        .gpus_per_node = (uint32_t)number(golden, "gpus"),
                                        .cpus = NAN,
                                        .mem_bytes = NAN};
    pool.groups = &nodes;
    pool.n_groups = 1;
    pool.policy = policy_of(text(golden, "policy"));
    struct ty_pool_result result;
    struct ty_error error;
    if (!ok(ty_pool_run(&pool, trace.jobs, trace.n, &result, &error) == TY_OK, "%s: runs", name)) {
        free(trace.jobs);
        return;
    }
    const struct ty_pool_metrics *got = &result.metrics;
    double sum_end_s = 0.0;
    for (uint64_t i = 0; i < result.n_outcomes; i++)
        sum_end_s += result.outcomes[i].end_s;
    ok(matches(golden, "jobs", (double)got->n_done) &&
           matches(golden, "avg_jct", got->jct_s.mean) &&
           matches(golden, "median_jct", got->jct_s.median) &&
           matches(golden, "p99_jct", got->jct_s.p99) &&
           matches(golden, "makespan", got->makespan_s) &&
           matches(golden, "avg_wait", got->wait_s.mean) &&
           matches(golden, "utilisation", got->allocated_ratio) &&
           matches(golden, "preemptions", (double)got->n_preemptions) &&
           matches(golden, "sum_end_s", sum_end_s) && ends_match(golden, &result),
       "%s: jobs, JCT, makespan, wait, utilisation, preemptions, ends", name);
    ok(got->useful_ratio == got->allocated_ratio, "%s: nothing is lost without restart cost", name);
    ty_pool_result_free(&result);
    free(trace.jobs);
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : shared_path("data/traces/golden-schedules.json");
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[1] = '\0';
    else
        *folder = '\0';
    struct json_document document;
    struct ty_error error;
    if (json_load_file(path, &document, &error) != TY_OK) {
        skip("golden schedules", "golden-schedules.json is not there");
        return tap_done();
    }
    struct json_at cases, item = {0};
    uint32_t n = 0;
    if (json_find(&document.top, "cases", &cases))
        for (; json_next(&cases, &item); n++)
            check_case(folder, &item);
    ok(n == 38, "all 38 cases: %u", n);
    json_free(&document);
    return tap_done();
}

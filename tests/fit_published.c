/* SPDX-License-Identifier: MIT
 *
 * Shapes that a fit has not seen: each GEMM of the published tables (data/micro/gemm.csv) from a
 * fit to the others of its GPU, and each second size of the published collectives
 * (data/micro/nccl) from the rest of its table. The errors are printed; the bounds are what a
 * reader would call a failure, not what is reached. */
#include "calibrate/micro.h"
#include "calibrate/statistics.h"
#include "include/trainyard_records.h"
#include "models/collectives.h"
#include "models/measured.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#include <dirent.h>
#include <unistd.h>

static char records_path[] = "/tmp/trainyard-records-XXXXXX";
static char profile_path[] = "/tmp/trainyard-profile-XXXXXX";
static struct ty_error error;

/* ---- what is left out -------------------------------------------------------------------------
 */

static bool read_table(const char *path, struct record_list *list)
{
    struct import_file file = {.path = path};
    record_list_init(list);
    const bool good =
        import_read_file(&file, &error) == TY_OK && micro_read(&file, list, &error) == TY_OK;
    free(file.text);
    return good;
}

static void write_record(FILE *file, const struct record *record)
{
    struct json_writer json;
    json_begin(&json);
    record_write(record, &json);
    char *text = json_finish(&json);
    for (char *c = text; *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    fprintf(file, "%s\n", text);
    free(text);
}

/* The setting that `predict --profile` would have with a profile of the records file. */
static bool fitted_setting(const struct ty_cluster *cluster, struct setting *setting,
                           struct ty_profile_tables *tables)
{
    const char *const paths[] = {records_path};
    struct ty_calibration fit;
    struct ty_profile profile;
    struct ty_model model;
    fixture_llama3_8b(&model);
    if (ty_calibration_fit(paths, 1, cluster, &fit, &error) != TY_OK)
        return false;
    char *text = ty_calibration_json(&fit, "left-out");
    FILE *file = fopen(profile_path, "w");
    fputs(text, file);
    fclose(file);
    ty_text_free(text);
    ty_calibration_free(&fit);
    if (ty_profile_load(profile_path, NULL, cluster, &profile, &error) != TY_OK ||
        ty_profile_tables_load(profile_path, cluster, tables, &error) != TY_OK)
        return false;
    ty_profile_use(&profile, tables);
    profile.compute_ratio = 1.0;
    return setting_init(&model, cluster, &profile, setting, NULL, &error) == TY_OK;
}

static void report(const char *what, double *errors, uint32_t n, double allowed)
{
    stat_sort(errors, n);
    printf("# %s: %u left out, median %.1f %%, P90 %.1f %%\n", what, n,
           100.0 * stat_quantile(errors, n, 0.5), 100.0 * stat_quantile(errors, n, 0.9));
    ok(n > 4 && stat_quantile(errors, n, 0.5) < allowed, "%s: median below %.0f %%", what,
       100.0 * allowed);
}

/* ---- GEMM -------------------------------------------------------------------------------------
 */

static bool is_gemm_of(const struct record *record, const char *gpu)
{
    return strcmp(record_value_text(record, "gpu"), gpu) == 0 && !record->rejected &&
           !(record->flags & RECORD_SPECIFICATION);
}

/* What the fit to all records but one says about it; NAN when it fails. */
static double left_out_error(const struct record_list *list, size_t out, const char *gpu,
                             const struct ty_cluster *cluster, enum ty_precision precision)
{
    static struct setting setting;
    struct ty_profile_tables tables;
    struct kernel kernel;
    const struct record *record = &list->record[out];
    FILE *file = fopen(records_path, "w");
    for (size_t i = 0; i < list->n; i++)
        if (i != out && is_gemm_of(&list->record[i], gpu))
            write_record(file, &list->record[i]);
    fclose(file);
    if (!fitted_setting(cluster, &setting, &tables))
        return (double)NAN;
    kernel_gemm(&kernel, "left out", precision, record_value(record, "m"),
                record_value(record, "n"), record_value(record, "k"));
    const double measured_s = kernel.flop_hw / record_value(record, "rate_flops_per_s");
    const double off = fabs(kernel_time_s(&setting, &kernel) / measured_s - 1.0);
    ty_profile_tables_free(&tables);
    return off;
}

static void test_gemm(const char *gpu, const char *device, enum ty_precision precision,
                      double allowed)
{
    struct record_list list;
    struct ty_cluster cluster;
    double errors[64];
    uint32_t n = 0;
    ty_init(TY_KIND_CLUSTER, &cluster);
    if (!ok(read_table("data/micro/gemm.csv", &list) &&
                ty_gpu_load(device, &cluster.gpu, &error) == TY_OK,
            "the table of GEMMs"))
        return;
    snprintf(cluster.gpu.name, sizeof cluster.gpu.name, "%s", gpu); /* H800 is no built-in one */
    for (size_t i = 0; i < list.n && n < 64; i++)
        if (is_gemm_of(&list.record[i], gpu))
            errors[n++] = left_out_error(&list, i, gpu, &cluster, precision);
    report(gpu, errors, n, allowed);
    record_list_free(&list);
}

/* ---- collectives ------------------------------------------------------------------------------
 */

/* Every second size of a table, from the other half: appends their errors. */
static void left_out_sizes(const struct record_list *list, double *errors, uint32_t *n,
                           uint32_t max)
{
    struct ty_cluster cluster;
    fixture_dgx_h100(&cluster);
    double x[128], y[128];
    uint32_t points = 0;
    for (size_t i = 0; i < list->n && points < 128; i++) {
        const struct record *record = &list->record[i];
        const double size = record_value(record, "size_bytes"),
                     time_s = record_value(record, "time_s");
        if (record->rejected || record->flags || record_value(record, "in_place") > 0.0)
            continue;
        if (points && size <= x[points - 1])
            continue;
        x[points] = size;
        y[points++] = time_s;
    }
    double half_x[64], half_y[64];
    uint32_t half = 0;
    for (uint32_t i = 0; i < points; i += 2) {
        half_x[half] = x[i];
        half_y[half++] = y[i];
    }
    const struct ty_collective_table table = {.op = TY_ALL_REDUCE,
                                              .ranks = 8,
                                              .cluster = &cluster,
                                              .n = half,
                                              .size_bytes = half_x,
                                              .time_s = half_y};
    const struct ty_collective_tables tables = {half > 1, &table};
    for (uint32_t i = 1; half > 1 && i + 1 < points && *n < max; i += 2) {
        struct ty_collective_time time;
        const struct ty_collective_query query = {
            .cluster = &cluster, .op = TY_ALL_REDUCE, .ranks = 8, .size_bytes = x[i]};
        if (ty_collective_predict(&query, &tables, &time, &error) == TY_OK)
            errors[(*n)++] = fabs(time.time_s / y[i] - 1.0);
    }
}

static void test_collectives(void)
{
    static double errors[4096];
    uint32_t n = 0;
    DIR *folder = opendir("data/micro/nccl");
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        char path[512];
        struct record_list list;
        if (!strstr(entry->d_name, ".csv"))
            continue;
        snprintf(path, sizeof path, "data/micro/nccl/%s", entry->d_name);
        if (read_table(path, &list))
            left_out_sizes(&list, errors, &n, 4096);
        record_list_free(&list);
    }
    if (folder)
        closedir(folder);
    report("second sizes of published collectives", errors, n, 0.08);
}

int main(void)
{
    const int records = mkstemp(records_path), profile = mkstemp(profile_path);
    if (records < 0 || profile < 0)
        return 1;
    close(records);
    close(profile);
    test_gemm("H800 SXM", "h100-sxm", TY_FP8_PRECISION, 0.12);
    test_gemm("A100 SXM 80GB", "a100-sxm-80gb", TY_FP16_PRECISION, 0.12);
    test_gemm("H100 SXM", "h100-sxm", TY_FP8_PRECISION, 0.12);
    test_gemm("H200 SXM", "h200-sxm", TY_FP8_PRECISION, 0.12);
    test_collectives();
    remove(records_path);
    remove(profile_path);
    return tap_done();
}

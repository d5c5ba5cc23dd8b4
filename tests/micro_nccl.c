/* SPDX-License-Identifier: MIT
 *
 * The hand-made nccl-tests and rccl-tests logs of the shared material, one per generation and trap.
 * Expected: an independent script (python) that cuts each row at blanks, counts the rows and adds
 * up both columns of times; and the published tables in data/micro/nccl, from which the logs were
 * written, row by row.
 */
#include "tests/micro_fixture.h"

#define SAMPLES "data/micro/samples/"

static const struct sample {
    const char *file, *op, *gpu, *table; /* table: in data/micro/nccl, or NULL: it holds none */
    double ranks, nodes;
    uint32_t rows, rejected, flagged; /* flagged: truncated */
    double out_of_place_us, in_place_us;
} samples[] = {
    {"nccl_2.17_allreduce_b200x16.log", "all_reduce", "NVIDIA B200",
     "b200-16x_2node_ib_allreduce_lambda.csv", 16, 2, 29, 0, 0, 14120.66, 13963.77},
    {"nccl_2.19_allreduce_b200x16.json", "all_reduce", "NVIDIA B200",
     "b200-16x_2node_ib_allreduce_lambda.csv", 16, 2, 29, 0, 0, 14120.66, 13963.77},
    {"nccl_2.19_alltoall_gb300x64.log", "all_to_all", "NVIDIA GB300",
     "gb300-64x_16node_alltoall_oci.csv", 64, 16, 2, 0, 0, 38385, 38518},
    {"nccl_2.19_periter_allreduce_h100x16.log", "all_reduce", "NVIDIA H100 80GB HBM3",
     "h100-16x_2node_efa3200_allreduce_aws.csv", 16, 2, 32, 0, 0, 139088.98, 138969.2},
    {"nccl_2022_allgather_h200x16.log", "all_gather", "NVIDIA H200", NULL, 16, 2, 24, 0, 0,
     50544.83, 49611.89},
    {"nccl_2022_allreduce_h100x8.log", "all_reduce", "NVIDIA H100 80GB HBM3",
     "h100-8x_nvlink_allreduce_aws.csv", 8, 1, 32, 0, 0, 127068.83, 127002.87},
    {"nccl_inconsistent_allreduce_h100x8.log", "all_reduce", "NVIDIA H100 80GB HBM3", NULL, 8, 1,
     32, 2, 0, 127068.83, 127002.87},
    {"nccl_legacy2021_allreduce_a100x8.log", "all_reduce", "A100-SXM4-40GB", NULL, 8, 1, 32, 0, 0,
     130124.12, 130162.79},
    {"nccl_legacy2021_alltoall_a100x8.log", "all_to_all", "A100-SXM4-40GB",
     "a100-40g-8x_nvlink_alltoall_superbench.csv", 8, 1, 29, 0, 0, 69771.58, 69066.27},
    {"nccl_mpirun_tag_allreduce_h100x16.log", "all_reduce", "NVIDIA H100 80GB HBM3",
     "h100-16x_2node_efa3200_allreduce_aws_eks.csv", 16, 2, 6, 0, 0, 25189.1, 24969},
    {"nccl_noisy_allreduce_h100x8.log", "all_reduce", "NVIDIA H100 80GB HBM3",
     "h100-8x_nvlink_allreduce_aws.csv", 8, 1, 32, 0, 0, 127068.83, 127002.87},
    {"nccl_srun_label_allreduce_a100x16.log", "all_reduce", "NVIDIA A100-SXM4-80GB", NULL, 16, 2,
     29, 0, 0, 112899.9, 112865.2},
    {"nccl_truncated_allreduce_h100x8.log", "all_reduce", "NVIDIA H100 80GB HBM3", NULL, 8, 1, 24,
     0, 48, 1153.63, 1134.27},
    {"rccl_allreduce_mi300x16.log", "all_reduce", "AMD Instinct MI300X",
     "mi300x-16x_2node_roce_allreduce_oci.csv", 16, 2, 5, 0, 0, 174834, 174886.5},
};

static double sum_times_us(const struct record_list *list, double in_place)
{
    double sum = 0.0;
    for (size_t i = 0; i < list->n; i++)
        if (record_value(&list->record[i], "in_place") == in_place)
            sum += record_value(&list->record[i], "time_s") * 1e6;
    return sum;
}

static bool all_say(const struct record_list *list, const struct sample *s)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct record *r = &list->record[i];
        if (strcmp(record_value_text(r, "op"), s->op) != 0 ||
            strcmp(record_value_text(r, "gpu"), s->gpu) != 0 ||
            record_value(r, "ranks") != s->ranks || record_value(r, "nodes") != s->nodes ||
            strcmp(record_value_text(r, "dtype"), "fp32") != 0 || strcmp(r->file, s->file) != 0)
            return false;
    }
    return list->n > 0;
}

/* Value by value: what one has, the other has too, within the digits printed. */
static bool same_values(const struct record *a, const struct record *b)
{
    static const char *const keys[] = {"size_bytes", "in_place", "time_s", "algbw_bytes_per_s",
                                       "busbw_bytes_per_s"};
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        const double x = record_value(a, keys[k]), y = record_value(b, keys[k]);
        if (isnan(x) != isnan(y) || fabs(x - y) > 1e-9 * fabs(y))
            return false;
    }
    return true;
}

static void check_table(const struct sample *s, const struct record_list *list)
{
    struct record_list table;
    struct ty_error error;
    char path[256];
    snprintf(path, sizeof path, "data/micro/nccl/%s", s->table);
    size_t same = 0;
    if (records_of_file(path, &table, &error))
        for (size_t i = 0; i < list->n && i < table.n; i++)
            same += same_values(&list->record[i], &table.record[i]);
    ok(same == table.n && same == list->n, "%s: each row is that of the published table", s->file);
    record_list_free(&table);
}

static void check_sample(const struct sample *s)
{
    char path[1024], what[200];
    struct record_list list;
    struct ty_error error = {0};
    snprintf(path, sizeof path, "%s", shared_path(SAMPLES));
    snprintf(path + strlen(path), sizeof path - strlen(path), "%s", s->file);
    if (!ok(records_of_file(path, &list, &error), "%s is read", s->file))
        printf("#   %s: %s\n", error.where, error.text);
    ok(list.n == 2 * s->rows, "%s: %u rows in and out of place", s->file, s->rows);
    ok(all_say(&list, s), "%s: %s, %g x %s on %g nodes, fp32", s->file, s->op, s->ranks, s->gpu,
       s->nodes);
    snprintf(what, sizeof what, "%s: times out of place", s->file);
    near(sum_times_us(&list, 0.0), s->out_of_place_us, 1e-9, what);
    snprintf(what, sizeof what, "%s: times in place", s->file);
    near(sum_times_us(&list, 1.0), s->in_place_us, 1e-9, what);
    ok(count_rejected(&list) == s->rejected, "%s: %u rows rejected", s->file, s->rejected);
    ok(count_flag(&list, RECORD_TRUNCATED) == s->flagged, "%s: %u rows of a cut table", s->file,
       s->flagged);
    if (s->table)
        check_table(s, &list);
    record_list_free(&list);
}

/* What single samples exist for; the numbers are in their text. */
static void check_details(void)
{
    struct record_list list;
    struct ty_error error;
    records_of_file(shared_path(SAMPLES "nccl_inconsistent_allreduce_h100x8.log"), &list, &error);
    const struct record *r = find_record(&list, "algbw_bytes_per_s", 939.58e9);
    same_text(r->rejected ? r->rejected : "", "algbw is 939.6 GB/s, but size / time is 252.5",
              "an impossible row says why");
    ok(r->line == 44, "and where it stands (line %u)", r->line);
    record_list_free(&list);

    records_of_file(shared_path(SAMPLES "nccl_2.19_periter_allreduce_h100x16.log"), &list, &error);
    r = find_record(&list, "size_bytes", 8);
    near(record_value(r, "time_min_s"), 67.05e-6, 1e-9, "i_min of the first row");
    near(record_value(r, "time_max_s"), 76.72e-6, 1e-9, "i_max");
    near(record_value(r, "time_p99_s"), 76.72e-6, 1e-9, "i_p99");
    near(record_value(r, "time_cv"), 0.024, 1e-9, "i_cv%");
    same_text(record_value_text(r, "nccl"), "2.30.7", "nccl-library=23007 is 2.30.7");
    same_text(record_value_text(r, "tool_version"), "2.19.6", "version of nccl-tests");
    record_list_free(&list);

    records_of_file(shared_path(SAMPLES "nccl_noisy_allreduce_h100x8.log"), &list, &error);
    r = find_record(&list, "size_bytes", 32);
    ok(r->flags == RECORD_OUTLIER, "32 bytes in 22.25 us between 12.88 and 14.48: an outlier");
    ok(count_flag(&list, RECORD_OUTLIER | RECORD_COLD) == 1, "and the only one");
    same_text(record_value_text(r, "nccl"), "2.20.3", "NCCL version from between the lines");
    same_text(record_value_text(r, "cuda"), "12.3", "CUDA version");
    record_list_free(&list);

    records_of_file(shared_path(SAMPLES "rccl_allreduce_mi300x16.log"), &list, &error);
    same_text(list.n ? list.record[0].tool : "", "rccl-tests", "rccl-tests is told apart");
    record_list_free(&list);
}

int main(void)
{
    FILE *there = fopen(shared_path(SAMPLES "README.md"), "r");
    if (!there) {
        skip("logs of nccl-tests", "no shared material");
        return tap_done();
    }
    fclose(there);
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        check_sample(&samples[i]);
    check_details();
    return tap_done();
}

/* SPDX-License-Identifier: MIT
 * The project's tables of microbenchmarks, data/micro: each loads, with the number of rows, ranks
 * and the GPU that index.json says. */
#include "tests/micro_fixture.h"

static bool same_head(const struct record_list *list, const struct json_at *entry)
{
    const double ranks = micro_json_number(entry, "ranks"),
                 nodes = micro_json_number(entry, "nodes");
    for (size_t i = 0; i < list->n; i++) {
        const struct record *r = &list->record[i];
        if (record_value(r, "ranks") != ranks || record_value(r, "nodes") != nodes ||
            strcmp(record_value_text(r, "gpu"), micro_json_text(entry, "gpu")) != 0 ||
            !(record_value(r, "time_s") > 0.0) || strcmp(r->kind, "collective") != 0)
            return false;
    }
    return list->n > 0;
}

static void check_collectives(void)
{
    struct json_document index = {0};
    struct json_at entry = {0};
    struct ty_error error = {0};
    uint32_t n = 0;
    if (!ok(json_load_file("data/micro/nccl/index.json", &index, &error) == TY_OK,
            "index.json is read"))
        return;
    while (json_next(&index.top, &entry)) {
        char path[256];
        struct record_list list;
        const char *name = micro_json_text(&entry, "file");
        snprintf(path, sizeof path, "data/micro/nccl/%s", name);
        const bool read = records_of_file(path, &list, &error);
        ok(read && (double)list.n == micro_json_number(&entry, "rows") &&
               count_rejected(&list) == 0 && same_head(&list, &entry),
           "%s: %zu rows", name, list.n);
        record_list_free(&list);
        n++;
    }
    ok(n == json_size(&index.top) && n >= 55, "%u tables of collectives", n);
    json_free(&index);
}

/* Rows counted with wc -l; values and units as in the first row of each file. */
static void check_points(void)
{
    static const struct {
        const char *file, *kind, *key;
        uint32_t rows;
        double first;
    } tables[] = {
        {"attention.csv", "attention", "rate_flops_per_s", 253, 36e12},
        {"copy_curves.csv", "copy", "bandwidth_bytes_per_s", 266, 0.4e9},
        {"gemm.csv", "gemm", "rate_flops_per_s", 96, 418.7e12},
        {"memory_copy_launch.csv", "copy", "bandwidth_bytes_per_s", 148, 1610e9},
        {"moe_alltoall_deepep.csv", "expert_exchange", "dispatch_bytes_per_s", 15, 153e9},
        {"nccl_expected_busbw.csv", "collective", "busbw_bytes_per_s", 30, 24e9},
        {"nccl_scaling_h100_4to512node_digitised.csv", "collective", "busbw_bytes_per_s", 36,
         115e9},
        {"nccl_scaling_h100_nvlstree_digitised.csv", "collective", "busbw_bytes_per_s", 141, 4.6e9},
        {"storage_mlperf_v1.0.csv", "storage", "samples_per_s", 132, 19309.041},
    };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        char path[256];
        struct record_list list;
        struct ty_error error = {0};
        snprintf(path, sizeof path, "data/micro/%s", tables[i].file);
        ok(records_of_file(path, &list, &error) && list.n == tables[i].rows &&
               count_rejected(&list) == 0 && strcmp(list.record[0].kind, tables[i].kind) == 0,
           "%s: %u rows of kind %s", tables[i].file, tables[i].rows, tables[i].kind);
        if (list.n)
            near(record_value(&list.record[0], tables[i].key), tables[i].first, 1e-12,
                 tables[i].key);
        record_list_free(&list);
    }
}

/* "alltoall" in the table. */
static void check_names(void)
{
    struct record_list list;
    struct ty_error error = {0};
    uint32_t n = 0;
    records_of_file("data/micro/nccl_expected_busbw.csv", &list, &error);
    for (size_t i = 0; i < list.n; i++)
        n += strcmp(record_value_text(&list.record[i], "op"), "all_to_all") == 0;
    ok(n == 10, "an operation has one name in all records");
    ok(list.n > 0 && list.record[0].flags == RECORD_SPECIFICATION, "expected is not measured");
    record_list_free(&list);
}

int main(void)
{
    check_collectives();
    check_names();
    check_points();
    return tap_done();
}

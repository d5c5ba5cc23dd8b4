/* SPDX-License-Identifier: MIT
 *
 * The project's own tables, data/micro: one CSV reader for all of them. A table is known by its
 * columns; each column names the field it becomes and the unit it is in. Tables of collectives
 * (data/micro/nccl) take operation, ranks, GPU and network from the index.json beside them.
 */
#include "calibrate/micro_collective.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables of single points ------------------------------------------------------------------
 */

#define MAX_COLUMNS 10

struct column {
    const char *name; /* NULL ends the list */
    enum record_section section;
    const char *key;
    double unit; /* 0: a text */
};

static const struct table {
    const char *kind;
    struct column column[MAX_COLUMNS + 1];
} tables[] = {
    {"gemm",
     {{"gpu", RECORD_HARDWARE, "gpu", 0},
      {"m", RECORD_PARAMETER, "m", 1},
      {"n", RECORD_PARAMETER, "n", 1},
      {"k", RECORD_PARAMETER, "k", 1},
      {"dtype", RECORD_PARAMETER, "dtype", 0},
      {"tflops", RECORD_VALUE, "rate_flops_per_s", 1e12},
      {"peak_tflops", RECORD_HARDWARE, "peak_flops_per_s", 1e12},
      {"method", RECORD_PARAMETER, "method", 0},
      {"source", RECORD_PARAMETER, "origin", 0}}},
    {"attention",
     {{"gpu", RECORD_HARDWARE, "gpu", 0},
      {"impl", RECORD_SOFTWARE, "implementation", 0},
      {"head_dim", RECORD_PARAMETER, "head_dim", 1},
      {"causal", RECORD_PARAMETER, "causal", 1},
      {"passes", RECORD_PARAMETER, "passes", 0},
      {"seq_len", RECORD_PARAMETER, "seq_len", 1},
      {"dtype", RECORD_PARAMETER, "dtype", 0},
      {"tflops", RECORD_VALUE, "rate_flops_per_s", 1e12},
      {"source", RECORD_PARAMETER, "origin", 0}}},
    {"collective",
     {{"system", RECORD_HARDWARE, "gpu", 0},
      {"gpus", RECORD_PARAMETER, "ranks", 1},
      {"op", RECORD_PARAMETER, "op", 0},
      {"busbw_gbps", RECORD_VALUE, "busbw_bytes_per_s", 1e9},
      {"source", RECORD_PARAMETER, "origin", 0}}},
    {"collective",
     {{"gpus", RECORD_PARAMETER, "ranks", 1},
      {"nodes", RECORD_PARAMETER, "nodes", 1},
      {"size_bytes", RECORD_PARAMETER, "size_bytes", 1},
      {"op", RECORD_PARAMETER, "op", 0},
      {"algo", RECORD_PARAMETER, "algorithm", 0},
      {"busbw_gbps", RECORD_VALUE, "busbw_bytes_per_s", 1e9},
      {"approx", RECORD_PARAMETER, "read_off_a_plot", 1},
      {"source", RECORD_PARAMETER, "origin", 0}}},
    {"expert_exchange",
     {{"system", RECORD_HARDWARE, "gpu", 0},
      {"mode", RECORD_PARAMETER, "mode", 0},
      {"ep", RECORD_PARAMETER, "ranks", 1},
      {"dispatch_us", RECORD_VALUE, "dispatch_s", 1e-6},
      {"dispatch_gbps", RECORD_VALUE, "dispatch_bytes_per_s", 1e9},
      {"combine_us", RECORD_VALUE, "combine_s", 1e-6},
      {"combine_gbps", RECORD_VALUE, "combine_bytes_per_s", 1e9},
      {"note", RECORD_PARAMETER, "note", 0},
      {"source", RECORD_PARAMETER, "origin", 0}}},
    {"storage",
     {{"submitter", RECORD_HARDWARE, "vendor", 0},
      {"system", RECORD_HARDWARE, "system", 0},
      {"model", RECORD_PARAMETER, "model", 0},
      {"accelerator", RECORD_PARAMETER, "accelerator", 0},
      {"num_accelerators", RECORD_PARAMETER, "accelerators", 1},
      {"samples_per_s", RECORD_VALUE, "samples_per_s", 1},
      {"MB_per_s", RECORD_VALUE, "bandwidth_bytes_per_s", 1048576.0}, /* MB of 2^20: micro_dlio */
      {"au_pct", RECORD_VALUE, "accelerator_utilisation", 0.01},
      {"hosts", RECORD_PARAMETER, "hosts", 1}}},
    {"copy",
     {{"device", RECORD_HARDWARE, "gpu", 0},
      {"metric", RECORD_PARAMETER, "test", 0},
      {"size_bytes", RECORD_PARAMETER, "size_bytes", 1},
      {"source", RECORD_PARAMETER, "origin", 0}}},
    {"copy",
     {{"gpu", RECORD_HARDWARE, "gpu", 0},
      {"metric", RECORD_PARAMETER, "test", 0},
      {"size_bytes", RECORD_PARAMETER, "size_bytes", 1},
      {"tool", RECORD_SOFTWARE, "benchmark", 0},
      {"source", RECORD_PARAMETER, "origin", 0}}},
};

static bool has_columns(const struct csv *csv, const struct table *table)
{
    const bool by_unit = strcmp(table->kind, "copy") == 0;
    for (const struct column *c = table->column; c->name; c++)
        if (csv_column(csv, c->name) < 0)
            return false;
    return !by_unit || (csv_column(csv, "value") >= 0 && csv_column(csv, "unit") >= 0);
}

/* The columns value and unit: "GB/s", "us", "ns", with a remark behind it or not. */
static bool read_with_unit(const struct csv *csv, uint64_t row, struct record_fields *f)
{
    static const struct {
        const char *unit, *key;
        double scale;
    } units[] = {
        {"GB/s", "bandwidth_bytes_per_s", 1e9}, {"us", "time_s", 1e-6}, {"ns", "time_s", 1e-9}};
    char unit[8];
    double value;
    micro_copy_word(csv_cell(csv, row, csv_column(csv, "unit")), " ", unit, sizeof unit);
    if (!micro_number(csv_cell(csv, row, csv_column(csv, "value")), &value))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].unit) == 0) {
            record_number(f, RECORD_VALUE, units[i].key, value * units[i].scale);
            return value > 0.0;
        }
    return false;
}

/* Whether the row's columns hold a value above 0. */
static bool read_columns(const struct csv *csv, uint64_t row, const struct table *table,
                         struct record_list *list, struct record_fields *f)
{
    bool measured = false;
    for (const struct column *c = table->column; c->name; c++) {
        const char *cell = csv_cell(csv, row, csv_column(csv, c->name));
        const char *op = strcmp(c->name, "op") == 0 ? collective_op_named(cell) : NULL;
        double value;
        if (op)
            record_text(f, c->section, c->key, op);
        else if (c->unit == 0.0 && *cell)
            record_text(f, c->section, c->key, record_copy(list, cell));
        else if (c->unit != 0.0 && micro_number(cell, &value)) {
            record_number(f, c->section, c->key, value * c->unit);
            measured |= c->section == RECORD_VALUE && value > 0.0;
        }
    }
    return measured;
}

static void read_points(const struct csv *csv, const struct table *table, const char *path,
                        struct record_list *list)
{
    struct record head = {
        .kind = table->kind, .tool = "table", .file = record_copy(list, micro_file_name(path))};
    const int kind = csv_column(csv, "kind");
    const bool expected = csv_column(csv, "system") >= 0 && csv_column(csv, "busbw_gbps") >= 0;
    for (uint64_t row = 0; row < csv->n_rows; row++) {
        struct record_fields f = {.n = 0};
        bool measured = read_columns(csv, row, table, list, &f);
        if (strcmp(table->kind, "copy") == 0)
            measured = read_with_unit(csv, row, &f);
        head.line = (uint32_t)row + 2;
        head.rejected = measured ? NULL : "no value above 0";
        head.flags = expected || strncmp(csv_cell(csv, row, kind), "claimed", 7) == 0
                         ? RECORD_SPECIFICATION
                         : 0;
        if (strcmp(csv_cell(csv, row, csv_column(csv, "approx")), "1") == 0)
            head.flags |= RECORD_APPROXIMATE;
        record_add(list, &head, &f);
    }
}

/* ---- tables of collectives --------------------------------------------------------------------
 */

/* The entry of the index.json beside `path` that names the file; it says what the table is of. */
static bool find_entry(const struct json_at *index, const char *path, struct json_at *entry)
{
    *entry = (struct json_at){0};
    while (json_next(index, entry))
        if (strcmp(micro_json_text(entry, "file"), micro_file_name(path)) == 0)
            return true;
    return false;
}

static uint32_t count_of(const struct json_at *entry, const char *key)
{
    const double value = micro_json_number(entry, key);
    return value >= 1.0 && value < 1e6 ? (uint32_t)value : 0;
}

static void read_entry(const struct json_at *entry, struct collective_table *t)
{
    static const char *const keys[][2] = {{"gpu", "gpu"}, {"network", "network"}};
    t->op = collective_op_named(micro_json_text(entry, "op"));
    t->ranks = count_of(entry, "ranks");
    t->nodes = count_of(entry, "nodes");
    for (size_t i = 0; i < 2; i++)
        record_text(&t->stamp, RECORD_HARDWARE, keys[i][1],
                    record_copy(t->list, micro_json_text(entry, keys[i][0])));
    record_text(&t->stamp, RECORD_SOFTWARE, "nccl",
                record_copy(t->list, micro_json_text(entry, "nccl_version")));
    record_text(&t->stamp, RECORD_PARAMETER, "origin",
                record_copy(t->list, micro_json_text(entry, "source")));
}

/* An absent or broken index leaves the file's name to say what it is. */
static void read_index(const char *path, struct collective_table *t)
{
    char index_path[1024];
    struct json_document document = {0};
    struct json_at entry;
    text_format(index_path, sizeof index_path, "%.*sindex.json",
                (int)((size_t)(micro_file_name(path) - path) & 0x3ff), path);
    if (json_load_file(index_path, &document, NULL) == TY_OK &&
        find_entry(&document.top, path, &entry))
        read_entry(&entry, t);
    json_free(&document);
}

static void read_collectives(const struct csv *csv, const char *path, struct record_list *list)
{
    struct collective_table t = {.list = list, .tool = "table", .path = path};
    const int size = csv_column(csv, "size_bytes"), time = csv_column(csv, "time_us");
    const int algbw = csv_column(csv, "algbw_gbps"), busbw = csv_column(csv, "busbw_gbps");
    const int in_place = csv_column(csv, "in_place"), derived = csv_column(csv, "derived");
    read_index(path, &t);
    for (uint64_t i = 0; i < csv->n_rows; i++) {
        struct collective_row row;
        collective_row_init(&row);
        row.line = (uint32_t)i + 2;
        const bool numbers = micro_number(csv_cell(csv, i, size), &row.size_bytes) &&
                             micro_number(csv_cell(csv, i, time), &row.time_s) &&
                             micro_number(csv_cell(csv, i, algbw), &row.algbw_bytes_per_s) &&
                             micro_number(csv_cell(csv, i, busbw), &row.busbw_bytes_per_s);
        if (!numbers)
            row.rejected = "size, time, algbw and busbw must be numbers";
        row.time_s *= 1e-6;
        row.time_half_digit_s = micro_half_digit(csv_cell(csv, i, time)) * 1e-6;
        row.algbw_bytes_per_s *= 1e9;
        row.busbw_bytes_per_s *= 1e9;
        row.bw_half_digit_bytes_per_s = 0.005e9; /* as the tools print it */
        row.in_place = strcmp(csv_cell(csv, i, in_place), "1") == 0;
        if (strcmp(csv_cell(csv, i, derived), "1") == 0) {
            row.flags = RECORD_DERIVED;
            if (row.bw_half_digit_bytes_per_s > 0.05 * row.busbw_bytes_per_s)
                row.flags |= RECORD_COARSE;
        }
        collective_add(&t, &row);
    }
    collective_finish(&t);
    collective_free(&t);
}

/* ---- reading -----------------------------------------------------------------------------------
 */

static bool is_collective(const struct csv *csv)
{
    return csv_column(csv, "size_bytes") >= 0 && csv_column(csv, "time_us") >= 0 &&
           csv_column(csv, "algbw_gbps") >= 0 && csv_column(csv, "busbw_gbps") >= 0;
}

ty_status micro_read_table(struct import_file *file, struct record_list *list,
                           struct ty_error *error)
{
    struct csv csv;
    ty_status status = csv_read(file->path, &csv, error);
    if (status != TY_OK)
        return status;
    const size_t n_before = list->n;
    if (is_collective(&csv)) {
        read_collectives(&csv, file->path, list);
    } else {
        for (size_t i = 0; i < sizeof tables / sizeof tables[0] && list->n == n_before; i++)
            if (has_columns(&csv, &tables[i]))
                read_points(&csv, &tables[i], file->path, list);
    }
    if (list->n == n_before)
        status = error_set(error, TY_ERR_INPUT, file->path,
                           "has not the columns of any table that import reads (docs/import.md)");
    csv_free(&csv);
    return status == TY_OK ? record_list_status(list, file->path, error) : status;
}

/* SPDX-License-Identifier: MIT
 * nccl-tests -J: the table as JSON. Booleans are texts, the root is a padded text, times are in
 * microseconds and bandwidths in GB/s, printed with two decimals or in full. */
#include "calibrate/micro_collective.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Ranks, distinct hosts and the GPU from config.devices. */
static void read_devices(const struct json_at *config, struct collective_table *table)
{
    struct json_at devices, device = {0};
    if (!json_find(config, "devices", &devices))
        return;
    table->ranks = json_size(&devices);
    const char **host = calloc(table->ranks + 1u, sizeof *host);
    if (!host) {
        table->list->out_of_memory = true;
        return;
    }
    uint32_t n = 0;
    const char *gpu = "";
    while (n < table->ranks && json_next(&devices, &device)) {
        host[n++] = micro_json_text(&device, "hostname");
        gpu = micro_json_text(&device, "device_info");
    }
    qsort(host, n, sizeof *host, by_text);
    for (uint32_t i = 0; i < n; i++)
        table->nodes += *host[i] && (i == 0 || strcmp(host[i - 1], host[i]) != 0);
    free(host);
    record_text(&table->stamp, RECORD_HARDWARE, "gpu", record_copy(table->list, gpu));
}

/* The items of an array of texts, one after the other. */
static void join_texts(const struct json_at *top, const char *key, char *out, size_t bytes)
{
    struct json_at array, item = {0};
    out[0] = '\0';
    if (!json_find(top, key, &array))
        return;
    while (json_next(&array, &item)) {
        const char *text;
        if (json_type_of(&item) == JSON_TEXT && json_get_text(&item, &text, NULL) == TY_OK)
            text_append(out, bytes, "%s%s", *out ? " " : "", text);
    }
}

static void read_head(const struct json_at *top, struct collective_table *table)
{
    struct json_at config;
    char text[256];
    join_texts(top, "args", text, sizeof text);
    const char *program = strstr(text, "_perf");
    while (program && program > text && program[-1] != '/' && program[-1] != ' ')
        program--;
    table->op = program ? collective_op_named(program) : NULL;
    if (json_find(top, "config", &config))
        read_devices(&config, table);
    const double code = micro_json_number(top, "nccl_version"); /* 23007: 2.30.7 */
    if (code >= 10000.0 && code < 1e8) {
        char version[24];
        const uint32_t c = (uint32_t)code;
        text_format(version, sizeof version, "%u.%u.%u", c / 10000, c % 10000 / 100, c % 100);
        record_text(&table->stamp, RECORD_SOFTWARE, "nccl", record_copy(table->list, version));
    }
    join_texts(top, "env", text, sizeof text);
    record_text(&table->stamp, RECORD_SOFTWARE, "environment", record_copy(table->list, text));
}

static void read_half(const struct json_at *result, const char *key, struct collective_row row,
                      struct collective_table *table)
{
    struct json_at half;
    if (!json_find(result, key, &half))
        return;
    row.time_s = micro_json_number(&half, "time") * 1e-6;
    row.algbw_bytes_per_s = micro_json_number(&half, "alg_bw") * 1e9;
    row.busbw_bytes_per_s = micro_json_number(&half, "bus_bw") * 1e9;
    row.n_wrong = micro_json_number(&half, "nwrong");
    row.time_half_digit_s = 0.005e-6;
    row.bw_half_digit_bytes_per_s = 0.005e9;
    row.in_place = strcmp(key, "in_place") == 0;
    if (!isnan(row.time_s))
        collective_add(table, &row);
}

static void read_results(const struct json_at *results, struct collective_table *table)
{
    struct json_at result = {0};
    while (json_next(results, &result)) {
        struct collective_row row;
        collective_row_init(&row);
        row.size_bytes = micro_json_number(&result, "size");
        row.root = micro_json_number(&result, "root");
        row.dtype = collective_dtype(table->list, micro_json_text(&result, "type"));
        row.redop = record_copy(table->list, micro_json_text(&result, "redop"));
        read_half(&result, "out_of_place", row, table);
        read_half(&result, "in_place", row, table);
    }
}

ty_status micro_read_nccl_json(struct import_file *file, struct record_list *list,
                               struct ty_error *error)
{
    struct json_document document = {0};
    struct json_at results, bounds;
    struct collective_table table = {.list = list, .tool = "nccl-tests", .path = file->path};
    ty_status status = micro_json(file, &document, error);
    if (status != TY_OK)
        return status;
    read_head(&document.top, &table);
    if (json_find(&document.top, "out_of_bounds", &bounds) &&
        strcmp(micro_json_text(&bounds, "okay"), "false") == 0)
        table.flags |= RECORD_INVALID_DATA;
    if (json_find(&document.top, "results", &results))
        read_results(&results, &table);
    collective_finish(&table);
    collective_free(&table);
    json_free(&document);
    return record_list_status(list, file->path, error);
}

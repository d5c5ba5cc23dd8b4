/* SPDX-License-Identifier: MIT
 *
 * hipblaslt-bench of every version: a header line of names, with "[0]:" before it in later ones,
 * and a line of values for each solution. Columns are found by their names; which there are depends
 * on the version and on variables (HIPBLASLT_BENCH_FREQ, _EFF).
 *
 *   rate = 2 m n k batch / time
 *
 * Its matrices are column-major: its m x n result is a row-major [n, m], so that its n are our
 * rows. */
#include "calibrate/micro.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>
#include <strings.h>

enum { COLUMNS = 64 };

struct reader {
    struct record_list *list;
    struct record head;
    uint32_t n;
    char *name[COLUMNS];
    char header[2048], gpu[96];
};

/* Cuts at commas and takes blanks away, and the dot of "10." */
static uint32_t cut(char *line, char *cell[])
{
    uint32_t n = 0;
    for (char *at = line; at && n < COLUMNS; n++) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        at += strspn(at, " ");
        size_t length = strcspn(at, " ");
        length -= length > 1 && at[length - 1] == '.';
        at[length] = '\0';
        cell[n] = at;
        at = comma ? comma + 1 : NULL;
    }
    return n;
}

static const char *cell_of(const struct reader *r, char *const cell[], uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < r->n && i < n; i++)
        if (strcasecmp(r->name[i], name) == 0)
            return cell[i];
    return "";
}

static double number_of(const struct reader *r, char *const cell[], uint32_t n, const char *name)
{
    double value;
    return micro_number(cell_of(r, cell, n, name), &value) ? value : (double)NAN;
}

/* "bf16_r" with the type that is computed in; "" for one that no model trains in. */
static const char *dtype_of(const char *type, const char *compute)
{
    static const struct {
        const char *type, *dtype;
    } types[] = {{"bf16_r", "bf16"},   {"f16_r", "fp16"},    {"f8_r", "fp8"},
                 {"bf8_r", "fp8"},     {"f8_fnuz_r", "fp8"}, {"bf8_fnuz_r", "fp8"},
                 {"f8_e4m3_r", "fp8"}, {"f8_e5m2_r", "fp8"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].type, type) == 0)
            return types[i].dtype;
    if (strcmp(type, "f32_r") == 0)
        return strstr(compute, "xf32") ? "tf32" : "fp32";
    return type;
}

static void add(struct reader *r, char *const cell[], uint32_t n)
{
    struct record_fields f = {.n = 0};
    const char *type = cell_of(r, cell, n, "a_type");
    const double m = number_of(r, cell, n, "m"), columns = number_of(r, cell, n, "n");
    const double k = number_of(r, cell, n, "k"), batches = number_of(r, cell, n, "batch_count");
    const double batch = batches > 0.0 ? batches : 1.0, us = number_of(r, cell, n, "us");
    const double rate = 1e9 * number_of(r, cell, n, "hipblaslt-Gflops");
    const double half_digit = micro_half_digit(cell_of(r, cell, n, "us"));
    const double wanted_us = 2e6 * m * columns * k * batch / rate;
    if (!(m > 0.0) || !(columns > 0.0) || !(k > 0.0) || !(us > 0.0))
        return;
    type =
        dtype_of(*type ? type : cell_of(r, cell, n, "d_type"), cell_of(r, cell, n, "compute_type"));
    record_number(&f, RECORD_PARAMETER, "m", columns);
    record_number(&f, RECORD_PARAMETER, "n", m);
    record_number(&f, RECORD_PARAMETER, "k", k);
    record_number(&f, RECORD_PARAMETER, "batch", batch);
    record_text(&f, RECORD_PARAMETER, "dtype", record_copy(r->list, type));
    record_number(&f, RECORD_VALUE, "time_s", 1e-6 * us);
    record_number(&f, RECORD_VALUE, "rate_flops_per_s", rate);
    record_text(&f, RECORD_HARDWARE, "gpu", record_copy(r->list, r->gpu));
    r->head.rejected = NULL;
    if (number_of(r, cell, n, "grouped_gemm") > 0.0)
        r->head.rejected = "of a grouped GEMM the first group alone is printed";
    else if (!micro_agrees(us, wanted_us, half_digit))
        r->head.rejected = "the rate is not 2 m n k / time";
    record_add(r->list, &r->head, &f);
}

/* "Device ID 0 : AMD Instinct MI350X gfx950:sramecc+:xnack-" */
static void read_device(struct reader *r, const char *line)
{
    const char *name = strchr(line, ':');
    const char *end = name ? strstr(name, " gfx") : NULL;
    if (end)
        text_format(r->gpu, sizeof r->gpu, "%.*s", (int)(end - name - 2), name + 2);
}

static void read_header(struct reader *r, const char *from)
{
    text_format(r->header, sizeof r->header, "%s", from);
    r->n = cut(r->header, r->name);
}

ty_status micro_read_hipblaslt(struct import_file *file, struct record_list *list,
                               struct ty_error *error)
{
    struct reader r = {.list = list,
                       .head = {.kind = "gemm",
                                .tool = "hipblaslt-bench",
                                .file = record_copy(list, micro_file_name(file->path))}};
    struct micro_lines lines = {file->text, 0};
    for (char *line; (line = micro_next_line(&lines)) != NULL;) {
        char *cell[COLUMNS];
        const char *header = strstr(line, "transA,transB,");
        r.head.line = lines.line;
        if (header) {
            read_header(&r, header);
        } else if (strstr(line, "Device ID ")) {
            read_device(&r, line);
        } else if (r.n && strchr("NTC", *(line += strspn(line, " "))) && line[0] &&
                   line[1] == ',') {
            const uint32_t n = cut(line, cell);
            if (n == r.n)
                add(&r, cell, n);
        }
    }
    return record_list_status(list, file->path, error);
}

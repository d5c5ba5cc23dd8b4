/* SPDX-License-Identifier: MIT
 * Any bytes as the output of every benchmark: a usable record has a kind and finite fields, and
 * what is written reads back the same. The reader of tables is left out: it takes a path. */
#include "calibrate/micro.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static micro_reader *const readers[] = {micro_read_nccl,
                                        micro_read_nccl_json,
                                        micro_read_torch_bench,
                                        micro_read_nvbandwidth,
                                        micro_read_nvbandwidth_json,
                                        micro_read_babelstream,
                                        micro_read_perftest,
                                        micro_read_ior,
                                        micro_read_fio,
                                        micro_read_dlio,
                                        micro_read_gemm};

static void require(bool holds)
{
    if (!holds)
        abort();
}

static char *write_lines(const struct record_list *list)
{
    struct json_writer json;
    char *all = calloc(1, 1);
    for (size_t i = 0, n = 0; i < list->n && i < 64; i++) {
        json_begin(&json);
        record_write(&list->record[i], &json);
        char *line = json_finish(&json);
        require(line != NULL);
        for (char *c = line; c[0] && c[1]; c++) /* all but the last line end are layout */
            *c = *c == '\n' ? ' ' : *c;
        const size_t more = strlen(line);
        all = realloc(all, n + more + 1);
        memcpy(all + n, line, more + 1);
        n += more;
        free(line);
    }
    return all;
}

static void check(const struct record_list *list)
{
    struct record_list back;
    struct ty_error error;
    char text[512];
    for (size_t i = 0; i < list->n; i++) {
        const struct record *r = &list->record[i];
        require(*r->kind && *r->tool);
        for (uint32_t k = 0; k < r->n_fields; k++)
            require(r->field[k].text || isfinite(r->field[k].number));
        record_describe(r, text, sizeof text);
    }
    char *lines = write_lines(list);
    record_list_init(&back);
    require(record_read(lines, "lines", &back, &error) == TY_OK);
    require(back.n == (list->n < 64 ? list->n : 64));
    char *again = write_lines(&back);
    require(strcmp(lines, again) == 0);
    record_list_free(&back);
    free(lines);
    free(again);
}

/* The first byte chooses the reader, the rest is the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const size_t n_readers = sizeof readers / sizeof readers[0];
    struct record_list list;
    struct ty_error error;
    if (bytes == 0)
        return 0;
    struct import_file file = {.path = "all_reduce.log", .text = malloc(bytes), .bytes = bytes - 1};
    memcpy(file.text, data + 1, bytes - 1);
    file.text[bytes - 1] = '\0';
    require(text_to_utf8(&file.text, &file.bytes));
    record_list_init(&list);
    if (readers[data[0] % n_readers](&file, &list, &error) == TY_OK)
        check(&list);
    record_list_free(&list);
    free(file.text);
    return 0;
}

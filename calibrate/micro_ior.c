/* SPDX-License-Identifier: MIT
 * IOR's table of iterations: units stand in the header, MiB and KiB are powers of two. The summary
 * of all tests below it, whose rows also begin with "write" and "read", is left out. */
#include "calibrate/micro.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

enum { BANDWIDTH, IOPS, LATENCY, BLOCK, TRANSFER, OPEN, MOVE, CLOSE, TOTAL, ITERATION, N_COLUMNS };
static const struct {
    const char *name;
    double unit;
} columns[N_COLUMNS] = {
    {"bw(MiB/s)", 1048576.0}, {"IOPS", 1.0},    {"Latency(s)", 1.0}, {"block(KiB)", 1024.0},
    {"xfer(KiB)", 1024.0},    {"open(s)", 1.0}, {"wr/rd(s)", 1.0},   {"close(s)", 1.0},
    {"total(s)", 1.0},        {"iter", 1.0}};

struct reader {
    struct record_list *list;
    struct record head;
    int at[N_COLUMNS]; /* -1: absent */
    uint32_t n_columns;
    double tasks, nodes;
    char api[16];
};

static void read_header(struct reader *r, char *text)
{
    char *word[MICRO_TOKENS_MAX];
    r->n_columns = micro_words(text, false, word, MICRO_TOKENS_MAX);
    if (r->n_columns > MICRO_TOKENS_MAX)
        r->n_columns = 0;
    for (uint32_t c = 0; c < N_COLUMNS; c++) {
        r->at[c] = -1;
        for (uint32_t i = 0; i < r->n_columns; i++)
            if (strcmp(word[i], columns[c].name) == 0)
                r->at[c] = (int)i;
    }
    if (r->at[BANDWIDTH] < 0)
        r->n_columns = 0;
}

/* "tasks               : 1024" of the options. */
static void read_option(struct reader *r, char *text)
{
    char word[24];
    const char *colon = strchr(text, ':');
    if (!colon)
        return;
    micro_copy_word(colon + 1 + strspn(colon + 1, " \t"), " \t", word, sizeof word);
    if (strncmp(text, "tasks ", 6) == 0)
        micro_number(word, &r->tasks);
    else if (strncmp(text, "nodes ", 6) == 0)
        micro_number(word, &r->nodes);
    else if (strncmp(text, "api ", 4) == 0)
        text_format(r->api, sizeof r->api, "%s", word);
}

static void read_row(struct reader *r, char *text, uint32_t line)
{
    char *word[MICRO_TOKENS_MAX];
    double value[N_COLUMNS];
    const uint32_t n = micro_words(text, false, word, MICRO_TOKENS_MAX);
    if (n == 0 || (strcmp(word[0], "write") != 0 && strcmp(word[0], "read") != 0))
        return;
    if (n != r->n_columns)
        return;
    for (uint32_t c = 0; c < N_COLUMNS; c++) {
        const bool number = r->at[c] >= 0 && micro_number(word[r->at[c]], &value[c]);
        value[c] = number ? value[c] * columns[c].unit : (double)NAN;
    }
    struct record_fields f = {.n = 0};
    record_text(&f, RECORD_PARAMETER, "op", *word[0] == 'w' ? "write" : "read");
    record_number(&f, RECORD_PARAMETER, "block_bytes", value[BLOCK]);
    record_number(&f, RECORD_PARAMETER, "transfer_bytes", value[TRANSFER]);
    record_number(&f, RECORD_PARAMETER, "iteration", value[ITERATION]);
    record_number(&f, RECORD_PARAMETER, "tasks", r->tasks);
    record_number(&f, RECORD_PARAMETER, "nodes", r->nodes);
    record_text(&f, RECORD_PARAMETER, "api", record_copy(r->list, r->api));
    record_number(&f, RECORD_VALUE, "bandwidth_bytes_per_s", value[BANDWIDTH]);
    record_number(&f, RECORD_VALUE, "operations_per_s", value[IOPS]);
    record_number(&f, RECORD_VALUE, "latency_s", value[LATENCY]);
    record_number(&f, RECORD_VALUE, "open_s", value[OPEN]);
    record_number(&f, RECORD_VALUE, "transfer_s", value[MOVE]);
    record_number(&f, RECORD_VALUE, "close_s", value[CLOSE]);
    record_number(&f, RECORD_VALUE, "time_s", value[TOTAL]);
    r->head.line = line;
    r->head.rejected = value[BANDWIDTH] > 0.0 ? NULL : "bandwidth must be above 0";
    record_add(r->list, &r->head, &f);
}

static bool ends_table(const char *text)
{
    return strncmp(text, "Max ", 4) == 0 || strncmp(text, "Summary", 7) == 0 ||
           strncmp(text, "Operation", 9) == 0;
}

ty_status micro_read_ior(struct import_file *file, struct record_list *list, struct ty_error *error)
{
    struct reader r = {.list = list,
                       .head = {.kind = "storage",
                                .tool = "ior",
                                .file = record_copy(list, micro_file_name(file->path))},
                       .tasks = (double)NAN,
                       .nodes = (double)NAN};
    struct micro_lines lines = {file->text, 0};
    for (char *line; (line = micro_next_line(&lines)) != NULL;) {
        char *text = micro_skip_labels(line);
        if (strncmp(text, "access ", 7) == 0)
            read_header(&r, text);
        else if (ends_table(text))
            r.n_columns = 0;
        else if (r.n_columns)
            read_row(&r, text, lines.line);
        else
            read_option(&r, text);
    }
    return record_list_status(list, file->path, error);
}

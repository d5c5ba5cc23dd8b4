/* SPDX-License-Identifier: MIT
 *
 * nccl-tests and rccl-tests text of every generation: before 2019 ("bytes N type op",
 * milliseconds), 2019-2022 (no root, "error"), 2022-2025 (root, "#wrong"), 2.17 on (version line),
 * -I (eight columns a half). The header line names the columns of its table; a row has as many
 * words, or one fewer when the reduction is left empty.
 */
#include "calibrate/micro_collective.h"
#include "sim/error.h"

#include <stdlib.h>
#include <string.h>

enum column {
    COLUMN_SIZE,
    COLUMN_COUNT,
    COLUMN_TYPE,
    COLUMN_REDOP,
    COLUMN_ROOT,
    COLUMN_TIME,
    COLUMN_ALGBW,
    COLUMN_BUSBW,
    COLUMN_WRONG,
    COLUMN_ERROR,
    COLUMN_MIN,
    COLUMN_MAX,
    COLUMN_P99,
    COLUMN_CV,
    COLUMN_UNKNOWN
};

static const struct {
    const char *name;
    enum column column;
} column_names[] = {
    {"size", COLUMN_SIZE},   {"bytes", COLUMN_SIZE},  {"count", COLUMN_COUNT},
    {"N", COLUMN_COUNT},     {"type", COLUMN_TYPE},   {"redop", COLUMN_REDOP},
    {"op", COLUMN_REDOP},    {"root", COLUMN_ROOT},   {"time", COLUMN_TIME},
    {"algbw", COLUMN_ALGBW}, {"busbw", COLUMN_BUSBW}, {"#wrong", COLUMN_WRONG},
    {"error", COLUMN_ERROR}, {"res", COLUMN_ERROR},   {"i_min", COLUMN_MIN},
    {"i_max", COLUMN_MAX},   {"i_p99", COLUMN_P99},   {"i_cv%", COLUMN_CV},
};

struct reader {
    struct collective_table table;
    enum column column[MICRO_TOKENS_MAX];
    uint32_t n_columns; /* 0: no header yet */
    double time_unit_s;
    char **host; /* of each device line, in the text */
    size_t host_capacity;
    uint32_t n_hosts;
    bool ended; /* the table's footer was seen */
    /* What is known of the software; it holds for all tables of the file. */
    char nccl[24], cuda[16], tool_version[32], gpu[64], env[256];
};

/* ---- the table as a whole ---------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static uint32_t count_nodes(struct reader *r)
{
    uint32_t n = r->n_hosts > 0;
    if (r->n_hosts)
        qsort(r->host, r->n_hosts, sizeof *r->host, by_text);
    for (uint32_t i = 1; i < r->n_hosts; i++)
        n += strcmp(r->host[i - 1], r->host[i]) != 0;
    return n;
}

static void end_table(struct reader *r)
{
    struct collective_table *t = &r->table;
    t->nodes = count_nodes(r);
    if (!r->ended)
        t->flags |= RECORD_TRUNCATED;
    record_text(&t->stamp, RECORD_HARDWARE, "gpu", record_copy(t->list, r->gpu));
    record_text(&t->stamp, RECORD_SOFTWARE, "nccl", record_copy(t->list, r->nccl));
    record_text(&t->stamp, RECORD_SOFTWARE, "cuda", record_copy(t->list, r->cuda));
    record_text(&t->stamp, RECORD_SOFTWARE, "tool_version", record_copy(t->list, r->tool_version));
    record_text(&t->stamp, RECORD_SOFTWARE, "environment", record_copy(t->list, r->env));
    collective_finish(t);
    r->n_hosts = 0;
    r->n_columns = 0;
    r->ended = false;
    r->gpu[0] = '\0';
}

/* A line of the next run: what was gathered belongs to the run before. */
static void begin_run(struct reader *r)
{
    if (r->table.n)
        end_table(r);
}

/* ---- lines around the table ----------------------------------------------------------------- */

/* 22602 is 2.26.2; before 2.9 one digit fewer: 2708 is 2.7.8 (NCCL's nccl.h). */
static void version_of_code(double code, char *out, size_t bytes)
{
    const uint32_t c = code > 0.0 && code < 1e8 ? (uint32_t)code : 0;
    const uint32_t major = c < 10000 ? 1000 : 10000;
    if (c)
        text_format(out, bytes, "%u.%u.%u", c / major, c % major / 100, c % 100);
}

/* "# nccl-tests version 2.17.6 nccl-headers=22602 nccl-library=22602",
 * "NCCL version 2.20.3+cuda12.3", "rccl-tests: Version develop:0000000" */
static void read_versions(struct reader *r, char *line)
{
    char word[32];
    double code;
    const char *at;
    if ((at = micro_after(line, "nccl-tests version")) != NULL)
        micro_copy_word(at, " ", r->tool_version, sizeof r->tool_version);
    if ((at = micro_after(line, "nccl-library")) != NULL) {
        micro_copy_word(at, " ", word, sizeof word);
        if (micro_number(word, &code))
            version_of_code(code, r->nccl, sizeof r->nccl);
    }
    if ((at = micro_after(line, "CCL version ")) != NULL ||
        (at = micro_after(line, "compiled with NCCL ")) != NULL) {
        micro_copy_word(at, "+ ", r->nccl, sizeof r->nccl);
        if ((at = strstr(at, "+cuda")) != NULL)
            micro_copy_word(at + 5, " ", r->cuda, sizeof r->cuda);
    }
    if ((at = micro_after(line, "rccl-tests: Version")) != NULL) {
        r->table.tool = "rccl-tests";
        micro_copy_word(at, " ", r->tool_version, sizeof r->tool_version);
    }
}

/* "... NCCL INFO NCCL_ALGO set by environment to Tree": once each, they change the times. */
static void read_environment(struct reader *r, const char *line)
{
    static const char set[] = " set by environment to ";
    const char *value = strstr(line, set);
    if (!value)
        return;
    const char *name = value;
    while (name > line && name[-1] != ' ')
        name--;
    char pair[96];
    text_format(pair, sizeof pair, "%.*s=%.32s", (int)((value - name) & 0x3f), name,
                value + sizeof set - 1);
    if (!strstr(r->env, pair))
        text_append(r->env, sizeof r->env, "%s%s", *r->env ? " " : "", pair);
}

/* "all_reduce_perf" in a command line or the 2.17 title, "all_reduce_test" before 2017. The title
 * at the end of a run says "concluded". */
static void read_op(struct reader *r, const char *line)
{
    const char *end = strstr(line, "_perf");
    if (!end)
        end = strstr(line, "_test ");
    if (!end || strstr(line, "concluded") || strstr(line, "NCCL INFO"))
        return;
    const char *start = end;
    while (start > line && ((start[-1] >= 'a' && start[-1] <= 'z') || start[-1] == '_'))
        start--;
    const char *op = collective_op_named(start);
    if (!op)
        return;
    begin_run(r);
    r->table.op = op;
}

/* "#  Rank  0 Group  0 Pid  41000 on  simhost-0 device  0 [0x10] NVIDIA H100 80GB HBM3";
 * "#   Device  0 ->  0 [0x0a] GeForce GTX TITAN X" before 2017. */
static void read_device(struct reader *r, char *line)
{
    char *host = strstr(line, " on ");
    const char *gpu = strstr(line, "] ");
    if (!gpu || r->table.n)
        return;
    r->table.ranks += r->table.ranks < UINT32_MAX;
    text_format(r->gpu, sizeof r->gpu, "%s", gpu + 2);
    if (!host)
        return;
    void *hosts = r->host;
    if (!array_grow(&r->table.list->arena.allocator, &hosts, &r->host_capacity, r->n_hosts + 1,
                    sizeof *r->host)) {
        r->table.list->out_of_memory = true;
        return;
    }
    r->host = hosts;
    host += 4 + strspn(host + 4, " ");
    host[strcspn(host, " ")] = '\0';
    r->host[r->n_hosts++] = host;
}

/* A line that begins with '#'. */
static void read_comment(struct reader *r, char *line)
{
    char *text = line + strspn(line, "# ");
    if (strncmp(text, "nThread", 7) == 0 || strncmp(text, "Using devices", 13) == 0)
        begin_run(r);
    if (strncmp(text, "Using devices", 13) == 0)
        r->table.ranks = r->n_hosts = 0;
    if (strncmp(text, "Rank ", 5) == 0 || strncmp(text, "Device ", 7) == 0)
        read_device(r, text);
    else if (strncmp(text, "Avg bus bandwidth", 17) == 0 ||
             strncmp(text, "Out of bounds", 13) == 0 || strncmp(text, "Errors with", 11) == 0)
        r->ended = true;
    if (strncmp(text, "Out of bounds", 13) == 0 && strstr(text, "FAILED"))
        r->table.flags |= RECORD_INVALID_DATA;
}

/* ---- the table ------------------------------------------------------------------------------- */

static bool is_header(const char *text)
{
    return strstr(text, "time") && strstr(text, "algbw") && strstr(text, "busbw") &&
           strstr(text, "type");
}

static void read_header(struct reader *r, char *text)
{
    char *word[MICRO_TOKENS_MAX];
    const struct collective_table *t = &r->table;
    if (t->n)
        end_table(r);
    r->time_unit_s = strstr(text, "bytes") ? 1e-3 : 1e-6;
    const uint32_t n = micro_words(text, false, word, MICRO_TOKENS_MAX);
    r->n_columns = n <= MICRO_TOKENS_MAX ? n : 0;
    for (uint32_t i = 0; i < r->n_columns; i++) {
        r->column[i] = COLUMN_UNKNOWN;
        for (size_t k = 0; k < sizeof column_names / sizeof column_names[0]; k++)
            if (strcmp(word[i], column_names[k].name) == 0)
                r->column[i] = column_names[k].column;
    }
}

static void read_cell(const struct reader *r, enum column column, const char *word,
                      struct collective_row *row)
{
    double value;
    const bool number = micro_number(word, &value);
    if (column == COLUMN_TYPE)
        row->dtype = collective_dtype(r->table.list, word);
    else if (column == COLUMN_REDOP)
        row->redop = record_copy(r->table.list, word);
    else if ((column == COLUMN_WRONG || column == COLUMN_ERROR) && strchr(word, '*'))
        row->rejected = "the tool marks the results as wrong";
    else if (!number)
        return;
    else if (column == COLUMN_ROOT)
        row->root = value;
    else if (column == COLUMN_TIME) {
        row->time_s = value * r->time_unit_s;
        row->time_half_digit_s = micro_half_digit(word) * r->time_unit_s;
    } else if (column == COLUMN_ALGBW) {
        row->algbw_bytes_per_s = value * 1e9;
        row->bw_half_digit_bytes_per_s = micro_half_digit(word) * 1e9;
    } else if (column == COLUMN_BUSBW)
        row->busbw_bytes_per_s = value * 1e9;
    else if (column == COLUMN_WRONG)
        row->n_wrong = value;
    else if (column == COLUMN_MIN)
        row->time_min_s = value * r->time_unit_s;
    else if (column == COLUMN_MAX)
        row->time_max_s = value * r->time_unit_s;
    else if (column == COLUMN_P99)
        row->time_p99_s = value * r->time_unit_s;
    else if (column == COLUMN_CV)
        row->cv = value / 100.0;
}

/* The words of a row, from the first column on; each "time" begins a half of its own. */
static void read_halves(struct reader *r, char *word[], bool no_redop, uint32_t line)
{
    struct collective_row row, lead;
    collective_row_init(&lead);
    lead.line = line;
    row = lead;
    uint32_t half = 0, at = 0;
    for (uint32_t c = 0; c < r->n_columns; c++) {
        const enum column column = r->column[c];
        if (column == COLUMN_REDOP && no_redop)
            continue;
        if (column == COLUMN_TIME) {
            if (half > 0 && row.time_s > 0.0)
                collective_add(&r->table, &row);
            row = lead;
            row.in_place = half++ > 0;
        }
        read_cell(r, column, word[at], &row);
        if (column == COLUMN_SIZE)
            micro_number(word[at], &row.size_bytes);
        if (half == 0)
            lead = row;
        at++;
    }
    if (row.time_s > 0.0)
        collective_add(&r->table, &row);
}

/* A line of the table: it begins with two whole numbers, size and count. */
static void read_row(struct reader *r, char *text, bool comment, uint32_t line)
{
    char *word[MICRO_TOKENS_MAX];
    double value;
    if (r->n_columns == 0 || text[strspn(text, " \t")] < '0' || text[strspn(text, " \t")] > '9')
        return;
    const uint32_t n = micro_words(text, false, word, MICRO_TOKENS_MAX);
    if (n < 2 || !micro_number(word[0], &value) || !micro_number(word[1], &value))
        return;
    bool no_redop = false; /* left empty: a number stands in its place */
    for (uint32_t c = 0; c < n && n + 1 == r->n_columns; c++)
        no_redop |= r->column[c] == COLUMN_REDOP && micro_number(word[c], &value);
    if (n == r->n_columns || no_redop) {
        read_halves(r, word, no_redop, line);
    } else if (!comment) {
        struct collective_row row;
        collective_row_init(&row);
        row.line = line;
        micro_number(word[0], &row.size_bytes);
        row.rejected = "the row is cut, or another line was printed into it";
        collective_add(&r->table, &row);
    }
}

/* "node01: " of pdsh, "[default0]:" of torchrun, "[pod/x/y] " of kubectl: a word before what can
 * only be a line of the table or a comment. */
static char *skip_host(char *line)
{
    const size_t word = strcspn(line, " \t#");
    const char last = word > 0 ? line[word - 1] : ' ';
    if (last != ':' && !(*line == '[' && last == ']'))
        return line;
    char *rest = line + word + strspn(line + word, " \t");
    return *rest == '#' || (*rest >= '0' && *rest <= '9') ? rest : line;
}

static void read_line(struct reader *r, char *line, uint32_t number)
{
    char *text = skip_host(micro_skip_labels(line));
    text += strspn(text, " \t");
    const bool comment = *text == '#';
    read_op(r, text);
    read_versions(r, text);
    if (comment && is_header(text)) {
        read_header(r, text + 1);
        return;
    }
    if (comment && r->n_columns && strstr(text, "(us)"))
        r->time_unit_s = 1e-6;
    if (comment)
        read_comment(r, text);
    else
        read_environment(r, text);
    read_row(r, text + (comment ? 1 : 0), comment, number);
}

ty_status micro_read_nccl(struct import_file *file, struct record_list *list,
                          struct ty_error *error)
{
    struct reader r = {.table = {.list = list, .tool = "nccl-tests", .path = file->path},
                       .time_unit_s = 1e-6};
    struct micro_lines lines = {file->text, 0};
    for (char *line; (line = micro_next_line(&lines)) != NULL;)
        read_line(&r, line, lines.line);
    begin_run(&r);
    collective_free(&r.table);
    array_free(&list->arena.allocator, r.host, r.host_capacity, sizeof *r.host);
    return record_list_status(list, file->path, error);
}

/* SPDX-License-Identifier: MIT
 *
 * nvbandwidth, text and JSON: a matrix of GB/s (or ns) per test, "N/A" where nothing is measured.
 * The description says what rows and columns are and which way the bytes go:
 *   "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)"
 * The printed sum checks that the matrix is whole.
 */
#include "calibrate/micro.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

struct copy_test {
    struct record_list *list;
    struct record head;
    const char *name;               /* "" outside a test */
    char row_end[8], column_end[8]; /* "cpu", "gpu"; row "": the test has no second end */
    bool backwards, both_ways;      /* bytes go from column to row; both ways at once */
    double unit;                    /* of a cell, in bytes/s or seconds; 0: no description yet */
    bool latency;
    uint32_t n_columns;
    size_t first; /* of the test's records in the list */
    double sum;
};

/* ---- a test ------------------------------------------------------------------------------- */

/* The word before `place`, in lower case: "gpu" of "... GPU(column) ...". */
static void end_before(const char *text, const char *place, char *out, size_t bytes)
{
    const char *at = strstr(text, place);
    const char *start = at;
    while (start && start > text && start[-1] != ' ')
        start--;
    text_format(out, bytes, "%.*s", at ? (int)((at - start) & 7) : 0, at ? start : "");
    for (char *c = out; *c; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
}

static void read_description(struct copy_test *t, const char *text)
{
    t->latency = strstr(text, "(ns)") || strstr(text, "(us)");
    t->unit = strstr(text, "(ns)")     ? 1e-9
              : strstr(text, "(us)")   ? 1e-6
              : strstr(text, "(GB/s)") ? 1e9
                                       : 0.0;
    end_before(text, "(row)", t->row_end, sizeof t->row_end);
    end_before(text, "(column)", t->column_end, sizeof t->column_end);
    t->both_ways = strstr(text, "<->") != NULL;
    t->backwards = !t->both_ways && strstr(text, "<-") != NULL;
}

static void begin_test(struct copy_test *t, const char *name)
{
    t->name = record_copy(t->list, name);
    t->unit = 0.0;
    t->n_columns = 0;
    t->first = t->list->n;
    t->sum = 0.0;
}

static void add_cell(struct copy_test *t, uint32_t row, uint32_t column, const char *word)
{
    double value;
    char ends[2][24];
    if (!micro_number(word, &value) || t->unit == 0.0)
        return;
    struct record_fields f = {.n = 0};
    text_format(ends[1], sizeof ends[1], "%s%u", t->column_end, column);
    text_format(ends[0], sizeof ends[0], "%s%u", *t->row_end ? t->row_end : t->column_end,
                *t->row_end ? row : column);
    record_text(&f, RECORD_PARAMETER, "test", t->name);
    record_text(&f, RECORD_PARAMETER, "from", record_copy(t->list, ends[t->backwards]));
    record_text(&f, RECORD_PARAMETER, "to", record_copy(t->list, ends[!t->backwards]));
    record_number(&f, RECORD_PARAMETER, "both_ways", t->both_ways);
    record_number(&f, RECORD_VALUE, t->latency ? "latency_s" : "bandwidth_bytes_per_s",
                  value * t->unit);
    t->head.rejected = value > 0.0 ? NULL : "not above 0";
    record_add(t->list, &t->head, &f);
    t->sum += value;
}

/* NAN: the sum was not printed. */
static void end_test(struct copy_test *t, double printed_sum)
{
    const bool wrong = !isnan(printed_sum) && !micro_agrees(t->sum, printed_sum, 0.0);
    for (size_t i = t->first; *t->name && i < t->list->n; i++) {
        if (isnan(printed_sum))
            t->list->record[i].flags |= RECORD_TRUNCATED;
        if (wrong)
            t->list->record[i].rejected = "the cells do not add up to the printed sum";
    }
    t->name = "";
    t->unit = 0.0;
}

/* 12080 is CUDA 12.8. */
static void stamp(struct copy_test *t, const char *gpu, double cuda, const char *driver,
                  const char *version)
{
    char text[64];
    struct record_fields f = {.n = 0};
    text_format(text, sizeof text, "%.*s", (int)(strcspn(gpu, "(") & 0x3f), gpu);
    size_t bytes = strlen(text);
    while (bytes > 0 && text[bytes - 1] == ' ')
        text[--bytes] = '\0';
    record_text(&f, RECORD_HARDWARE, "gpu", record_copy(t->list, text));
    if (cuda >= 1000.0 && cuda < 1e6) {
        text_format(text, sizeof text, "%u.%u", (uint32_t)cuda / 1000, (uint32_t)cuda % 1000 / 10);
        record_text(&f, RECORD_SOFTWARE, "cuda", record_copy(t->list, text));
    }
    record_text(&f, RECORD_SOFTWARE, "driver", record_copy(t->list, driver));
    record_text(&f, RECORD_SOFTWARE, "tool_version", record_copy(t->list, version));
    record_stamp(t->list, &t->head, &f);
}

/* ---- text ----------------------------------------------------------------------------------- */

struct preamble {
    char gpu[64], driver[32], version[32];
    double cuda;
};

static void read_preamble(struct preamble *p, char *text)
{
    const char *at;
    if ((at = micro_after(text, "nvbandwidth Version")) != NULL)
        text_format(p->version, sizeof p->version, "%s", at);
    else if ((at = micro_after(text, "CUDA Runtime Version")) != NULL)
        micro_number(at, &p->cuda);
    else if (strncmp(text, "Driver Version: ", 16) == 0)
        text_format(p->driver, sizeof p->driver, "%s", text + 16);
    else if (strncmp(text, "Device 0: ", 10) == 0)
        text_format(p->gpu, sizeof p->gpu, "%s", text + 10);
}

/* "SUM host_to_device_memcpy_ce 401.43" */
static void read_sum(struct copy_test *t, const char *text)
{
    double sum = (double)NAN;
    const char *space = strrchr(text, ' ');
    if (space)
        micro_number(space + 1, &sum);
    end_test(t, sum);
}

/* A line of the matrix: its column numbers first, then row number and cells. */
static void read_matrix_line(struct copy_test *t, char *text)
{
    char *word[MICRO_TOKENS_MAX];
    double row;
    const uint32_t n = micro_words(text, false, word, MICRO_TOKENS_MAX);
    if (n == 0 || n > MICRO_TOKENS_MAX || !micro_number(word[0], &row))
        return;
    if (t->n_columns == 0)
        t->n_columns = n;
    else if (n == t->n_columns + 1 && row >= 0.0 && row < 1e6)
        for (uint32_t i = 1; i < n; i++)
            add_cell(t, (uint32_t)row, i - 1, word[i]);
}

ty_status micro_read_nvbandwidth(struct import_file *file, struct record_list *list,
                                 struct ty_error *error)
{
    struct copy_test t = {.list = list,
                          .name = "",
                          .head = {.kind = "copy",
                                   .tool = "nvbandwidth",
                                   .file = record_copy(list, micro_file_name(file->path))}};
    struct preamble p = {.cuda = 0.0};
    struct micro_lines lines = {file->text, 0};
    for (char *line; (line = micro_next_line(&lines)) != NULL;) {
        char *text = micro_skip_labels(line);
        char *name = micro_after(text, "Running ");
        t.head.line = lines.line;
        if (name && name[strcspn(name, " ")] == '\0') {
            end_test(&t, (double)NAN);
            stamp(&t, p.gpu, p.cuda, p.driver, p.version);
            name[strcspn(name, ".")] = '\0';
            begin_test(&t, name);
        } else if (!*t.name)
            read_preamble(&p, text);
        else if (strncmp(text, "SUM ", 4) == 0)
            read_sum(&t, text);
        else if (t.unit == 0.0)
            read_description(&t, text);
        else
            read_matrix_line(&t, text);
    }
    end_test(&t, (double)NAN);
    return record_list_status(list, file->path, error);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void read_matrix(struct copy_test *t, const struct json_at *matrix)
{
    struct json_at row = {0};
    for (uint32_t r = 0; json_next(matrix, &row); r++) {
        struct json_at cell = {0};
        for (uint32_t c = 0; json_next(&row, &cell); c++) {
            const char *text;
            if (json_type_of(&cell) == JSON_TEXT && json_get_text(&cell, &text, NULL) == TY_OK)
                add_cell(t, r, c, text);
        }
    }
}

static void read_testcase(struct copy_test *t, const struct json_at *test)
{
    struct json_at matrix;
    begin_test(t, micro_json_text(test, "name"));
    read_description(t, micro_json_text(test, "bandwidth_description"));
    if (json_find(test, "bandwidth_matrix", &matrix))
        read_matrix(t, &matrix);
    end_test(t, micro_json_number(test, "sum"));
}

ty_status micro_read_nvbandwidth_json(struct import_file *file, struct record_list *list,
                                      struct ty_error *error)
{
    struct json_document document = {0};
    struct json_at top, devices, tests, item = {0};
    ty_status status = micro_json(file, &document, error);
    if (status != TY_OK)
        return status;
    struct copy_test t = {.list = list,
                          .name = "",
                          .head = {.kind = "copy",
                                   .tool = "nvbandwidth",
                                   .file = record_copy(list, micro_file_name(file->path))}};
    if (json_find(&document.top, "nvbandwidth", &top)) {
        const char *gpu = ""; /* "0: NVIDIA GB200 (00000008:01:00): (host)" */
        if (json_find(&top, "GPU Device list", &devices) && json_next(&devices, &item) &&
            json_type_of(&item) == JSON_TEXT && json_get_text(&item, &gpu, NULL) == TY_OK)
            gpu += strspn(gpu, "0123456789: ");
        stamp(&t, gpu, micro_json_number(&top, "CUDA Runtime Version"),
              micro_json_text(&top, "Driver Version"), micro_json_text(&top, "version"));
        item = (struct json_at){0};
        if (json_find(&top, "testcases", &tests))
            while (json_next(&tests, &item))
                read_testcase(&t, &item);
    }
    json_free(&document);
    return record_list_status(list, file->path, error);
}

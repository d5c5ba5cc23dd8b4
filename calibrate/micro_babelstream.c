/* SPDX-License-Identifier: MIT
 *
 * BabelStream --csv. The best of the repetitions gives the bandwidth:
 *   bandwidth = arrays n_elements sizeof / min_runtime,  arrays = 2 copy, mul, dot; 3 add, triad
 * in MB of 10^6 bytes, or MiB of 2^20 with --mibibytes.
 */
#include "calibrate/micro.h"
#include "sim/error.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { FUNCTION, TIMES, ELEMENTS, SIZEOF, MB, MIB, MIN, MAX, AVERAGE, N_COLUMNS };
static const char *const column_names[N_COLUMNS] = {
    "function",    "num_times",          "n_elements",
    "sizeof",      "max_mbytes_per_sec", "max_mibytes_per_sec",
    "min_runtime", "max_runtime",        "avg_runtime"};

struct columns {
    int at[N_COLUMNS]; /* -1: absent */
};

/* Words between commas. returns their number. */
static uint32_t cut(char *line, char *word[], uint32_t max)
{
    uint32_t n = 0;
    for (char *at = line; at; n++) {
        char *comma = strchr(at, ',');
        if (n < max)
            word[n] = at;
        if (comma)
            *comma = '\0';
        at = comma ? comma + 1 : NULL;
    }
    return n;
}

static bool read_header(struct columns *columns, char *word[], uint32_t n)
{
    for (uint32_t c = 0; c < N_COLUMNS; c++) {
        columns->at[c] = -1;
        for (uint32_t i = 0; i < n; i++)
            if (strcmp(word[i], column_names[c]) == 0)
                columns->at[c] = (int)i;
    }
    const int *at = columns->at;
    return at[FUNCTION] >= 0 && at[MIN] >= 0 && at[SIZEOF] >= 0 && at[ELEMENTS] >= 0 &&
           (at[MB] >= 0 || at[MIB] >= 0);
}

static double arrays_moved(const char *function)
{
    static const char *const three[] = {"add", "triad"};
    static const char *const two[] = {"copy", "mul", "dot"};
    for (size_t i = 0; i < sizeof three / sizeof three[0]; i++)
        if (strcmp(function, three[i]) == 0)
            return 3.0;
    for (size_t i = 0; i < sizeof two / sizeof two[0]; i++)
        if (strcmp(function, two[i]) == 0)
            return 2.0;
    return (double)NAN; /* nstream and later ones: not checked */
}

static void read_row(const struct columns *columns, char *word[], struct record *head,
                     struct record_list *list)
{
    double value[N_COLUMNS];
    for (uint32_t c = 0; c < N_COLUMNS; c++)
        if (columns->at[c] < 0 || !micro_number(word[columns->at[c]], &value[c]))
            value[c] = (double)NAN;
    char name[24];
    text_format(name, sizeof name, "%s", word[columns->at[FUNCTION]]);
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    const double bandwidth = isnan(value[MB]) ? value[MIB] * 1048576.0 : value[MB] * 1e6;
    const double bytes = value[ELEMENTS] * value[SIZEOF];
    const double moved = arrays_moved(name) * bytes;
    const double half_digit = micro_half_digit(word[columns->at[MIN]]) / value[MIN];
    head->rejected = NULL;
    if (!(bandwidth > 0.0) || !(value[MIN] > 0.0))
        head->rejected = "bandwidth and time must be above 0";
    else if (!isnan(moved) &&
             !micro_agrees(bandwidth, moved / value[MIN], half_digit * moved / value[MIN]))
        head->rejected = "the bandwidth is not bytes moved / shortest time";
    struct record_fields f = {.n = 0};
    record_text(&f, RECORD_PARAMETER, "function", record_copy(list, name));
    record_number(&f, RECORD_PARAMETER, "array_bytes", bytes);
    record_number(&f, RECORD_PARAMETER, "repetitions", value[TIMES]);
    record_number(&f, RECORD_VALUE, "bandwidth_bytes_per_s", bandwidth);
    record_number(&f, RECORD_VALUE, "time_min_s", value[MIN]);
    record_number(&f, RECORD_VALUE, "time_max_s", value[MAX]);
    record_number(&f, RECORD_VALUE, "time_mean_s", value[AVERAGE]);
    record_add(list, head, &f);
}

ty_status micro_read_babelstream(struct import_file *file, struct record_list *list,
                                 struct ty_error *error)
{
    struct record head = {.kind = "memory",
                          .tool = "babelstream",
                          .file = record_copy(list, micro_file_name(file->path))};
    struct columns columns;
    struct micro_lines lines = {file->text, 0};
    uint32_t n_columns = 0; /* 0: no header yet */
    for (char *line; (line = micro_next_line(&lines)) != NULL;) {
        char *word[MICRO_TOKENS_MAX];
        const uint32_t n = cut(micro_skip_labels(line), word, MICRO_TOKENS_MAX);
        head.line = lines.line;
        if (n >= 5 && n <= MICRO_TOKENS_MAX && strcmp(word[0], "function") == 0)
            n_columns = read_header(&columns, word, n) ? n : 0;
        else if (n_columns && n == n_columns)
            read_row(&columns, word, &head, list);
    }
    return record_list_status(list, file->path, error);
}

/* SPDX-License-Identifier: MIT
 *
 * perftest (ib_write_bw, ib_send_lat, ...). Its MB is 2^20 bytes, which the message rate proves:
 *   bandwidth = #bytes MsgRate
 * with --report_gbits the unit is 10^9 bits.
 */
#include "calibrate/micro.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

enum { BYTES, ITERATIONS, PEAK, AVERAGE, RATE, T_MIN, T_MAX, T_TYPICAL, T_MEAN, P99, N_COLUMNS };
static const char *const column_names[N_COLUMNS] = {
    "#bytes", "#iterations", "peak[",      "average[", "MsgRate[",
    "t_min[", "t_max[",      "t_typical[", "t_avg[",   "99%"};

struct reader {
    struct record_list *list;
    struct record head;
    int at[N_COLUMNS]; /* -1: absent */
    uint32_t n_columns;
    double bw_unit; /* bytes per second */
    char op[16], device[32], link[32], transport[32];
    double qps, mtu_bytes;
    bool both_ways;
};

/* Columns have blanks in their names: "BW peak[MB/sec]", "99% percentile[usec]". */
static void read_header(struct reader *r, char *text)
{
    char *word[MICRO_TOKENS_MAX];
    r->bw_unit = strstr(text, "Gb/sec") ? 1e9 / 8.0 : 1048576.0;
    const uint32_t n = micro_words(text, false, word, MICRO_TOKENS_MAX);
    for (uint32_t c = 0; c < N_COLUMNS; c++)
        r->at[c] = -1;
    r->n_columns = 0;
    for (uint32_t i = 0; i < n && i < MICRO_TOKENS_MAX; i++) {
        if (strcmp(word[i], "BW") == 0 || strncmp(word[i], "percentile", 10) == 0)
            continue;
        for (int c = 0; c < N_COLUMNS; c++)
            if (strncmp(word[i], column_names[c], strlen(column_names[c])) == 0)
                r->at[c] = (int)r->n_columns;
        r->n_columns++;
    }
}

static void read_title(struct reader *r, char *text)
{
    r->both_ways = strstr(text, "Bidirectional") != NULL;
    text_format(r->op, sizeof r->op, "%s",
                strstr(text, "Write")    ? "write"
                : strstr(text, "Read")   ? "read"
                : strstr(text, "Send")   ? "send"
                : strstr(text, "Atomic") ? "atomic"
                                         : "");
    r->n_columns = 0;
}

static void read_setting(struct reader *r, char *text)
{
    char word[32];
    const char *at;
    if ((at = micro_after(text, "Number of qps")) != NULL) {
        micro_copy_word(at, " \t", word, sizeof word);
        micro_number(word, &r->qps);
    }
    if ((at = micro_after(text, "Mtu ")) != NULL) {
        micro_copy_word(at, "[ ", word, sizeof word);
        micro_number(word, &r->mtu_bytes);
    }
    if ((at = micro_after(text, "Device ")) != NULL)
        micro_copy_word(at, " \t", r->device, sizeof r->device);
    if ((at = micro_after(text, "Link type")) != NULL)
        micro_copy_word(at, " \t", r->link, sizeof r->link);
    if ((at = micro_after(text, "Transport type")) != NULL)
        micro_copy_word(at, " \t", r->transport, sizeof r->transport);
}

static const char *impossible(const double value[N_COLUMNS], double bandwidth)
{
    if (!(value[BYTES] > 0.0))
        return "size 0: nothing is sent";
    if (isnan(bandwidth))
        return value[T_TYPICAL] > 0.0 || value[T_MEAN] > 0.0 ? NULL : "neither rate nor latency";
    if (!(bandwidth > 0.0))
        return "bandwidth must be above 0";
    const double by_rate = value[BYTES] * value[RATE] * 1e6;
    if (value[RATE] > 0.0 && !micro_agrees(bandwidth, by_rate, 0.0))
        return "the bandwidth is not #bytes x MsgRate";
    return NULL;
}

static void read_row(struct reader *r, char *text, uint32_t line)
{
    char *word[MICRO_TOKENS_MAX];
    double value[N_COLUMNS];
    const uint32_t n = micro_words(text, false, word, MICRO_TOKENS_MAX);
    if (n < 2 || n != r->n_columns)
        return;
    for (uint32_t c = 0; c < N_COLUMNS; c++)
        if (r->at[c] < 0 || !micro_number(word[r->at[c]], &value[c]))
            value[c] = (double)NAN;
    if (isnan(value[BYTES]) || isnan(value[ITERATIONS]))
        return;
    struct record_fields f = {.n = 0};
    record_text(&f, RECORD_PARAMETER, "op", record_copy(r->list, r->op));
    record_number(&f, RECORD_PARAMETER, "size_bytes", value[BYTES]);
    record_number(&f, RECORD_PARAMETER, "repetitions", value[ITERATIONS]);
    record_number(&f, RECORD_PARAMETER, "queue_pairs", r->qps);
    record_number(&f, RECORD_PARAMETER, "both_ways", r->both_ways);
    record_number(&f, RECORD_VALUE, "bandwidth_bytes_per_s", value[AVERAGE] * r->bw_unit);
    record_number(&f, RECORD_VALUE, "bandwidth_peak_bytes_per_s", value[PEAK] * r->bw_unit);
    record_number(&f, RECORD_VALUE, "latency_s",
                  (isnan(value[T_TYPICAL]) ? value[T_MEAN] : value[T_TYPICAL]) * 1e-6);
    record_number(&f, RECORD_VALUE, "latency_min_s", value[T_MIN] * 1e-6);
    record_number(&f, RECORD_VALUE, "latency_p99_s", value[P99] * 1e-6);
    record_number(&f, RECORD_HARDWARE, "mtu_bytes", r->mtu_bytes);
    record_text(&f, RECORD_HARDWARE, "link", record_copy(r->list, r->link));
    record_text(&f, RECORD_HARDWARE, "nic", record_copy(r->list, r->device));
    record_text(&f, RECORD_SOFTWARE, "transport", record_copy(r->list, r->transport));
    r->head.line = line;
    r->head.rejected = impossible(value, value[AVERAGE] * r->bw_unit);
    record_add(r->list, &r->head, &f);
}

ty_status micro_read_perftest(struct import_file *file, struct record_list *list,
                              struct ty_error *error)
{
    struct reader r = {.list = list,
                       .head = {.kind = "network",
                                .tool = "perftest",
                                .file = record_copy(list, micro_file_name(file->path))},
                       .qps = (double)NAN,
                       .mtu_bytes = (double)NAN};
    struct micro_lines lines = {file->text, 0};
    for (char *line; (line = micro_next_line(&lines)) != NULL;) {
        char *text = micro_skip_labels(line);
        if (strstr(text, "#bytes") && strstr(text, "#iterations"))
            read_header(&r, text);
        else if (strstr(text, "BW Test") || strstr(text, "Latency Test") ||
                 strstr(text, "Bidirectional"))
            read_title(&r, text);
        else if (r.n_columns)
            read_row(&r, text, lines.line);
        else
            read_setting(&r, text);
    }
    return record_list_status(list, file->path, error);
}

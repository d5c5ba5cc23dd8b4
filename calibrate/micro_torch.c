/* SPDX-License-Identifier: MIT
 *
 * all_reduce_bench.py of the ml-engineering book: a table of payload, busbw and algbw. The time is
 * not printed: t = S / algbw, as coarse as the two decimals of algbw.
 *   "The average bandwidth of all_reduce over 16 ranks (5 warmups / 20 trials):"
 *   "- software: torch=2.7.0, cuda=12.8, nccl=(2, 26, 2)"
 *   "- hardware: _CudaDeviceProperties(name='NVIDIA H100 80GB HBM3', major=9, ..."
 */
#include "calibrate/micro_collective.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

enum { PAYLOAD, BUSBW, ALGBW, N_PARTS };

struct bench {
    struct collective_table table;
    uint32_t column[N_PARTS]; /* where each part stands */
    bool in_table;
};

static void keep_text(struct bench *b, enum record_section section, const char *key, char *line,
                      const char *label, const char *stop)
{
    char word[64];
    const char *at = micro_after(line, label);
    if (!at)
        return;
    micro_copy_word(at, stop, word, sizeof word);
    record_text(&b->table.stamp, section, key, record_copy(b->table.list, word));
}

static void read_head(struct bench *b, char *line)
{
    const char *over = micro_after(line, "all_reduce over ");
    char word[16];
    double ranks;
    if (over) {
        micro_copy_word(over, " ", word, sizeof word);
        if (micro_number(word, &ranks) && ranks >= 1.0 && ranks < 1e6)
            b->table.ranks = (uint32_t)ranks;
    }
    if (strstr(line, "software:")) {
        keep_text(b, RECORD_SOFTWARE, "torch", line, "torch=", ", ");
        keep_text(b, RECORD_SOFTWARE, "cuda", line, " cuda=", ", ");
        keep_text(b, RECORD_SOFTWARE, "nccl", line, "nccl=(", ")");
    } else if (strstr(line, "hardware:")) {
        keep_text(b, RECORD_HARDWARE, "gpu", line, "name='", "'");
    }
}

static bool read_header(struct bench *b, char *word[], uint32_t n)
{
    static const char *const names[N_PARTS] = {"payload", "busbw", "algbw"};
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t part = 0; part < N_PARTS; part++)
            if (strcmp(word[i], names[part]) == 0) {
                b->column[part] = i;
                found |= 1u << part;
            }
    return found == (1u << N_PARTS) - 1;
}

/* "26.5GBps" in bytes per second; bits ("Gbps") are an eighth. */
static double bandwidth(const char *word, double *half_digit)
{
    char digits[32];
    double value;
    const char *unit = word + strspn(word, "0123456789.");
    text_format(digits, sizeof digits, "%.*s", (int)((unit - word) & 0x1f), word);
    const double scale = strcmp(unit, "GBps") == 0 ? 1e9 : strcmp(unit, "Gbps") == 0 ? 1e9 / 8 : 0;
    if (scale == 0.0 || !micro_number(digits, &value))
        return (double)NAN;
    *half_digit = micro_half_digit(digits) * scale;
    return value * scale;
}

static void read_row(struct bench *b, char *word[], uint32_t line)
{
    struct collective_row row;
    collective_row_init(&row);
    row.line = line;
    row.dtype = "fp32"; /* the script's tensors */
    row.redop = "sum";
    /* its fmt_bytes divides by 1024 whatever it writes behind the number */
    row.size_bytes = micro_size_bytes(word[b->column[PAYLOAD]], 1024.0);
    row.busbw_bytes_per_s = bandwidth(word[b->column[BUSBW]], &row.bw_half_digit_bytes_per_s);
    row.algbw_bytes_per_s = bandwidth(word[b->column[ALGBW]], &row.bw_half_digit_bytes_per_s);
    if (isnan(row.size_bytes) || isnan(row.algbw_bytes_per_s))
        return;
    row.time_s = row.size_bytes / row.algbw_bytes_per_s;
    row.flags = RECORD_DERIVED;
    if (row.bw_half_digit_bytes_per_s > 0.05 * row.algbw_bytes_per_s)
        row.flags |= RECORD_COARSE;
    if (row.algbw_bytes_per_s == 0.0)
        row.rejected = "algbw is 0.00: the time cannot be told";
    collective_add(&b->table, &row);
}

ty_status micro_read_torch_bench(struct import_file *file, struct record_list *list,
                                 struct ty_error *error)
{
    struct bench b = {.table = {.list = list, .tool = "all_reduce_bench", .path = file->path}};
    struct micro_lines lines = {file->text, 0};
    for (char *line; (line = micro_next_line(&lines)) != NULL;) {
        char *word[8] = {0}, *text = micro_skip_labels(line);
        read_head(&b, text);
        const uint32_t n = micro_words(text, true, word, 8);
        if (n == 3 && read_header(&b, word, n)) {
            if (b.table.n)
                collective_finish(&b.table);
            b.table.op = "all_reduce";
            b.in_table = true;
        } else if (b.in_table && n == 3) {
            read_row(&b, word, lines.line);
        }
    }
    collective_finish(&b.table);
    collective_free(&b.table);
    return record_list_status(list, file->path, error);
}

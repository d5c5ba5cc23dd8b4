/* SPDX-License-Identifier: MIT
 *
 * Matrix multiplications: the cookbook's mm_flops and the ml-engineering book's mamf-finder.
 *   "Elapsed time for 4096x4096x4096: 0.001"              "(in us)" in its newer scripts
 *   "Throughput (in TFLOP/s) for 4096x4096x4096: 228.000"
 *   "mean:   752.8 TFLOPS @ 2048x2048x13312 (MxNxK)"
 * The cookbook multiplies (first x middle) by (middle x last): its middle number is the one summed
 * over, our k. The time is calculated from the rate, whose digits say more:
 *   t = 2 m n k / rate
 */
#include "calibrate/micro.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

struct shape {
    double m, n, k, batch;
};

/* "4096x8192x1024", "4096x8192x1024, b=4" or, batch first, "4x4096x8192x1024". */
static bool read_shape(const char *text, struct shape *out)
{
    double dim[4];
    uint32_t n = 0;
    for (bool more = true; more && n < 4; n++) {
        const size_t digits = strspn(text, "0123456789");
        if (digits == 0 || number_parse(text, digits, &dim[n]) != digits ||
            !(dim[n] > 0.0 && dim[n] < 1e9))
            return false;
        text += digits;
        more = *text == 'x';
        text += more;
    }
    if (n < 3)
        return false;
    const double *const last = dim + n - 3;
    *out = (struct shape){last[0], last[1], last[2], n == 4 ? dim[0] : 1.0};
    if (strncmp(text, ", b=", 4) == 0)
        number_parse(text + 4, strspn(text + 4, "0123456789"), &out->batch);
    return out->batch > 0.0;
}

/* The shape behind "for ", or in the brackets behind a label when a batch stands there too: other
 * operations print their tensors in brackets. */
static bool find_shape(const char *text, struct shape *out)
{
    const char *at = strstr(text, " for ");
    if (!at || read_shape(at + 5, out))
        return at != NULL;
    at = strchr(at, '(');
    return at && strstr(at, ", b=") && read_shape(at + 1, out);
}

static bool last_number(const char *text, double *value, double *half_digit)
{
    const char *space = strrchr(text, ' ');
    if (!space || !micro_number(space + 1, value))
        return false;
    *half_digit = micro_half_digit(space + 1);
    return true;
}

struct reader {
    struct record_list *list;
    struct record head;
    struct shape timed; /* of the last "Elapsed time" line, batch 0: none */
    double time_s, time_half_digit_s;
    char gpu[64], dtype[16];
};

static void add(struct reader *r, const struct shape *s, double rate, const char *statistic)
{
    struct record_fields f = {.n = 0};
    record_number(&f, RECORD_PARAMETER, "m", s->m);
    record_number(&f, RECORD_PARAMETER, "n", s->n);
    record_number(&f, RECORD_PARAMETER, "k", s->k);
    record_number(&f, RECORD_PARAMETER, "batch", s->batch);
    record_text(&f, RECORD_PARAMETER, "dtype", record_copy(r->list, r->dtype));
    record_text(&f, RECORD_PARAMETER, "statistic", record_copy(r->list, statistic));
    record_number(&f, RECORD_VALUE, "rate_flops_per_s", rate);
    record_number(&f, RECORD_VALUE, "time_s", 2.0 * s->m * s->n * s->k * s->batch / rate);
    record_text(&f, RECORD_HARDWARE, "gpu", record_copy(r->list, r->gpu));
    r->head.flags = RECORD_DERIVED;
    record_add(r->list, &r->head, &f);
}

/* The two lines of the cookbook. */
static void read_cookbook(struct reader *r, const char *text)
{
    struct shape s;
    double value, half_digit;
    if (!find_shape(text, &s) || !last_number(text, &value, &half_digit))
        return;
    const double middle = s.n; /* (m x k) by (k x n) is printed m x k x n */
    s.n = s.k;
    s.k = middle;
    if (strncmp(text, "Elapsed", 7) == 0) {
        const double unit_s = strstr(text, "(in us)") ? 1e-6 : 1.0;
        r->timed = s;
        r->time_s = value * unit_s;
        r->time_half_digit_s = half_digit * unit_s;
        return;
    }
    const double rate = value * 1e12;
    const double time_s = 2.0 * s.m * s.n * s.k * s.batch / rate;
    const bool same = memcmp(&s, &r->timed, sizeof s) == 0;
    r->head.rejected = NULL;
    if (!(rate > 0.0))
        r->head.rejected = "the rate must be above 0";
    else if (same && !micro_agrees(r->time_s, time_s, r->time_half_digit_s))
        r->head.rejected = "the rate is not 2 m n k / time";
    add(r, &s, rate, "");
    r->timed.batch = 0.0;
}

/* "mean:   752.8 TFLOPS @ 2048x2048x13312 (MxNxK)" */
static void read_mamf(struct reader *r, const char *text)
{
    struct shape s;
    char label[16], word[24];
    double value;
    const char *unit = strstr(text, " TFLOPS @ ");
    const char *start = unit;
    while (start > text && start[-1] != ' ')
        start--;
    micro_copy_word(start, " ", word, sizeof word);
    if (!micro_number(word, &value) || !read_shape(unit + 10, &s))
        return;
    micro_copy_word(text, ": (", label, sizeof label);
    r->head.rejected = value > 0.0 ? NULL : "the rate must be above 0";
    r->head.tool = "mamf-finder";
    add(r, &s, value * 1e12, label);
}

static void read_head(struct reader *r, char *text)
{
    const char *at;
    if ((at = micro_after(text, "Dtype: torch.")) != NULL)
        micro_copy_word(at, " ", r->dtype, sizeof r->dtype);
    if ((at = micro_after(text, "_CudaDeviceProperties(name='")) != NULL)
        micro_copy_word(at, "'", r->gpu, sizeof r->gpu);
}

ty_status micro_read_gemm(struct import_file *file, struct record_list *list,
                          struct ty_error *error)
{
    struct reader r = {.list = list,
                       .head = {.kind = "gemm",
                                .tool = "mm_flops",
                                .file = record_copy(list, micro_file_name(file->path))}};
    struct micro_lines lines = {file->text, 0};
    for (char *line; (line = micro_next_line(&lines)) != NULL;) {
        char *text = micro_skip_labels(line);
        r.head.line = lines.line;
        if (strncmp(text, "Elapsed time", 12) == 0 ||
            strncmp(text, "Throughput (in TFLOP", 20) == 0)
            read_cookbook(&r, text);
        else if (strstr(text, " TFLOPS @ ") && strstr(text, "(MxNxK)"))
            read_mamf(&r, text);
        else
            read_head(&r, text);
    }
    return record_list_status(list, file->path, error);
}

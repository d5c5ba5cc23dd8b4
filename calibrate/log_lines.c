/* SPDX-License-Identifier: MIT
 * Lines of a log as their program meant them: colour escapes, carriage returns, comment marks and
 * markdown fences removed, records that a terminal wrapped joined, the time stamp read. */
#include "calibrate/log.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

#define STAMP_CHARS 128 /* a time stamp further right is data */
#define WRAP_LINES  4   /* a record wrapped over more lines than this is not joined */

static bool digits_at(const char *text, const char *pattern)
{
    for (; *pattern; pattern++, text++)
        if (*pattern == '9' ? !isdigit((unsigned char)*text) : *text != *pattern)
            return false;
    return true;
}

static int two(const char *text)
{
    return (text[0] - '0') * 10 + (text[1] - '0');
}

/* Days since 1970-01-01 of a civil date (H. Hinnant, chrono-compatible low-level date algorithms,
 * "days_from_civil"). */
static double days_of(int year, int month, int day)
{
    year -= month <= 2;
    const int era = (year >= 0 ? year : year - 399) / 400;
    const int in_era = year - era * 400;
    const int in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return (double)era * 146097.0 +
           (double)(in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468);
}

/* "15:01:18,520": seconds of the day. */
static double clock_of(const char *text)
{
    double seconds = two(text) * 3600.0 + two(text + 3) * 60.0 + two(text + 6);
    if ((text[8] == '.' || text[8] == ',') && isdigit((unsigned char)text[9])) {
        double unit = 0.1;
        for (const char *digit = text + 9; isdigit((unsigned char)*digit); digit++, unit *= 0.1)
            seconds += (*digit - '0') * unit;
    }
    return seconds;
}

static double stamp_at(const char *at)
{
    if (digits_at(at, "9999-99-99") && (at[10] == ' ' || at[10] == 'T') &&
        digits_at(at + 11, "99:99:99"))
        return days_of(two(at) * 100 + two(at + 2), two(at + 5), two(at + 8)) * 86400.0 +
               clock_of(at + 11);
    if (digits_at(at, "99999999 99:99:99"))
        return days_of(two(at) * 100 + two(at + 2), two(at + 4), two(at + 6)) * 86400.0 +
               clock_of(at + 9);
    if (digits_at(at, "99/99/9999 99:99:99"))
        return days_of(two(at + 6) * 100 + two(at + 8), two(at), two(at + 3)) * 86400.0 +
               clock_of(at + 11);
    return NAN;
}

static double find_stamp(const char *text)
{
    bool inside = false; /* a run of digits is tried at its start alone */
    for (size_t i = 0; text[i] && i < STAMP_CHARS; i++) {
        const bool digit = isdigit((unsigned char)text[i]);
        const double time_s = digit && !inside ? stamp_at(text + i) : (double)NAN;
        if (!isnan(time_s))
            return time_s;
        inside = digit;
    }
    return NAN;
}

/* Length of an escape sequence at ESC: CSI ("[36m"), OSC (to BEL or ESC \), or two bytes. */
static size_t escape_length(const char *at, const char *end)
{
    if (at + 1 >= end)
        return 1;
    const char *c = at + 2;
    if (at[1] == '[') {
        while (c < end && (*c < '@' || *c > '~') && (unsigned char)*c >= ' ')
            c++;
        return (size_t)(c < end ? c + 1 - at : end - at);
    }
    if (at[1] == ']') {
        while (c < end && *c != '\a' && *c != '\033')
            c++;
        return (size_t)(c < end && *c == '\a' ? c + 1 - at : c - at);
    }
    return 2;
}

/* Cleans [from, end) in place. returns the length. */
static size_t clean(char *from, const char *end)
{
    char *to = from;
    for (char *at = from; at < end;) {
        if (*at == '\033') {
            at += escape_length(at, end);
        } else if (*at == '`' && end - at >= 3 && at[1] == '`' && at[2] == '`') {
            at += 3;
        } else {
            *to++ = *at == '\t' ? ' ' : *at;
            at++;
        }
    }
    while (to > from && to[-1] == ' ')
        to--;
    return (size_t)(to - from);
}

/* The next physical line, cleaned; *length 0 for an empty one. NULL at the end. */
static char *next_physical(struct log_lines *lines, size_t *length)
{
    if (lines->next >= lines->end)
        return NULL;
    char *start = lines->next;
    char *stop = start;
    while (stop < lines->end && *stop != '\n' && *stop != '\r')
        stop++;
    lines->next = stop < lines->end ? stop + 1 : stop;
    if (stop < lines->end && *stop == '\r' && lines->next < lines->end && *lines->next == '\n')
        lines->next++;
    lines->number++;
    *length = clean(start, stop);
    return start;
}

static bool is_record(const char *text)
{
    return strstr(text, "elapsed time per iteration") || strstr(text, "elapsed_time_per_iteration");
}

/* A record of the Megatron family ends with '|'. What follows an unfinished one belongs to it when
 * it has fields; behind a finished one only fields that begin with "label: number |" do. */
static bool continues(const char *record, size_t length, const char *line)
{
    const char *bar = strchr(line, '|');
    if (!bar || is_record(line) || strncmp(line, "time (ms)", 9) == 0 || !isnan(find_stamp(line)))
        return false;
    if (record[length - 1] != '|')
        return true;
    const char *colon = strchr(line, ':');
    struct log_number number;
    if (line[0] == '[' || !colon || colon > bar || !log_number(colon + 1, &number))
        return false;
    return number.end + strspn(number.end, " ") == bar;
}

/* Appends wrapped lines to a record: the pieces move together, nothing between them. */
static size_t join_wrapped(struct log_lines *lines, char *record, size_t length)
{
    for (int i = 0; i < WRAP_LINES; i++) {
        struct log_lines ahead = *lines;
        size_t more = 0;
        char *line = next_physical(&ahead, &more);
        if (!line || more == 0)
            break;
        const char kept = line[more];
        line[more] = '\0';
        const bool joins = continues(record, length, line);
        line[more] = kept;
        if (!joins) {
            lines->next = line; /* cleaned already; cleaning again changes nothing */
            memset(line + more, ' ', (size_t)(ahead.next - line) - more);
            if (ahead.next > line + more)
                ahead.next[-1] = '\n';
            break;
        }
        memmove(record + length, line, more);
        length += more;
        record[length] = '\0';
        *lines = ahead;
    }
    return length;
}

/* Comment marks of a pasted log, and the rank that srun and pdsh put in front ("12: "). */
static size_t prefix_length(const char *text, size_t length)
{
    size_t n = 0;
    while (n < length && (text[n] == ' ' || text[n] == '#'))
        n++;
    size_t digits = n;
    while (digits < length && digits < n + 5 && isdigit((unsigned char)text[digits]))
        digits++;
    if (digits > n && digits + 1 < length && text[digits] == ':' && text[digits + 1] == ' ')
        n = digits + 1;
    while (n < length && text[n] == ' ')
        n++;
    return n;
}

void log_lines_start(struct log_lines *lines, char *text, size_t bytes)
{
    *lines = (struct log_lines){.next = text, .end = text + bytes};
}

bool log_lines_next(struct log_lines *lines, struct log_line *out)
{
    size_t length = 0;
    char *text;
    do {
        text = next_physical(lines, &length);
        if (!text)
            return false;
        const size_t prefix = prefix_length(text, length);
        text += prefix;
        length -= prefix;
    } while (length == 0);
    out->number = lines->number;
    text[length] = '\0';
    if (is_record(text))
        join_wrapped(lines, text, length);
    out->text = text;
    out->time_s = find_stamp(text);
    return true;
}

/* ---- numbers and labels ------------------------------------------------------------------- */

static double suffix_factor(const char *at)
{
    static const struct {
        char letter;
        double factor;
    } suffixes[] = {{'K', 1e3}, {'M', 1e6}, {'G', 1e9}, {'B', 1e9}, {'T', 1e12}, {'P', 1e15}};
    if (isalpha((unsigned char)at[0]) && isalpha((unsigned char)at[1]))
        return 1.0; /* a unit: GB, GiB, ms */
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (*at == suffixes[i].letter)
            return suffixes[i].factor;
    return 1.0;
}

/* Digits with thousands commas, fraction, exponent: by hand, since strtod follows the locale and
 * takes "nan". 17 digits are read, the rest counts as zeros. */
bool log_number(const char *text, struct log_number *out)
{
    const char *at = text + strspn(text, " ");
    const bool negative = *at == '-';
    at += *at == '-' || *at == '+';
    if (!isdigit((unsigned char)*at) && !(*at == '.' && isdigit((unsigned char)at[1])))
        return false;
    double value = 0.0, unit = 1.0;
    int n_digits = 0, scale = 0;
    bool fraction = false;
    for (;; at++) {
        if (*at == '.' && !fraction && isdigit((unsigned char)at[1])) {
            fraction = true;
        } else if (*at == ',' && !fraction && n_digits && digits_at(at + 1, "999") &&
                   !isdigit((unsigned char)at[4])) {
            continue;
        } else if (!isdigit((unsigned char)*at)) {
            break;
        } else {
            n_digits += n_digits || *at != '0';
            if (n_digits <= 17)
                value = value * 10.0 + (*at - '0');
            scale += fraction ? (n_digits <= 17 ? -1 : 0) : (n_digits > 17);
        }
    }
    if ((*at == 'e' || *at == 'E') &&
        (isdigit((unsigned char)at[1]) ||
         ((at[1] == '-' || at[1] == '+') && isdigit((unsigned char)at[2])))) {
        const bool minus = at[1] == '-';
        int exponent = 0;
        for (at += 1 + !isdigit((unsigned char)at[1]); isdigit((unsigned char)*at); at++)
            exponent = exponent < 400 ? exponent * 10 + (*at - '0') : exponent;
        scale += minus ? -exponent : exponent;
    }
    if (scale > 400 || scale < -400)
        return false;
    unit = scale < 0 ? 1.0 / pow(10.0, -scale) : pow(10.0, scale);
    value = scale < 0 ? value / pow(10.0, -scale) : value * pow(10.0, scale);
    const double factor = suffix_factor(at);
    at += factor != 1.0;
    if (!isfinite(value * factor))
        return false;
    *out = (struct log_number){
        .value = (negative ? -value : value) * factor, .half = 0.5 * unit * factor, .end = at};
    return true;
}

bool log_number_after(const char *text, const char *label, struct log_number *out)
{
    const char *at = strstr(text, label);
    if (!at)
        return false;
    at += strlen(label);
    at += strspn(at, " ");
    return log_number(at + (*at == '\'' || *at == '"'), out);
}

void log_label(const char *text, size_t length, char *out, size_t bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < length && n + 1 < bytes; i++)
        if (isalnum((unsigned char)text[i]))
            out[n++] = (char)tolower((unsigned char)text[i]);
    out[n] = '\0';
}

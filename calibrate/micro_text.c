/* SPDX-License-Identifier: MIT
 * Lines, words and numbers of benchmark output. */
#include "calibrate/micro.h"
#include "sim/error.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

char *micro_next_line(struct micro_lines *lines)
{
    char *line = lines->at;
    if (!*line)
        return NULL;
    char *end = line + strcspn(line, "\n");
    lines->at = end + (*end == '\n');
    lines->line++;
    while (end > line && strchr(" \t\r\n", end[-1]))
        end--;
    *end = '\0';
    return line;
}

/* "[1,0]<stdout>:" of mpirun --tag-output, "[0] " of mpiexec -l; not "[0x10]" or "[INFO]". */
static char *skip_bracket(char *at)
{
    const size_t inside = *at == '[' ? strspn(at + 1, "0123456789,") : 0;
    if (inside == 0 || at[inside + 1] != ']')
        return at;
    char *end = at + inside + 2;
    if (strncmp(end, "<stdout>:", 9) == 0 || strncmp(end, "<stderr>:", 9) == 0)
        return end + 9;
    return *end == ' ' || *end == ':' ? end + 1 : at;
}

/* "0: " of srun --label, which pads it with blanks. */
static char *skip_rank(char *at)
{
    char *digits = at + strspn(at, " ");
    const size_t n = strspn(digits, "0123456789");
    const char *end = digits + n;
    if (n == 0 || n > 6 || *end != ':' || (end[1] != ' ' && end[1] != '\0'))
        return at;
    return digits + n + 1;
}

/* "2026-05-28T20:26:40.123Z " of a log collector, and the "stdout F " of a container runtime. */
static char *skip_time(char *at)
{
    if (strspn(at, "0123456789") != 4 || at[4] != '-' || strcspn(at, " ") < 19 || at[10] != 'T')
        return at;
    at += strcspn(at, " ");
    at += *at == ' ';
    return strncmp(at, "stdout F ", 9) == 0 ? at + 9 : at;
}

char *micro_skip_labels(char *line)
{
    return skip_rank(skip_bracket(skip_time(line)));
}

uint32_t micro_words(char *line, bool bars, char *word[], uint32_t max)
{
    const char *const blanks = bars ? " \t|" : " \t";
    uint32_t n = 0;
    for (char *at = line + strspn(line, blanks); *at; n++) {
        char *end = at + strcspn(at, blanks);
        if (n < max)
            word[n] = at;
        at = end + strspn(end, blanks);
        *end = '\0';
    }
    return n;
}

bool micro_number(const char *word, double *out)
{
    const size_t bytes = strlen(word);
    double value;
    if (bytes == 0 || number_parse(word, bytes, &value) != bytes || !isfinite(value))
        return false;
    *out = value;
    return true;
}

double micro_half_digit(const char *word)
{
    const char *point = strchr(word, '.');
    return 0.5 * pow(10.0, point ? -(double)strspn(point + 1, "0123456789") : 0.0);
}

double micro_size_bytes(const char *word, double unit_B)
{
    double value;
    const size_t digits = strspn(word, "0123456789.");
    if (digits == 0 || number_parse(word, digits, &value) != digits)
        return (double)NAN;
    const char *unit = word + digits + strspn(word + digits, " ");
    static const char letters[] = "kmgt";
    const char *letter = *unit ? strchr(letters, tolower((unsigned char)*unit)) : NULL;
    if (!letter)
        return *unit == '\0' || strcmp(unit, "B") == 0 || strncmp(unit, "bytes", 5) == 0
                   ? value
                   : (double)NAN;
    const bool decimal = toupper((unsigned char)unit[1]) == 'B';
    return value * pow(decimal ? unit_B : 1024.0, (double)(letter - letters + 1));
}

char *micro_after(char *line, const char *label)
{
    char *at = strstr(line, label);
    if (!at)
        return NULL;
    at += strlen(label);
    return at + strspn(at, " \t=:");
}

void micro_copy_word(const char *at, const char *stop, char *out, size_t bytes)
{
    text_format(out, bytes, "%.*s", (int)(strcspn(at, stop) & 0xffff), at);
}

bool micro_agrees(double got, double want, double half_digit)
{
    return fabs(got - want) <= 0.02 * fabs(want) + half_digit;
}

const char *micro_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

/* The '{' that begins a line; tools print notes before it. */
static const char *find_object(const char *text)
{
    while (text && *text) {
        text += strspn(text, " \t\r\n");
        if (*text == '{')
            return text;
        text = strchr(text, '\n');
    }
    return NULL;
}

/* Bytes up to the bracket that closes the first; all of the text when none does. */
static size_t object_bytes(const char *text)
{
    size_t depth = 0, i = 0;
    bool in_text = false;
    for (; text[i]; i++) {
        if (in_text && text[i] == '\\' && text[i + 1])
            i++;
        else if (text[i] == '"')
            in_text = !in_text;
        else if (!in_text && strchr("{[", text[i]))
            depth++;
        else if (!in_text && strchr("}]", text[i]) && --depth == 0)
            return i + 1;
    }
    return i;
}

ty_status micro_json(const struct import_file *file, struct json_document *out,
                     struct ty_error *error)
{
    const char *start = find_object(file->text);
    if (!start)
        return error_set(error, TY_ERR_INPUT, file->path, "holds no JSON object");
    return json_parse(start, object_bytes(start), file->path, out, error);
}

double micro_json_number(const struct json_at *object, const char *key)
{
    struct json_at at;
    double value = (double)NAN;
    const char *text;
    if (!json_find(object, key, &at))
        return value;
    if (json_type_of(&at) == JSON_NUMBER)
        return json_get_double(&at, -HUGE_VAL, HUGE_VAL, &value, NULL) == TY_OK ? value
                                                                                : (double)NAN;
    if (json_type_of(&at) != JSON_TEXT || json_get_text(&at, &text, NULL) != TY_OK)
        return value;
    text += strspn(text, " ");
    return micro_number(text, &value) ? value : (double)NAN;
}

const char *micro_json_text(const struct json_at *object, const char *key)
{
    struct json_at at;
    const char *text = "";
    if (!json_find(object, key, &at) || json_type_of(&at) != JSON_TEXT ||
        json_get_text(&at, &text, NULL) != TY_OK)
        return "";
    return text;
}

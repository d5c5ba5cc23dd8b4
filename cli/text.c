/* SPDX-License-Identifier: MIT
 * Numbers and fields as people read them. */
#include "cli/cli.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *cli_time_text(double seconds, char *out, size_t bytes)
{
    double size = fabs(seconds);
    if (!isfinite(seconds))
        snprintf(out, bytes, "-");
    else if (size >= 1.0 || size == 0.0)
        snprintf(out, bytes, "%.3f s", seconds);
    else if (size >= 1e-3)
        snprintf(out, bytes, "%.2f ms", seconds * 1e3);
    else
        snprintf(out, bytes, "%.1f us", seconds * 1e6);
    return out;
}

const char *cli_count_text(double value, char *out, size_t bytes)
{
    char digits[40];
    if (!isfinite(value) || fabs(value) > 1e30) {
        snprintf(out, bytes, "-");
        return out;
    }
    snprintf(digits, sizeof digits, "%.0f", value);
    size_t length = strlen(digits), used = 0;
    for (size_t i = 0; i < length && used + 2 < bytes; i++) {
        if (i && digits[i - 1] != '-' && (length - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
    return out;
}

const char *cli_bytes_text(double value, char *out, size_t bytes)
{
    double size = fabs(value);
    if (!isfinite(value))
        snprintf(out, bytes, "-");
    else if (size >= 0x1p30)
        snprintf(out, bytes, "%.2f GiB", value * 0x1p-30);
    else
        snprintf(out, bytes, "%.1f MiB", value * 0x1p-20);
    return out;
}

void cli_json_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < 0x20)
            fprintf(file, "\\u%04x", c);
        else
            fputc(c, file);
    }
    fputc('"', file);
}

static void flags_text(const struct ty_field *field, uint32_t bits, char *out, size_t bytes)
{
    if (bits)
        snprintf(out, bytes, "none"); /* given, and nothing chosen */
    const char *separator = "";
    for (uint32_t bit = 0; field->names[bit]; bit++) {
        if (!(bits & 1u << bit))
            continue;
        size_t used = *separator ? strlen(out) : 0;
        snprintf(out + used, bytes - used, "%s%s", separator, field->names[bit]);
        separator = ",";
    }
}

const char *cli_field_text(const struct ty_field *field, const void *value, char *out, size_t bytes)
{
    const char *place = (const char *)value + field->offset;
    *out = '\0';
    switch (field->type) {
    case TY_FIELD_DOUBLE: {
        double number = *(const double *)(const void *)place;
        if (!isnan(number))
            ty_quantity_text(number, field->unit, out, bytes);
        break;
    }
    case TY_FIELD_U32:
        if (*(const uint32_t *)(const void *)place)
            snprintf(out, bytes, "%u", *(const uint32_t *)(const void *)place);
        break;
    case TY_FIELD_U64:
        if (*(const uint64_t *)(const void *)place)
            snprintf(out, bytes, "%llu", *(const unsigned long long *)(const void *)place);
        break;
    case TY_FIELD_ENUM: {
        int choice = *(const int *)(const void *)place;
        if (choice || strcmp(field->names[0], "auto") != 0)
            snprintf(out, bytes, "%s", field->names[choice]);
        break;
    }
    case TY_FIELD_FLAGS:
        flags_text(field, *(const uint32_t *)(const void *)place, out, bytes);
        break;
    case TY_FIELD_BOOL:
        snprintf(out, bytes, "%s", *(const bool *)place ? "on" : "");
        break;
    case TY_FIELD_TEXT:
        snprintf(out, bytes, "%s", place);
        break;
    }
    return out;
}

int cli_print(char *text)
{
    if (!text) {
        cli_warn("out of memory");
        return CLI_FAILED;
    }
    fputs(text, stdout);
    ty_text_free(text);
    return CLI_OK;
}

/* Splits above 1, batch and sequence as far as they are given, by the names of the flags. */
const char *cli_plan_text(const struct ty_plan *plan, char *out, size_t bytes)
{
    const struct {
        const char *name;
        uint32_t value, above;
    } sizes[] = {{"tp", plan->tp, 1},  {"pp", plan->pp, 1},   {"vpp", plan->vpp, 1},
                 {"cp", plan->cp, 1},  {"ep", plan->ep, 1},   {"etp", plan->etp, 1},
                 {"dp", plan->dp, 1},  {"mbs", plan->mbs, 0}, {"gbs", plan->gbs, 0},
                 {"seq", plan->seq, 0}};
    *out = '\0';
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].value > sizes[i].above)
            snprintf(out + strlen(out), bytes - strlen(out), "%s%s %u", *out ? "  " : "",
                     sizes[i].name, sizes[i].value);
    return out;
}

char *cli_command_line(const struct cli_args *args)
{
    size_t bytes = 1;
    for (int i = 0; i < args->argc; i++)
        bytes += strlen(args->argv[i]) + 1;
    char *text = malloc(bytes), *at = text;
    for (int i = 0; text && i < args->argc; i++)
        at += sprintf(at, "%s%s", i ? " " : "", i ? args->argv[i] : "trainyard");
    return text;
}

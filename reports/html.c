/* SPDX-License-Identifier: MIT
 * Pieces of a page that opens offline: inline style, inline SVG, no script; all text escaped. */
#include "reports/report.h"
#include "models/spec/json_write.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
    "<title>trainyard report</title>\n<style>\n"
    "body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff;\n"
    "  max-width: 1080px; margin: 2.5em auto; padding: 0 1.2em; }\n"
    "h1 { font-size: 1.7em; margin: 0 0 .2em; } h2 { font-size: 1.25em; margin: 2.2em 0 .4em; }\n"
    "section + section { border-top: 1px solid #ccc; margin-top: 4em; padding-top: 2em; }\n"
    "p.about, figcaption { color: #555; margin: .2em 0 .8em; max-width: 75ch; }\n"
    "dl { display: grid; grid-template-columns: max-content 1fr; gap: .15em 1.2em; }\n"
    "dt { color: #666; } dd { margin: 0; overflow-wrap: anywhere; }\n"
    "code { font: 13px/1.4 ui-monospace, monospace; }\n"
    ".scroll { overflow-x: auto; }\n"
    "table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .6em 0; }\n"
    "th, td { padding: .28em .8em; text-align: right; white-space: nowrap; }\n"
    "th { border-bottom: 1.5px solid #888; font-weight: 600; color: #444; }\n"
    "td { border-bottom: 1px solid #eee; }\n"
    "th.text, td.text { text-align: left; white-space: normal; }\n"
    "tr.group td { border-top: 1.5px solid #bbb; }\n"
    "figure { margin: .6em 0 2.4em; } figure svg { width: 100%; height: auto; }\n"
    ".missing { color: #666; background: #f5f5f5; padding: .7em 1em; border-radius: 4px; }\n"
    "</style>\n</head>\n<body>\n";

void html_begin(FILE *page)
{
    fputs(head, page);
}

void html_end(FILE *page)
{
    fputs("</body>\n</html>\n", page);
}

void html_text(FILE *page, const char *text)
{
    while (*text) {
        size_t n = utf8_bytes(text);
        if (n == 0)
            fputs("&#xFFFD;", page); /* no UTF-8: replacement character */
        else if (n == 1 && strchr("&<>\"'", *text))
            fprintf(page, "&#%d;", *text);
        else if ((unsigned char)*text < 0x20 && *text != '\n')
            fputc(' ', page); /* no character of HTML */
        else
            fwrite(text, 1, n, page);
        text += n ? n : 1;
    }
}

/* 1234567 as 1,234,567 */
static void grouped(FILE *page, double value)
{
    char digits[64];
    text_format(digits, sizeof digits, "%.0f", value);
    size_t n = strlen(digits);
    for (size_t i = 0; i < n; i++) {
        if (i && digits[i - 1] != '-' && (n - i) % 3 == 0)
            fputc(',', page);
        fputc(digits[i], page);
    }
}

void html_quantity(FILE *page, double value, enum html_unit unit)
{
    if (!isfinite(value) || fabs(value) > 1e30) {
        fputs("-", page);
        return;
    }
    switch (unit) {
    case HTML_COUNT:
        grouped(page, value);
        break;
    case HTML_BYTES:
        fprintf(page, "%.1f GiB", value * 0x1p-30);
        break;
    case HTML_SECONDS:
        if (value < 1)
            fprintf(page, "%.2f ms", value * 1e3);
        else
            fprintf(page, "%.3f s", value);
        break;
    case HTML_PERCENT:
        fprintf(page, "%.1f %%", 100 * value);
        break;
    case HTML_NUMBER:
        fprintf(page, "%.6g", value);
        break;
    }
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    size_t bytes = 0, capacity = 0;
    char *text = NULL;
    for (;;) {
        if (capacity - bytes < 65536) {
            char *more = realloc(text, capacity += capacity + 131072);
            if (!more)
                break;
            text = more;
        }
        size_t got = fread(text + bytes, 1, capacity - bytes - 1, file);
        bytes += got;
        text[bytes] = '\0';
        if (got == 0) {
            fclose(file);
            return text;
        }
    }
    free(text);
    fclose(file);
    return NULL;
}

/* Several drawings on one page must not share ids (gnuplot's markers are all called gpPt0, ...):
 * every id and every reference to one gets the plot's name in front. */
static void write_svg(FILE *page, const char *svg, const char *prefix, const char *name)
{
    static const char *const marks[] = {"id=\"", "id='", "href='#", "href=\"#", "url(#"};
    while (*svg) {
        size_t taken = 0;
        for (size_t i = 0; i < sizeof marks / sizeof *marks && !taken; i++)
            if (strncmp(svg, marks[i], strlen(marks[i])) == 0)
                taken = strlen(marks[i]);
        fwrite(svg, 1, taken ? taken : 1, page);
        if (taken)
            fprintf(page, "%s%s-", prefix, name);
        svg += taken ? taken : 1;
    }
}

ty_status html_svg(const struct report *report, const struct study *study, const char *name,
                   FILE *page)
{
    char path[1024];
    report_path(report, study, name, ".svg", path);
    char *text = read_file(path);
    const char *svg = text ? strstr(text, "<svg") : NULL; /* behind the XML declaration */
    if (svg)
        write_svg(page, svg, study->prefix, name);
    free(text);
    return svg ? TY_OK : error_set(report->error, TY_ERR_IO, path, "cannot be read back");
}

/* SPDX-License-Identifier: MIT
 * The table of formats, and reading a file by the one that is surest. */
#include "calibrate/import.h"
#include "sim/error.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct import_format import_formats[] = {
    {"microbenchmark", micro_sniff, micro_import},
    {"training-log", training_log_sniff, training_log_read},
    {NULL, NULL, NULL},
};

/* ---- records ------------------------------------------------------------------------------ */

/* The writer indents; inside texts a newline is escaped, so each one here is layout. */
static void join_lines(char *json)
{
    char *to = json;
    for (const char *from = json; *from;) {
        if (*from == '\n')
            from += 1 + strspn(from + 1, " ");
        else
            *to++ = *from++;
    }
    *to = '\0';
}

ty_status import_add(struct ty_import *import, struct json_writer *json, const char *text,
                     bool usable, struct ty_error *error)
{
    char *line = json_finish(json);
    char *copy = malloc(strlen(text) + 1);
    struct ty_record *records = import->records;
    if ((import->n_records & (import->n_records - 1)) == 0) /* full at each power of two */
        records = realloc(records, (import->n_records ? 2 * (size_t)import->n_records : 1) *
                                       sizeof *records);
    if (records)
        import->records = records;
    if (!line || !copy || !records) {
        free(line);
        free(copy);
        return error_set(error, TY_ERR_NOMEM, "import", "no memory for a record");
    }
    join_lines(line);
    memcpy(copy, text, strlen(text) + 1);
    import->records[import->n_records++] =
        (struct ty_record){.json = line, .text = copy, .usable = usable};
    import->n_usable += usable;
    return TY_OK;
}

void ty_import_free(struct ty_import *import)
{
    for (uint32_t i = 0; i < import->n_records; i++) {
        free(import->records[i].json);
        free(import->records[i].text);
    }
    free(import->records);
    *import = (struct ty_import){0};
}

/* ---- files -------------------------------------------------------------------------------- */

/* Grows by doubling: the size of a pipe is not known. */
static ty_status read_stream(FILE *file, struct import_file *out, struct ty_error *error)
{
    size_t capacity = 65536;
    out->text = malloc(capacity);
    while (out->text) {
        out->bytes += fread(out->text + out->bytes, 1, capacity - out->bytes - 1, file);
        if (ferror(file))
            return error_set(error, TY_ERR_IO, out->path, "%s", strerror(errno));
        if (out->bytes + 1 < capacity) {
            out->text[out->bytes] = '\0';
            return TY_OK;
        }
        if (out->bytes >= IMPORT_FILE_LIMIT_BYTES)
            return error_set(error, TY_ERR_INPUT, out->path, "is larger than 1 GiB");
        capacity *= 2;
        char *grown = realloc(out->text, capacity);
        if (!grown)
            break;
        out->text = grown;
    }
    return error_set(error, TY_ERR_NOMEM, out->path, "no memory to read it");
}

ty_status import_read_file(struct import_file *out, struct ty_error *error)
{
    FILE *file = fopen(out->path, "rb");
    if (!file)
        return error_set(error, TY_ERR_IO, out->path, "%s", strerror(errno));
    ty_status status = read_stream(file, out, error);
    fclose(file);
    if (status == TY_OK && !text_to_utf8(&out->text, &out->bytes))
        status = error_set(error, TY_ERR_NOMEM, out->path, "no memory to decode it");
    return status;
}

static const struct import_format *surest_format(const struct import_file *file)
{
    const struct import_format *best = NULL;
    uint32_t best_score = 0;
    for (const struct import_format *format = import_formats; format->name; format++) {
        const uint32_t score = format->sniff(file);
        if (score > best_score) {
            best = format;
            best_score = score;
        }
    }
    return best;
}

static ty_status read_records(struct import_file *file, struct ty_import *out,
                              struct ty_error *error)
{
    if (file->text[strspn(file->text, " \t\r\n")] == '\0')
        return error_set(error, TY_ERR_INPUT, file->path, "is empty");
    const struct import_format *format = surest_format(file);
    if (!format)
        return error_set(error, TY_ERR_INPUT, file->path,
                         "is in no format that import reads (docs/import.md lists them)");
    text_format(out->format, sizeof out->format, "%s", format->name);
    const ty_status status = format->read(file, out, error);
    if (status == TY_OK && out->n_records == 0)
        return error_set(error, TY_ERR_INPUT, file->path, "holds no measurement (read as %s)",
                         format->name);
    return status;
}

ty_status ty_import_file(const char *path, struct ty_import *out, struct ty_error *error)
{
    struct import_file file = {.path = path};
    struct ty_import import = {0};
    ty_status status = import_read_file(&file, error);
    if (status == TY_OK)
        status = read_records(&file, &import, error);
    free(file.text);
    if (status != TY_OK)
        ty_import_free(&import);
    else
        *out = import;
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * Files of measurements as records. A format is a row of one table: how sure it is that a text is
 * its own, and how it reads it. The reader adds one record per run or measurement; a record is a
 * JSON object and a few lines of text for people. ty_import_file reads the file, brings it to
 * UTF-8 and hands it to the format that is surest.
 */
#ifndef CALIBRATE_IMPORT_H
#define CALIBRATE_IMPORT_H

#include "include/trainyard_tools.h"
#include "models/spec/json_write.h"

#define IMPORT_FILE_LIMIT_BYTES 1073741824u /* 1 GiB: more is not a log that anyone reads */
#define IMPORT_SNIFF_BYTES      262144u     /* formats are told apart by the first part alone */

struct import_file {
    const char *path; /* for messages */
    char *text;       /* [bytes + 1], terminated; NUL bytes of the file have become blanks. A
                         reader may write into it: nobody reads it again */
    size_t bytes;
};

struct import_format {
    const char *name; /* "nccl-tests", "training-log" */
    /* 0: not mine; 100: certain. Looks at the first IMPORT_SNIFF_BYTES only. */
    uint32_t (*sniff)(const struct import_file *file);
    /* Adds records to out. returns TY_OK, TY_ERR_INPUT (error says what is wrong), TY_ERR_NOMEM. */
    ty_status (*read)(struct import_file *file, struct ty_import *out, struct ty_error *error);
};

extern const struct import_format import_formats[]; /* ended by name NULL */

/* Reads file->path whole and brings it to UTF-8; free file->text even on failure. returns TY_OK,
 * TY_ERR_IO, TY_ERR_INPUT, TY_ERR_NOMEM. */
ty_status import_read_file(struct import_file *file, struct ty_error *error);

/* Adds the finished object of a writer as one line of JSON, and its text. usable: it holds what a
 * calibration needs. returns TY_OK or TY_ERR_NOMEM. */
ty_status import_add(struct ty_import *import, struct json_writer *json, const char *text,
                     bool usable, struct ty_error *error);

/* Formats. */
uint32_t training_log_sniff(const struct import_file *file);
ty_status training_log_read(struct import_file *file, struct ty_import *out,
                            struct ty_error *error);
/* Output of microbenchmarks (calibrate/micro.h). */
uint32_t micro_sniff(const struct import_file *file);
ty_status micro_import(struct import_file *file, struct ty_import *out, struct ty_error *error);

/* calibrate/logged.c: plan and steady step of the record of a training run. returns the number of
 * lines the step time rests on; 0: it has none. */
struct ty_logged;
double logged_read(const struct ty_record *record, struct ty_logged *out);

/* Any bytes as UTF-8, in place of *text: UTF-16 by its mark or by its zero bytes, a UTF-8 mark
 * dropped, NUL bytes made blanks. returns false when out of memory. */
bool text_to_utf8(char **text, size_t *bytes);

#endif

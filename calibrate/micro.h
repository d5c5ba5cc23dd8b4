/* SPDX-License-Identifier: MIT
 *
 * Readers of microbenchmark output: each adds records (calibrate/record.h) to a list. They find
 * their part of a file by its content, whatever stands around it: banners, launcher labels, lines
 * of libraries. Columns are found by the names in the header, never by their place. Units become SI
 * (bytes, seconds, bytes per second); a bandwidth that contradicts the size and the time beside it
 * is kept with the reason in `rejected`.
 */
#ifndef CALIBRATE_MICRO_H
#define CALIBRATE_MICRO_H

#include "calibrate/csv.h"
#include "calibrate/import.h"
#include "calibrate/record.h"
#include "models/spec/json.h"

#define MICRO_TOKENS_MAX 40

/* ---- text --------------------------------------------------------------------------------- */

struct micro_lines {
    char *at; /* the rest of the text, which is cut into lines */
    uint32_t line;
};
/* The next line, terminated in place, without its line end and trailing blanks; NULL at the end. */
char *micro_next_line(struct micro_lines *lines);
/* The line behind the labels of launchers: "[1,0]<stdout>:", "0: ", "[0] ", a time stamp. */
char *micro_skip_labels(char *line);
/* Cuts a line at blanks (and bars, if `bars`): its first `max` words. returns how many it has. */
uint32_t micro_words(char *line, bool bars, char *word[], uint32_t max);
/* The whole word as a finite number; false for "N/A", "12a", "". */
bool micro_number(const char *word, double *out);
/* Half of the last printed digit: 0.005 of "36.50", 0.5 of "15791". */
double micro_half_digit(const char *word);
/* "32KiB", "4k", "1M", "16GiB" (powers of 1024), "4GB" (of `unit_B`, 1000 or 1024); NAN if none. */
double micro_size_bytes(const char *word, double unit_B);
/* What follows `label` up to the end of the line, behind blanks, "=" and ":"; NULL without it. */
char *micro_after(char *line, const char *label);
/* The word in `text` that starts at `at`, copied into out without the characters of `stop`. */
void micro_copy_word(const char *at, const char *stop, char *out, size_t bytes);
/* |got - want| within 2 % or half a digit, and neither is NAN. */
bool micro_agrees(double got, double want, double half_digit);

/* Parses the JSON value that starts at the first line beginning with '{' and ends where its
 * brackets close; text before and behind it is skipped. */
ty_status micro_json(const struct import_file *file, struct json_document *out,
                     struct ty_error *error);
/* A number, or a text that holds one ("8", "    -1"); NAN otherwise. */
double micro_json_number(const struct json_at *object, const char *key);
const char *micro_json_text(const struct json_at *object, const char *key); /* "" without it */

/* ---- readers ------------------------------------------------------------------------------ */

/* The last part of the path: the file that records name. */
const char *micro_file_name(const char *path);

typedef ty_status micro_reader(struct import_file *file, struct record_list *list,
                               struct ty_error *error);
micro_reader micro_read_nccl, micro_read_nccl_json, micro_read_torch_bench;
micro_reader micro_read_nvbandwidth, micro_read_nvbandwidth_json, micro_read_babelstream;
micro_reader micro_read_perftest, micro_read_ior, micro_read_fio, micro_read_dlio;
micro_reader micro_read_gemm, micro_read_hipblaslt, micro_read_table;

/* Reads any of them, told by its content. returns TY_ERR_INPUT when it is none of them. */
micro_reader micro_read;

#endif

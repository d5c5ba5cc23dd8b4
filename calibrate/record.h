/* SPDX-License-Identifier: MIT
 *
 * A record is one measured point of a microbenchmark: what was measured (kind, parameters), the
 * values, the hardware and software it was measured on, and where it stands in which file. The unit
 * is the end of each key: size_bytes, time_s, busbw_bytes_per_s. On disk a record is one line of
 * JSON (docs/import.md); a point that cannot be true is kept with the reason in `rejected`.
 *
 * A list fills as a reader goes and remembers that memory ran out or that there were too many
 * points; the caller asks once, with record_list_status. Keys, kind and tool are string literals or
 * live in the list (record_copy).
 */
#ifndef CALIBRATE_RECORD_H
#define CALIBRATE_RECORD_H

#include "models/spec/json_write.h"
#include "sim/arena.h"

#define RECORD_FIELDS_MAX 32
#define RECORD_LIST_MAX   250000u /* points of one file; the largest real tables hold thousands */

enum record_section { RECORD_PARAMETER, RECORD_VALUE, RECORD_HARDWARE, RECORD_SOFTWARE };

/* X(bit name, word in the file, what it says) */
#define RECORD_FLAGS(X)                                                                            \
    X(COLD, "cold", "first point of a table, slower than larger ones: start-up is in it")          \
    X(OUTLIER, "outlier", "slower than a larger size of the same table by 30 % or more")           \
    X(DERIVED, "derived", "a value was calculated from printed ones, not printed itself")          \
    X(COARSE, "coarse", "the printed digits leave more than 5 % open")                             \
    X(TRUNCATED, "truncated", "the table has no end: the run was cut")                             \
    X(APPROXIMATE, "approximate", "read off a plot, or the number of ranks is known roughly")      \
    X(INVALID_DATA, "invalid_data", "the tool found wrong results somewhere in this table")        \
    X(PAGE_CACHE, "page_cache", "not direct I/O: the host's memory may have served it")            \
    X(SPECIFICATION, "specification", "a maker's or planner's figure, not a measurement")

enum record_flag {
#define X(name, word, text) RECORD_BIT_##name,
    RECORD_FLAGS(X)
#undef X
        RECORD_N_FLAGS
};
enum {
#define X(name, word, text) RECORD_##name = 1 << RECORD_BIT_##name,
    RECORD_FLAGS(X)
#undef X
};

struct record_field {
    const char *key;
    const char *text; /* NULL: a number */
    double number;
    enum record_section section;
};

struct record_fields {
    struct record_field at[RECORD_FIELDS_MAX];
    uint32_t n;
};

struct record {
    const char *kind; /* collective, copy, memory, storage, network, gemm, attention, ... */
    const char *tool;
    const char *file, *rejected; /* rejected NULL: usable */
    uint32_t line, flags;        /* line 0: the format has no lines */
    uint32_t n_fields, n_stamp;
    const struct record_field *field; /* of this point */
    const struct record_field *stamp; /* shared by the points of one table */
};

struct record_list {
    struct arena arena;
    struct record *record;
    size_t n, capacity;
    bool out_of_memory, too_many;
};

void record_list_init(struct record_list *list);
void record_list_free(struct record_list *list);
/* TY_OK, or what went wrong while the list was filled. */
ty_status record_list_status(const struct record_list *list, const char *where,
                             struct ty_error *error);
/* A copy that lives as long as the list; "" when out of memory. */
const char *record_copy(struct record_list *list, const char *text);

/* A number that is not finite, or a text that is NULL or empty, is left out. Fields beyond
 * RECORD_FIELDS_MAX are dropped. */
void record_number(struct record_fields *fields, enum record_section section, const char *key,
                   double number);
void record_text(struct record_fields *fields, enum record_section section, const char *key,
                 const char *text);
/* Adds a point: head with kind, tool, file, line, flags, rejected and a stamp from record_stamp (or
 * none); its fields are copied. */
void record_add(struct record_list *list, const struct record *head,
                const struct record_fields *fields);
/* Keeps fields for the points that follow: sets head->stamp. */
void record_stamp(struct record_list *list, struct record *head,
                  const struct record_fields *fields);

/* A field by its key, among those of the point and the stamp: NAN or "" when there is none. */
double record_value(const struct record *record, const char *key);
const char *record_value_text(const struct record *record, const char *key);

/* Writes the object of one record. */
void record_write(const struct record *record, struct json_writer *json);
/* One line for people: kind, parameters, values, flags or the reason of rejection. */
void record_describe(const struct record *record, char *out, size_t bytes);
/* Reads lines of JSON, empty ones skipped; origin names the file in errors. Keys that it does not
 * know are left out. returns TY_OK, TY_ERR_INPUT, TY_ERR_NOMEM. */
ty_status record_read(const char *text, const char *origin, struct record_list *list,
                      struct ty_error *error);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Launch arguments by one table, data/frameworks: of every knob its values, and for each the
 * arguments that say so. The table reads both ways:
 *
 *   "KNOB": [[VALUE, "KEY=TEXT KEY ...", "KEY ... when a flag is off"], ...]
 *
 * VALUE "*" is any number or text, and * in the arguments stands for it. {dp}, {replicas}, {shard},
 * {local} are computed from the plan; any other {name} is only asked for. KEY+=TEXT adds to a list.
 * ?KEY=TEXT is asked for when reading and not written. 'TEXT' is quoted where the form quotes. The
 * first row that holds counts.
 */
#ifndef MODELS_SPEC_LAUNCH_H
#define MODELS_SPEC_LAUNCH_H

#include "include/trainyard_launch.h"
#include "models/spec/json.h"

#define LAUNCH_MAX_PAIRS 256

struct launch_pair {
    char key[96], value[272];
};
struct launch_pairs {
    uint32_t n;
    struct launch_pair pair[LAUNCH_MAX_PAIRS];
};
/* The value of a key; NULL: not there. */
const char *launch_value(const struct launch_pairs *pairs, const char *key);
/* false: too many, or too long. */
bool launch_add(struct launch_pairs *pairs, const char *key, size_t key_length, const char *value,
                size_t value_length);

struct launch_row {
    const char *value, *arguments, *off; /* off: NULL without */
};
/* One knob of a table: next row of it. */
bool launch_next_row(const struct json_at *knob, struct json_at *item, struct launch_row *row);

/* One argument of a row: "?a.b+='x'". Returns what is behind it, NULL at the end. */
struct launch_argument {
    bool asked, list;
    char key[96], value[128];
};
const char *launch_argument(const char *text, struct launch_argument *out);

/* The form of a file: key, value pairs of its text. */
ty_status launch_parse(const char *path, char *text, const char **form, struct launch_pairs *out,
                       struct ty_error *error);
/* And back. */
char *launch_print(const char *form, const char *line, const char *head,
                   const struct launch_pairs *pairs);

#endif

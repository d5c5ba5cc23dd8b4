/* SPDX-License-Identifier: MIT
 *
 * What a row of the table of runs does not say: software stack, site, cluster, and the cells its
 * source left out. Ordered rules in data/rules/match.json decide it, the first that matches wins:
 *
 *   "vpp": [{"pp": {"max": 1}, "is": "1"},
 *           {"stack": ["megatron-core", "mlperf"], "is": "= layers / pp", "max": 20},
 *           {"is": "1"}]
 *
 * A fact is a name with its rules; facts are found in file order. A fact named like a column is a
 * default: it is looked up only where the cell is empty. A condition names a column or an earlier
 * fact ("prefix", the id up to its first '-', is always known) and gives a pattern with '*', a list
 * of patterns, or {"min", "max"} of a number; every condition of a rule must hold. "is" is text, or
 * behind '=' a product of columns, facts and numbers; it must come out whole and, where "max" is
 * given, at most that, or be rounded up by "multiple"; otherwise the next rule is tried. "why" is
 * for readers.
 */
#ifndef CALIBRATE_MATCH_H
#define CALIBRATE_MATCH_H

#include "calibrate/csv.h"
#include "models/spec/json.h"

#define MATCH_MAX_FACTS 64

struct match {
    struct json_document rules;
};

struct fact {
    const char *name; /* lives in the rules */
    char text[64];
};

/* A row and the facts found for it. Needs its csv and match. */
struct facts {
    const struct csv *csv;
    uint64_t row;
    char prefix[24];
    uint32_t n;
    struct fact fact[MATCH_MAX_FACTS];
};

/* Reads the built-in rules; every rule is checked. Free with match_free. */
ty_status match_load(struct match *out, struct ty_error *error);
/* The same from text. */
ty_status match_parse(const char *text, size_t bytes, struct match *out, struct ty_error *error);
void match_free(struct match *match);

/* Applies the rules to a row. */
void match_row(const struct match *match, const struct csv *csv, uint64_t row, struct facts *out);

/* True when the source filled the cell. */
bool facts_cell(const struct facts *facts, const char *name);
/* A cell, else the fact of that name, else "". */
const char *facts_text(const struct facts *facts, const char *name);
/* NAN for an empty or unreadable one. */
double facts_number(const struct facts *facts, const char *name);

#endif

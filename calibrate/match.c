/* SPDX-License-Identifier: MIT
 * The rules are read where they lie, in the parsed document: a row asks a few hundred of them. */
#include "calibrate/match.h"
#include "models/spec/builtin.h"
#include "sim/error.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- facts --------------------------------------------------------------------------------- */

static const struct fact *find_fact(const struct facts *facts, const char *name)
{
    for (uint32_t i = 0; i < facts->n; i++)
        if (strcmp(facts->fact[i].name, name) == 0)
            return &facts->fact[i];
    return NULL;
}

bool facts_cell(const struct facts *facts, const char *name)
{
    return *csv_cell(facts->csv, facts->row, csv_column(facts->csv, name)) != '\0';
}

const char *facts_text(const struct facts *facts, const char *name)
{
    if (strcmp(name, "prefix") == 0)
        return facts->prefix;
    const char *cell = csv_cell(facts->csv, facts->row, csv_column(facts->csv, name));
    const struct fact *fact = *cell ? NULL : find_fact(facts, name);
    return fact ? fact->text : cell;
}

static double number_of(const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    return end == text || *end != '\0' || !isfinite(value) ? (double)NAN : value;
}

double facts_number(const struct facts *facts, const char *name)
{
    return number_of(facts_text(facts, name));
}

/* ---- conditions ---------------------------------------------------------------------------- */

/* '*' stands for any text; case does not matter. */
static bool matches(const char *pattern, const char *text)
{
    const char *star = NULL, *from = text;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            from = text;
        } else if (tolower((unsigned char)*pattern) == tolower((unsigned char)*text)) {
            pattern++;
            text++;
        } else if (star) { /* let the last star take one character more */
            pattern = star + 1;
            text = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

static bool inside(const struct json_at *range, double value)
{
    struct json_at end;
    double limit;
    if (isnan(value))
        return false;
    if (json_find(range, "min", &end) &&
        (json_get_double(&end, -1e300, 1e300, &limit, NULL) != TY_OK || value < limit))
        return false;
    return !json_find(range, "max", &end) ||
           (json_get_double(&end, -1e300, 1e300, &limit, NULL) == TY_OK && value <= limit);
}

static bool holds(const struct json_at *condition, const char *text)
{
    const char *pattern;
    if (json_type_of(condition) == JSON_OBJECT)
        return inside(condition, number_of(text));
    if (json_type_of(condition) == JSON_TEXT)
        return json_get_text(condition, &pattern, NULL) == TY_OK && matches(pattern, text);
    struct json_at item = {.node = NULL};
    while (json_next(condition, &item))
        if (json_get_text(&item, &pattern, NULL) == TY_OK && matches(pattern, text))
            return true;
    return false;
}

static bool is_condition(const char *key)
{
    static const char *const others[] = {"is", "max", "multiple", "why"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(key, others[i]) == 0)
            return false;
    return true;
}

static bool applies(const struct json_at *rule, const struct facts *facts)
{
    struct json_at condition = {.node = NULL};
    while (json_next(rule, &condition)) {
        const char *key = json_key(&condition);
        if (is_condition(key) && !holds(&condition, facts_text(facts, key)))
            return false;
    }
    return true;
}

/* ---- values -------------------------------------------------------------------------------- */

/* Cuts the next word out of *at. returns false at the end. */
static bool next_word(const char **at, char *word, size_t bytes)
{
    *at += strspn(*at, " ");
    const size_t length = strcspn(*at, " ");
    text_format(word, bytes, "%.*s", (int)length, *at);
    *at += length;
    return length > 0;
}

/* a * b / c, left to right; NAN when a factor is missing. */
static double product(const char *expression, const struct facts *facts)
{
    char word[64];
    double value = 1.0;
    bool divide = false;
    while (next_word(&expression, word, sizeof word)) {
        if (strcmp(word, "*") == 0 || strcmp(word, "/") == 0) {
            divide = *word == '/';
            continue;
        }
        const double constant = number_of(word);
        const double factor = isnan(constant) ? facts_number(facts, word) : constant;
        value = divide ? value / factor : value * factor;
        divide = false;
    }
    return value;
}

static double option(const struct json_at *rule, const char *key, double otherwise)
{
    struct json_at at;
    double value;
    const bool given = json_find(rule, key, &at) && json_get_double(&at, 1, 1e9, &value, NULL) == 0;
    return given ? value : otherwise;
}

/* The value of a rule that applies. returns false when its product is no usable number. */
static bool value_of(const struct json_at *rule, const struct facts *facts, struct fact *out)
{
    struct json_at is;
    const char *text;
    char first[64];
    if (!json_find(rule, "is", &is) || json_get_text(&is, &text, NULL) != TY_OK)
        return false;
    if (*text != '=') {
        text_format(out->text, sizeof out->text, "%s", text);
        return true;
    }
    const char *expression = text + 1, *rest = expression;
    next_word(&rest, first, sizeof first);
    if (!*rest && isnan(facts_number(facts, first))) { /* one name: its text */
        text_format(out->text, sizeof out->text, "%s", facts_text(facts, first));
        return *out->text != '\0';
    }
    const double multiple = option(rule, "multiple", 0.0);
    double value = product(expression, facts);
    if (multiple > 0.0)
        value = ceil(value / multiple - 1e-9) * multiple;
    if (!(value >= 1.0 && value <= option(rule, "max", 4e9)) ||
        fabs(value - round(value)) > 1e-6 * value)
        return false;
    text_format(out->text, sizeof out->text, "%.0f", value);
    return true;
}

/* ---- rules --------------------------------------------------------------------------------- */

static ty_status check_rule(const struct json_at *rule, struct ty_error *error)
{
    struct json_at member = {.node = NULL};
    const char *text;
    if (!json_find(rule, "is", &member))
        return json_missing(rule, "is", error);
    ty_status status = json_get_text(&member, &text, error);
    member.node = NULL;
    while (status == TY_OK && json_next(rule, &member)) {
        const enum json_type type = json_type_of(&member);
        const bool known = is_condition(json_key(&member))
                               ? type == JSON_TEXT || type == JSON_ARRAY || type == JSON_OBJECT
                               : type == JSON_TEXT || type == JSON_NUMBER;
        if (!known)
            status = json_refuse(&member, TY_ERR_INPUT, error,
                                 "a condition is a pattern, a list of patterns or {min, max}");
    }
    return status;
}

static ty_status check_rules(const struct json_at *top, struct ty_error *error)
{
    ty_status status = json_want(top, JSON_OBJECT, error);
    if (status == TY_OK && json_size(top) > MATCH_MAX_FACTS)
        return json_refuse(top, TY_ERR_INPUT, error, "more than %d facts", MATCH_MAX_FACTS);
    struct json_at fact = {.node = NULL};
    while (status == TY_OK && json_next(top, &fact)) {
        status = json_want(&fact, JSON_ARRAY, error);
        struct json_at rule = {.node = NULL};
        while (status == TY_OK && json_next(&fact, &rule)) {
            status = json_want(&rule, JSON_OBJECT, error);
            if (status == TY_OK)
                status = check_rule(&rule, error);
        }
    }
    return status;
}

ty_status match_parse(const char *text, size_t bytes, struct match *out, struct ty_error *error)
{
    struct match match = {0};
    ty_status status = json_parse(text, bytes, "rules/match", &match.rules, error);
    if (status == TY_OK)
        status = check_rules(&match.rules.top, error);
    if (status == TY_OK)
        *out = match;
    else
        match_free(&match);
    return status;
}

ty_status match_load(struct match *out, struct ty_error *error)
{
    const struct builtin_file *file = builtin_find("rules", "match");
    if (!file)
        return error_set(error, TY_ERR_INTERNAL, "rules/match", "the built-in rules are missing");
    return match_parse((const char *)file->text, file->bytes, out, error);
}

void match_free(struct match *match)
{
    json_free(&match->rules);
}

/* ---- a row --------------------------------------------------------------------------------- */

static void find_value(const struct json_at *rules, const struct facts *facts, struct fact *out)
{
    struct json_at rule = {.node = NULL};
    while (json_next(rules, &rule))
        if (applies(&rule, facts) && value_of(&rule, facts, out))
            return;
}

void match_row(const struct match *match, const struct csv *csv, uint64_t row, struct facts *out)
{
    *out = (struct facts){.csv = csv, .row = row};
    const char *id = csv_cell(csv, row, csv_column(csv, "id"));
    text_format(out->prefix, sizeof out->prefix, "%.*s", (int)strcspn(id, "-"), id);
    struct json_at rules = {.node = NULL};
    while (json_next(&match->rules.top, &rules)) {
        struct fact fact = {.name = json_key(&rules)};
        const int column = csv_column(csv, fact.name);
        if (column >= 0 && *csv_cell(csv, row, column))
            continue;
        find_value(&rules, out, &fact);
        out->fact[out->n++] = fact;
    }
}

/* SPDX-License-Identifier: MIT
 * The forms of launch arguments as text: flags, overrides, TOML, JSON. */
#include "models/spec/json_write.h"
#include "models/spec/launch.h"
#include "sim/error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ------------------------------------------------------------------------------ */

/* Drops quotes and brackets of a value, and the blanks of a list. */
static bool add_clean(struct launch_pairs *out, const char *key, size_t key_length,
                      const char *value, size_t length)
{
    char clean[272];
    size_t n = 0;
    for (size_t i = 0; i < length && n + 1 < sizeof clean; i++)
        if (!strchr("\"'[] \t", value[i]))
            clean[n++] = value[i];
    return launch_add(out, key, key_length, clean, n);
}

/* The next word of a shell text, continued lines joined; comments are skipped. */
static const char *next_word(const char *at, size_t *length)
{
    for (;;) {
        at += strspn(at, " \t\r\n\\");
        if (*at != '#')
            break;
        at += strcspn(at, "\n");
    }
    *length = 0;
    char quote = '\0';
    for (; at[*length] && (quote || !isspace((unsigned char)at[*length])); ++*length) {
        const char c = at[*length];
        if (quote)
            quote = c == quote ? '\0' : quote;
        else if (c == '\'' || c == '"')
            quote = c;
    }
    return *length ? at : NULL;
}

/* --key, --key value, --key=value, --key a b c */
static bool parse_flags(const char *text, struct launch_pairs *out)
{
    size_t length;
    bool good = true;
    for (const char *word = next_word(text, &length); word && good;) {
        const size_t key = strcspn(word, "= \t\r\n\\");
        const bool inline_value = key < length;
        char value[272] = "";
        const char *name = word;
        const bool flag = length > 2 && strncmp(word, "--", 2) == 0;
        if (flag && inline_value)
            text_format(value, sizeof value, "%.*s", (int)(length - key - 1), word + key + 1);
        const size_t name_length = inline_value ? key : length;
        word = next_word(word + length, &length);
        while (flag && !inline_value && word && strncmp(word, "--", 2) != 0 && *word != '"') {
            text_append(value, sizeof value, "%s%.*s", *value ? "," : "", (int)length, word);
            word = next_word(word + length, &length);
        }
        if (flag)
            good = add_clean(out, name, name_length, value, strlen(value));
    }
    return good;
}

/* key.key=value words, and the flags of the launcher */
static bool parse_overrides(const char *text, struct launch_pairs *out)
{
    size_t length;
    bool good = true;
    for (const char *word = next_word(text, &length); word && good;
         word = next_word(word + length, &length)) {
        const char *equals = memchr(word, '=', length);
        const size_t quote = *word == '\'' || *word == '"';
        if (equals)
            good = add_clean(out, word + quote, (size_t)(equals - word) - quote, equals + 1,
                             length - (size_t)(equals - word) - 1);
    }
    return good;
}

/* [section] and key = value lines */
static bool parse_toml(char *text, struct launch_pairs *out)
{
    char section[64] = "";
    bool good = true;
    for (char *line = text, *next; line && *line && good; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        line += strspn(line, " \t");
        line[strcspn(line, "#\r")] = '\0';
        char *equals = strchr(line, '=');
        if (*line == '[') {
            text_format(section, sizeof section, "%.*s", (int)strcspn(line + 1, "]"), line + 1);
        } else if (equals) {
            char key[96];
            text_format(key, sizeof key, "%s%s%.*s", section, *section ? "." : "",
                        (int)strcspn(line, " ="), line);
            good = add_clean(out, key, strlen(key), equals + 1, strlen(equals + 1));
        }
    }
    return good;
}

static bool add_json(const struct json_at *object, const char *prefix, uint32_t depth,
                     struct launch_pairs *out)
{
    struct json_at member = {0};
    bool good = true;
    while (good && depth < 8 && json_next(object, &member)) {
        char key[96], text[32];
        const char *value = NULL;
        double number = 0.0;
        bool on = false;
        text_format(key, sizeof key, "%s%s%s", prefix, *prefix ? "." : "", json_key(&member));
        switch (json_type_of(&member)) {
        case JSON_OBJECT:
            good = add_json(&member, key, depth + 1, out);
            continue;
        case JSON_BOOL:
            value = json_get_bool(&member, &on, NULL) == TY_OK && on ? "true" : "false";
            break;
        case JSON_NUMBER:
            if (json_get_double(&member, -1e18, 1e18, &number, NULL) == TY_OK)
                text_format(text, sizeof text, "%.15g", number);
            value = text;
            break;
        case JSON_TEXT:
            if (json_get_text(&member, &value, NULL) != TY_OK)
                value = NULL;
            break;
        default:
            break;
        }
        if (value)
            good = launch_add(out, key, strlen(key), value, strlen(value));
    }
    return good;
}

ty_status launch_parse(const char *path, char *text, const char **form, struct launch_pairs *out,
                       struct ty_error *error)
{
    const char *start = text + strspn(text, " \t\r\n");
    bool good = true;
    out->n = 0;
    if (*start == '{') {
        struct json_document document = {0};
        const ty_status status = json_parse(text, strlen(text), path, &document, error);
        if (status != TY_OK)
            return status;
        *form = "json";
        good = add_json(&document.top, "", 0, out);
        json_free(&document);
    } else if (strstr(text, "\n[") || *start == '[') {
        *form = "toml";
        good = parse_toml(text, out);
    } else if (strstr(text, "--micro-batch-size") || strstr(text, "--tensor-model-parallel-size")) {
        *form = "flags";
        good = parse_flags(text, out);
    } else {
        *form = "overrides";
        good = parse_overrides(text, out);
    }
    return good ? TY_OK
                : error_set(error, TY_ERR_INPUT, path, "more than %d arguments, or one too long",
                            LAUNCH_MAX_PAIRS);
}

/* ---- writing ------------------------------------------------------------------------------ */

/* Values of a shell line that need quotes. */
static bool is_special(const char *value)
{
    return strpbrk(value, "|()*;&$<> []") != NULL;
}

static void print_flags(FILE *file, const char *line, const char *head,
                        const struct launch_pairs *pairs)
{
    fprintf(file, "#!/bin/sh\n# %s\n%s", head, line);
    for (uint32_t i = 0; i < pairs->n; i++) {
        const struct launch_pair *pair = &pairs->pair[i];
        fprintf(file, " \\\n    %s", pair->key);
        if (is_special(pair->value)) {
            fprintf(file, " '%s'", pair->value);
            continue;
        }
        for (const char *at = pair->value; *at; at += strcspn(at, ",")) {
            at += *at == ',';
            fprintf(file, " %.*s", (int)strcspn(at, ","), at);
        }
    }
    fprintf(file, " \\\n    \"$@\"\n");
}

static void print_overrides(FILE *file, const char *line, const char *head,
                            const struct launch_pairs *pairs)
{
    fprintf(file, "#!/bin/sh\n# %s\n%s", head, line);
    for (uint32_t i = 0; i < pairs->n; i++) {
        const struct launch_pair *pair = &pairs->pair[i];
        const bool list = strstr(pair->key, "modules") != NULL;
        const bool quoted = list || is_special(pair->value);
        fprintf(file, " \\\n    %s%s=%s%s%s%s", quoted ? "'" : "", pair->key, list ? "[" : "",
                pair->value, list ? "]" : "", quoted ? "'" : "");
    }
    fprintf(file, " \\\n    \"$@\"\n");
}

/* Of a quoted value the text, else the value; both forms have true, false and numbers bare. */
static const char *bare(const char *value, char text[272])
{
    text_format(text, 272, "%s", *value == '\'' ? value + 1 : value);
    if (*value == '\'')
        text[strcspn(text, "'")] = '\0';
    return text;
}

static bool same_section(const char *a, const char *b)
{
    const char *dot = strrchr(a, '.'), *other = strrchr(b, '.');
    const size_t n = dot ? (size_t)(dot - a) : 0;
    return n == (other ? (size_t)(other - b) : 0) && strncmp(a, b, n) == 0;
}

static void print_toml(FILE *file, const char *line, const char *head,
                       const struct launch_pairs *pairs)
{
    char text[272];
    fprintf(file, "# %s\n# %s\n", head, line);
    for (uint32_t i = 0; i < pairs->n; i++) {
        bool seen = false;
        for (uint32_t k = 0; k < i; k++)
            seen |= same_section(pairs->pair[k].key, pairs->pair[i].key);
        const char *dot = strrchr(pairs->pair[i].key, '.');
        if (seen || !dot)
            continue;
        fprintf(file, "\n[%.*s]\n", (int)(dot - pairs->pair[i].key), pairs->pair[i].key);
        for (uint32_t k = i; k < pairs->n; k++) {
            const struct launch_pair *pair = &pairs->pair[k];
            const char *quote = pair->value[0] == '\'' ? "\"" : "";
            if (same_section(pair->key, pairs->pair[i].key))
                fprintf(file, "%s = %s%s%s\n", strrchr(pair->key, '.') + 1, quote,
                        bare(pair->value, text), quote);
        }
    }
}

static void json_value(struct json_writer *json, const char *key, const char *value)
{
    char text[272];
    if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
        json_bool(json, key, *value == 't');
    else if (isdigit((unsigned char)*value))
        json_number(json, key, strtod(value, NULL));
    else
        json_text(json, key, bare(value, text));
}

/* The pairs below a prefix as the members of the open object. */
static void json_members(struct json_writer *json, const char *prefix, size_t n_prefix,
                         const struct launch_pairs *pairs)
{
    for (uint32_t i = 0; i < pairs->n; i++) {
        const char *key = pairs->pair[i].key;
        if (strncmp(key, prefix, n_prefix) != 0)
            continue;
        const size_t n = strcspn(key + n_prefix, ".");
        bool seen = false;
        for (uint32_t k = 0; k < i; k++)
            seen |= strncmp(pairs->pair[k].key, key, n_prefix + n) == 0 &&
                    (pairs->pair[k].key[n_prefix + n] == '.') == (key[n_prefix + n] == '.');
        if (seen)
            continue;
        char name[96];
        text_format(name, sizeof name, "%.*s", (int)n, key + n_prefix);
        if (key[n_prefix + n] != '.') {
            json_value(json, name, pairs->pair[i].value);
            continue;
        }
        json_object(json, name);
        json_members(json, key, n_prefix + n + 1, pairs);
        json_close(json);
    }
}

static char *print_json(const char *line, const char *head, const struct launch_pairs *pairs)
{
    struct json_writer json;
    json_begin(&json);
    json_object(&json, NULL);
    json_text(&json, "_plan", head);
    json_text(&json, "_launch", line);
    json_members(&json, "", 0, pairs);
    json_close(&json);
    return json_finish(&json);
}

char *launch_print(const char *form, const char *line, const char *head,
                   const struct launch_pairs *pairs)
{
    if (strcmp(form, "json") == 0)
        return print_json(line, head, pairs);
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    if (!file)
        return NULL;
    if (strcmp(form, "toml") == 0)
        print_toml(file, line, head, pairs);
    else
        (strcmp(form, "flags") == 0 ? print_flags : print_overrides)(file, line, head, pairs);
    if (fclose(file) == 0)
        return text;
    free(text);
    return NULL;
}

/* SPDX-License-Identifier: MIT
 * Asking a record of `import` by path: "lines.kept", "blocks.1.gbs". */
#ifndef TESTS_IMPORT_CHECK_H
#define TESTS_IMPORT_CHECK_H

#include "include/trainyard_tools.h"
#include "models/spec/json.h"
#include "tests/tap.h"

#define IMPORT_DEPTH 8

/* Steps along a path; the last node lies in way[IMPORT_DEPTH - 1], the others keep their place
 * since each node points to its parent. returns false when it is absent or null. */
static bool import_find(const struct json_document *document, const char *path,
                        struct json_at way[IMPORT_DEPTH])
{
    size_t n = 0;
    way[0] = document->top;
    while (*path && n + 2 < IMPORT_DEPTH) {
        char key[64];
        const size_t length = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)length, path);
        path += length + (path[length] == '.');
        bool found = true;
        if (*key >= '0' && *key <= '9')
            for (long i = -1; found && i < strtol(key, NULL, 10); i++)
                found = json_next(&way[n], &way[n + 1]);
        else
            found = json_find(&way[n], key, &way[n + 1]);
        if (!found)
            return false;
        n++;
    }
    way[IMPORT_DEPTH - 1] = way[n];
    return true;
}

enum import_type { IMPORT_NOTHING, IMPORT_NUMBER, IMPORT_OTHER };

/* What stands at a path of record `run` (from 1): its type, and its value as number and text. */
struct import_value {
    enum import_type type;
    double number;
    char text[256];
};

static struct import_value import_value(const struct ty_import *import, uint32_t run,
                                        const char *path)
{
    struct import_value out = {.type = IMPORT_NOTHING, .number = NAN};
    struct json_document document = {0};
    struct json_at way[IMPORT_DEPTH] = {{0}};
    const char *json = run && run <= import->n_records ? import->records[run - 1].json : "";
    if (json_parse(json, strlen(json), "record", &document, NULL) == TY_OK &&
        import_find(&document, path, way)) {
        const struct json_at *at = &way[IMPORT_DEPTH - 1];
        const char *text = "";
        out.type = json_get_double(at, -1e300, 1e300, &out.number, NULL) == TY_OK ? IMPORT_NUMBER
                                                                                  : IMPORT_OTHER;
        if (json_type_of(at) == JSON_TEXT && json_get_text(at, &text, NULL) == TY_OK)
            snprintf(out.text, sizeof out.text, "%s", text);
    }
    json_free(&document);
    return out;
}

#endif

/* SPDX-License-Identifier: MIT
 * Records from a file, through the command's own path, and from a text. */
#ifndef TESTS_MICRO_FIXTURE_H
#define TESTS_MICRO_FIXTURE_H

#include "calibrate/micro.h"
#include "tests/tap.h"

/* Imports the file and reads its lines of JSON back; false: error says why. */
__attribute__((unused)) static bool records_of_file(const char *path, struct record_list *list,
                                                    struct ty_error *error)
{
    struct ty_import import = {0};
    record_list_init(list);
    ty_status status = ty_import_file(path, &import, error);
    for (uint32_t i = 0; status == TY_OK && i < import.n_records; i++)
        status = record_read(import.records[i].json, path, list, error);
    ty_import_free(&import);
    return status == TY_OK;
}

__attribute__((unused)) static bool records_of_text(const char *text, const char *name,
                                                    struct record_list *list)
{
    struct ty_error error;
    const size_t bytes = strlen(text);
    struct import_file file = {.path = name, .text = malloc(bytes + 1), .bytes = bytes};
    record_list_init(list);
    if (!file.text)
        return false;
    memcpy(file.text, text, bytes + 1);
    const ty_status status = micro_read(&file, list, &error);
    free(file.text);
    return status == TY_OK;
}

__attribute__((unused)) static uint32_t count_rejected(const struct record_list *list)
{
    uint32_t n = 0;
    for (size_t i = 0; i < list->n; i++)
        n += list->record[i].rejected != NULL;
    return n;
}

__attribute__((unused)) static uint32_t count_flag(const struct record_list *list, uint32_t flag)
{
    uint32_t n = 0;
    for (size_t i = 0; i < list->n; i++)
        n += (list->record[i].flags & flag) != 0;
    return n;
}

/* The first record whose field `key` is `value`; a failed test and an empty record without it. */
__attribute__((unused)) static const struct record *find_record(const struct record_list *list,
                                                                const char *key, double value)
{
    static const struct record none = {.kind = "", .tool = "", .file = ""};
    for (size_t i = 0; i < list->n; i++)
        if (record_value(&list->record[i], key) == value)
            return &list->record[i];
    ok(false, "a record has %s %g", key, value);
    return &none;
}

#endif

/* SPDX-License-Identifier: MIT
 * Any bytes as a training log. A record must be one line of JSON, its plan a plan file, and its
 * counts must add up. */
#include "calibrate/log.h"
#include "models/spec/json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static double count_of(const struct json_at *object, const char *key)
{
    struct json_at at;
    double value = 0.0;
    return json_find(object, key, &at) && json_get_double(&at, 0.0, 1e300, &value, NULL) == TY_OK
               ? value
               : 0.0;
}

static void check_lines(const struct json_at *lines)
{
    struct json_at dropped, item = {.node = NULL};
    double sum = count_of(lines, "kept");
    require(json_find(lines, "dropped", &dropped));
    while (json_next(&dropped, &item))
        sum += count_of(&dropped, json_key(&item));
    require(sum == count_of(lines, "printed"));
}

static void check_record(const struct ty_record *record)
{
    struct json_document document;
    struct json_at lines;
    struct ty_plan plan;
    require(strchr(record->json, '\n') == NULL && *record->text);
    require(json_parse(record->json, strlen(record->json), "record", &document, NULL) == TY_OK);
    if (json_find(&document.top, "lines", &lines))
        check_lines(&lines);
    json_free(&document);
    const char *text = strstr(record->json, "\"plan\": {") + 8;
    const size_t length = (size_t)(strchr(text, '}') + 1 - text);
    require(ty_spec_parse(TY_KIND_PLAN, text, length, "plan", &plan, NULL) == TY_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct import_file file = {.path = "fuzz", .text = malloc(bytes + 1), .bytes = bytes};
    struct ty_import import = {0};
    struct ty_error error = {0};
    if (!file.text)
        return 0;
    memcpy(file.text, data, bytes);
    file.text[bytes] = '\0';
    if (text_to_utf8(&file.text, &file.bytes)) {
        require(training_log_sniff(&file) <= 100);
        if (training_log_read(&file, &import, &error) == TY_OK)
            require(import.n_records > 0);
        else
            require(error.code != TY_OK && *error.text);
    }
    for (uint32_t i = 0; i < import.n_records; i++)
        check_record(&import.records[i]);
    ty_import_free(&import);
    free(file.text);
    return 0;
}

/* SPDX-License-Identifier: MIT
 * Lists of records: texts and fields in one arena, records in a growing array. */
#include "calibrate/record.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

void record_list_init(struct record_list *list)
{
    *list = (struct record_list){0};
    arena_init(&list->arena, NULL);
}

void record_list_free(struct record_list *list)
{
    array_free(&list->arena.allocator, list->record, list->capacity, sizeof *list->record);
    arena_destroy(&list->arena);
    *list = (struct record_list){0};
}

ty_status record_list_status(const struct record_list *list, const char *where,
                             struct ty_error *error)
{
    if (list->out_of_memory)
        return error_set(error, TY_ERR_NOMEM, where, "no memory for its records");
    if (list->too_many)
        return error_set(error, TY_ERR_INPUT, where, "holds more than %u points", RECORD_LIST_MAX);
    return TY_OK;
}

const char *record_copy(struct record_list *list, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = arena_get(&list->arena, bytes, 1);
    if (!copy) {
        list->out_of_memory = true;
        return "";
    }
    return memcpy(copy, text, bytes);
}

static void put(struct record_fields *fields, struct record_field field)
{
    if (fields->n < RECORD_FIELDS_MAX)
        fields->at[fields->n++] = field;
}

void record_number(struct record_fields *fields, enum record_section section, const char *key,
                   double number)
{
    if (isfinite(number))
        put(fields, (struct record_field){key, NULL, number, section});
}

void record_text(struct record_fields *fields, enum record_section section, const char *key,
                 const char *text)
{
    if (text && *text)
        put(fields, (struct record_field){key, text, (double)NAN, section});
}

static const struct record_field *keep(struct record_list *list, const struct record_fields *fields)
{
    struct record_field *kept = arena_get(&list->arena, fields->n, sizeof *kept);
    if (kept)
        memcpy(kept, fields->at, fields->n * sizeof *kept);
    else
        list->out_of_memory = true;
    return kept;
}

void record_add(struct record_list *list, const struct record *head,
                const struct record_fields *fields)
{
    list->too_many |= list->n >= RECORD_LIST_MAX;
    if (list->too_many || list->out_of_memory)
        return;
    void *records = list->record;
    if (!array_grow(&list->arena.allocator, &records, &list->capacity, list->n + 1,
                    sizeof *list->record)) {
        list->out_of_memory = true;
        return;
    }
    list->record = records;
    struct record record = *head;
    record.field = keep(list, fields);
    record.n_fields = record.field ? fields->n : 0;
    list->record[list->n++] = record;
}

void record_stamp(struct record_list *list, struct record *head, const struct record_fields *fields)
{
    head->stamp = keep(list, fields);
    head->n_stamp = head->stamp ? fields->n : 0;
}

static const struct record_field *find(const struct record *record, const char *key)
{
    for (uint32_t i = 0; i < record->n_fields; i++)
        if (strcmp(record->field[i].key, key) == 0)
            return &record->field[i];
    for (uint32_t i = 0; i < record->n_stamp; i++)
        if (strcmp(record->stamp[i].key, key) == 0)
            return &record->stamp[i];
    return NULL;
}

double record_value(const struct record *record, const char *key)
{
    const struct record_field *field = find(record, key);
    return field ? field->number : (double)NAN;
}

const char *record_value_text(const struct record *record, const char *key)
{
    const struct record_field *field = find(record, key);
    return field && field->text ? field->text : "";
}

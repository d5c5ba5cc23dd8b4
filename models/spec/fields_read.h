/* SPDX-License-Identifier: MIT
 *
 * Fields from text and JSON, driven by the tables of models/fields.h. A refusal says what is there
 * and what is legal; where it is set by the caller's place (JSON) or the path (text).
 */
#ifndef MODELS_SPEC_FIELDS_READ_H
#define MODELS_SPEC_FIELDS_READ_H

#include "models/spec/json.h"

/* One field of `value` (the struct of the table) from text: "400 Gb/s", "8", "zero1", "tp,grad". */
ty_status field_from_text(const struct ty_field *field, const char *text, void *value,
                          struct ty_error *error);
/* The same from a JSON value: a text as above, a number where the unit is bare, true or false. */
ty_status field_from_json(const struct ty_field *field, const struct json_at *at, void *value,
                          struct ty_error *error);
/* Reads every member of an object into `value` by the table: dotted paths are nested objects, keys
 * that begin with "_" are remarks. Fields that are not there keep what `value` holds. skip: keys
 * of the top that are read elsewhere, ended by NULL; or NULL. */
ty_status fields_from_json(enum ty_kind kind, const char *const *skip, const struct json_at *object,
                           void *value, struct ty_error *error);
/* Reads one member of an object alone, where it is there: the fields whose paths begin with key. */
ty_status fields_from_member(enum ty_kind kind, const char *key, const struct json_at *object,
                             void *value, struct ty_error *error);
/* Nearest path of a table; never NULL for n > 0. */
const char *fields_nearest(const struct ty_field *fields, size_t n, const char *path);

/* Composite forms of the plan: "selective:core_attn,mlp", "full:4"; "zero1:8", "hsdp:8";
 * "1024" or "4Mtok", which needs plan->seq. */
ty_status plan_set_recompute(struct ty_plan *plan, const char *text, struct ty_error *error);
ty_status plan_set_sharding(struct ty_plan *plan, const char *text, struct ty_error *error);
ty_status plan_set_gbs(struct ty_plan *plan, const char *text, struct ty_error *error);

/* A plan field by any of the forms above. */
ty_status plan_set(struct ty_plan *plan, const struct ty_field *field, const char *text,
                   struct ty_error *error);
ty_status plan_from_json(const struct json_at *object, struct ty_plan *plan,
                         struct ty_error *error);

#endif

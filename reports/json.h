/* SPDX-License-Identifier: MIT
 * Parts of answers that several JSON outputs share. */
#ifndef REPORTS_JSON_H
#define REPORTS_JSON_H

#include "include/trainyard_cost.h"
#include "include/trainyard_storage.h"
#include "models/spec/json_write.h"

/* A resolved plan as an object. */
void json_plan(struct json_writer *json, const char *key, const struct ty_plan *plan);
/* The keys of `predict --json`, inside an open object. */
void json_prediction(struct json_writer *json, const struct ty_prediction *p,
                     const struct ty_profile *profile);
/* json_storage.c: the keys "input" and "checkpoint", "run"; nothing where there is none. */
void json_storage(struct json_writer *json, const struct ty_storage_report *storage);
void json_forecast(struct json_writer *json, const struct ty_forecast *forecast);

#endif

/* SPDX-License-Identifier: MIT
 * Tables of collectives in JSON: those built in and those of a profile file. */
#ifndef MODELS_SPEC_FABRIC_H
#define MODELS_SPEC_FABRIC_H

#include "models/spec/json.h"

/* Adds the tables of an array {op, ranks, ranks_per_domain, source, calculated, size_bytes[],
 * time_us[]} of one cluster; what was added before a refusal stays. Free with
 * ty_collective_tables_free. returns TY_OK, TY_ERR_INPUT, TY_ERR_NOMEM. */
ty_status fabric_tables(const struct json_at *array, const struct ty_cluster *cluster,
                        struct ty_collective_tables *tables, struct ty_error *error);
/* Frees the tables of groups that leave their domain, and those that do not say. */
void fabric_keep_inside(struct ty_collective_tables *tables);
#endif

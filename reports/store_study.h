/* SPDX-License-Identifier: MIT
 * Studies in parts, inside of the store: shared by reports/store_resume.c and store_merge.c. */
#ifndef REPORTS_STORE_STUDY_H
#define REPORTS_STORE_STUDY_H

#include "include/trainyard_study.h"
#include "reports/store_db.h"

/* A study of a file. */
struct store_part {
    ty_store *store;
    int64_t study_id;
};

/* Compares inputs, arguments and version. difference: "" when they are parts of one study, else
 * what differs: the value of `left`, not that of `right`. */
ty_status store_same_study(const struct store_part *left, const struct store_part *right,
                           char *difference, size_t bytes, struct ty_error *error);

/* The plan whose columns start at `column` of the current row. */
ty_status store_read_plan(ty_store *store, struct store_rows *rows, int column,
                          struct ty_plan *plan, struct ty_error *error);

/* SELECT of the scores of the study ?1 for which a condition holds, free with sqlite3_free; NULL:
 * no memory. The score of its current row; column 0 is the id of the row. */
char *store_scores_sql(const ty_store *store, const char *which);
ty_status store_read_score(ty_store *store, struct store_rows *rows, struct ty_score *out,
                           struct ty_error *error);

#endif

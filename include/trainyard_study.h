/* SPDX-License-Identifier: MIT
 *
 * trainyard_study.h: studies that are written in more than one go or by more than one machine. Part
 * of the tools library; conventions as in trainyard.h.
 */
#ifndef TRAINYARD_STUDY_H
#define TRAINYARD_STUDY_H

#include "trainyard_sweep.h"
#include "trainyard_tools.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Continues the study of the same inputs (by content hash), arguments and version of trainyard in
 * this file; in a file without a study it begins one. What is written at the end of a study
 * (rejections, axes, detailed predictions) is removed, for the end to be written again. Cost:
 * linear in what is removed. returns TY_OK, TY_ERR_INPUT (the file holds other studies alone: how
 * the last one differs), TY_ERR_NOMEM, TY_ERR_STORE, TY_ERR_IO. */
TY_API TY_MUST_CHECK ty_status ty_store_resume(ty_store *store, const struct ty_study *study,
                                               int64_t *study_id, struct ty_error *error);

/* The plans that a study holds, ascending: `share`'s known and n_known; its shard is left alone.
 * Rows without a step time (points where nothing fits) have NAN. Free with ty_store_known_free.
 * Cost: linear. returns TY_OK, TY_ERR_STORE, TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_store_known(ty_store *store, int64_t study_id,
                                              struct ty_share *share, struct ty_error *error);
TY_API void ty_store_known_free(struct ty_share *share); /* accepts a zeroed part */

/* The score of a plan or point with the id, as it was stored; money and energy of a step are made
 * of those of a token, carbon is NAN. found: out, false when there is none. Cost: one look-up.
 * returns TY_OK, TY_ERR_STORE. */
TY_API TY_MUST_CHECK ty_status ty_store_score(ty_store *store, int64_t study_id, uint64_t plan_id,
                                              struct ty_score *out, bool *found,
                                              struct ty_error *error);

/* Writes the probability that a plan is better than the first of its list to every score of a sweep
 * (p_faster): the list of its GPU count, or the only one. result: of the search that filled the
 * study. Cost about 20 us a row. returns TY_OK, TY_ERR_STORE, TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_store_add_chances(ty_store *store, int64_t study_id,
                                                    const struct ty_search *search,
                                                    const struct ty_search_result *result,
                                                    struct ty_error *error);

/* The rank-th best plan (tokens/s/GPU, rank from 1) of the last study of a file, resolved, and the
 * GPUs of a node of its cluster. Cost: one pass over its rows. returns TY_OK, TY_ERR_INPUT (it has
 * fewer), TY_ERR_STORE. */
TY_API TY_MUST_CHECK ty_status ty_store_plan(ty_store *store, uint32_t rank, struct ty_plan *plan,
                                             uint32_t *gpus_per_node, struct ty_error *error);

struct ty_merged {
    uint64_t n_rows, n_twice; /* added; left out because OUT had them */
};
/* Adds the plans of the studies in `paths`, one study a file, to the file `out`, which is made when
 * it is not there. All must be parts of one study: same inputs, arguments and version. Nothing is
 * written before all files have been compared. A plan that two files hold must have the same step
 * time in both. Counts of rejections are added up. Detailed predictions are not taken over: a
 * search resumed on `out` writes them, and computes what is missing. Cost: linear. returns TY_OK,
 * TY_ERR_INPUT (names the file and what differs), TY_ERR_IO, TY_ERR_STORE, TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_store_merge(const char *out, const char *const *paths, uint32_t n,
                                              struct ty_merged *merged, struct ty_error *error);

#ifdef __cplusplus
}
#endif
#endif

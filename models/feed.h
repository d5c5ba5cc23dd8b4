/* SPDX-License-Identifier: MIT
 *
 * What feeds a step and what it saves (trainyard_storage.h), with every default filled in: the
 * input pipeline as servers, the checkpoint as a cost, and both as lines of a step.
 */
#ifndef MODELS_FEED_H
#define MODELS_FEED_H

#include "include/trainyard_storage.h"
#include "models/checkpoint.h"
#include "models/loader.h"
#include "models/setting.h"
#include "models/step.h"

/* The input pipeline of one GPU of a plan and where its samples lie. */
struct feed_input {
    struct loader loader;
    struct tier levels[TY_N_TIERS];
    enum ty_tier_id ids[TY_N_TIERS];
    double shares[TY_N_TIERS];
    uint32_t n_levels;
    double variation, shuffle_bytes; /* of a batch's time; of a GPU */
    double steps_per_epoch;          /* INFINITY: the data never end */
};

/* feed.c: defaults. plan: resolved. returns TY_OK; TY_ERR_RANGE with the field; TY_ERR_NOMEM. */
ty_status feed_check(const struct ty_storage *storage, const struct ty_cluster *cluster,
                     struct ty_error *error);
struct tier feed_tier(const struct ty_storage *storage, const struct ty_cluster *cluster,
                      enum ty_tier_id id);
ty_status feed_input(const struct ty_storage *storage, const struct setting *setting,
                     const struct ty_plan *plan, const struct ty_allocator *allocator,
                     struct feed_input *out, struct ty_error *error);

/* feed_servers.c: the pipeline batch by batch in the engine; what a step of compute_s waits in the
 * long run, and when the first batch is there. */
ty_status feed_serve(const struct feed_input *input, const double stage_s[LOADER_N_STAGES],
                     double compute_s, const struct ty_allocator *allocator, double *stall_s,
                     double *first_s);
ty_status feed_report(const struct ty_storage *storage, const struct setting *setting,
                      const struct ty_plan *plan, double compute_s,
                      const struct ty_allocator *allocator, struct ty_input_report *out,
                      struct ty_error *error);

/* feed_save.c. step_s: of a step with its input; busy_ratio: share of the tier that loaders take.
 */
ty_status feed_save(const struct ty_storage *storage, const struct setting *setting,
                    const struct ty_plan *plan, double step_s, double busy_ratio,
                    struct ty_save_report *out, struct ty_error *error);
/* Bytes of all parameters, once. */
double feed_save_bytes(const struct ty_saves *saves, const struct setting *setting,
                       const struct ty_plan *plan);

/* feed_nic.c: bytes/s of reads and of saves that drain, of one NIC of a node, on tiers whose
 * traffic crosses the NICs of training; in the mean over steps. */
ty_status feed_nic_bytes_per_s(const struct ty_storage *storage, const struct setting *setting,
                               const struct ty_plan *plan, const struct ty_allocator *allocator,
                               const struct ty_storage_report *report, double *bytes_per_s,
                               struct ty_error *error);

/* Adds both lines to a simulated step. */
ty_status feed_step(const struct ty_storage *storage, const struct setting *setting,
                    const struct ty_plan *plan, const struct ty_allocator *allocator,
                    struct step_result *step, struct ty_storage_report *out,
                    struct ty_error *error);

#endif

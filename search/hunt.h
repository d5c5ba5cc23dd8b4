/* SPDX-License-Identifier: MIT
 *
 * A search under way, shared by its passes:
 *
 *   screen    every plan: legality, memory; no time is computed
 *   bound     every survivor: the most its lower bound of the step lets it be worth
 *   simulate  per list in order of that bound, in rounds of fixed size, until no plan left could
 *             still be listed; of each shape one plan a round, as only its best is listed
 *
 * Since bound x (1 - 1e-9) <= simulated step and no worth rises with the step time, what is left
 * out cannot be listed: the result is that of simulating everything (`exhaustive`).
 *
 * Determinism: what a worker writes depends only on the plan id; counters are sums; thresholds
 * move only between rounds; scores leave in the order of the rounds. So results and the plans
 * simulated are the same at any number of threads.
 */
#ifndef SEARCH_HUNT_H
#define SEARCH_HUNT_H

#include "include/trainyard_sweep.h"
#include "models/goal.h"
#include "models/predict.h"
#include "search/board.h"
#include "search/near.h"
#include "search/pareto.h"
#include "search/space.h"

/* A plan that is legal and fits. */
struct survivor {
    uint64_t id;
    double worth[TY_MAX_OBJECTIVES]; /* at its bound */
    struct board_shape shape;
    uint64_t n_passes; /* what its simulation costs goes by it */
};

/* Survivors of one list that compete for one place in it, those of one shape; all of a list that
 * has a place for every plan. Not yet simulated, best bound first. */
struct lane {
    const struct survivor *next, *end;
};

/* The survivors of one list (a GPU count, or all). */
struct front {
    uint64_t first, n; /* in hunt.survivor */
    struct lane *lane; /* [n_lanes] with survivors left */
    uint64_t n_lanes;
    struct board board;
    struct ty_score *kept; /* [board.capacity] of the listed plans, by slot */
};

struct hunt {
    const struct ty_search *search;
    struct setting setting;
    struct ty_options options;
    struct goal goal;
    struct space space;
    uint32_t n_workers, top;
    uint32_t round;              /* plans of one list simulated between two looks at its bound */
    struct evaluator *evaluator; /* [n_workers] */
    ty_status *failed;           /* [n_workers] first failure of each worker */
    struct near_list *near;      /* [n_workers] legal plans that miss least memory */
    uint8_t *verdict;            /* [n_plans] enum ty_reject, or one of the values below */
    struct survivor *survivor;   /* [n_survivors] by list, then lane, then best bound, then id */
    struct lane *lane;           /* of the fronts */
    uint64_t n_survivors, n_settled;
    uint32_t n_fronts;           /* lists: one for each GPU count, or one over all */
    struct front *front;         /* [n_fronts] */
    struct board_entry *entries; /* of the boards */
    struct ty_score *kept;       /* of the fronts */
    struct pareto pareto;        /* the set, with two objectives or more: there is one front */
    uint64_t *batch;             /* [n_fronts * round] survivors of this round */
    uint64_t *queue;             /* [n_fronts * round] indices of the batch, in order of work */
    struct ty_score *score;      /* [n_fronts * round] */
};

enum { SURVIVES = 255, SCREEN_FAILED = 254, OTHER_SHARD = 253 };

/* screen.c */
ty_status hunt_screen(struct hunt *hunt, struct ty_search_result *result);
ty_status hunt_bound(struct hunt *hunt, struct ty_search_result *result);
uint8_t hunt_screen_plan(struct hunt *hunt, uint32_t worker, const struct ty_plan *plan,
                         struct memory_verdict *memory);
ty_status hunt_failure(const struct hunt *hunt); /* the first, or TY_OK */

/* rank.c */
ty_status hunt_simulate(struct hunt *hunt, struct ty_search_result *result);
ty_status hunt_list(struct hunt *hunt, struct ty_search_result *result);

#endif

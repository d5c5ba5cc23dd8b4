/* SPDX-License-Identifier: MIT
 * What the files of `trainyard whatif` share. */
#ifndef CLI_WHATIF_H
#define CLI_WHATIF_H

#include "cli/axes.h"
#include "cli/study.h"
#include "include/trainyard_ratio.h"

/* Points beyond which none is shown: they go into the database, the text is a summary. */
#define WHATIF_MOST_SHOWN 4096

struct answer {
    bool feasible;
    struct ty_score score;
    struct ty_ratio to_base; /* time of a token on a GPU over that of the base */
};

struct whatif {
    const struct cli_args *args;
    struct cli_args point;    /* the command line of the point at hand */
    struct cli_inputs inputs; /* of that point */
    struct cli_inputs base_inputs;
    const struct cli_inputs *point_inputs; /* those of the points, up to plain fields */
    struct axes axes;
    struct ty_plan kept; /* with --keep-plan: of the base */
    struct answer base;
    struct answer *answers; /* [n_points]; NULL beyond WHATIF_MOST_SHOWN */
    double *alone;          /* [AXES_MAX][AXIS_MAX_VALUES] tokens/s/GPU of each value alone */
    uint64_t n_points, n_feasible;
    struct answer best; /* of all points, first of equals */
    uint64_t best_point;
    struct cli_study study;
    struct cli_progress progress;
    struct ty_error error;
};

/* whatif_text.c */
void whatif_print(const struct whatif *w);
void whatif_print_json(const struct whatif *w);
const struct cli_setting *whatif_setting(const struct whatif *w, uint32_t axis);

/* whatif_fast.c: a kept plan at every point, where each axis is a plain field. */
bool whatif_is_plain(const struct whatif *w);
/* Calls fn for every point in order. */
ty_status whatif_cross(struct whatif *w, ty_cross_fn *fn);

#endif

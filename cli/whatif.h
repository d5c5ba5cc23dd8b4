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
    struct cli_inputs inputs; /* of that point; of a kept plan: up to plain fields */
    struct cli_inputs base_inputs;
    struct axes axes;
    struct answer base;
    struct answer *answers; /* [n_points]; NULL beyond WHATIF_MOST_SHOWN */
    uint64_t n_points, n_done, n_feasible;
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

/* whatif_kept.c: the base's plan where the axes with a bit in `axes` are crossed and the others are
 * left out. Calls fn for every point of the share (NULL: all); the number of a point counts the
 * axes of `axes` alone, the last fastest. */
ty_status whatif_kept(struct whatif *w, uint32_t axes, const struct ty_share *share,
                      ty_cross_fn *fn, void *user);

#endif

/* SPDX-License-Identifier: MIT
 * Pieces of the command explain. */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H

#include "cli/cli.h"

/* "850 tokens/s/GPU", "9.6 s", "38 %": the step time it means for the plan predicted. */
ty_status explain_figure(const char *text, const struct ty_prediction *p, double *step_s,
                         struct ty_error *error);
/* Fills what the command line left open; warns where it contradicts the log. */
void explain_take_plan(const struct ty_plan *logged, bool quiet, struct ty_plan *plan);
void explain_print_timeline(const struct ty_timeline *timeline);
void explain_print_gap(const struct ty_gap *gap);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Profiles of GPU kernels as timelines. A reader hands over every kernel and copy with its device,
 * and the marks of steps; timeline.c cuts the time into steps and says what ran alone.
 */
#ifndef CALIBRATE_TIMELINE_H
#define CALIBRATE_TIMELINE_H

#include "include/trainyard_gap.h"

#include <stdio.h>

struct span {
    double start_s, end_s;
    uint32_t device;
    uint8_t activity; /* enum ty_activity */
};

struct mark {
    double start_s;
    bool of_gpu; /* on the clock of a device, not of the host that issues */
    uint32_t number;
};

struct spans {
    struct span *span;
    size_t n, capacity;
    struct mark *mark;
    size_t n_marks, mark_capacity;
    double last_end_s;
    double longest_s; /* of the unrecognised ones */
    char longest[160];
    bool no_memory, too_many;
};

void spans_free(struct spans *spans);
/* Adds one kernel. name: for the unrecognised. */
void spans_add(struct spans *spans, const struct span *span, const char *name);
/* Adds the start of a step when `text` is the name of one ("ProfilerStep#3", "iteration 7"). */
void spans_mark(struct spans *spans, const char *text, double start_s, bool of_gpu);

/* returns TY_OK, TY_ERR_INPUT (no kernel), TY_ERR_NOMEM. */
ty_status spans_timeline(struct spans *spans, uint32_t n_steps, struct ty_timeline *out,
                         const char *path, struct ty_error *error);

/* Readers. returns TY_OK, TY_ERR_IO, TY_ERR_INPUT, TY_ERR_NOMEM. */
ty_status timeline_read_nsys(const char *path, struct spans *spans, struct ty_error *error);
ty_status timeline_read_events(FILE *file, const char *path, struct spans *spans,
                               struct ty_error *error);
ty_status timeline_read_chrome(const char *path, struct spans *spans, struct ty_error *error);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Axes of a what-if: settings given as a list or a range. A point of the crossing is the command
 * line with one value in the place of each.
 *
 *   200,400,800 Gb/s     the values, with the unit behind the last
 *   h100-sxm,h200-sxm    names
 *   100..800 Gb/s        doublings from the first to the last
 *   100..800*1.5 Gb/s    multiplied by 1.5 each time
 *   100..400+100 Gb/s    in steps of 100
 */
#ifndef CLI_AXES_H
#define CLI_AXES_H

#include "cli/cli.h"

#define AXES_MAX        8
#define AXIS_MAX_VALUES 65536
#define AXES_MAX_POINTS 1000000000
#define AXIS_TEXT       64 /* bytes of a value as text */

/* Place of an axis that a command line is to leave out. */
#define AXIS_OUT UINT32_MAX

struct axis {
    uint32_t setting; /* index into args->settings */
    uint32_t n;
    char **text;    /* [n] as --set takes it, unit included */
    double *number; /* [n] NAN for names */
    double *alone;  /* [n] for the caller: tokens/s/GPU of each value alone; NAN at first */
    uint32_t capacity;
};

struct axes {
    uint32_t n;
    struct axis axis[AXES_MAX];
};

/* Finds the axes among the --set settings. Free with axes_free, after a failure too. returns TY_OK
 * or TY_ERR_INPUT (no list or range, too many values or points, a later setting of the same field,
 * out of memory). */
ty_status axes_find(const struct cli_args *args, struct axes *out, struct ty_error *error);
void axes_free(struct axes *axes);
uint64_t axes_n_points(const struct axes *axes);
/* Places of the values at a point; the last axis varies fastest. */
void axes_places(const struct axes *axes, uint64_t point, uint32_t place[AXES_MAX]);
/* The command line with the value at place[i] of each axis. AXIS_OUT: without the axis, so that its
 * field keeps what the files say. */
void axes_line(const struct axes *axes, const struct cli_args *args, const uint32_t place[AXES_MAX],
               struct cli_args *out);

#endif

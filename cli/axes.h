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
#define AXIS_MAX_VALUES 256
#define AXIS_TEXT       64

struct axis {
    uint32_t setting; /* index into args->settings */
    uint32_t n;
    char text[AXIS_MAX_VALUES][AXIS_TEXT]; /* as --set takes it, unit included */
    double number[AXIS_MAX_VALUES];        /* NAN for names */
};

struct axes {
    uint32_t n;
    struct axis axis[AXES_MAX];
};

/* Finds the axes among the --set settings. returns TY_OK or TY_ERR_INPUT. */
ty_status axes_find(const struct cli_args *args, struct axes *out, struct ty_error *error);
uint64_t axes_n_points(const struct axes *axes);
/* Value of an axis at a point; the last axis varies fastest. */
uint32_t axes_value(const struct axes *axes, uint64_t point, uint32_t axis);
/* Command lines: of a point; with one axis alone at one value; without any axis. A setting left
 * out keeps what the files say. */
void axes_point(const struct axes *axes, const struct cli_args *args, uint64_t point,
                struct cli_args *out);
void axes_single(const struct axes *axes, const struct cli_args *args, uint32_t only,
                 uint32_t value, struct cli_args *out);
void axes_base(const struct axes *axes, const struct cli_args *args, struct cli_args *out);

#endif

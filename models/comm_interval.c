/* SPDX-License-Identifier: MIT
 *
 * How far a predicted collective may be from a measured one: 80 % intervals, t e^-w .. t e^w. Each
 * w is the least that holds 80 % of the errors |ln predicted/measured| of its class when points,
 * ends of tables or whole tables are left out; tests/comm_cv.c finds them again. */
#include "models/comm.h"

/* On the machine of the table: two runs of one size; a size left out; an end left out. */
static const double OF_POINT = 0.05, OF_INTERPOLATION = 0.06, OF_LINES = 0.08;
/* On another, by the distance of the nearest table: near, farther, far. */
static const double NEAR = 1.1, OF_NEAR = 0.10, FARTHER = 2.1, OF_FARTHER = 0.22, OF_FAR = 0.40;

static double width(enum ty_collective_origin origin, double nearest)
{
    switch (origin) {
    case TY_FROM_TABLE:
        return OF_POINT;
    case TY_FROM_INTERPOLATION:
        return OF_INTERPOLATION;
    case TY_FROM_LINES:
        return OF_LINES;
    default:
        return nearest <= NEAR ? OF_NEAR : (nearest <= FARTHER ? OF_FARTHER : OF_FAR);
    }
}

void comm_interval(struct ty_collective_time *time, double nearest)
{
    const double w = width(time->origin, nearest);
    time->low_s = time->time_s * exp(-w);
    time->high_s = time->time_s * exp(w);
}

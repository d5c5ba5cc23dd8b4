/* SPDX-License-Identifier: MIT
 *
 * A measured table as a function of the size: log-log between its points, and beyond them the least
 * of the lines through its ends,
 *
 *   t(S) = min(a_1 + S/B_1, a_2 + S/B_2),  a_1 <= a_2, B_1 <= B_2:
 *
 * the protocol of short messages and that of long ones. Those between make no difference there. */
#include "models/comm.h"

#include <math.h>

double comm_table_s(const struct ty_collective_table *table, double size_bytes)
{
    uint32_t above = 0;
    while (above < table->n && table->size_bytes[above] < size_bytes)
        above++;
    if (above == table->n)
        return table->time_s[table->n - 1];
    if (above == 0 || table->size_bytes[above] <= size_bytes)
        return table->time_s[above];
    const double *size = &table->size_bytes[above - 1], *time = &table->time_s[above - 1];
    const double weight = log(size_bytes / size[0]) / log(size[1] / size[0]);
    return time[0] * pow(time[1] / time[0], weight);
}

struct line {
    double a_s, per_byte_s;
};

/* Minimises sum ((a + b S) / t - 1)^2; an a or b below 0 is held at 0. */
static struct line fit_line(const double *size_bytes, const double *time_s, uint32_t n)
{
    double uu = 0.0, uv = 0.0, vv = 0.0, u = 0.0, v = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        const double x = 1.0 / time_s[i], y = size_bytes[i] / time_s[i];
        uu += x * x;
        uv += x * y;
        vv += y * y;
        u += x;
        v += y;
    }
    const double det = uu * vv - uv * uv;
    struct line line = {(u * vv - v * uv) / det, (v * uu - u * uv) / det};
    if (!(line.a_s >= 0.0))
        line = (struct line){0.0, v / vv};
    else if (!(line.per_byte_s >= 0.0))
        line = (struct line){u / uu, 0.0};
    return line;
}

double comm_lines_s(const struct ty_collective_table *table, double size_bytes)
{
    const uint32_t n = table->n < 8 ? table->n / 2 : 4;
    struct line first = fit_line(table->size_bytes, table->time_s, n);
    struct line last = fit_line(&table->size_bytes[table->n - n], &table->time_s[table->n - n], n);
    /* Four short messages hardly tell a rate, nor four long ones a latency: each line is held to
     * what the other knows, or it would be the lesser one at the wrong end. */
    first.per_byte_s = fmax(first.per_byte_s, last.per_byte_s);
    last.a_s = fmax(last.a_s, first.a_s);
    return fmin(first.a_s + size_bytes * first.per_byte_s, last.a_s + size_bytes * last.per_byte_s);
}

/* SPDX-License-Identifier: MIT
 *
 * A measured table as a function of the size: log-log between its points, and beyond them the least
 * of lines
 *
 *   t(S) = min_i (a_i + S / B_i)
 *
 * one for each protocol a library switches through (DESIGN 4). */
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
    const uint32_t n = table->n, n_lines = n < 6 ? n / 2 : 3;
    double least_s = INFINITY;
    for (uint32_t i = 0; i < n_lines; i++) {
        const uint32_t from = i * n / n_lines, to = (i + 1) * n / n_lines;
        const struct line line =
            fit_line(&table->size_bytes[from], &table->time_s[from], to - from);
        least_s = fmin(least_s, line.a_s + size_bytes * line.per_byte_s);
    }
    return least_s;
}

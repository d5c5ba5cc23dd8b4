/* SPDX-License-Identifier: MIT
 *
 * Cache, storage bandwidth and cores among jobs whose units are known.
 *
 *   need(x) = min over sum c <= C of sum x r (1 - hit(c))     x: speed, r: bytes per token
 *
 * The hit curves are taken by their concave hull, which a cache of a fixed part of the data set
 * reaches, so giving each byte where it saves most is exact. Then, with q = r (1 - hit(c)):
 *
 *   max sum gain x    least <= x <= most    sum q x <= B    sum cpu x <= P
 *
 * For a price v of a core it is a fractional knapsack; the price at which the cores just suffice
 * is bisected, and the two knapsacks on either side of it are mixed.
 */
#include "search/split.h"

#include <math.h>
#include <string.h>

#define PRICE_STEPS  200
#define SEARCH_STEPS 60

/* ---- cache -------------------------------------------------------------------------------- */

void split_hull(struct split_job *job)
{
    const struct ty_split_job *asked = job->asked;
    static const double linear[] = {0.0, 1.0};
    const double *hit = asked->hit ? asked->hit : linear;
    const uint32_t n = asked->hit ? asked->n_hits : 2;
    uint32_t corner[TY_SPLIT_MAX_HITS], n_corners = 0;
    for (uint32_t i = 0; i < n; i++) {
        while (n_corners > 1) { /* drop corners that lie below the chord to the new point */
            const uint32_t a = corner[n_corners - 2], b = corner[n_corners - 1];
            if ((hit[b] - hit[a]) * (i - a) > (hit[i] - hit[a]) * (b - a))
                break;
            n_corners--;
        }
        corner[n_corners++] = i;
    }
    job->n_pieces = asked->data_bytes > 0.0 ? n_corners - 1 : 0;
    for (uint32_t i = 0; i < job->n_pieces; i++)
        job->piece[i] = (struct split_piece){.bytes = asked->data_bytes *
                                                      (corner[i + 1] - corner[i]) / (n - 1.0),
                                             .hit = hit[corner[i + 1]] - hit[corner[i]]};
}

double split_hit(const struct split_job *job, double cache_bytes)
{
    double hit = 0.0;
    for (uint32_t i = 0; i < job->n_pieces && cache_bytes > 0.0; i++) {
        const struct split_piece *piece = &job->piece[i];
        hit += piece->hit * fmin(1.0, cache_bytes / piece->bytes);
        cache_bytes -= piece->bytes;
    }
    return hit;
}

/* Bandwidth that a byte of the job's next piece saves. */
static double saving(const struct split_job *job, uint32_t piece, double speed)
{
    if (piece == job->n_pieces)
        return 0.0;
    return speed * job->asked->read_bytes * job->piece[piece].hit / job->piece[piece].bytes;
}

double split_storage_need(struct split *split, const double *speed, bool keep)
{
    uint32_t next[TY_SPLIT_MAX_JOBS] = {0};
    double need = 0.0, left = split->asked->cache_bytes;
    for (uint32_t j = 0; j < split->n; j++) {
        need += speed[j] * split->job[j].asked->read_bytes;
        if (keep)
            split->job[j].cache_bytes = 0.0;
    }
    while (left > 0.0) {
        uint32_t best = 0;
        for (uint32_t j = 1; j < split->n; j++)
            if (saving(&split->job[j], next[j], speed[j]) >
                saving(&split->job[best], next[best], speed[best]))
                best = j;
        struct split_job *job = &split->job[best];
        const double rate = saving(job, next[best], speed[best]);
        if (rate <= 0.0)
            break;
        const double bytes = fmin(left, job->piece[next[best]++].bytes);
        need -= rate * bytes;
        left -= bytes;
        if (keep)
            job->cache_bytes += bytes;
    }
    return fmax(0.0, need);
}

/* ---- speeds ------------------------------------------------------------------------------- */

struct fill {
    struct split *split;
    double read_bytes[TY_SPLIT_MAX_JOBS]; /* per token, past the cache */
};

/* The knapsack at one price of a core. returns cores used */
static double fill_at(const struct fill *fill, double price, double *speed)
{
    const struct split *split = fill->split;
    bool done[TY_SPLIT_MAX_JOBS] = {false};
    double left = split->asked->read_bytes_per_s, cores = 0.0;
    for (uint32_t j = 0; j < split->n; j++) {
        speed[j] = split->job[j].least;
        left -= speed[j] * fill->read_bytes[j];
    }
    for (;;) {
        uint32_t best = SPLIT_NONE;
        double best_worth = 0.0;
        for (uint32_t j = 0; j < split->n; j++) {
            const struct split_job *job = &split->job[j];
            const double net = job->gain - price * job->asked->cpu_s;
            const double worth = fill->read_bytes[j] > 0.0 ? net / fill->read_bytes[j]
                                 : net > 0.0               ? (double)INFINITY
                                                           : 0.0;
            if (!done[j] && worth > best_worth) {
                best = j;
                best_worth = worth;
            }
        }
        if (best == SPLIT_NONE)
            break;
        done[best] = true;
        const double q = fill->read_bytes[best];
        const double room = q > 0.0 ? fmax(0.0, left) / q : (double)INFINITY;
        const double more = fmin(fmax(0.0, split->job[best].most - speed[best]), room);
        speed[best] += more;
        left -= more * q;
    }
    for (uint32_t j = 0; j < split->n; j++)
        cores += speed[j] * split->job[j].asked->cpu_s;
    return cores;
}

/* Speeds for the cache as it is. */
static void fill_speeds(struct split *split, double *speed)
{
    struct fill fill = {.split = split};
    const double cores = split->loader_cores;
    double low = 0.0, high = 0.0, other[TY_SPLIT_MAX_JOBS];
    for (uint32_t j = 0; j < split->n; j++) {
        const struct split_job *job = &split->job[j];
        fill.read_bytes[j] = job->asked->read_bytes * (1.0 - split_hit(job, job->cache_bytes));
        if (job->asked->cpu_s > 0.0)
            high = fmax(high, 2.0 * job->gain / job->asked->cpu_s); /* nobody buys */
    }
    if (fill_at(&fill, 0.0, speed) <= cores)
        return;
    for (int step = 0; step < PRICE_STEPS; step++) {
        const double middle = 0.5 * (low + high);
        *(fill_at(&fill, middle, speed) > cores ? &low : &high) = middle;
    }
    const double too_many = fill_at(&fill, low, other), fit = fill_at(&fill, high, speed);
    const double mix = too_many > fit ? fmin(1.0, fmax(0.0, (cores - fit) / (too_many - fit))) : 0;
    for (uint32_t j = 0; j < split->n; j++)
        speed[j] += mix * (other[j] - speed[j]);
}

/* The cache for the highest speeds between least and most, on a straight line, that the storage
 * can feed. */
static void choose_cache(struct split *split)
{
    double low = 0.0, high = 1.0, speed[TY_SPLIT_MAX_JOBS];
    for (int step = 0; step <= SEARCH_STEPS; step++) {
        const double at = step == 0 ? 1.0 : step == SEARCH_STEPS ? low : 0.5 * (low + high);
        for (uint32_t j = 0; j < split->n; j++) {
            const struct split_job *job = &split->job[j];
            speed[j] = job->least + at * fmax(0.0, job->most - job->least);
        }
        const bool last = step == SEARCH_STEPS;
        const bool enough =
            split_storage_need(split, speed, step == 0 || last) <= split->asked->read_bytes_per_s;
        if (last || (step == 0 && enough))
            return;
        *(enough ? &low : &high) = at;
    }
}

static double worth(const struct split *split, const double *speed)
{
    double sum = 0.0;
    for (uint32_t j = 0; j < split->n; j++)
        sum += split->job[j].gain * speed[j];
    return sum;
}

double split_input(struct split *split)
{
    double speed[TY_SPLIT_MAX_JOBS], best[TY_SPLIT_MAX_JOBS], cache[TY_SPLIT_MAX_JOBS];
    choose_cache(split);
    fill_speeds(split, best);
    for (uint32_t j = 0; j < split->n; j++)
        cache[j] = split->job[j].cache_bytes;
    for (;;) { /* the cache for these speeds leaves bandwidth for higher ones */
        split_storage_need(split, best, true);
        fill_speeds(split, speed);
        if (!(worth(split, speed) > worth(split, best) * (1.0 + 1e-9)))
            break;
        memcpy(best, speed, sizeof best);
        for (uint32_t j = 0; j < split->n; j++)
            cache[j] = split->job[j].cache_bytes;
    }
    for (uint32_t j = 0; j < split->n; j++) {
        split->job[j].speed = best[j];
        split->job[j].cache_bytes = cache[j];
    }
    return worth(split, best);
}

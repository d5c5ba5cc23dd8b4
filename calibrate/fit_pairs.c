/* SPDX-License-Identifier: MIT
 *
 * Errors of ratios: differences of the residuals of two clean runs of one source, model and class,
 * each predicted by a fit without its sweep. What both get wrong alike cancels. Runs on one kind of
 * GPU tell of two plans, runs on two kinds of two GPUs. A pair of a group of n runs weighs
 * 1 / (n - 1), so that a group weighs n / 2 however many pairs it has.
 */
#include "calibrate/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double MIN_WEIGHT = 10.0; /* of twenty runs */
enum { MIN_MODELS = 3 };

enum fit_class fit_class_of(const struct ty_run_row *row)
{
    return strcmp(row->kind, "dense") == 0 ? FIT_DENSE
           : strcmp(row->kind, "moe") == 0 ? FIT_MOE
                                           : FIT_TUNING;
}

/* Runs whose pairs are counted together. */
static bool related(const struct ty_run_row *a, const struct ty_run_row *b, enum ty_kinship kinship)
{
    return strcmp(a->source, b->source) == 0 && strcmp(a->model, b->model) == 0 &&
           strcmp(a->stack, b->stack) == 0 && fit_class_of(a) == fit_class_of(b) &&
           (kinship == TY_KIN_GPUS || strcmp(a->gpu, b->gpu) == 0);
}

/* Fold of a source and model, by a hash of their names (FNV-1a): the same for every kinship. */
static uint32_t fold_of(const struct ty_run_row *row)
{
    uint32_t hash = 2166136261u;
    const char *const names[] = {row->source, "/", row->model};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (const char *at = names[i]; *at; at++)
            hash = (hash ^ (unsigned char)*at) * 16777619u;
    return (hash >> 16) % N_FOLDS;
}

static bool add(struct fit_pairs *pairs, const struct fit_pair *pair)
{
    if (pairs->n == pairs->held) {
        const uint32_t more = pairs->held ? 2 * pairs->held : 256;
        struct fit_pair *grown = realloc(pairs->pair, more * sizeof *grown);
        if (!grown)
            return false;
        pairs->pair = grown;
        pairs->held = more;
    }
    pairs->pair[pairs->n++] = *pair;
    return true;
}

/* Pairs of run i with those before it. */
static bool add_run(const struct fit_rows *rows, const double *r, uint32_t i,
                    enum ty_kinship kinship, struct fit_pairs *pairs)
{
    const struct ty_run_row *row = &rows->run[i].row;
    uint32_t n_related = 0;
    for (uint32_t k = 0; k < rows->n; k++)
        n_related += !rows->run[k].row.noisy && related(row, &rows->run[k].row, kinship);
    for (uint32_t k = 0; k < i; k++) {
        const struct ty_run_row *other = &rows->run[k].row;
        if (other->noisy || !related(row, other, kinship) ||
            (kinship == TY_KIN_GPUS && strcmp(row->gpu, other->gpu) == 0))
            continue;
        const struct fit_pair pair = {.row = row,
                                      .of_class = fit_class_of(row),
                                      .fold = fold_of(row),
                                      .difference = fabs(r[i] - r[k]),
                                      .weight = 1.0 / (n_related - 1.0)};
        if (!add(pairs, &pair))
            return false;
    }
    return true;
}

static int by_difference(const void *a, const void *b)
{
    const double left = ((const struct fit_pair *)a)->difference;
    const double right = ((const struct fit_pair *)b)->difference;
    return (left > right) - (left < right);
}

ty_status fit_pairs_of(const struct fit_rows *rows, const double *r, enum ty_kinship kinship,
                       struct fit_pairs *out)
{
    *out = (struct fit_pairs){0};
    for (uint32_t i = 0; i < rows->n; i++)
        if (!rows->run[i].row.noisy && !add_run(rows, r, i, kinship, out)) {
            free(out->pair);
            return TY_ERR_NOMEM;
        }
    if (out->n)
        qsort(out->pair, out->n, sizeof *out->pair, by_difference);
    return TY_OK;
}

static bool counts(const struct fit_pair *pair, const struct fit_pair_filter *filter)
{
    return (pair->of_class == filter->of_class || filter->of_class == N_FIT_CLASSES) &&
           (!filter->fold || (pair->fold + 1 == filter->fold) != filter->without) &&
           (!filter->stack || strcmp(pair->row->stack, filter->stack) == 0);
}

double fit_pairs_weight(const struct fit_pairs *pairs, const struct fit_pair_filter *filter)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < pairs->n; i++)
        sum += counts(&pairs->pair[i], filter) ? pairs->pair[i].weight : 0.0;
    return sum;
}

double fit_pairs_width(const struct fit_pairs *pairs, const struct fit_pair_filter *filter,
                       double share)
{
    const double enough = share * fit_pairs_weight(pairs, filter);
    double sum = 0.0;
    for (uint32_t i = 0; i < pairs->n && enough > 0.0; i++) {
        sum += counts(&pairs->pair[i], filter) ? pairs->pair[i].weight : 0.0;
        if (sum >= enough)
            return pairs->pair[i].difference;
    }
    return (double)NAN;
}

/* All pairs of one model of a source are one draw, however many they are. */
static bool has_models(const struct fit_pairs *pairs, const struct fit_pair_filter *filter)
{
    const struct ty_run_row *seen[MIN_MODELS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < pairs->n && n < MIN_MODELS; i++) {
        const struct ty_run_row *row = pairs->pair[i].row;
        bool known = !counts(&pairs->pair[i], filter);
        for (uint32_t k = 0; k < n && !known; k++)
            known = strcmp(seen[k]->source, row->source) == 0 &&
                    strcmp(seen[k]->model, row->model) == 0;
        if (!known)
            seen[n++] = row;
    }
    return n == MIN_MODELS;
}

double fit_pairs_width_of_stack(const struct fit_pairs *pairs, const struct fit_pair_filter *filter,
                                double share)
{
    struct fit_pair_filter from = *filter;
    if (fit_pairs_weight(pairs, &from) < MIN_WEIGHT || !has_models(pairs, &from))
        from.stack = NULL;
    const double width = fit_pairs_width(pairs, &from, share);
    if (has_models(pairs, &from))
        return width;
    from.of_class = N_FIT_CLASSES;
    return fmax(width, fit_pairs_width(pairs, &from, share)); /* ignores NAN */
}

double fit_pairs_inside(const struct fit_pairs *pairs, const struct fit_pair_filter *filter,
                        double width)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < pairs->n && pairs->pair[i].difference <= width; i++)
        sum += counts(&pairs->pair[i], filter) ? pairs->pair[i].weight : 0.0;
    return sum;
}

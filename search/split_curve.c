/* SPDX-License-Identifier: MIT
 * The curves of a job: tokens/s over GPU counts, the best plan of each by search; hit ratio over
 * the cached part of its data. */
#include "include/trainyard_split.h"
#include "models/cache.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Counts to try: whole units, of a list those in it. */
static void list_counts(const struct ty_values *asked, uint32_t unit_gpus, uint32_t n_units,
                        struct ty_values *out)
{
    out->n = 0;
    for (uint32_t k = 1; k <= n_units; k++) {
        bool listed = asked->n == 0;
        for (uint32_t i = 0; i < asked->n && !listed; i++)
            listed = asked->value[i] == k * unit_gpus;
        if (listed)
            out->value[out->n++] = k * unit_gpus;
    }
}

ty_status ty_split_curve(const struct ty_search *search, uint32_t unit_gpus, uint32_t n_units,
                         double *tokens_per_s, struct ty_plan *plans, struct ty_error *error)
{
    if (unit_gpus == 0 || n_units == 0 || n_units > TY_MAX_VALUES)
        return error_set(error, TY_ERR_RANGE, "units", "must be 1 to %d", TY_MAX_VALUES);
    for (uint32_t k = 0; k <= n_units; k++)
        tokens_per_s[k] = 0.0;
    struct ty_search *each = malloc(sizeof *each);
    if (!each)
        return error_set(error, TY_ERR_NOMEM, "split", "out of memory");
    *each = *search;
    each->top = 1;
    each->overall = false;
    list_counts(&search->space.n_gpus, unit_gpus, n_units, &each->space.n_gpus);
    struct ty_search_result result = {0};
    ty_status status = each->space.n_gpus.n ? ty_search_run(each, &result, error) : TY_OK;
    for (uint32_t i = 0; i < result.n_best; i++) {
        const uint32_t k = result.best[i].plan.n_gpus / unit_gpus;
        tokens_per_s[k] = result.best[i].tokens_per_s;
        if (plans)
            plans[k] = result.best[i].plan;
    }
    ty_search_free(&result);
    free(each);
    return status == TY_ERR_INFEASIBLE ? TY_OK : status;
}

ty_status ty_split_hit_curve(const char *policy, uint32_t n_hits, double *hit,
                             struct ty_error *error)
{
    const struct cache_policy *known = cache_policy_of(policy);
    ty_status status = TY_OK;
    if (!known) {
        char legal[160] = "";
        for (size_t i = 0; cache_policy_at(i); i++)
            text_append(legal, sizeof legal, "%s%s", *legal ? ", " : "", cache_policy_at(i)->name);
        return error_set(error, TY_ERR_INPUT, "cache", "\"%.40s\" is no policy; legal: %s", policy,
                         legal);
    }
    if (n_hits < 2 || n_hits > TY_SPLIT_MAX_HITS)
        return error_set(error, TY_ERR_RANGE, "cache", "needs 2 to %d points", TY_SPLIT_MAX_HITS);
    hit[0] = 0.0;
    for (uint32_t i = 1; status == TY_OK && i < n_hits; i++) {
        status = cache_shuffled_hit_ratio(known, i / (n_hits - 1.0), NULL, &hit[i]);
        if (status == TY_OK)
            hit[i] = fmin(1.0, fmax(hit[i], hit[i - 1]));
    }
    return status == TY_OK ? TY_OK
                           : error_set(error, status, "cache", "%s", ty_status_text(status));
}

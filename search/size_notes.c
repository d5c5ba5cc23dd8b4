/* SPDX-License-Identifier: MIT
 * What a sizing takes for granted, as notes. */
#include "include/trainyard_cost.h"
#include "include/trainyard_storage.h"
#include "sim/error.h"

#include <math.h>

struct list {
    struct ty_note *note;
    uint32_t n, max;
};

static void add(struct list *list, const char *field, const char *reason, const char *value)
{
    if (list->n == list->max)
        return;
    struct ty_note *note = &list->note[list->n++];
    *note = (struct ty_note){.kind = TY_NOTE_DEFAULTED, .effect_pct = (double)NAN};
    text_format(note->field, sizeof note->field, "%s", field);
    text_format(note->reason, sizeof note->reason, "%s", reason);
    text_format(note->value, sizeof note->value, "%s", value);
}

static void add_default(struct list *list, const char *field, double given, double by_default,
                        const char *reason)
{
    char value[32];
    text_format(value, sizeof value, "%.6g s", by_default);
    if (isnan(given))
        add(list, field, reason, value);
}

static void add_failures(struct list *list, const struct ty_size *size,
                         const struct ty_size_result *result)
{
    const struct ty_failures *failures = size->failures;
    if (!failures) {
        add(list, "mtbf", "no failures: every second is useful, no spares; give --mtbf", "none");
        return;
    }
    if (isinf(result->goodput.mtbf_s)) {
        add(list, "mtbf", "no failures: no spares, no checkpoints; give --mtbf", "none");
        return;
    }
    const struct ty_storage *storage = size->options.storage;
    if (!storage || storage->checkpoint.mode == TY_SAVE_NONE)
        add_default(list, "save", failures->save_s, TY_DEFAULT_SAVE_S,
                    "a checkpoint stops training");
    add_default(list, "restart", failures->restart_s, TY_DEFAULT_RESTART_S,
                "from a failure to training again");
    add_default(list, "repair", failures->repair_s, TY_DEFAULT_REPAIR_S, "until a node is back");
    add_default(list, "interval", failures->interval_s, result->goodput.interval_s,
                "work between checkpoints: the best");
    if (isnan(failures->spare_probability))
        add(list, "spares", "probability that the spare nodes suffice", "99 %");
}

uint32_t ty_size_assumptions(const struct ty_size *size, const struct ty_size_result *result,
                             struct ty_note *out, uint32_t max)
{
    struct list list = {.note = out, .max = max};
    char half[32];
    text_format(half, sizeof half, "%.3g", result->half_80);
    add_failures(&list, size, result);
    if (size->job->downtime_s == 0.0)
        add(&list, "downtime", "nothing planned: no maintenance, no evaluation pauses", "0 s");
    if (isnan(result->half_80))
        add(&list, "step_time",
            "nothing is known of the error of the step time: it counts as exact", "none");
    else
        add(&list, "step_time", "half width of the 80 % interval of the step time in ln(time)",
            half);
    if (!size->price)
        add(&list, "price", "no price list: no money; energy without PUE and nodes", "none");
    else if (!(size->price->kwh > 0.0))
        add(&list, "price.kwh", "electricity is in the rent", "0");
    if (!size->price || isnan(size->price->busy_ratio))
        add(&list, "price.power", "shares of TDP of computing, waiting and idle GPUs, unverified",
            "0.95, 0.5, 0.15");
    return list.n;
}

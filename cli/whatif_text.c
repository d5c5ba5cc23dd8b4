/* SPDX-License-Identifier: MIT
 *
 * The answers of a what-if as text and JSON.
 *
 * Knee of one numeric axis: the smallest value from which 1 % more of it buys less than 0.1 % of
 * speed, d ln(speed) / d ln(x) < 0.1 up to the next value. Tornado: each axis alone against the
 * base. Break-even: what a GPU-hour of the point may cost more than one of the base before a token
 * costs more,
 *
 *   without prices   (tokens/s per GPU paid) / (that of the base) - 1
 *   with prices      (money per token of the base - of the point) tokens/s per GPU paid 3600 s
 *
 * and, over the years of amortisation, more per GPU.
 */
#include "cli/whatif.h"
#include <math.h>
#include <string.h>

static const double KNEE_ELASTICITY = 0.1;

const struct cli_setting *whatif_setting(const struct whatif *w, uint32_t axis)
{
    return &w->args->settings[w->axes.axis[axis].setting];
}

/* ---- figures -------------------------------------------------------------------------------- */

static double change_pct(const struct whatif *w, const struct answer *answer)
{
    return 100.0 * (answer->score.tokens_per_s_per_gpu / w->base.score.tokens_per_s_per_gpu - 1.0);
}

/* NAN of the base itself and where nothing is known of errors. */
static double p_faster(const struct whatif *w, const struct answer *answer)
{
    const bool compared = answer->feasible && w->base.feasible && answer != &w->base;
    return compared ? answer->to_base.p_faster : (double)NAN;
}

static double tokens_per_s_per_paid(const struct answer *answer)
{
    return answer->score.tokens_per_s / answer->score.outlay.gpus_paid;
}

static double break_even_pct(const struct whatif *w, const struct answer *answer)
{
    return 100.0 * (tokens_per_s_per_paid(answer) / tokens_per_s_per_paid(&w->base) - 1.0);
}

/* Money per GPU-hour; NAN without prices. */
static double break_even_hour(const struct whatif *w, const struct answer *answer)
{
    const double saved =
        w->base.score.outlay.money_per_token - answer->score.outlay.money_per_token;
    return saved * tokens_per_s_per_paid(answer) * 3600.0;
}

/* Money per GPU bought; NAN where GPUs are rented. */
static double break_even_gpu(const struct whatif *w, const struct answer *answer)
{
    const struct ty_price *price = &w->base_inputs.price;
    const double utilisation = isnan(price->utilisation) ? 1.0 : price->utilisation;
    return break_even_hour(w, answer) * price->years * 8766.0 * utilisation;
}

/* Index of the knee of the only axis; n: none, or names instead of numbers. */
static uint64_t knee(const struct whatif *w)
{
    const struct axis *axis = &w->axes.axis[0];
    for (uint64_t i = 0; w->axes.n == 1 && i + 1 < w->n_points; i++) {
        const double more = log(axis->number[i + 1] / axis->number[i]);
        const double gain = log(axis->alone[i + 1] / axis->alone[i]);
        if (more > 0.0 && gain / more < KNEE_ELASTICITY)
            return i;
    }
    return w->n_points;
}

/* ---- text ----------------------------------------------------------------------------------- */

static bool has_prices(const struct whatif *w)
{
    return w->base_inputs.options.price != NULL;
}

static void print_answer(const struct whatif *w, const struct answer *answer)
{
    char each[40], step[40], layout[160], p[16] = "", even[32] = "-", change[16] = "-";
    if (!answer->feasible) {
        printf("%9s  nothing fits\n", "-");
        return;
    }
    if (isfinite(p_faster(w, answer)))
        snprintf(p, sizeof p, "%.0f %%", 100.0 * p_faster(w, answer));
    if (w->base.feasible) {
        snprintf(change, sizeof change, "%+.1f %%", change_pct(w, answer));
        if (has_prices(w))
            snprintf(even, sizeof even, "%+.4g", break_even_hour(w, answer));
        else
            snprintf(even, sizeof even, "%+.1f %%", break_even_pct(w, answer));
    }
    printf("%9s %10s %9s %7s %12s  %s\n",
           cli_count_text(answer->score.tokens_per_s_per_gpu, each, sizeof each),
           cli_time_text(answer->score.step_time_s, step, sizeof step), change, p, even,
           cli_plan_text(&answer->score.plan, layout, sizeof layout));
}

static void print_values(const struct whatif *w, uint64_t point)
{
    uint32_t place[AXES_MAX];
    axes_places(&w->axes, point, place);
    for (uint32_t i = 0; i < w->axes.n; i++)
        printf("%-20s ", w->axes.axis[i].text[place[i]]);
}

static void print_points(const struct whatif *w)
{
    for (uint32_t i = 0; i < w->axes.n; i++)
        printf("%-20s ", whatif_setting(w, i)->path);
    printf("%9s %10s %9s %7s %12s  plan\n", "tok/s/GPU", "step", "change", "P", "break-even");
    for (uint32_t i = 0; i < w->axes.n; i++)
        printf("%-20s ", "as it is");
    print_answer(w, &w->base);
    for (uint64_t point = 0; w->answers && point < w->n_points; point++) {
        print_values(w, point);
        print_answer(w, &w->answers[point]);
    }
    if (w->answers)
        return;
    print_values(w, w->best_point);
    print_answer(w, &w->best);
    printf("\nthe best of %llu points, of which %llu are feasible; all are in %s\n",
           (unsigned long long)w->n_points, (unsigned long long)w->n_feasible, w->args->db);
}

static void print_break_even(const struct whatif *w)
{
    if (!w->base.feasible || !w->answers || w->n_points == 0)
        return;
    printf(
        "\nP: probability that the point is faster than the base, per token and GPU; break-even: "
        "what a\nGPU-hour may cost more before a token costs more%s%s\n",
        has_prices(w) ? ", in " : "", has_prices(w) ? w->base_inputs.price.currency : "");
    if (isnan(w->base_inputs.price.years))
        return;
    for (uint64_t point = 0; point < w->n_points; point++) {
        if (!w->answers[point].feasible)
            continue;
        printf("  ");
        print_values(w, point);
        printf("%+.4g %s more per GPU bought\n", break_even_gpu(w, &w->answers[point]),
               w->base_inputs.price.currency);
    }
}

static void print_knee(const struct whatif *w)
{
    const uint64_t at = knee(w);
    if (w->axes.n != 1 || isnan(w->axes.axis[0].number[0]))
        return;
    if (at < w->n_points)
        printf("\nknee: from %s on, 1 %% more buys less than %.1f %% of speed\n",
               w->axes.axis[0].text[at], KNEE_ELASTICITY);
    else
        printf("\nno knee: every step still pays\n");
}

static void print_tornado(const struct whatif *w)
{
    if (w->axes.n < 2 || !w->base.feasible)
        return;
    printf("\neach alone, change of tokens/s/GPU\n");
    for (uint32_t i = 0; i < w->axes.n; i++) {
        const struct axis *axis = &w->axes.axis[i];
        double low = 0.0, high = 0.0;
        for (uint32_t value = 0; value < axis->n; value++) {
            const double change =
                100.0 * (axis->alone[value] / w->base.score.tokens_per_s_per_gpu - 1.0);
            low = fmin(low, change); /* of a NAN and a number: the number */
            high = fmax(high, change);
        }
        printf("  %-20s %+7.1f .. %+.1f %%\n", whatif_setting(w, i)->path, low, high);
    }
}

void whatif_print(const struct whatif *w)
{
    print_points(w);
    print_knee(w);
    print_tornado(w);
    print_break_even(w);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void print_number(const char *key, double value)
{
    if (isfinite(value))
        printf("\"%s\": %.17g", key, value);
    else
        printf("\"%s\": null", key);
}

static void print_json_answer(const struct whatif *w, const struct answer *answer)
{
    const double unknown = answer->feasible ? 0.0 : (double)NAN;
    const double compared = w->base.feasible ? unknown : (double)NAN;
    const struct {
        const char *key;
        double value;
    } figures[] = {
        {"tokens_per_s_per_gpu", answer->score.tokens_per_s_per_gpu + unknown},
        {"step_time_s", answer->score.step_time_s + unknown},
        {"change_pct", change_pct(w, answer) + compared},
        {"p_faster", p_faster(w, answer)},
        {"money_per_mtoken", 1e6 * answer->score.outlay.money_per_token + unknown},
        {"energy_j_per_token", answer->score.outlay.energy_j_per_token + unknown},
        {"break_even_gpu_hour_pct", break_even_pct(w, answer) + compared},
        {"break_even_gpu_hour", break_even_hour(w, answer) + compared},
        {"break_even_gpu", break_even_gpu(w, answer) + compared},
    };
    printf("\"feasible\": %s", answer->feasible ? "true" : "false");
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        printf(", ");
        print_number(figures[i].key, figures[i].value);
    }
    for (int percent = 80; percent <= 90 && isfinite(p_faster(w, answer)); percent += 10) {
        const double *ends =
            percent == 80 ? answer->to_base.interval_80 : answer->to_base.interval_90;
        if (isfinite(ends[1]))
            printf(", \"time_ratio_%d\": [%.17g, %.17g]", percent, ends[0], ends[1]);
    }
    const struct ty_plan *plan = &answer->score.plan;
    if (answer->feasible)
        printf(", \"plan\": {\"gpus\": %u, \"tp\": %u, \"pp\": %u, \"vpp\": %u, \"cp\": %u, "
               "\"ep\": %u, \"dp\": %u, \"mbs\": %u, \"gbs\": %u}",
               plan->n_gpus, plan->tp, plan->pp, plan->vpp, plan->cp, plan->ep, plan->dp, plan->mbs,
               plan->gbs);
}

static void print_json_values(const struct whatif *w, uint64_t point)
{
    uint32_t place[AXES_MAX];
    axes_places(&w->axes, point, place);
    printf("\"settings\": {");
    for (uint32_t i = 0; i < w->axes.n; i++) {
        printf("%s", i ? ", " : "");
        cli_json_string(stdout, whatif_setting(w, i)->path);
        printf(": ");
        cli_json_string(stdout, w->axes.axis[i].text[place[i]]);
    }
    printf("}, ");
}

void whatif_print_json(const struct whatif *w)
{
    printf("{\"base\": {");
    print_json_answer(w, &w->base);
    printf("},\n \"n_points\": %llu, \"n_feasible\": %llu,\n \"best\": {",
           (unsigned long long)w->n_points, (unsigned long long)w->n_feasible);
    print_json_values(w, w->best_point);
    print_json_answer(w, &w->best);
    printf("},\n \"points\": [");
    for (uint64_t point = 0; w->answers && point < w->n_points; point++) {
        printf("%s\n  {", point ? "," : "");
        print_json_values(w, point);
        print_json_answer(w, &w->answers[point]);
        printf("}");
    }
    printf("],\n \"knee\": ");
    const uint64_t at = knee(w);
    if (at < w->n_points)
        cli_json_string(stdout, w->axes.axis[0].text[at]);
    else
        printf("null");
    printf("}\n");
}

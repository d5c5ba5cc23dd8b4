/* SPDX-License-Identifier: MIT
 * A prediction as text: the headline, what limits it, where the step goes, memory, groups, what
 * was implied and what was assumed. */
#include "cli/cli.h"
#include <math.h>
#include <string.h>

#define BAR_WIDTH   40
#define SHOWN_NOTES 12 /* assumptions printed; --json has all */

static void print_title(const struct ty_prediction *p, const struct cli_inputs *inputs)
{
    char layout[160];
    printf("%s on %u x %s (%s)\n%s\n\n", inputs->model.name, p->plan.n_gpus,
           inputs->cluster.gpu.name, inputs->cluster.name,
           cli_plan_text(&p->plan, layout, sizeof layout));
}

const char *cli_fit_text(enum ty_fit fit)
{
    return fit == TY_FIT_NO ? "does not fit" : ty_fit_name(fit);
}

static void print_memory_line(const struct ty_prediction *p)
{
    char peak[40], budget[40], rest[40];
    if (p->n_stages == 0)
        return;
    printf("  %-14s %s of %s on stage %u of %u: %s, %s %s", "memory",
           cli_bytes_text(p->peak_bytes, peak, sizeof peak),
           cli_bytes_text(p->budget_bytes, budget, sizeof budget), p->peak_stage, p->n_stages,
           cli_fit_text(p->fit), cli_bytes_text(fabs(p->headroom_bytes), rest, sizeof rest),
           p->headroom_bytes >= 0 ? "free" : "missing");
    printf("; largest: %s\n", ty_mem_name(p->largest_component));
}

static void print_imbalance(const struct ty_prediction *p)
{
    if (isfinite(p->imbalance_limit))
        printf("  %-14s fits up to an expert imbalance of %.2f\n", "", p->imbalance_limit);
}

/* Of the bound rung: no plan is faster than this. */
static void print_bound(const struct ty_prediction *p)
{
    char text[40];
    const double tokens = (double)p->plan.gbs * p->plan.seq;
    printf("  %-14s %s at least\n", "step time", cli_time_text(p->bound_s, text, sizeof text));
    printf("  %-14s %s at most\n", "tokens/s",
           cli_count_text(tokens / p->bound_s, text, sizeof text));
}

/* The origin that most of the time of each kind of work has, and its share when not all of it. */
static void print_origins(const struct ty_prediction *p)
{
    const char *before = "";
    printf("  %-14s ", "from");
    for (int work = 0; work < TY_N_WORKS; work++) {
        int most = 0;
        for (int origin = 1; origin < TY_N_ORIGINS; origin++)
            if (p->origin_share[work][origin] > p->origin_share[work][most])
                most = origin;
        const double share = p->origin_share[work][most];
        if (!(share > 0.0))
            continue;
        printf("%s%s %s", before, ty_work_name((enum ty_work)work),
               ty_origin_name((enum ty_origin)most));
        if (share < 0.995)
            printf(" (%.0f %%)", 100.0 * share);
        before = ", ";
    }
    putchar('\n');
}

static void print_interval(const struct ty_prediction *p)
{
    char ends[4][40];
    const double times_s[4] = {p->interval_80[0], p->interval_80[1], p->interval_90[0],
                               p->interval_90[1]};
    for (int i = 0; i < 4; i++)
        cli_time_text(times_s[i], ends[i], sizeof ends[i]);
    if (isfinite(p->interval_90[1]))
        printf("  %-14s %s to %s in 80 %% of runs, %s to %s in 90 %%\n", "", ends[0], ends[1],
               ends[2], ends[3]);
}

static void print_headline(const struct ty_prediction *p)
{
    char text[40], each[40];
    printf("  %-14s %s", "step time", cli_time_text(p->step_time_s, text, sizeof text));
    printf(" (lower bound %s)\n", cli_time_text(p->bound_s, text, sizeof text));
    print_interval(p);
    printf("  %-14s %s, %s per GPU\n", "tokens/s",
           cli_count_text(p->tokens_per_s, text, sizeof text),
           cli_count_text(p->tokens_per_s_per_gpu, each, sizeof each));
    printf("  %-14s %.1f %%, %s per GPU (%s convention)\n", "MFU", 100.0 * p->mfu,
           ty_quantity_text(p->model_flop_per_s_per_gpu, TY_UNIT_FLOP_PER_S, text, sizeof text),
           ty_flops_name(p->flops));
    print_origins(p);
}

/* Only with a price list: what is paid and drawn. */
static void print_cost(const struct ty_prediction *p)
{
    const struct ty_outlay *outlay = &p->outlay;
    const struct ty_price *price = outlay->price;
    char watts[40];
    if (!price)
        return;
    printf("  %-14s %.4g %s per million tokens, %.4g a step; %u GPUs at %.4g an hour (prices of "
           "%s)\n",
           "cost", 1e6 * outlay->money_per_token, price->currency, outlay->money, outlay->gpus_paid,
           outlay->money_per_gpu_hour, price->date);
    printf("  %-14s %.4g J per token, %s", "energy", outlay->energy_j_per_token,
           ty_quantity_text(outlay->power_w, TY_UNIT_W, watts, sizeof watts));
    if (isfinite(outlay->co2_kg))
        printf(", %.4g kg CO2 per million tokens",
               1e6 * outlay->co2_kg * outlay->energy_j_per_token / outlay->energy_j);
    printf("\n");
}

/* ---- the step ----------------------------------------------------------------------------- */

static void print_breakdown(const struct ty_prediction *p)
{
    enum ty_part first = 0;
    for (enum ty_part part = 0; part < TY_N_PARTS; part++)
        if (p->breakdown_s[part] > p->breakdown_s[first])
            first = part;
    printf("\nlimited by %s: %.0f %% of the step\n\nwhere the step goes\n", ty_part_name(first),
           100.0 * p->breakdown_s[first] / p->step_time_s);
    for (enum ty_part part = 0; part < TY_N_PARTS; part++) {
        char text[40];
        const double share = p->breakdown_s[part] / p->step_time_s;
        if (!(p->breakdown_s[part] > 0.0))
            continue;
        printf("  %-14s %12s %6.1f %%", ty_part_name(part),
               cli_time_text(p->breakdown_s[part], text, sizeof text), 100.0 * share);
        for (long i = 0; i < lround(share * BAR_WIDTH); i++)
            fputs(i ? "#" : "  #", stdout);
        putchar('\n');
    }
}

/* ---- memory and groups -------------------------------------------------------------------- */

static void print_memory(const struct ty_prediction *p)
{
    if (p->n_stages == 0)
        return;
    const struct ty_stage_memory *stage = &p->stages[p->peak_stage];
    printf("\nmemory of stage %u, the fullest\n", p->peak_stage);
    for (enum ty_mem component = 0; component < TY_N_MEM; component++) {
        char text[40];
        if (stage->bytes[component] > 0.0)
            printf("  %-14s %12s %6.1f %%\n", ty_mem_name(component),
                   cli_bytes_text(stage->bytes[component], text, sizeof text),
                   100.0 * stage->bytes[component] / stage->total_bytes);
    }
    if (stage->host_bytes > 0.0) {
        char text[40];
        printf("  on the host    %12s, not counted above\n",
               cli_bytes_text(stage->host_bytes, text, sizeof text));
    }
    if (p->n_stages == 1)
        return;
    printf("  every stage, GiB:");
    for (uint32_t i = 0; i < p->n_stages; i++)
        printf("%s%.1f", i && i % 12 == 0 ? "\n                   " : " ",
               p->stages[i].total_bytes * 0x1p-30);
    putchar('\n');
}

static void print_groups(const struct ty_prediction *p)
{
    const char *title = "\ngroups and the slowest link each crosses\n";
    for (uint32_t i = 0; i < p->n_groups; i++) {
        const struct ty_group *group = &p->groups[i];
        if (group->size < 2)
            continue;
        printf("%s  %-4s %6u ranks, %4u in a domain  %s\n", title, group->name, group->size,
               group->ranks_per_domain, group->link);
        title = "";
    }
}

/* ---- what was not said -------------------------------------------------------------------- */

/* Plan fields that the user left open and the resolved plan has. */
static void print_implied(const struct ty_prediction *p, const struct ty_plan *given)
{
    size_t n = 0, column = 0;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    printf("\nimplied by the plan and its stack");
    for (size_t i = 0; i < n; i++) {
        char before[200], after[200];
        cli_field_text(&fields[i], given, before, sizeof before);
        cli_field_text(&fields[i], &p->plan, after, sizeof after);
        if (*before || !*after)
            continue;
        const size_t width = strlen(fields[i].path) + strlen(after) + 3;
        if (column == 0 || column + width > 92)
            column = (size_t)printf("\n") - 1;
        column += (size_t)printf("  %s %s", fields[i].path, after);
    }
    putchar('\n');
}

static void print_notes_of(const struct ty_prediction *p, enum ty_note_kind kind, const char *title)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < p->n_notes; i++) {
        const struct ty_note *note = &p->notes[i];
        if (note->kind != kind)
            continue;
        if (found++ == 0)
            printf("\n%s\n", title);
        if (found > SHOWN_NOTES)
            continue;
        printf("  %-28s %-14s ", note->field, note->value);
        if (isfinite(note->effect_pct))
            printf("%+6.1f %%  ", note->effect_pct);
        else
            printf("%10s", "");
        printf("%s\n", note->reason);
    }
    if (found > SHOWN_NOTES)
        printf("  and %u more of smaller effect; --json lists all\n", found - SHOWN_NOTES);
}

static void print_notes(const struct ty_prediction *p)
{
    print_notes_of(p, TY_NOTE_DEFAULTED,
                   "assumed, with the change of step time if it were otherwise");
    for (uint32_t i = 0; i < p->n_notes; i++)
        if (p->notes[i].kind == TY_NOTE_DEFAULTED && fabs(p->notes[i].effect_pct) >= 0.1) {
            printf("  what matters most: %s\n", p->notes[i].field);
            break;
        }
    print_notes_of(p, TY_NOTE_EXTRAPOLATED, "outside the range it was measured in");
    print_notes_of(p, TY_NOTE_UNCALIBRATED, "not calibrated");
    print_notes_of(p, TY_NOTE_UNUSED, "given, but without effect on this answer");
}

/* ---- infeasible --------------------------------------------------------------------------- */

static void print_broken(const struct ty_prediction *p)
{
    for (uint32_t i = 0; i < p->n_violations; i++) {
        const struct ty_violation *broken = &p->violations[i];
        printf("  %s: %s", broken->rule, broken->text);
        if (*broken->legal)
            printf("; legal: %s", broken->legal);
        putchar('\n');
    }
}

static void print_infeasible(const struct ty_prediction *p)
{
    printf("no feasible plan:\n");
    print_broken(p);
    print_imbalance(p);
    print_memory(p);
}

bool cli_print_headline(const struct ty_prediction *p, const struct cli_inputs *inputs)
{
    const bool simulated = isfinite(p->step_time_s);
    print_title(p, inputs);
    if (!p->feasible && !simulated) {
        print_infeasible(p);
        return false;
    }
    if (!p->feasible) {
        printf("known to run, although:\n");
        print_broken(p);
    }
    (simulated ? print_headline : print_bound)(p);
    print_memory_line(p);
    print_imbalance(p);
    print_cost(p);
    return true;
}

void cli_print_prediction(const struct ty_prediction *p, const struct cli_inputs *inputs)
{
    if (!cli_print_headline(p, inputs))
        return;
    if (isfinite(p->step_time_s))
        print_breakdown(p);
    print_memory(p);
    print_groups(p);
    cli_print_fabric(p);
    cli_print_storage(p, inputs);
    print_implied(p, &inputs->plan);
    print_notes(p);
}

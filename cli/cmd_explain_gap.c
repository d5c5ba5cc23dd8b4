/* SPDX-License-Identifier: MIT
 * What `explain` compares a prediction with: a figure, a log or a profile. */
#include "cli/explain.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_CAUSES 12

/* ---- one figure ----------------------------------------------------------------------------- */

/* Lower case, without blanks. */
static void squeeze(const char *text, char *out, size_t bytes)
{
    size_t n = 0;
    for (; *text && n + 1 < bytes; text++)
        if (!isspace((unsigned char)*text) && *text != ',')
            out[n++] = (char)tolower((unsigned char)*text);
    out[n] = '\0';
}

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

ty_status explain_figure(const char *text, const struct ty_prediction *p, double *step_s,
                         struct ty_error *error)
{
    static const char *const per_gpu[] = {"tokens/s/gpu", "tok/s/gpu", "tgs", "tokens/gpu/s", NULL};
    static const char *const total[] = {"tokens/s", "tok/s", NULL};
    static const char *const mfu[] = {"%", "%mfu", "mfu", NULL};
    static const char *const rate[] = {"tflop/s/gpu", "tflops/gpu", "tflop/s", "tflops", NULL};
    const double tokens = (double)p->plan.gbs * p->plan.seq;
    char squeezed[64], *unit;
    squeeze(text, squeezed, sizeof squeezed);
    const char *digits = strncmp(squeezed, "mfu", 3) == 0 ? squeezed + 3 : squeezed;
    const double value = strtod(digits, &unit);
    if (unit == digits || !(value > 0.0) || !isfinite(value))
        return cli_refuse(error, "--measured", "\"%s\" does not start with a number above 0", text);
    if (is_one_of(unit, per_gpu))
        *step_s = tokens / value / p->plan.n_gpus;
    else if (is_one_of(unit, total))
        *step_s = tokens / value;
    else if (is_one_of(unit, mfu))
        *step_s = p->step_time_s * p->mfu / (strchr(unit, '%') ? value / 100.0 : value);
    else if (is_one_of(unit, rate))
        *step_s = p->step_time_s * p->model_flop_per_s_per_gpu / (value * 1e12);
    else if (ty_quantity_parse(text, TY_UNIT_S, step_s, NULL) != TY_OK)
        return cli_refuse(
            error, "--measured",
            "\"%s\" is none of: \"850 tokens/s/GPU\", \"435000 tokens/s\", \"9.6 s\", "
            "\"38 %%\" (MFU), \"385 TFLOP/s/GPU\"",
            text);
    return TY_OK;
}

/* ---- log ------------------------------------------------------------------------------------ */

static bool is_default(const struct ty_field *field, const struct ty_plan *plan)
{
    struct ty_plan open;
    ty_init(TY_KIND_PLAN, &open);
    return memcmp((const char *)&open + field->offset, (const char *)plan + field->offset,
                  field->size) == 0;
}

void explain_take_plan(const struct ty_plan *logged, bool quiet, struct ty_plan *plan)
{
    size_t n = 0;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    const struct ty_plan given = *plan;
    for (size_t i = 0; i < n; i++) {
        char theirs[160], ours[160];
        const size_t at = fields[i].offset;
        if (is_default(&fields[i], logged))
            continue;
        if (is_default(&fields[i], &given)) {
            memcpy((char *)plan + at, (const char *)logged + at, fields[i].size);
        } else if (memcmp((const char *)&given + at, (const char *)logged + at, fields[i].size) !=
                       0 &&
                   !quiet) {
            cli_warn("--log says %s %s; %s was given and is used", fields[i].path,
                     cli_field_text(&fields[i], logged, theirs, sizeof theirs),
                     cli_field_text(&fields[i], &given, ours, sizeof ours));
        }
    }
}

/* ---- text ----------------------------------------------------------------------------------- */

void explain_print_timeline(const struct ty_timeline *t)
{
    char step[40], busy[40], alone[40], comm[40];
    printf("\nprofile: %u step%s %s, device %u%s, %llu kernels\n", t->n_steps,
           t->n_steps == 1 ? "" : "s",
           t->marked ? "by their marks"
                     : "assumed: no step is marked (--profile-steps N says how many)",
           t->device, t->n_devices > 1 ? ", the busiest" : "", (unsigned long long)t->n_kernels);
    printf("  %-16s %12s %12s\n", "in one step", "busy", "alone");
    for (uint32_t i = 0; i < TY_N_ACTIVITIES; i++)
        if (t->busy_s[i] > 0.0)
            printf("  %-16s %12s %12s\n", ty_activity_name((enum ty_activity)i),
                   cli_time_text(t->busy_s[i], busy, sizeof busy),
                   cli_time_text(t->alone_s[i], alone, sizeof alone));
    printf("  %-16s %12s %12s\n", "idle", "", cli_time_text(t->idle_s, alone, sizeof alone));
    printf("  step %s; %s of communication, %.0f %% of it hidden behind computation\n",
           cli_time_text(t->step_s, step, sizeof step), cli_time_text(t->comm_s, comm, sizeof comm),
           t->comm_s > 0.0 ? 100.0 * (1.0 - t->exposed_comm_s / t->comm_s) : 0.0);
    if (*t->unknown)
        printf("  longest unrecognised kernel: %s\n", t->unknown);
}

static void print_lines(const struct ty_gap *gap)
{
    char predicted[40], measured[40], difference[40];
    printf("\n  %-24s %12s %12s %12s\n", "", "predicted", "measured", "difference");
    for (uint32_t i = 0; i < gap->n_lines; i++) {
        const struct ty_gap_line *line = &gap->lines[i];
        if (line->predicted_s > 0.0 || line->measured_s > 0.0)
            printf(
                "  %-24s %12s %12s %12s\n", line->name,
                cli_time_text(line->predicted_s, predicted, sizeof predicted),
                cli_time_text(line->measured_s, measured, sizeof measured),
                cli_time_text(line->measured_s - line->predicted_s, difference, sizeof difference));
    }
}

void explain_print_gap(const struct ty_gap *gap)
{
    char predicted[40], measured[40];
    printf("\nmeasured %s, predicted %s: %+.1f %%%s\n",
           cli_time_text(gap->measured_s, measured, sizeof measured),
           cli_time_text(gap->predicted_s, predicted, sizeof predicted),
           100.0 * (gap->measured_s / gap->predicted_s - 1.0),
           gap->within_80 ? ", within the 80 % interval of the prediction" : "");
    if (gap->n_lines)
        print_lines(gap);
    printf("\n%s\n", gap->n_lines ? "causes, by the share of the difference each explains"
                                  : "candidates: the share of the difference each would explain "
                                    "alone; one figure proves none of them");
    for (uint32_t i = 0; i < gap->n_causes && i < SHOWN_CAUSES; i++)
        printf("  %+7.1f %%  %s\n", gap->causes[i].explained_pct, gap->causes[i].text);
    if (gap->n_causes == 0)
        printf("  none that would move the step this way\n");
    if (gap->n_causes > SHOWN_CAUSES)
        printf("  ... %u more; --json lists all\n", gap->n_causes - SHOWN_CAUSES);
    if (gap->n_lines)
        printf("  %+7.1f %%  unexplained\n", gap->unexplained_pct);
    else
        printf("  unexplained: all of it; --profile-trace tells the causes apart\n");
}

/* SPDX-License-Identifier: MIT
 *
 * Legality: the fast form runs the tests of the rules; the full form adds the texts and finds the
 * legal values by running the same test on other values of a knob, so the two cannot disagree.
 */
#include "models/legality.h"
#include "models/framework.h"
#include "models/legality_rules.h"
#include "sim/error.h"

#include <string.h>

#define MAX_TRIED 1024u /* values of a knob tried for the list of legal ones */

static struct scope scope_of(const struct setting *setting, const struct ty_plan *plan)
{
    return (struct scope){.setting = setting,
                          .plan = plan,
                          .dense_ranks = (uint64_t)plan->tp * plan->cp * plan->pp,
                          .expert_ranks = (uint64_t)plan->etp * plan->ep * plan->pp,
                          .domain = cluster_domain(&setting->cluster, plan->n_gpus)};
}

/* ---- legal values ---------------------------------------------------------------------------- */

/* Writes the values of a knob up to `most` that keep the rule: "{1, 2, 4}"; false: there are none.
 */
static bool list_values(const struct rule *rule, const struct scope *scope, const struct knob *knob,
                        uint32_t most, char list[80])
{
    struct ty_plan plan = *scope->plan;
    const char *before = "{";
    list[0] = '\0';
    for (uint32_t value = 1; value <= most; value++) {
        memcpy((char *)&plan + knob->offset, &value, sizeof value);
        struct scope other = scope_of(scope->setting, &plan);
        if (rule->broken(&other))
            continue;
        if (strlen(list) > 60) {
            text_append(list, 80, ", ...");
            break;
        }
        text_append(list, 80, "%s%u", before, value);
        before = ", ";
    }
    text_append(list, 80, "}");
    return list[0] == '{';
}

static void append_knobs(const struct rule *rule, const struct scope *scope,
                         struct ty_violation *out)
{
    for (uint32_t i = 0; i < 2 && rule->knobs[i].name; i++) {
        const struct knob *knob = &rule->knobs[i];
        const bool heads = rule->reject == TY_REJECT_HEADS && strcmp(knob->name, "tp") == 0;
        const uint32_t most = heads && scope->kind->n_heads ? scope->kind->n_heads : MAX_TRIED;
        char list[80];
        if (list_values(rule, scope, knob, most < MAX_TRIED ? most : MAX_TRIED, list))
            text_append(out->legal, sizeof out->legal, "%s%s in %s", out->legal[0] ? "; " : "",
                        knob->name, list);
        if (heads && scope->domain < most && list_values(rule, scope, knob, scope->domain, list))
            text_append(out->legal, sizeof out->legal, "; inside a domain of %u: %s", scope->domain,
                        list);
    }
}

/* ---- interface ------------------------------------------------------------------------------- */

enum ty_reject legality_reject(const struct setting *setting, const struct ty_plan *plan)
{
    struct scope scope = scope_of(setting, plan);
    for (size_t i = 0; i < LEGALITY_N_RULES; i++)
        if (legality_rules[i].broken(&scope))
            return legality_rules[i].reject;
    const struct ty_framework *framework = setting->profile.framework;
    return framework && ty_framework_lacks(framework, plan) ? TY_REJECT_FRAMEWORK : TY_N_REJECTS;
}

static void tell_framework(const struct setting *setting, const struct ty_plan *plan,
                           struct ty_violation *out, uint32_t max, uint32_t *n)
{
    const struct ty_framework *framework = setting->profile.framework;
    const struct ty_field *field = framework ? ty_framework_lacks(framework, plan) : NULL;
    if (!field)
        return;
    if (*n < max) {
        struct ty_violation *violation = &out[*n];
        memset(violation, 0, sizeof *violation);
        text_format(violation->rule, sizeof violation->rule, "framework");
        text_format(violation->text, sizeof violation->text, "%s cannot run this %s",
                    framework->version, field->path);
        for (uint32_t i = 0; field->names && i < framework->n_limits; i++)
            for (uint32_t k = 0; framework->limit[i].field == field && field->names[k]; k++)
                if (framework->limit[i].allowed >> k & 1)
                    text_append(violation->legal, sizeof violation->legal, "%s%s",
                                violation->legal[0] ? ", " : "", field->names[k]);
    }
    (*n)++;
}

void legality_violations(const struct setting *setting, const struct ty_plan *plan,
                         struct ty_violation *out, uint32_t max, uint32_t *n)
{
    struct scope scope = scope_of(setting, plan);
    *n = 0;
    for (size_t i = 0; i < LEGALITY_N_RULES; i++) {
        if (i == LEGALITY_N_GUARDS && *n > 0)
            return;
        if (!legality_rules[i].broken(&scope))
            continue;
        if (*n < max) {
            struct ty_violation *violation = &out[*n];
            memset(violation, 0, sizeof *violation);
            text_format(violation->rule, sizeof violation->rule, "%s", legality_rules[i].name);
            legality_rules[i].tell(&scope, violation);
            append_knobs(&legality_rules[i], &scope, violation);
        }
        (*n)++;
    }
    tell_framework(setting, plan, out, max, n);
}

void ty_plan_violations(const struct ty_model *model, const struct ty_cluster *cluster,
                        const struct ty_plan *resolved, struct ty_violation *out, uint32_t max,
                        uint32_t *n)
{
    struct setting setting = {.model = *model};
    if (cluster_resolve(cluster, &setting.cluster, NULL, NULL) != TY_OK)
        setting.cluster = *cluster;
    legality_violations(&setting, resolved, out, max, n);
}

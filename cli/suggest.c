/* SPDX-License-Identifier: MIT
 * After an infeasible plan: the fastest that fits on the same GPUs with what the user fixed. */
#include "cli/cli.h"
#include <stdlib.h>

/* The flags that the search chose: those the user left open. */
static void print_flags(const struct ty_plan *asked, const struct ty_plan *found)
{
    const struct {
        const char *flag;
        uint32_t asked, found;
    } sizes[] = {{"tp", asked->tp, found->tp},    {"pp", asked->pp, found->pp},
                 {"vpp", asked->vpp, found->vpp}, {"cp", asked->cp, found->cp},
                 {"ep", asked->ep, found->ep},    {"mbs", asked->mbs, found->mbs}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].asked == 0 && sizes[i].found > 1)
            printf(" --%s %u", sizes[i].flag, sizes[i].found);
    if (asked->recompute == TY_RECOMPUTE_AUTO && found->recompute == TY_RECOMPUTE_SELECTIVE)
        printf(" --recompute selective");
    if (asked->recompute == TY_RECOMPUTE_AUTO && found->recompute == TY_RECOMPUTE_FULL)
        printf(" --recompute full");
}

void cli_print_suggestion(const struct cli_inputs *inputs)
{
    struct ty_search *search = calloc(1, sizeof *search);
    struct ty_search_result result = {0};
    if (!search)
        return;
    search->model = &inputs->model;
    search->cluster = &inputs->cluster;
    search->profile = &inputs->profile;
    search->space.fixed = inputs->plan;
    search->options = inputs->options;
    search->options.effects = false;
    search->overall = true;
    search->top = 1;
    if (ty_search_run(search, &result, NULL) == TY_OK && result.n_best) {
        char each[40];
        printf("\nfastest of %llu plans that fit, with what is fixed:",
               (unsigned long long)result.n_bounded);
        print_flags(&inputs->plan, &result.best[0].plan);
        printf("  (%s tokens/s/GPU)\n",
               cli_count_text(result.best[0].tokens_per_s_per_gpu, each, sizeof each));
    }
    ty_search_free(&result);
    free(search);
}

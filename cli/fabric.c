/* SPDX-License-Identifier: MIT
 * What the full rung found, as text. */
#include "cli/cli.h"

#include <math.h>

static void print_fold(const struct ty_prediction *p, const struct ty_fabric_report *fabric)
{
    char text[40];
    if (fabric->folded) {
        printf("\nfull rung: one rank per stage is exact: %s\n", fabric->why);
        return;
    }
    printf("\nfull rung: %u ranks simulated: %s\n", fabric->n_ranks, fabric->why);
    printf("  %-14s %s (%+.1f %%)\n", "against even",
           cli_time_text(fabric->folded_step_time_s, text, sizeof text),
           100.0 * (p->step_time_s / fabric->folded_step_time_s - 1.0));
    printf("  %-14s rank %u\n", "slowest", fabric->slowest_rank);
    for (uint32_t i = 1; i < fabric->n_jobs; i++)
        printf("  other job %-4u %s\n", i, cli_time_text(fabric->job_step_s[i], text, sizeof text));
}

static void print_micro(const struct ty_fabric_report *fabric)
{
    bool even = true;
    for (uint32_t i = 1; i < fabric->n_replicas; i++)
        even &= fabric->n_micro[i] == fabric->n_micro[0];
    if (even)
        return;
    printf("  %-14s", "micro-batches");
    for (uint32_t i = 0; i < fabric->n_replicas; i++)
        printf(" %u", fabric->n_micro[i]);
    putchar('\n');
}

void cli_print_fabric(const struct ty_prediction *p)
{
    const struct ty_fabric_report *fabric = p->fabric;
    if (!fabric)
        return;
    print_fold(p, fabric);
    print_micro(fabric);
    printf("\ngroups by the level they cross, and what they send there in a step\n");
    for (uint32_t i = 0; i < fabric->n_traffic; i++) {
        const struct ty_group_traffic *row = &fabric->traffic[i];
        for (enum ty_fabric_level level = TY_LEVEL_DOMAIN; level < TY_N_LEVELS; level++) {
            char bytes[40];
            if (!(row->bytes[level] > 0.0))
                continue;
            printf("  %-4s %-7s %8u groups  %s\n", row->name, ty_level_name(level),
                   row->n_groups[level], cli_bytes_text(row->bytes[level], bytes, sizeof bytes));
        }
    }
}

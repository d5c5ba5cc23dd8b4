/* SPDX-License-Identifier: MIT
 * Ctrl-C and the SIGTERM of schedulers: the work in hand is finished and stored. */
#include "cli/study.h"
#include <signal.h>

static volatile sig_atomic_t caught; /* the number of the signal; handlers have no other argument */

static void on_signal(int number)
{
    caught = number;
}

void cli_interrupt_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool cli_interrupted(void)
{
    return caught != 0;
}

int cli_interrupt_status(const struct cli_study *study)
{
    if (study->store)
        cli_warn("interrupted; what is done is in %s, and --resume goes on from there",
                 study->path);
    else
        cli_warn("interrupted; with --db FILE what is done would have been kept");
    return 128 + caught;
}

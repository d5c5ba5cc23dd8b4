/* SPDX-License-Identifier: MIT
 * The progress bar of a sweep. */
#include "cli/cli.h"
#include <time.h>
#include <unistd.h>

#define BAR_WIDTH  30
#define REDRAW_S   0.1
#define ESTIMATE_S 0.5 /* no estimate of the time left before this */

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void cli_progress_start(struct cli_progress *progress, bool quiet)
{
    progress->shown = !quiet && isatty(STDERR_FILENO);
    progress->start_s = progress->last_s = now_s();
}

void cli_progress_show(struct cli_progress *progress, uint64_t done, uint64_t total)
{
    if (!progress->shown || total == 0)
        return;
    double now = now_s(), passed_s = now - progress->start_s;
    if (now - progress->last_s < REDRAW_S)
        return;
    progress->last_s = now;
    char bar[BAR_WIDTH + 1];
    uint64_t filled = done >= total ? BAR_WIDTH : done * BAR_WIDTH / total;
    for (uint32_t i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
    double rate = (double)done / passed_s;
    fprintf(stderr, "\r[%s] %llu of %llu plans, %.0f/s", bar, (unsigned long long)done,
            (unsigned long long)total, rate);
    if (passed_s > ESTIMATE_S && rate > 0)
        fprintf(stderr, ", %.0f s left", (double)(total - done) / rate);
    fputs("\033[K", stderr);
}

void cli_progress_end(struct cli_progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
}

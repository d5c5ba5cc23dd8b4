/* SPDX-License-Identifier: MIT
 * The progress of a sweep on standard error: a bar on a terminal, else a line now and then. */
#include "cli/cli.h"
#include <time.h>
#include <unistd.h>

#define BAR_WIDTH  30
#define REDRAW_S   0.1
#define LINE_S     30.0 /* between two lines of a log */
#define ESTIMATE_S 0.5  /* no estimate of the time left before this */

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void cli_progress_start(struct cli_progress *progress, bool quiet)
{
    *progress = (struct cli_progress){.shown = !quiet, .bar = isatty(STDERR_FILENO) == 1};
    progress->start_s = progress->last_s = now_s();
}

void cli_progress_show(struct cli_progress *progress, uint64_t done, uint64_t total)
{
    if (!progress->shown || total == 0)
        return;
    double now = now_s(), passed_s = now - progress->start_s;
    progress->first = progress->begun ? progress->first : done; /* known before it began */
    progress->begun = true;
    if (now - progress->last_s < (progress->bar ? REDRAW_S : LINE_S))
        return;
    progress->last_s = now;
    char bar[BAR_WIDTH + 1];
    uint64_t filled = done >= total ? BAR_WIDTH : done * BAR_WIDTH / total;
    for (uint32_t i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
    double rate = (double)(done - progress->first) / passed_s;
    if (progress->bar)
        fprintf(stderr, "\r[%s] ", bar);
    fprintf(stderr, "%llu of %llu plans, %.0f/s", (unsigned long long)done,
            (unsigned long long)total, rate);
    if (passed_s > ESTIMATE_S && rate > 0)
        fprintf(stderr, ", %.0f s left", (double)(total - done) / rate);
    fputs(progress->bar ? "\033[K" : "\n", stderr);
}

void cli_progress_end(struct cli_progress *progress)
{
    if (progress->shown && progress->bar)
        fputs("\r\033[K", stderr);
}

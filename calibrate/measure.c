/* SPDX-License-Identifier: MIT
 *
 * The caller's side of a measurement: it forks the ranks, passes on the records that the first one
 * sends, and ends them all when one dies, when the caller has enough, or long after the budget.
 * The ranks set variables for their BLAS and load it; the caller's process stays as it was. */
#define _GNU_SOURCE
#include "calibrate/measure.h"
#include "sim/error.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const size_t GRID_FLOATS = (size_t)32 << 20; /* of one rank: 128 MiB */
static const double MEMORY_SHARE = 0.25;            /* of the machine's memory, for all ranks */
enum { POLL_MS = 200, LINE_BYTES = 8192 };
/* Time after the budget at which ranks that do not come back are ended. */
static const double OVERTIME_S = 60.0;

struct session {
    const struct ty_measure_options *options;
    struct ty_measure_summary *summary;
    struct measure_list list;
    struct measure_shared *shared;
    size_t shared_bytes;
    uint32_t n_ranks, n_done;
    pid_t rank[CPU_MAX_RANKS];
    int in, out; /* the pipe of records */
    double start_s, deadline_s;
    char line[LINE_BYTES];
    size_t line_bytes;
    char refusal[160]; /* what a rank could not do */
};

/* ---- ranks ----------------------------------------------------------------------------------- */

static uint32_t usable_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    const int n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > CPU_MAX_RANKS ? CPU_MAX_RANKS : (uint32_t)n;
}

/* Rank r on the r-th core that it may use: two ranks never share one while another idles. */
static void pin(uint32_t rank)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) <= (int)rank)
        return;
    int core = 0;
    for (uint32_t seen = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET((size_t)core, &all) && seen++ == rank)
            break;
    CPU_SET((size_t)core, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static size_t arena_floats(const struct session *session)
{
    const double memory_bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    const double most = MEMORY_SHARE * memory_bytes / session->n_ranks / sizeof(float);
    double wanted = (double)GRID_FLOATS;
    for (uint32_t i = 0; i < session->list.n; i++)
        wanted = fmax(wanted, measure_cpu_floats(&session->list.point[i]));
    return (size_t)fmin(wanted, most);
}

static float *shared_floats(const struct session *session, uint32_t rank)
{
    char *base = (char *)session->shared;
    return (float *)(void *)(base + 65536) + rank * MEASURE_SHARED_FLOATS;
}

/* Prepares a processor's rank: library, operands, neighbours. returns an exit status, 0 = ready. */
static int prepare(const struct session *session, struct measure_run *run)
{
    struct ty_error error = {0};
    char text[200];
    if (cpu_blas_open(run->options->blas, &run->blas, &error) != TY_OK) {
        text_format(text, sizeof text, "%s: %s", error.where, error.text);
        if (run->rank == 0)
            measure_send_none(run, text);
        return 2;
    }
    run->arena_floats = arena_floats(session);
    run->arena = mmap(NULL, run->arena_floats * sizeof *run->arena, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (run->arena == MAP_FAILED)
        return 3;
    cpu_random(run->rank + 1, run->arena_floats, run->arena);
    cpu_random(run->rank + 1, MEASURE_SHARED_FLOATS, shared_floats(session, run->rank));
    run->group = (struct cpu_group){.meeting = &session->shared->all, .n = run->n_ranks};
    for (uint32_t i = 0; i < run->n_ranks; i++)
        run->group.buffer[i] = shared_floats(session, i);
    run->pair = run->group;
    run->pair.meeting = &session->shared->pair;
    run->pair.n = 2;
    text_format(text, sizeof text, "#%s, %u ranks of one core", run->blas.name, run->n_ranks);
    if (run->rank == 0)
        measure_send_none(run, text);
    return 0;
}

static int be_rank(const struct session *session, uint32_t rank, const int pipe_fd[2])
{
    struct measure_run run = {.options = session->options,
                              .list = &session->list,
                              .shared = session->shared,
                              .rank = rank,
                              .n_ranks = session->n_ranks,
                              .out = session->out,
                              .pipe = {pipe_fd[0], pipe_fd[1]}};
    int status = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (session->options->device == TY_MEASURE_CPU) {
        pin(rank);
        status = prepare(session, &run);
    }
    if (status != 0)
        return status;
    measure_stamp(&run);
    run.deadline_s = measure_now_s() + session->options->budget_s; /* getting ready is not in it */
    return session->options->device == TY_MEASURE_CPU ? measure_rank(&run) : measure_storage(&run);
}

static void end_ranks(struct session *session)
{
    for (uint32_t i = 0; i < session->n_ranks; i++) {
        if (session->rank[i] <= 0)
            continue;
        kill(session->rank[i], SIGKILL);
        waitpid(session->rank[i], NULL, 0);
        session->rank[i] = 0;
    }
}

static ty_status start_ranks(struct session *session, struct ty_error *error)
{
    int records[2], measured[2] = {-1, -1};
    if (pipe(records) != 0)
        return error_set(error, TY_ERR_IO, "measure", "no pipe: %s", strerror(errno));
    if (pipe(measured) != 0) {
        close(records[0]);
        close(records[1]);
        return error_set(error, TY_ERR_IO, "measure", "no pipe: %s", strerror(errno));
    }
    session->in = records[0];
    session->out = records[1];
    ty_status status = TY_OK;
    for (uint32_t rank = 0; status == TY_OK && rank < session->n_ranks; rank++) {
        session->rank[rank] = fork();
        if (session->rank[rank] == 0) {
            close(session->in);
            _exit(be_rank(session, rank, measured));
        }
        if (session->rank[rank] < 0)
            status = error_set(error, TY_ERR_IO, "measure", "no process: %s", strerror(errno));
    }
    close(session->out);
    close(measured[0]);
    close(measured[1]);
    return status;
}

/* ---- records --------------------------------------------------------------------------------- */

/* A record, '#' a note, '-' a point without a record, and why. returns false: the caller has
 * enough. */
static bool handle(struct session *session, const char *line)
{
    const struct ty_measure_options *options = session->options;
    struct ty_measure_summary *summary = session->summary;
    const int note = (int)strcspn(line, "\n");
    if (line[0] == '-' && line[1] == '#') {
        text_format(summary->note, sizeof summary->note, "%.*s", note - 2, line + 2);
        return true;
    }
    session->n_done++;
    if (line[0] == '{') {
        summary->n_measured++;
        summary->n_page_cache += strstr(line, "\"page_cache\"") != NULL;
        if (!options->record(options->user, line))
            return false;
    } else if (line[1] == '!') {
        summary->n_impossible++;
        text_format(summary->note, sizeof summary->note, "%.*s", note - 2, line + 2);
    } else {
        text_format(session->refusal, sizeof session->refusal, "%.*s", note - 1, line + 1);
    }
    const double passed_s = measure_now_s() - session->start_s;
    if (options->progress)
        options->progress(options->user, session->n_done, session->list.n,
                          fmin(passed_s / session->n_done * (session->list.n - session->n_done),
                               fmax(session->deadline_s - measure_now_s(), 0.0)));
    return true;
}

/* Whole lines of what has arrived. returns false when the caller has enough. */
static bool handle_lines(struct session *session)
{
    char *start = session->line, *end;
    while ((end = memchr(start, '\n', session->line_bytes - (size_t)(start - session->line)))) {
        const char kept = end[1];
        end[1] = '\0';
        if (!handle(session, start))
            return false;
        end[1] = kept;
        start = end + 1;
    }
    session->line_bytes -= (size_t)(start - session->line);
    memmove(session->line, start, session->line_bytes);
    return true;
}

/* Has a rank died? One that ended well has 0 in its place. */
static bool died(struct session *session, int *exit_status)
{
    for (uint32_t i = 0; i < session->n_ranks; i++) {
        int status;
        if (session->rank[i] <= 0 || waitpid(session->rank[i], &status, WNOHANG) <= 0)
            continue;
        session->rank[i] = 0;
        *exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
        if (*exit_status != 0)
            return true;
    }
    return false;
}

static ty_status refuse(const struct session *session, int exit_status, struct ty_error *error)
{
    if (exit_status == 2 && *session->refusal)
        return error_set(error, TY_ERR_INPUT, "measure", "%s", session->refusal);
    if (exit_status == 3)
        return error_set(error, TY_ERR_NOMEM, "measure", "no memory for the operands");
    return error_set(error, TY_ERR_IO, "measure", "one of its processes died");
}

static ty_status listen(struct session *session, struct ty_error *error)
{
    struct pollfd wait = {.fd = session->in, .events = POLLIN};
    int exit_status = 0;
    for (;;) {
        const int ready = poll(&wait, 1, POLL_MS);
        if (ready > 0) {
            const size_t room = sizeof session->line - 1 - session->line_bytes;
            const ssize_t n = read(session->in, session->line + session->line_bytes, room);
            if (n <= 0)
                break;
            session->line_bytes += (size_t)n;
            if (!handle_lines(session))
                return error_set(error, TY_ERR_IO, "measure", "its records could not be written");
        } else if (died(session, &exit_status)) {
            break;
        }
        if (measure_now_s() > session->deadline_s + OVERTIME_S)
            return error_set(error, TY_ERR_IO, "measure", "a point hangs");
    }
    for (uint32_t i = 0; i < session->n_ranks && exit_status == 0; i++) {
        int status = 0;
        if (session->rank[i] > 0 && waitpid(session->rank[i], &status, 0) > 0)
            session->rank[i] = 0;
        if (status != 0)
            exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    }
    return exit_status == 0 ? TY_OK : refuse(session, exit_status, error);
}

/* ---- all ------------------------------------------------------------------------------------- */

static ty_status map_shared(struct session *session, struct ty_error *error)
{
    const bool cpu = session->options->device == TY_MEASURE_CPU;
    session->shared_bytes =
        65536 + (cpu ? session->n_ranks * MEASURE_SHARED_FLOATS * sizeof(float) : 0);
    session->shared = mmap(NULL, session->shared_bytes, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (session->shared == MAP_FAILED)
        return error_set(error, TY_ERR_NOMEM, "measure", "no shared memory");
    return TY_OK;
}

static void summarise(struct session *session)
{
    double on_core_s = 0.0, wall_s = 0.0;
    for (uint32_t i = 0; i < session->n_ranks; i++) {
        on_core_s += session->shared->on_core_s[i];
        wall_s += session->shared->wall_s[i];
    }
    session->summary->off_core_ratio = wall_s > 0.0 ? fmax(0.0, 1.0 - on_core_s / wall_s) : 0.0;
    session->summary->n_left =
        session->list.n - session->summary->n_measured - session->summary->n_impossible;
}

static ty_status run_session(struct session *session, struct ty_error *error)
{
    const struct ty_measure_options *options = session->options;
    ty_status status = TY_OK;
    if (options->device == TY_MEASURE_CPU)
        status = measure_list_cpu(options, session->n_ranks, &session->list, error);
    else
        measure_list_storage(&session->list);
    session->summary->n_points = session->list.n;
    if (status == TY_OK && options->done_path)
        status =
            measure_forget(options->done_path, &session->list, &session->summary->n_known, error);
    if (status != TY_OK || session->list.n == 0)
        return status;
    status = map_shared(session, error);
    if (status != TY_OK)
        return status;
    session->start_s = measure_now_s();
    session->deadline_s = session->start_s + options->budget_s;
    session->in = -1;
    status = start_ranks(session, error);
    if (status == TY_OK)
        status = listen(session, error);
    end_ranks(session);
    if (session->in >= 0)
        close(session->in);
    if (status == TY_OK)
        summarise(session);
    munmap(session->shared, session->shared_bytes);
    return status;
}

ty_status ty_measure(const struct ty_measure_options *options, struct ty_measure_summary *summary,
                     struct ty_error *error)
{
    struct ty_measure_summary found = {0};
    if (!(options->budget_s > 0.0) || options->budget_s > 1e6)
        return error_set(error, TY_ERR_RANGE, "budget", "is %g s; legal: above 0, to 1e6",
                         options->budget_s);
    if (options->ranks > CPU_MAX_RANKS)
        return error_set(error, TY_ERR_RANGE, "ranks", "are %u; legal: 1 to %d", options->ranks,
                         CPU_MAX_RANKS);
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return error_set(error, TY_ERR_NOMEM, "measure", "no memory");
    session->options = options;
    session->summary = &found;
    session->n_ranks = options->device == TY_MEASURE_STORAGE ? 1
                       : options->ranks                      ? options->ranks
                                                             : usable_cores();
    const ty_status status = run_session(session, error);
    free(session->list.point);
    free(session);
    if (status == TY_OK)
        *summary = found;
    return status;
}

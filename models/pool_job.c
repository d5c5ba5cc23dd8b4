/* SPDX-License-Identifier: MIT
 *
 * What happens to one job: start, stop, the work left and lost.
 *
 *   end = start + restart + remaining / rate        rate 1 at the nominal size
 *   lost GPU-seconds = restarts + work done since the last checkpoint of a run that failed */
#include "models/pool.h"

#include <math.h>

static const struct pool_shape *shape_of(const struct pool_sim *sim, uint32_t id)
{
    return &sim->shapes[sim->jobs[id].shape];
}

/* GPUs held, parts of one counted as parts. */
static double held_gpus(const struct pool_sim *sim, uint32_t id)
{
    return sim->jobs[id].gpus * 1e-3 * shape_of(sim, id)->milli;
}

static double progress_s(const struct pool_sim *sim, uint32_t id)
{
    const struct pool_job *job = &sim->jobs[id];
    return fmax(0.0, sim->now_s - job->work_start_s) * job->rate;
}

double job_remaining_s(const struct pool_sim *sim, uint32_t id)
{
    const struct pool_job *job = &sim->jobs[id];
    return job->phase == POOL_RUNNING ? fmax(0.0, job->remaining_s - progress_s(sim, id))
                                      : job->remaining_s;
}

double job_attained_gpu_s(const struct pool_sim *sim, uint32_t id)
{
    const struct pool_job *job = &sim->jobs[id];
    double attained = job->attained_gpu_s;
    if (job->phase == POOL_RUNNING)
        attained += (sim->now_s - job->run_start_s) * held_gpus(sim, id);
    return attained;
}

double job_estimate_s(const struct pool_sim *sim, uint32_t id)
{
    const struct pool_job *job = &sim->jobs[id];
    const double limit_s = isnan(job->job->limit_s) ? job->job->duration_s : job->job->limit_s;
    const double done_s = job->job->duration_s - job->remaining_s;
    if (job->phase != POOL_RUNNING)
        return sim->now_s + (job->began ? job->restart_s : 0.0) + limit_s - done_s;
    return fmax(sim->now_s, job->work_start_s + (limit_s - done_s) / job->rate);
}

/* Speed in the unit of the job's sizes; 0: no size of it. */
static double size_speed(const struct ty_pool_job *job, uint32_t gpus)
{
    for (uint32_t i = 0; i < job->n_sizes; i++)
        if (job->sizes[i].gpus == gpus)
            return job->sizes[i].speed;
    return 0.0;
}

double job_speed(const struct ty_pool_job *job, uint32_t gpus)
{
    if (gpus == job->gpus)
        return 1.0;
    if (job->sizes)
        return size_speed(job, gpus) / size_speed(job, job->gpus);
    const double serial = isnan(job->serial) ? 0.0 : job->serial;
    const double one = gpus / (1.0 + serial * (gpus - 1.0));
    const double nominal = job->gpus / (1.0 + serial * (job->gpus - 1.0));
    return one / nominal;
}

/* Books the change of a job's GPUs: sign +1 taken, -1 given back. */
static void book(struct pool_sim *sim, uint32_t id, int sign)
{
    const struct pool_job *job = &sim->jobs[id];
    const struct pool_shape *shape = shape_of(sim, id);
    for (uint32_t i = job->pieces; i != POOL_NONE; i = sim->pieces[i].next) {
        const uint32_t node = sim->pieces[i].node;
        if (sim->room.gpus[node] == (int32_t)sim->nodes[node].gpus)
            sim->whole_gpus -= sim->nodes[node].gpus;
    }
    (sign > 0 ? room_take : room_give)(sim, &sim->room, shape, job->pieces);
    for (uint32_t i = job->pieces; i != POOL_NONE; i = sim->pieces[i].next) {
        const uint32_t node = sim->pieces[i].node;
        if (sim->room.gpus[node] == (int32_t)sim->nodes[node].gpus)
            sim->whole_gpus += sim->nodes[node].gpus;
    }
    const double workers = sign * (double)(job->gpus / shape->worker);
    struct pool_use *use = &sim->use[job->job->queue];
    use->gpus += sign * held_gpus(sim, id);
    use->cpus += workers * shape->cpus;
    use->mem_bytes += workers * shape->mem_bytes;
    sim->held_gpus += sign * held_gpus(sim, id);
}

const char *ty_pool_event_name(int kind)
{
    static const char *const names[] = {
#define X(id, name) name,
        TY_POOL_EVENT_LIST(X)
#undef X
    };
    return kind >= 0 && kind < TY_N_POOL_EVENTS ? names[kind] : NULL;
}

void pool_tell(const struct pool_sim *sim, int kind, uint64_t subject, uint32_t gpus)
{
    if (!sim->config->event)
        return;
    const struct ty_pool_event event = {.time_s = sim->now_s,
                                        .kind = kind,
                                        .subject = subject,
                                        .gpus = gpus,
                                        .held_gpus = sim->held_gpus,
                                        .n_running = sim->n_running,
                                        .n_waiting = sim->n_active - sim->n_running};
    sim->config->event(sim->config->user, &event);
}

/* When the restart of a run that begins now is over. The storage reads checkpoints one after the
 * other. */
static double restarted_s(struct pool_sim *sim, const struct pool_job *job)
{
    if (!job->began)
        return sim->now_s;
    const double alone_s = sim->now_s + job->restart_s;
    const double storage_s = job->job->checkpoint_bytes / sim->config->storage_bytes_per_s;
    if (!(storage_s > 0.0))
        return alone_s;
    const double read_s = job->job->checkpoint_bytes / sim->config->read_bytes_per_s;
    const double idle_s = job->restart_s - (read_s > 0.0 ? read_s : 0.0);
    sim->storage_free_s = fmax(sim->storage_free_s, sim->now_s) + storage_s;
    return fmax(alone_s, sim->storage_free_s + idle_s);
}

void job_start(struct pool_sim *sim, uint32_t id, uint32_t pieces)
{
    struct pool_job *job = &sim->jobs[id];
    order_remove(sim, id);
    job->pieces = pieces;
    job->gpus = 0;
    for (uint32_t i = pieces; i != POOL_NONE; i = sim->pieces[i].next)
        job->gpus += sim->pieces[i].gpus;
    job->phase = POOL_RUNNING;
    book(sim, id, 1);
    job->run_start_s = sim->now_s;
    job->work_start_s = restarted_s(sim, job);
    job->rate = job_speed(job->job, job->gpus);
    job->end_s = job->work_start_s + job->remaining_s / job->rate;
    if (!job->began)
        job->first_start_s = sim->now_s;
    job->began = true;
    sim->running[sim->n_running++] = id;
    sim->out_of_memory |= !queue_set(sim->events, id, job->end_s, POOL_COMPLETION);
    if (sim->policy->started)
        sim->policy->started(sim, id);
    pool_tell(sim, TY_POOL_EVENT_START, job->origin, job->gpus);
}

bool job_try(struct pool_sim *sim, uint32_t id)
{
    const struct pool_shape *shape = shape_of(sim, id);
    const uint32_t pieces = place_find(sim, &sim->room, shape, shape->gpus);
    if (pieces == POOL_NONE)
        return false;
    job_start(sim, id, pieces);
    return true;
}

/* Work of the present run that a stop without a fresh checkpoint throws away, seconds. */
static double thrown_away_s(const struct pool_sim *sim, uint32_t id)
{
    const struct pool_job *job = &sim->jobs[id];
    const double every_s = sim->config->checkpoint_every_s, progress = progress_s(sim, id);
    if (isnan(every_s))
        return progress;
    const double done_s = job->job->duration_s - job->remaining_s + progress;
    return fmin(progress, done_s - floor(done_s / every_s) * every_s);
}

static void forget_running(struct pool_sim *sim, uint32_t id)
{
    uint32_t at = 0;
    while (sim->running[at] != id)
        at++;
    for (sim->n_running--; at < sim->n_running; at++)
        sim->running[at] = sim->running[at + 1];
}

void job_stop(struct pool_sim *sim, uint32_t id, enum pool_stop why)
{
    static const int told[] = {[POOL_COMPLETED] = TY_POOL_EVENT_END,
                               [POOL_PREEMPTED] = TY_POOL_EVENT_PREEMPT,
                               [POOL_FAILED] = TY_POOL_EVENT_FAIL,
                               [POOL_RESIZED] = TY_POOL_EVENT_RESIZE};
    struct pool_job *job = &sim->jobs[id];
    const uint32_t size = job->gpus;
    const double gpus = held_gpus(sim, id);
    const bool loses = why == POOL_FAILED || (why == POOL_PREEMPTED && sim->config->preempt_loses);
    const double lost_s = loses ? thrown_away_s(sim, id) : 0.0;
    const double restart_s = fmin(sim->now_s, job->work_start_s) - job->run_start_s;
    const double lost_gpu_s = (restart_s + lost_s / job->rate) * gpus;
    job->lost_gpu_s += lost_gpu_s;
    sim->lost_gpu_s += lost_gpu_s;
    job->attained_gpu_s = job_attained_gpu_s(sim, id);
    job->remaining_s = why == POOL_COMPLETED ? 0.0 : job_remaining_s(sim, id) + lost_s;
    book(sim, id, -1);
    place_free(sim, job->pieces);
    job->pieces = POOL_NONE;
    job->gpus = 0;
    forget_running(sim, id);
    queue_remove(sim->events, id);
    queue_remove(sim->events, sim->n_jobs + id);
    job->preemptions += why == POOL_PREEMPTED;
    job->failures += why == POOL_FAILED;
    job->resizes += why == POOL_RESIZED;
    job->phase = why == POOL_COMPLETED ? POOL_DONE : POOL_WAITING;
    if (why == POOL_COMPLETED) {
        job->end_s = sim->now_s;
        job->crowd_s = sim->active_s - job->crowd_s;
        sim->n_active--;
        sim->n_left--;
    } else {
        if (sim->policy->stopped)
            sim->policy->stopped(sim, id);
        order_insert(sim, id);
    }
    pool_tell(sim, told[why], job->origin, size);
}

/* SPDX-License-Identifier: MIT
 *
 * The critical path of a simulated step: from the task that ends last, always to the task it waited
 * for last. A task starts in the instant in which that one ends, so the path tiles the step.
 */
#include "models/step_internal.h"

double step_task_s(const struct step *step, uint32_t task)
{
    const struct engine_task *what = engine_task_of(step->engine, task);
    return what->latency_s + (what->work > 0.0 ? what->work / what->cap_work_per_s : 0.0);
}

uint32_t step_n_tasks(const struct step *step)
{
    return engine_n_tasks(step->engine);
}

double step_end_s(const struct step *step)
{
    return engine_makespan_s(step->engine);
}

uint32_t step_path(const struct step *step, uint32_t *tasks)
{
    uint32_t n = 0;
    for (uint32_t task = engine_last(step->engine); task != ENGINE_NONE;
         task = engine_binding(step->engine, task)) {
        if (tasks)
            tasks[n] = task;
        n++;
    }
    for (uint32_t i = 0; tasks && i < n / 2; i++) {
        const uint32_t task = tasks[i];
        tasks[i] = tasks[n - 1 - i];
        tasks[n - 1 - i] = task;
    }
    return n;
}

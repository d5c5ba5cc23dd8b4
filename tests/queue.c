/* SPDX-License-Identifier: MIT
 * The event queue against a plain list, searched in full at every step. */
#include "sim/queue.h"
#include "sim/random.h"
#include "tests/tap.h"

enum { N_IDS = 200 };

struct model {
    bool present[N_IDS];
    double time_s[N_IDS];
    uint32_t priority[N_IDS];
    uint64_t sequence[N_IDS];
};

static uint32_t model_first(const struct model *model)
{
    uint32_t best = N_IDS;
    for (uint32_t i = 0; i < N_IDS; i++) {
        if (!model->present[i])
            continue;
        bool better = best == N_IDS || model->time_s[i] < model->time_s[best];
        if (best != N_IDS && model->time_s[i] == model->time_s[best])
            better = model->priority[i] < model->priority[best] ||
                     (model->priority[i] == model->priority[best] &&
                      model->sequence[i] < model->sequence[best]);
        if (better)
            best = i;
    }
    return best;
}

static struct queue *new_queue(void)
{
    struct queue *queue;
    if (queue_create(NULL, &queue) != TY_OK)
        abort();
    return queue;
}

/* Few distinct times and priorities, so that every tie rule is used. */
static void test_against_model(void)
{
    static struct model model;
    struct queue *queue = new_queue();
    struct random_stream random;
    bool good = true;
    random_init(&random, 11, 0);
    for (uint64_t step = 0; step < 200000 && good; step++) {
        uint32_t id = (uint32_t)random_below(&random, N_IDS), first = model_first(&model);
        uint64_t action = random_below(&random, 5);
        if (action < 3) {
            model.present[id] = true;
            model.time_s[id] = (double)random_below(&random, 8);
            model.priority[id] = (uint32_t)random_below(&random, 3);
            model.sequence[id] = step;
            good = queue_set(queue, id, model.time_s[id], model.priority[id]);
        } else if (action == 3) {
            model.present[id] = false;
            queue_remove(queue, id);
        } else if (first != N_IDS) {
            double time_s = -1, next_s = queue_time_s(queue);
            good = queue_pop(queue, &time_s) == first && time_s == model.time_s[first] &&
                   next_s == time_s;
            model.present[first] = false;
        }
        good = good && queue_empty(queue) == (model_first(&model) == N_IDS);
    }
    ok(good, "200,000 random operations as a plain list does them");
    queue_destroy(queue);
}

static void test_order(void)
{
    struct queue *queue = new_queue();
    double time_s;
    queue_set(queue, 3, 1, 0);
    queue_set(queue, 1, 1, 0);
    queue_set(queue, 2, 1, 0);
    queue_set(queue, 0, 0.5, 9);
    queue_set(queue, 3, 1, 0); /* to the back of its equals */
    bool good = queue_pop(queue, &time_s) == 0 && queue_pop(queue, &time_s) == 1 &&
                queue_pop(queue, &time_s) == 2 && queue_pop(queue, &time_s) == 3;
    ok(good && queue_empty(queue), "time, then order of insertion");
    queue_set(queue, 7, 1, 0);
    queue_clear(queue);
    ok(queue_empty(queue), "clear");
    queue_remove(queue, 7);
    queue_remove(queue, 1000000);
    queue_set(queue, 7, 2, 0);
    ok(queue_pop(queue, &time_s) == 7 && time_s == 2, "an id may come back after clear");
    queue_destroy(queue);
    queue_destroy(NULL);
}

int main(void)
{
    test_order();
    test_against_model();
    return tap_done();
}

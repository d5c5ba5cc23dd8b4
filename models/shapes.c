/* SPDX-License-Identifier: MIT
 * The kernels of a plan as shapes to measure. */
#include "models/layer.h"
#include "models/measured.h"
#include "sim/arena.h"
#include "sim/error.h"

#include <string.h>

struct shapes {
    struct setting setting;
    struct ty_plan plan;
    struct item_list items;
    void (*shape)(void *user, const struct ty_shape *shape);
    void *user;
};

static struct ty_shape shape_of(const struct kernel *kernel)
{
    const int direction = !kernel->backward ? TY_FORWARD : kernel->accumulate ? TY_WGRAD : TY_DGRAD;
    struct ty_shape shape = {.work = (int)kernel_work(kernel), .bytes = kernel->bytes};
    shape.gemm = (struct ty_measured_gemm){.precision = kernel->precision,
                                           .direction = direction,
                                           .grouped = kernel->op == KERNEL_GROUPED_GEMM,
                                           .m = kernel->m,
                                           .n = kernel->n,
                                           .k = kernel->k,
                                           .groups = kernel->groups,
                                           .inner = kernel->inner};
    if (kernel->op == KERNEL_ATTENTION)
        shape.attention = (struct ty_measured_attention){
            .precision = kernel->precision,
            .direction = kernel->backward ? TY_DGRAD : TY_FORWARD,
            .batch_heads = kernel->batch_heads,
            .queries = kernel->queries,
            .seq = kernel->seq,
            .head_dim = kernel->head_dim,
            .pairs = kernel->flop_hw / (4.0 * kernel->head_dim * (kernel->backward ? 2.5 : 1.0))};
    return shape;
}

static void walk(struct shapes *shapes, enum layer_what what, uint32_t kind)
{
    for (enum layer_phase phase = PHASE_FORWARD; phase <= PHASE_BACKWARD; phase++) {
        layer_items(&shapes->setting, &shapes->plan, what, kind, phase, &shapes->items);
        for (uint32_t i = 0; i < shapes->items.n; i++) {
            const struct ty_shape shape = shape_of(&shapes->items.item[i].kernel);
            if (!shapes->items.item[i].is_collective)
                shapes->shape(shapes->user, &shape);
        }
    }
}

ty_status ty_plan_shapes(const struct ty_model *model, const struct ty_cluster *cluster,
                         const struct ty_profile *profile, const struct ty_plan *plan,
                         void (*shape)(void *user, const struct ty_shape *), void *user,
                         struct ty_error *error)
{
    const struct ty_allocator source = allocator_or_default(NULL);
    struct shapes *shapes = source.alloc(source.user, sizeof *shapes);
    if (!shapes)
        return error_set(error, TY_ERR_NOMEM, "shapes", "out of memory");
    shapes->shape = shape;
    shapes->user = user;
    const ty_status status = setting_init(model, cluster, profile, &shapes->setting, NULL, error);
    if (status == TY_OK) {
        plan_resolve(&shapes->setting, plan, &shapes->plan, NULL);
        for (uint32_t kind = 0; kind < model->n_kinds; kind++)
            walk(shapes, WHAT_LAYER, kind);
        walk(shapes, WHAT_HEAD, 0);
    }
    source.release(source.user, shapes, sizeof *shapes);
    return status;
}

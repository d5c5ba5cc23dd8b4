/* SPDX-License-Identifier: MIT
 *
 * The scratch of one worker and the rungs that climb on it: memory, then simulation. Predictor,
 * search and effects all go through here, so a plan is judged in one way only.
 */
#include "models/feed.h"
#include "models/predict.h"
#include "sim/error.h"

ty_status evaluator_init(struct evaluator *evaluator, const struct ty_allocator *allocator)
{
    *evaluator = (struct evaluator){.allocator = allocator_or_default(allocator)};
    return step_create(&evaluator->allocator, &evaluator->step);
}

void evaluator_destroy(struct evaluator *evaluator)
{
    step_destroy(evaluator->step);
    full_destroy(evaluator->full);
    if (evaluator->less)
        evaluator->allocator.release(evaluator->allocator.user, evaluator->less,
                                     sizeof *evaluator->less);
    array_free(&evaluator->allocator, evaluator->slots, evaluator->n_slots, sizeof(struct slot));
    array_free(&evaluator->allocator, evaluator->stages, evaluator->n_stages,
               sizeof(struct ty_stage_memory));
    *evaluator = (struct evaluator){.allocator = evaluator->allocator};
}

static bool reserve(struct evaluator *evaluator, const struct ty_plan *plan)
{
    const size_t n_slots = (size_t)plan->pp * plan->vpp;
    return array_grow(&evaluator->allocator, (void **)&evaluator->slots, &evaluator->n_slots,
                      n_slots, sizeof(struct slot)) &&
           array_grow(&evaluator->allocator, (void **)&evaluator->stages, &evaluator->n_stages,
                      plan->pp, sizeof(struct ty_stage_memory));
}

ty_status evaluator_memory(struct evaluator *evaluator, const struct setting *setting,
                           const struct ty_plan *plan, struct memory_verdict *verdict)
{
    if (!reserve(evaluator, plan))
        return TY_ERR_NOMEM;
    if (!layout_slots(setting, plan, evaluator->slots))
        return TY_ERR_INTERNAL; /* legality has promised a layout */
    memory_stages(setting, plan, evaluator->slots, evaluator->stages);
    memory_judge(setting, plan, evaluator->slots, evaluator->stages, verdict);
    return TY_OK;
}

/* Every rank, where the folded answer is known. */
static ty_status unfold(struct evaluator *evaluator, const struct setting *setting,
                        const struct ty_plan *plan, const struct ty_options *options,
                        struct step_result *out, struct ty_error *error)
{
    static const struct ty_scenario nothing = {0};
    const struct step_result folded = *out;
    const struct full_request request = {.setting = setting,
                                         .plan = plan,
                                         .slots = evaluator->slots,
                                         .options = options,
                                         .scenario =
                                             options->scenario ? options->scenario : &nothing,
                                         .folded = &folded};
    const ty_status status =
        evaluator->full ? TY_OK : full_create(&evaluator->allocator, &evaluator->full);
    if (status != TY_OK)
        return status;
    const ty_status simulated = full_simulate(evaluator->full, &request, out, error);
    evaluator->unfolded = full_traced(evaluator->full);
    return simulated;
}

/* The step once more, on NICs without what storage takes of them. */
static ty_status on_shared_nics(struct evaluator *evaluator, const struct setting *setting,
                                const struct ty_plan *plan, const struct ty_options *options,
                                double taken_bytes_per_s, struct step_result *out,
                                struct ty_error *error)
{
    const struct ty_allocator *source = &evaluator->allocator;
    const double nic_bytes_per_s = setting->cluster.nic_bytes_per_s;
    if (!evaluator->less)
        evaluator->less = source->alloc(source->user, sizeof *evaluator->less);
    if (!evaluator->less)
        return TY_ERR_NOMEM;
    if (taken_bytes_per_s > 0.9 * nic_bytes_per_s)
        return error_set(error, TY_ERR_RANGE, "storage.over_nic",
                         "storage takes %.3g of the %.3g GB/s of a NIC; training needs a tenth",
                         taken_bytes_per_s * 1e-9, nic_bytes_per_s * 1e-9);
    *evaluator->less = *setting;
    evaluator->less->cluster.nic_bytes_per_s -= taken_bytes_per_s;
    return step_simulate(evaluator->step, evaluator->less, plan, evaluator->slots, options, out,
                         error);
}

/* Input and checkpoint of a simulated step. The full rung's links are its scenario's. */
static ty_status feed(struct evaluator *evaluator, const struct setting *setting,
                      const struct ty_plan *plan, const struct ty_options *options,
                      struct step_result *result, struct ty_error *error)
{
    const struct ty_storage *storage = options->storage;
    struct step_result fed = *result;
    double taken_bytes_per_s = 0.0;
    ty_status status =
        feed_step(storage, setting, plan, &evaluator->allocator, &fed, &evaluator->storage, error);
    if (status == TY_OK)
        status = feed_nic_bytes_per_s(storage, setting, plan, &evaluator->allocator,
                                      &evaluator->storage, &taken_bytes_per_s, error);
    if (status == TY_OK && taken_bytes_per_s > 0.0 && options->rung != TY_RUNG_FULL) {
        status = on_shared_nics(evaluator, setting, plan, options, taken_bytes_per_s, &fed, error);
        if (status == TY_OK)
            status = feed_step(storage, setting, plan, &evaluator->allocator, &fed,
                               &evaluator->storage, error);
    }
    if (status == TY_OK)
        *result = fed;
    return status;
}

ty_status evaluator_simulate(struct evaluator *evaluator, const struct setting *setting,
                             const struct ty_plan *plan, const struct ty_options *options,
                             struct step_result *out, struct ty_error *error)
{
    struct step_result result;
    evaluator->unfolded = false;
    ty_status status =
        step_simulate(evaluator->step, setting, plan, evaluator->slots, options, &result, error);
    if (status == TY_OK && options && options->rung == TY_RUNG_FULL)
        status = unfold(evaluator, setting, plan, options, &result, error);
    if (status == TY_OK && options && options->storage)
        status = feed(evaluator, setting, plan, options, &result, error);
    if (status == TY_OK)
        *out = result;
    return status;
}

double plan_tokens_per_step(const struct ty_plan *plan)
{
    return (double)plan->gbs * plan->seq;
}

/* F_token * tokens / (T G), handbook 10 */
double plan_model_flop_per_s_per_gpu(const struct setting *setting, const struct ty_plan *plan,
                                     enum ty_flops convention, double step_time_s)
{
    const double flop = ty_model_flop_per_token(&setting->model, plan->seq, convention) *
                        plan_tokens_per_step(plan);
    return flop / (step_time_s * plan->n_gpus);
}

double plan_mfu(const struct setting *setting, const struct ty_plan *plan,
                double model_flop_per_s_per_gpu)
{
    enum ty_precision precision = (enum ty_precision)plan->precision;
    if (precision != TY_TF32_PRECISION && precision != TY_FP32_PRECISION)
        precision = gpu_peak_flop_per_s(&setting->cluster.gpu, TY_BF16_PRECISION) > 0.0
                        ? TY_BF16_PRECISION
                        : TY_FP16_PRECISION;
    return model_flop_per_s_per_gpu / gpu_peak_flop_per_s(&setting->cluster.gpu, precision);
}

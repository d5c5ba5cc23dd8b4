/* SPDX-License-Identifier: MIT
 *
 * Appending to a pass: kernels, element-wise traffic, collectives whole or split into an exposed
 * and an overlapped share, and the linears of tensor parallelism with their gathers and reduces.
 *
 * Overlap: userbuffers, async TP and the like hide a measured share of a collective behind the
 * GEMM it belongs to. The item is split: `exposed` of it blocks, the rest is appended before the
 * GEMM, runs beside it and is joined after it, so a GEMM too short to hide it shows. Source of the
 * share: ACCURACY 1.5 (tpov). */
#include "models/layer_parts.h"
#include "models/memory_layer.h"

#include <assert.h>
#include <math.h>

/* Element-wise traffic of backward over forward; source: ACCURACY 1.3. */
static const double BACKWARD_BYTES = 1.7;
/* A norm reads and writes; source: handbook 1.5. */
static const double NORM_PASSES = 2.0;
/* Bytes moved per element quantised (read 2, write both orientations); nvfp4 needs amax and
 * transform passes besides. Source: ACCURACY 1.4. */
static const double CAST_BYTES = 4.0, CAST_NVFP4 = 1.5;
/* Traffic of LoRA adapters in backward over forward; source: ACCURACY-2 2.8. */
static const double LORA_BACKWARD = 1.5;
/* Passes of the adapters over the output of their matrix: written, then added to it. */
static const double LORA_OUT_PASSES = 4.0;

enum ty_precision wide_precision(enum ty_precision precision)
{
    return precision_bytes(precision) < 2.0 ? TY_BF16_PRECISION : precision;
}

static struct item *append(struct build *build)
{
    struct item_list *list = build->list;
    assert(list->n < LAYER_MAX_ITEMS);
    list->n_launches++;
    list->item[list->n] = (struct item){0};
    return &list->item[list->n++];
}

void build_kernel(struct build *build, const struct kernel *kernel)
{
    struct item *item = append(build);
    item->kernel = *kernel;
    item->part = kernel->part;
    if (build->recompute)
        item->kernel.flop_model = 0.0;
}

/* Passes over the fused minimum; a compiler fuses what the stack leaves apart. */
static double elementwise_ratio(const struct build *build)
{
    const struct ty_profile *profile = &build->setting->profile;
    return build->plan->compile == TY_ON ? fmin(profile->elementwise_ratio, profile->compiled_ratio)
                                         : profile->elementwise_ratio;
}

void build_bytes(struct build *build, const char *name, double bytes)
{
    struct kernel kernel;
    if (bytes <= 0.0)
        return;
    kernel_bytes(&kernel, name, bytes * elementwise_ratio(build));
    build_kernel(build, &kernel);
}

void build_bytes_backward(struct build *build, const char *name, double forward_bytes)
{
    if (build->dgrad)
        build_bytes(build, name, BACKWARD_BYTES * forward_bytes);
}

static double norm_bytes(const struct build *build, double n_norms)
{
    return n_norms * NORM_PASSES * build->w_bytes * build->norm_tok * build->hidden;
}

void build_norms_forward(struct build *build, double n_norms)
{
    build_bytes(build, "norm", norm_bytes(build, n_norms));
}

void build_norms_backward(struct build *build, double n_norms)
{
    build_bytes_backward(build, "norm", norm_bytes(build, n_norms));
}

void build_casts(struct build *build, double elements)
{
    struct kernel kernel;
    const enum ty_precision precision = build->plan->precision;
    if (precision_bytes(precision) >= 2.0)
        return;
    const struct ty_profile *profile = &build->setting->profile;
    const double passes = precision == TY_NVFP4_PRECISION ? CAST_NVFP4 : 1.0;
    const double fused = build->plan->compile == TY_ON ? profile->compiled_ratio : 1.0;
    kernel_bytes(&kernel, "cast", CAST_BYTES * passes * elements * profile->cast_ratio * fused);
    build_kernel(build, &kernel);
}

double build_cast_weights(const struct build *build, double elements)
{
    const struct setting *setting = build->setting;
    if (memory_fp8_lora(setting, build->plan, stack_habits(setting->profile.stack)))
        return 0.0;
    return elements / fmax(build->plan->n_micro, 1.0);
}

static bool empty(const struct collective *collective)
{
    return collective->shape.size <= 1 || collective->payload_bytes <= 0.0;
}

void build_collective(struct build *build, enum ty_part part, const struct collective *collective)
{
    if (empty(collective))
        return;
    struct item *item = append(build);
    item->is_collective = true;
    item->collective = *collective;
    item->part = part;
}

uint32_t build_overlapped(struct build *build, enum ty_part part,
                          const struct collective *collective, double exposed)
{
    struct collective shared = *collective;
    const double whole = collective->share > 0.0 ? collective->share : 1.0;
    if (empty(collective))
        return 0;
    if (exposed >= 1.0) {
        build_collective(build, part, collective);
        return 0;
    }
    if (exposed > 0.0) {
        shared.share = whole * exposed;
        build_collective(build, part, &shared);
        build->list->n_launches--; /* the other share is the same launch */
    }
    shared.share = whole * (1.0 - exposed);
    build_collective(build, part, &shared);
    build->list->item[build->list->n - 1].overlaps = true;
    return build->list->n; /* index + 1 */
}

void build_join(struct build *build, uint32_t handle)
{
    if (handle > 0)
        build->list->item[handle - 1].join = build->list->n;
}

static double grad_bytes(const struct build *build)
{
    return build->plan->grad_dtype == TY_FP32_PRECISION ? 4.0 : 2.0;
}

/* ---- sharded parameters
 *
 * Besides its collectives FSDP moves every parameter of a unit, not only the rank's shard, through
 * memory for each micro-batch. Bytes per parameter, w of the compute type, g of the reduction:
 *
 *   FSDP2   2 w after each gather: copied out of its buffer
 *           w + g: gradients are copied into the buffer of the reduction and cast
 *   FSDP1   2 w: gradients of the views are joined; w + g if g > w: cast; 2 g: divided by ranks
 *
 * source: pytorch 2.4 torch/distributed/_composable/fsdp/_fsdp_collectives.py; pytorch 2.1
 * torch/distributed/fsdp/_flat_param.py (_get_unflat_views), _runtime_utils.py (_reduce_grad) */

uint32_t layer_shard_copies(const struct setting *setting, const struct ty_plan *plan)
{
    const struct stack_habits *habits = stack_habits(setting->profile.stack);
    const bool by_unit = plan->sharding == TY_SHARDING_ZERO3 || plan->sharding == TY_SHARDING_HSDP;
    const bool gathered = by_unit && plan->reshard_after_forward == TY_ON;
    const bool reduced = gathered || plan->sharding == TY_SHARDING_ZERO2;
    if ((uint64_t)plan->dp * plan->cp <= 1)
        return 0;
    return (gathered && habits->copied_shards ? SHARDS_GATHERED : 0u) |
           (reduced && (habits->copied_shards || habits->flat_shards) ? SHARDS_REDUCED : 0u);
}

/* Transformer Engine's FP8 parameters are updated and gathered in 8 bits (fp8_param_gather of
 * Megatron-Core, fp8_params of MLPerf); MXFP8, two ways of scaling a matrix, and FP4 are made after
 * a gather in 16 bits, and adapters stay in 16. */
double layer_gathered_bytes(const struct setting *setting, const struct ty_plan *plan)
{
    const struct stack_habits *habits = stack_habits(setting->profile.stack);
    const enum ty_precision precision = (enum ty_precision)plan->precision;
    const bool of_engine =
        habits->gathers_cast && precision == TY_FP8_PRECISION && setting->model.lora_rank == 0;
    const bool narrow = habits->fp8_gather && precision_bytes(precision) < 2.0;
    return of_engine || narrow ? 1.0 : 2.0;
}

static void shard_bytes(struct build *build, const char *name, double bytes)
{
    struct kernel kernel;
    kernel_bytes(&kernel, name, bytes);
    build_kernel(build, &kernel);
    build->list->n_launches--; /* one launch for all matrices of a unit */
}

void build_gathered(struct build *build, double n_params)
{
    const uint32_t copies = layer_shard_copies(build->setting, build->plan);
    if ((copies & SHARDS_GATHERED) && n_params > 0.0 && !build->recompute)
        shard_bytes(build, "copy_out",
                    2.0 * layer_gathered_bytes(build->setting, build->plan) * n_params);
}

void build_reduced(struct build *build, double n_params)
{
    const uint32_t copies = layer_shard_copies(build->setting, build->plan);
    const double w = build->w_bytes, g = grad_bytes(build);
    const double copied = w + g, flat = 2.0 * w + (g > w ? w + g : 0.0) + 2.0 * g;
    if (!(copies & SHARDS_REDUCED) || n_params <= 0.0 || !build->wgrad ||
        build->setting->model.lora_rank > 0)
        return;
    shard_bytes(build, "shard_gradients",
                (stack_habits(build->setting->profile.stack)->flat_shards ? flat : copied) *
                    n_params);
}

static double n_params(const struct linear *linear)
{
    return linear->n * linear->k * fmax(linear->groups, 1.0);
}

/* ---- linears */

static void gemm(struct build *build, const struct linear *linear, struct kernel *kernel)
{
    if (linear->groups > 0.0) {
        kernel_repeat(kernel, KERNEL_GROUPED_GEMM, linear->groups);
        kernel->inner = linear->inner;
    }
    kernel->flop_model /= linear->excess > 0.0 ? linear->excess : 1.0;
    if (linear->uncounted)
        kernel->flop_model = 0.0;
    if (kernel->accumulate)
        kernel_accumulate(kernel, grad_bytes(build));
    build_kernel(build, kernel);
}

/* The low-rank detour beside a frozen matrix: each adapter reads the input; together they write an
 * output, and the sum reads both outputs and writes one. Bandwidth alone counts, the rank is small.
 */
static void adapters(struct build *build, const struct linear *linear, double factor)
{
    const double rows = linear->m * fmax(linear->groups, 1.0);
    if (build->setting->model.lora_rank > 0 && linear->n_adapters > 0.0)
        build_bytes(build, "lora",
                    factor * build->setting->profile.lora_ratio * build->w_bytes * rows *
                        (linear->n_adapters * linear->k + LORA_OUT_PASSES * linear->n));
}

void build_linear_forward(struct build *build, const struct linear *linear)
{
    struct kernel kernel;
    build_gathered(build, n_params(linear));
    kernel_gemm(&kernel, linear->name, linear->precision, build->linear_share * linear->m,
                linear->n, linear->k);
    gemm(build, linear, &kernel);
    adapters(build, linear, 1.0);
}

void build_linear_dgrad(struct build *build, const struct linear *linear)
{
    struct kernel kernel;
    if (!build->dgrad)
        return;
    build_gathered(build, n_params(linear));
    kernel_gemm(&kernel, linear->name, linear->precision, linear->m, linear->k, linear->n);
    kernel.backward = true;
    gemm(build, linear, &kernel);
    adapters(build, linear, LORA_BACKWARD);
}

bool layer_adds_gradients(const struct setting *setting, const struct ty_plan *plan)
{
    return stack_habits(setting->profile.stack)->adds_gradients && plan->n_micro > 1 &&
           plan->reshard_after_forward != TY_ON;
}

/* The sum is read and written, the new gradient read. */
static void add_gradients(struct build *build, const struct kernel *wgrad)
{
    struct kernel kernel;
    const double elements = wgrad->m * wgrad->n * fmax(wgrad->groups, 1.0);
    kernel_bytes(&kernel, "add_gradients", elements * (2.0 * grad_bytes(build) + build->w_bytes));
    build_kernel(build, &kernel);
}

void build_linear_wgrad(struct build *build, const struct linear *linear)
{
    struct kernel kernel;
    if (!build->wgrad || build->setting->model.lora_rank > 0) /* LoRA: base weights are frozen */
        return;
    kernel_gemm(&kernel, linear->name, linear->precision, linear->k, linear->n, linear->m);
    kernel.backward = kernel.accumulate = true;
    gemm(build, linear, &kernel);
    if (layer_adds_gradients(build->setting, build->plan))
        add_gradients(build, &kernel);
    build_reduced(build, n_params(linear));
}

void build_linear_backward(struct build *build, const struct linear *linear)
{
    build_linear_dgrad(build, linear);
    build_linear_wgrad(build, linear);
}

/* Share of a TP collective that is not hidden, by the kind of its overlap. */
static double tp_exposed(const struct build *build, enum ty_tp_overlap kind)
{
    const uint32_t chosen = build->plan->tp_overlap;
    return chosen == 0 || (chosen & kind) ? build->tp_exposed : 1.0;
}

/* Under SP a layer waits for t parts of S/t, its own too, not for the t - 1 that arrive: with
 * t - 1, runs on 2 ranks come out 4 % too fast and runs on 8 ranks 2 % too slow. */
struct collective build_tp_collective(const struct build *build, enum collective_op op)
{
    return (struct collective){.op = op,
                               .payload_bytes = build->tok * build->hidden * build->w_bytes,
                               .shape = build->tp_shape,
                               .own_part = build->sp,
                               .share = build->setting->profile.tp_time_ratio};
}

/* All-gather of a GEMM's input over the TP ranks, which split it under SP. */
static struct collective gather_of(const struct build *build, const struct linear *linear)
{
    struct collective out = build_tp_collective(build, COLLECTIVE_ALL_GATHER);
    if (stack_habits(build->setting->profile.stack)->gathers_cast)
        out.payload_bytes *= fmin(1.0, precision_bytes(linear->precision) / build->w_bytes);
    return out;
}

void build_column_forward(struct build *build, const struct linear *linear)
{
    uint32_t gather = 0;
    const struct collective input = gather_of(build, linear);
    if (build->sp)
        gather = build_overlapped(build, TY_PART_TP, &input, tp_exposed(build, TY_TP_RING));
    build_linear_forward(build, linear);
    build_join(build, gather);
}

void build_row_forward(struct build *build, const struct linear *linear)
{
    const struct collective all = build_tp_collective(build, COLLECTIVE_ALL_REDUCE);
    const struct collective output = build_tp_collective(build, COLLECTIVE_REDUCE_SCATTER);
    if (!build->sp) {
        build_linear_forward(build, linear);
        build_collective(build, TY_PART_TP, &all);
        return;
    }
    const uint32_t reduce =
        build_overlapped(build, TY_PART_TP, &output, tp_exposed(build, TY_TP_PIPELINED));
    build_linear_forward(build, linear);
    build_join(build, reduce);
}

void build_row_backward(struct build *build, const struct linear *linear)
{
    uint32_t gather = 0;
    const struct collective dy = gather_of(build, linear);
    if (build->sp && build->dgrad)
        gather = build_overlapped(build, TY_PART_TP, &dy, tp_exposed(build, TY_TP_RING));
    build_linear_dgrad(build, linear);
    build_join(build, gather);
    build_linear_wgrad(build, linear);
}

/* dX of a column-parallel linear, reduced while wgrad runs when overlap is on. */
static uint32_t reduce_dx(struct build *build)
{
    const struct collective all = build_tp_collective(build, COLLECTIVE_ALL_REDUCE);
    const struct collective part = build_tp_collective(build, COLLECTIVE_REDUCE_SCATTER);
    if (!build->dgrad)
        return 0;
    if (build->sp)
        return build_overlapped(build, TY_PART_TP, &part,
                                build->wgrad ? tp_exposed(build, TY_TP_BULK) : 1.0);
    build_collective(build, TY_PART_TP, &all);
    return 0;
}

void build_column_backward(struct build *build, const struct linear *linear, bool hide_gather)
{
    uint32_t gather = 0;
    const struct collective x = gather_of(build, linear);
    const bool regather = build->sp && build->wgrad && build->setting->model.lora_rank == 0;
    if (regather && build->dgrad && hide_gather)
        gather = build_overlapped(build, TY_PART_TP, &x, 0.0);
    else if (regather)
        gather = build_overlapped(build, TY_PART_TP, &x,
                                  build->dgrad ? tp_exposed(build, TY_TP_BULK) : 1.0);
    build_linear_dgrad(build, linear);
    build_join(build, gather);
    const uint32_t reduce = reduce_dx(build);
    build_linear_wgrad(build, linear);
    build_join(build, reduce);
}

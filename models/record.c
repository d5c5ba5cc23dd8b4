/* SPDX-License-Identifier: MIT
 *
 * One layer pass on the engine: a compute stream and one stream per kind of communicator.
 *
 *   kernel       waits for every blocking item before it
 *   collective   waits for the kernels issued before it; it blocks what follows, or runs beside
 *                it up to its `join` (then both are slowed, handbook 5.8)
 *
 * The host issues far enough ahead, so it appears here as host_s only: whether it binds depends
 * on the passes before, which the step knows. Collectives run at their isolated time.
 */
#include "models/record.h"
#include "models/parts.h"

#include <math.h>
#include <string.h>

/* Host time of a backward and of a MoE layer over a dense forward; source: ACCURACY 1.6. */
static const double HOST_BACKWARD = 1.3, HOST_MOE = 1.6;
/* Kernels left to issue after torch.compile has fused the element-wise ones.
 * source: handbook 4.5, kernel counts; from memory, unverified. */
static const double HOST_COMPILED = 0.5;

enum { KEY_WORDS = 48, KEY_NUMBERS = 12 };

/* All that layer_items reads of a plan, without padding: compared and hashed as bytes. */
struct key {
    uint32_t word[KEY_WORDS];
    double number[KEY_NUMBERS];
};

struct entry {
    struct key key;
    struct record record;
};

struct record_cache {
    struct arena arena;   /* entries and table */
    struct entry **table; /* [capacity], open addressing, at most half full */
    size_t capacity, n_entries;
    struct setting setting; /* the one the entries belong to, where there is one */
    bool has_setting;
    struct item_list items; /* scratch */
};

/* What a record is asked for. */
struct request {
    const struct setting *setting;
    const struct ty_plan *plan;
    enum layer_what what;
    uint32_t kind;
    enum layer_phase phase;
};

/* ---- key ---------------------------------------------------------------------------------- */

static void make_key(const struct request *request, struct key *key)
{
    static const enum axis axes[] = {AXIS_TP, AXIS_CP, AXIS_EP, AXIS_ETP};
    const struct ty_plan *plan = request->plan;
    const bool low_precision = precision_bytes((enum ty_precision)plan->precision) < 2.0;
    const uint32_t words[] = {
        request->what,
        request->what == WHAT_LAYER ? request->kind : 0,
        request->phase,
        plan->tp,
        plan->cp,
        plan->ep,
        plan->etp,
        plan->mbs,
        plan->seq,
        low_precision ? plan->n_micro : 0, /* weights are cast once */
        layer_adds_gradients(request->setting, plan),
        layer_shard_copies(request->setting, plan),
        (uint32_t)plan->precision,
        (uint32_t)plan->recompute,
        plan->recompute_modules,
        (uint32_t)plan->grad_dtype,
        (uint32_t)plan->attention,
        (uint32_t)plan->sp,
        plan->overlap & (TY_OVERLAP_TP | TY_OVERLAP_CP | TY_OVERLAP_EP | TY_OVERLAP_SHARED),
        plan->tp_overlap,
        plan->comm_sms,
        (uint32_t)plan->dispatcher,
        (uint32_t)plan->cp_scheme,
        (uint32_t)plan->cuda_graph,
        (uint32_t)plan->compile,
        (uint32_t)plan->launch_blocking,
        (uint32_t)plan->packed};
    uint32_t n_words = sizeof words / sizeof *words, n_numbers = 0;
    memset(key, 0, sizeof *key);
    memcpy(key->word, words, sizeof words);
    key->number[n_numbers++] = plan->moe_imbalance;
    for (uint32_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        struct group_shape shape;
        grid_shape(request->setting, plan, axes[i], &shape);
        key->word[n_words++] = shape.size;
        key->word[n_words++] = shape.stride;
        key->word[n_words++] = shape.ranks_per_domain;
        key->word[n_words++] = shape.n_domains;
        key->word[n_words++] = shape.link;
        key->number[n_numbers++] = shape.nic_bytes_per_s;
        key->number[n_numbers++] = shape.spine_bytes_per_s;
    }
}

static uint64_t hash_key(const struct key *key)
{
    uint64_t hash = 0x9E3779B97F4A7C15u, part;
    for (size_t i = 0; i < sizeof *key; i += sizeof part) {
        memcpy(&part, (const char *)key + i, sizeof part);
        hash = (hash ^ part) * 0xD6E8FEB86659FD93u;
        hash ^= hash >> 32;
    }
    return hash;
}
_Static_assert(sizeof(struct key) % sizeof(uint64_t) == 0, "the hash reads whole words");

/* ---- one run on the engine ---------------------------------------------------------------- */

struct run {
    struct engine *engine;
    const struct request *request;
    const struct item_list *items; /* task id = index of the item */
    uint32_t compute, device;
    uint32_t comm[3];  /* streams of tp, cp, ep */
    uint32_t blocking; /* last item that everything after it waits for */
};

static ty_status open_run(struct run *run)
{
    engine_reset(run->engine);
    ty_status status = engine_add_device(run->engine, &run->device);
    if (status == TY_OK)
        status = engine_add_stream(run->engine, &run->compute);
    for (uint32_t i = 0; status == TY_OK && i < 3; i++)
        status = engine_add_stream(run->engine, &run->comm[i]);
    return status;
}

static struct engine_task kernel_task(const struct run *run, const struct kernel *kernel)
{
    return (struct engine_task){.stream = run->compute,
                                .class_ = ENGINE_COMPUTE,
                                .work = kernel_time_s(run->request->setting, kernel),
                                .cap_work_per_s = 1.0,
                                .route = ENGINE_NONE,
                                .device = {run->device, ENGINE_NONE}};
}

/* Rate that the kernels a collective runs beside lose: to the profile's share, or to the SMs it
 * takes, with the wave of tiles that may cost (handbook 4.2, 5.7):
 *
 *   1 - sum t(all SMs) / sum t(SMs left) */
static double slow_compute(const struct run *run, uint32_t i)
{
    const struct item *item = &run->items->item[i];
    const struct ty_profile *profile = &run->request->setting->profile;
    const uint32_t taken = run->request->plan->comm_sms;
    if (taken == 0 || !item->overlaps)
        return item->collective.shape.link > LINK_SCALEUP ? profile->slow_compute_nic
                                                          : profile->slow_compute_scaleup;
    double all_s = 0.0, left_s = 0.0;
    for (uint32_t j = i + 1; j < item->join; j++) {
        const struct item *kernel = &run->items->item[j];
        if (kernel->is_collective)
            continue;
        struct kernel fewer = kernel->kernel;
        fewer.sms_taken = taken;
        all_s += kernel_form_s(run->request->setting, &kernel->kernel);
        left_s += kernel_form_s(run->request->setting, &fewer);
    }
    return left_s > all_s ? 1.0 - all_s / left_s : 0.0;
}

static struct engine_task collective_task(const struct run *run, uint32_t i, struct record *record)
{
    const struct item *item = &run->items->item[i];
    const struct ty_profile *profile = &run->request->setting->profile;
    struct collective_flow flow;
    collective_as_flow(run->request->setting, &item->collective, &flow);
    for (uint32_t link = 0; link < N_LINKS; link++)
        record->link_bytes[link] += flow.work_bytes * flow.bytes_per_work[link];
    return (struct engine_task){.stream = run->comm[item->part - TY_PART_TP],
                                .class_ = ENGINE_COMM,
                                .latency_s = flow.latency_s,
                                .work = flow.work_bytes,
                                .cap_work_per_s = flow.work_bytes > 0.0 ? flow.cap_bytes_per_s : 1,
                                .route = ENGINE_NONE,
                                .device = {run->device, ENGINE_NONE},
                                .slow_compute = slow_compute(run, i),
                                .slow_self = profile->slow_comm};
}

static void note_origin(const struct setting *setting, const struct item *item,
                        struct origins *origins)
{
    double time_s;
    if (item->is_collective) {
        const enum ty_origin origin = collective_origin(setting, &item->collective, &time_s);
        origins->time_s[TY_WORK_COLLECTIVES][origin] += time_s;
    } else {
        time_s = kernel_time_s(setting, &item->kernel);
        origins->time_s[kernel_work(&item->kernel)][kernel_origin(setting, &item->kernel)] +=
            time_s;
    }
}

static ty_status add_item(struct run *run, uint32_t i, struct record *record)
{
    const struct item *item = &run->items->item[i];
    note_origin(run->request->setting, item, &record->origins);
    struct engine_task task =
        item->is_collective ? collective_task(run, i, record) : kernel_task(run, &item->kernel);
    uint32_t id;
    ty_status status = engine_add_task(run->engine, &task, &id);
    if (status == TY_OK && run->blocking != ENGINE_NONE)
        status = engine_add_edge(run->engine, run->blocking, id);
    for (uint32_t j = 0; status == TY_OK && j < i; j++)
        if (run->items->item[j].overlaps && run->items->item[j].join == i)
            status = engine_add_edge(run->engine, j, id);
    if (!item->is_collective || !item->overlaps)
        run->blocking = id;
    return status;
}

static enum ty_part item_part(const void *user, uint32_t task)
{
    const struct item *item = &((const struct item_list *)user)->item[task];
    return item->is_collective ? item->part : item->kernel.part;
}

/* The compute stream's timeline: kernels as stretched, and what it waited for between them. */
static void read_parts(const struct run *run, struct record *record)
{
    const struct parts_view view = {run->engine, run->items, item_part, NULL};
    struct parts parts = {{0}, {0}};
    double end_s = 0.0;
    uint32_t last = ENGINE_NONE; /* to end of all items */
    for (uint32_t i = 0; i < run->items->n; i++) {
        if (last == ENGINE_NONE || engine_end_s(run->engine, i) > engine_end_s(run->engine, last))
            last = i;
        if (run->items->item[i].is_collective)
            continue;
        const double start_s = engine_start_s(run->engine, i);
        parts_add_wait(&parts, &view, engine_binding(run->engine, i), end_s, start_s);
        end_s = engine_end_s(run->engine, i);
        parts_add(&parts, item_part(run->items, i), end_s - start_s);
    }
    record->time_s = engine_makespan_s(run->engine);
    parts_add_wait(&parts, &view, last, end_s, record->time_s);
    parts_read(&parts, record->part_s);
}

static bool is_moe(const struct request *request)
{
    return request->what == WHAT_LAYER &&
           request->setting->model.kinds[request->kind].mlp == TY_MLP_MOE;
}

/* Of a pass over a forward; dgrad, with the recompute, and wgrad share a backward. */
static double host_ratio(const struct request *request)
{
    const double rerun = request->plan->recompute == TY_RECOMPUTE_FULL ? 1.0 : 0.0;
    switch (request->phase) {
    case PHASE_BACKWARD:
        return HOST_BACKWARD + rerun;
    case PHASE_DGRAD:
        return 0.5 * HOST_BACKWARD + rerun;
    case PHASE_WGRAD:
        return 0.5 * HOST_BACKWARD;
    default:
        return 1.0;
    }
}

/* Of the stack's layers as this site and compiler issue them; none when replayed from a graph. */
static double issued_ratio(const struct request *request)
{
    const struct ty_plan *plan = request->plan;
    if (plan->cuda_graph == TY_ON)
        return 0.0;
    return request->setting->profile.site_host_ratio *
           (plan->compile == TY_ON ? HOST_COMPILED : 1.0);
}

/* host = site max(n_launches * issue, host_layer (1 + growth log2 t) * weight of the pass) */
static double host_time_s(const struct request *request, const struct item_list *items)
{
    const struct ty_profile *profile = &request->setting->profile;
    double layer_s = 0.0;
    if (request->what == WHAT_LAYER)
        layer_s = profile->host_layer_s *
                  (1.0 + profile->host_tp_growth * log2(request->plan->tp)) *
                  (is_moe(request) ? HOST_MOE : 1.0) * host_ratio(request);
    return issued_ratio(request) * fmax(items->n_launches * profile->launch_issue_s, layer_s);
}

/* Dropless routing: how many rows an expert gets is known on the GPU only. The host waits for that
 * number before it issues the experts, so it never runs ahead, and what it takes shows. Source: the
 * recipes of Megatron-Core put routers into CUDA graphs for this; size: calibrate/fit_params.c. */
static void wait_for_host(const struct request *request, struct record *record)
{
    const double wait_s = is_moe(request) ? request->setting->profile.dropless_host_s *
                                                host_ratio(request) * issued_ratio(request)
                                          : 0.0;
    record->time_s += wait_s;
    record->part_s[TY_PART_LAUNCH] += wait_s;
}

/* Releases of a stack differ in what their MoE layers take beyond what the kernels say: for every
 * routed row, so that the share falls with the work of a row, as in grouped GEMMs. */
static double release_ratio(const struct request *request)
{
    const struct ty_layer_kind *kind = &request->setting->model.kinds[request->kind];
    return is_moe(request)
               ? pow(request->setting->profile.moe_time_ratio,
                     kernel_expert_narrowness((double)kind->expert_ffn / request->plan->etp))
               : 1.0;
}

static void slow_down(struct record *record, double ratio)
{
    record->time_s *= ratio;
    for (uint32_t part = 0; part < TY_N_PARTS; part++)
        record->part_s[part] *= ratio;
}

/* CUDA_LAUNCH_BLOCKING=1: a kernel is issued when the one before it has ended, so the time of the
 * host adds to that of the kernels. */
static void wait_for_launches(struct record *record)
{
    record->time_s += record->host_s;
    record->part_s[TY_PART_LAUNCH] += record->host_s;
}

static ty_status compute_record(const struct request *request, struct engine *engine,
                                struct item_list *items, struct record *record)
{
    layer_items(request->setting, request->plan, request->what, request->kind, request->phase,
                items);
    struct run run = {
        .engine = engine, .request = request, .items = items, .blocking = ENGINE_NONE};
    *record = (struct record){.host_s = host_time_s(request, items),
                              .flop_model = items_flop(items, true),
                              .flop_hw = items_flop(items, false)};
    ty_status status = open_run(&run);
    for (uint32_t i = 0; status == TY_OK && i < items->n; i++)
        status = add_item(&run, i, record);
    if (status == TY_OK)
        status = engine_run(engine, NULL, NULL);
    if (status != TY_OK)
        return status;
    read_parts(&run, record);
    slow_down(record, release_ratio(request));
    wait_for_host(request, record);
    if (request->plan->launch_blocking == TY_ON)
        wait_for_launches(record);
    return TY_OK;
}

/* ---- cache -------------------------------------------------------------------------------- */

ty_status record_cache_create(const struct ty_allocator *allocator, struct record_cache **out)
{
    const struct ty_allocator source = allocator_or_default(allocator);
    struct record_cache *cache = source.alloc(source.user, sizeof *cache);
    if (!cache)
        return TY_ERR_NOMEM;
    memset(cache, 0, sizeof *cache);
    arena_init(&cache->arena, &source);
    *out = cache;
    return TY_OK;
}

void record_cache_clear(struct record_cache *cache)
{
    arena_reset(&cache->arena);
    cache->table = NULL;
    cache->has_setting = false;
    cache->capacity = cache->n_entries = 0;
}

void record_cache_destroy(struct record_cache *cache)
{
    if (!cache)
        return;
    const struct ty_allocator source = cache->arena.allocator;
    arena_destroy(&cache->arena);
    source.release(source.user, cache, sizeof *cache);
}

void record_cache_use(struct record_cache *cache, const struct setting *setting)
{
    /* Bytes, padding included: a copy that differs in padding only costs a new computation. */
    if (cache->has_setting && memcmp(&cache->setting, setting, sizeof *setting) == 0)
        return;
    record_cache_clear(cache);
    memcpy(&cache->setting, setting, sizeof *setting);
    cache->has_setting = true;
}

/* Place of a key: its entry, or the empty place where it belongs. */
static struct entry **find(struct entry **table, size_t capacity, const struct key *key)
{
    size_t at = hash_key(key) & (capacity - 1);
    while (table[at] && memcmp(&table[at]->key, key, sizeof *key) != 0)
        at = (at + 1) & (capacity - 1);
    return &table[at];
}

/* Doubles the table; the old one stays in the arena until the cache is cleared. */
static bool grow(struct record_cache *cache)
{
    const size_t capacity = cache->capacity ? 2 * cache->capacity : 64;
    struct entry **table = arena_get(&cache->arena, capacity, sizeof *table);
    if (!table)
        return false;
    for (size_t i = 0; i < cache->capacity; i++)
        if (cache->table[i])
            *find(table, capacity, &cache->table[i]->key) = cache->table[i];
    cache->table = table;
    cache->capacity = capacity;
    return true;
}

ty_status record_get(struct record_cache *cache, struct engine *engine,
                     const struct setting *setting, const struct ty_plan *plan,
                     enum layer_what what, uint32_t kind, enum layer_phase phase,
                     const struct record **out)
{
    const struct request request = {setting, plan, what, kind, phase};
    struct key key;
    make_key(&request, &key);
    if (2 * cache->n_entries >= cache->capacity && !grow(cache))
        return TY_ERR_NOMEM;
    struct entry **place = find(cache->table, cache->capacity, &key);
    if (!*place) {
        struct entry *entry = arena_get(&cache->arena, 1, sizeof *entry);
        if (!entry)
            return TY_ERR_NOMEM;
        entry->key = key;
        const ty_status status = compute_record(&request, engine, &cache->items, &entry->record);
        if (status != TY_OK)
            return status;
        *place = entry;
        cache->n_entries++;
    }
    *out = &(*place)->record;
    return TY_OK;
}

/* SPDX-License-Identifier: MIT
 *
 * Layers to pipeline slots. A = lead + trail pseudo-layers (embedding; head, loss and MTP modules)
 * makes L + A divide into P = pp * vpp equal slots; the first slot then holds `lead` layers less,
 * the last one `trail` less. Source: Megatron-Core's options "account for embedding / loss in
 * pipeline split"; for MTP handbook 1.7.
 */
#include "models/layout.h"
#include "sim/error.h"

#include <stdarg.h>
#include <stdio.h>

/* Layers of a slot, the first slot, the last slot, and how many middle slots hold one more. */
struct split {
    uint32_t each, lead, trail, n_longer;
};

/* One chunk of several may hold only the embedding or only the head: Llama-3 405B runs 126 layers
 * on PP16 x VPP8 = 128 slots in published recipes. A stage of one chunk (`least` = 1) keeps a
 * layer, or the MTP modules. */
static bool divides(const struct ty_model *model, uint32_t n_slots, uint32_t lead, uint32_t trail,
                    uint32_t least, struct split *out)
{
    const uint32_t units = model->n_layers + lead + trail;
    const uint32_t each = units / n_slots;
    if (units % n_slots != 0 || each < lead + least || each < trail + (trail > 1 ? 0 : least))
        return false;
    *out = (struct split){.each = each, .lead = lead, .trail = trail};
    return true;
}

static bool find_split(const struct ty_model *model, uint32_t n_slots, bool uneven,
                       struct split *out)
{
    const uint32_t least = uneven ? 1 : 0;
    if (divides(model, n_slots, 0, 0, least, out) || divides(model, n_slots, 0, 1, least, out) ||
        divides(model, n_slots, 1, 1, least, out))
        return true;
    const uint32_t mtp = model->n_mtp;
    if (mtp && (divides(model, n_slots, 0, 1 + mtp, least, out) ||
                divides(model, n_slots, 1, 1 + mtp, least, out)))
        return true;
    if (!uneven || model->n_layers < n_slots)
        return false;
    *out = (struct split){.each = model->n_layers / n_slots, .n_longer = model->n_layers % n_slots};
    return true;
}

/* ---- a layout of the plan's own ---------------------------------------------------------------
 */

enum { MAX_CHUNKS = 4096 };

static bool refuse(struct ty_error *error, const char *format, ...)
{
    va_list args;
    char text[200];
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    error_set(error, TY_ERR_INPUT, "layout", "%s", text);
    return false;
}

/* MTP modules: all in one chunk, which no layer follows. */
static bool mtp_fits(const struct ty_model *model, const struct layout_chunk *chunks, uint32_t n,
                     struct ty_error *error)
{
    uint32_t n_mtp = 0, n_holding = 0;
    bool late = false;
    for (uint32_t i = 0; i < n; i++) {
        late |= n_mtp > 0 && chunks[i].n_layers > 0;
        n_mtp += chunks[i].n_mtp;
        n_holding += chunks[i].n_mtp > 0;
    }
    if (n_mtp != model->n_mtp)
        return refuse(error, "has %u MTP modules (m), the model %u", n_mtp, model->n_mtp);
    if (n_holding > 1 || late)
        return refuse(error, "MTP modules (m) must be in one chunk, after the last layer");
    return true;
}

static bool chunks_fit(const struct setting *setting, const struct ty_plan *plan,
                       const struct layout_chunk *chunks, uint32_t n, struct ty_error *error)
{
    const struct ty_model *model = &setting->model;
    uint32_t n_layers = 0, n_embeddings = 0, n_losses = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_layers += chunks[i].n_layers;
        n_embeddings += chunks[i].embedding;
        n_losses += chunks[i].loss;
    }
    if (n != (uint64_t)plan->pp * plan->vpp)
        return refuse(error, "has %u chunks, pp*vpp is %u*%u = %llu", n, plan->pp, plan->vpp,
                      (unsigned long long)plan->pp * plan->vpp);
    if (n_layers != model->n_layers)
        return refuse(error, "has %u layers (t), the model %u", n_layers, model->n_layers);
    if (n_embeddings != 1 || !chunks[0].embedding)
        return refuse(error, "the embedding (E) must be in the first chunk, once");
    if (n_losses != 1 || !chunks[n - 1].loss)
        return refuse(error, "the loss (L) must be in the last chunk, once");
    return mtp_fits(model, chunks, n, error);
}

static bool own_layout(const struct setting *setting, const struct ty_plan *plan,
                       struct slot *slots, struct ty_error *error)
{
    struct layout_chunk chunks[MAX_CHUNKS];
    uint32_t n = 0, layer = 0;
    if (!layout_parse(plan->layout, chunks, MAX_CHUNKS, &n, error) ||
        !chunks_fit(setting, plan, chunks, n, error))
        return false;
    for (uint32_t i = 0; slots && i < n; i++) {
        const bool mtp = chunks[i].n_mtp > 0;
        slots[i] = (struct slot){.first_layer = layer,
                                 .n_layers = chunks[i].n_layers,
                                 .embedding = chunks[i].embedding,
                                 .head = chunks[i].loss,
                                 .mtp = mtp && !chunks[i].loss,
                                 .bare = setting->model.n_mtp && chunks[i].loss && !mtp};
        layer += chunks[i].n_layers;
    }
    return true;
}

bool layout_check(const struct setting *setting, const struct ty_plan *plan, struct ty_error *error)
{
    return !plan->layout[0] || own_layout(setting, plan, NULL, error);
}

bool layout_balanced(const struct ty_model *model, uint64_t n_chunks, char *text, size_t bytes)
{
    struct layout_chunk chunks[MAX_CHUNKS];
    const uint32_t trail = 1 + model->n_mtp, units = model->n_layers + 1 + trail;
    if (n_chunks < 2 || n_chunks > MAX_CHUNKS || units / n_chunks <= trail)
        return false;
    const uint32_t n = (uint32_t)n_chunks, n_longer = units % n, first_longer = (n - n_longer) / 2;
    for (uint32_t i = 0; i < n; i++)
        chunks[i] = (struct layout_chunk){
            .n_layers = units / n + (i >= first_longer && i < first_longer + n_longer)};
    chunks[0].embedding = chunks[n - 1].loss = true;
    chunks[0].n_layers--;
    chunks[n - 1].n_layers -= trail;
    chunks[n - 1].n_mtp = model->n_mtp;
    return layout_print(chunks, n, text, bytes);
}

bool layout_slots(const struct setting *setting, const struct ty_plan *plan, struct slot *slots)
{
    const struct ty_model *model = &setting->model;
    const uint64_t asked = (uint64_t)plan->pp * plan->vpp;
    struct split split;
    if (plan->layout[0])
        return own_layout(setting, plan, slots, NULL);
    if (asked == 0 || asked > (uint64_t)model->n_layers + 2 + model->n_mtp ||
        !find_split(model, (uint32_t)asked, plan->vpp == 1, &split))
        return false;
    if (!slots)
        return true;
    const uint32_t n_slots = (uint32_t)asked;
    const uint32_t first_longer = (n_slots - split.n_longer) / 2;
    uint32_t layer = 0;
    for (uint32_t i = 0; i < n_slots; i++) {
        struct slot *slot = &slots[i];
        slot->first_layer = layer;
        slot->n_layers = split.each;
        slot->embedding = i == 0;
        slot->head = i == n_slots - 1;
        slot->mtp = slot->bare = false;
        if (i >= first_longer && i < first_longer + split.n_longer)
            slot->n_layers++;
        if (slot->embedding)
            slot->n_layers -= split.lead;
        if (slot->head)
            slot->n_layers -= split.trail;
        layer += slot->n_layers;
    }
    return true;
}

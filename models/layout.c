/* SPDX-License-Identifier: MIT
 *
 * Layers to pipeline slots. A = lead + trail pseudo-layers (embedding; head, loss and MTP modules)
 * makes L + A divide into P = pp * vpp equal slots; the first slot then holds `lead` layers less,
 * the last one `trail` less. Source: Megatron-Core's options "account for embedding / loss in
 * pipeline split"; for MTP handbook 1.7.
 */
#include "models/layout.h"

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
    if (units % n_slots != 0 || each < lead + least || each + (trail > 1) < trail + least)
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

bool layout_slots(const struct setting *setting, const struct ty_plan *plan, struct slot *slots)
{
    const struct ty_model *model = &setting->model;
    const uint64_t asked = (uint64_t)plan->pp * plan->vpp;
    struct split split;
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

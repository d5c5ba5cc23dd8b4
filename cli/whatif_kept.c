/* SPDX-License-Identifier: MIT
 *
 * A kept plan under the settings of a what-if. Most fields stand alone: their values are laid over
 * the inputs, and no file is read again for a point. The axes that other inputs follow from are the
 * outer loops: the inputs are loaded once for each choice of their values, and the plain fields are
 * crossed inside.
 */
#include "cli/whatif.h"
#include <stdlib.h>
#include <string.h>

struct kept {
    struct whatif *w;
    uint32_t place[AXES_MAX]; /* of the loaded axes; AXIS_OUT: the others */
    bool loaded[AXES_MAX];    /* axes of the outer loops */
    uint64_t stride[AXES_MAX];
    uint64_t *value[AXES_MAX]; /* of the plain axes, as their fields hold them */
    struct ty_cross cross;     /* of the plain axes */
    struct ty_plan plan;
    ty_cross_fn *fn;
    void *user;
};

/* ---- plain fields --------------------------------------------------------------------------- */

static const struct ty_field *field_of(const struct cli_setting *setting)
{
    size_t n = 0;
    const struct ty_field *fields = ty_fields(setting->kind, &n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].path, setting->path) == 0)
            return &fields[i];
    return NULL;
}

static bool is_one_of(const char *path, const char *const *list)
{
    while (*list && strcmp(*list, path) != 0)
        list++;
    return *list != NULL;
}

/* No other input follows from the field. The presets follow from the names of the GPU, which are
 * texts, and from the fabric; measured tables hold for the links they were measured on. */
static bool stands_alone(const struct whatif *w, const struct cli_setting *setting)
{
    static const char *const composite[] = {"recompute", "sharding", "schedule",
                                            "gbs",       "seq",      NULL};
    const struct ty_field *field = field_of(setting);
    if (!field || field->size > sizeof(uint64_t))
        return false;
    switch (setting->kind) {
    case TY_KIND_CLUSTER:
        return strcmp(setting->path, "network.fabric") != 0 && !w->base_inputs.tables.memory;
    case TY_KIND_PLAN:
        return !is_one_of(setting->path, composite);
    case TY_KIND_PROFILE:
    case TY_KIND_PRICE:
        return true;
    default: /* the layers of a model, storage */
        return false;
    }
}

static ty_status read_values(struct kept *kept, uint32_t i, struct ty_patch *patch)
{
    struct whatif *w = kept->w;
    const struct cli_setting *setting = whatif_setting(w, i);
    const struct ty_field *field = field_of(setting);
    union {
        struct ty_cluster cluster;
        struct ty_plan plan;
        struct ty_profile profile;
        struct ty_price price;
    } whole;
    for (uint32_t k = 0; k < w->axes.axis[i].n; k++) {
        ty_init(setting->kind, &whole);
        const ty_status status =
            ty_field_set(setting->kind, &whole, setting->path, w->axes.axis[i].text[k], &w->error);
        if (status != TY_OK)
            return status;
        memcpy(&kept->value[i][k], (const char *)&whole + field->offset, field->size);
        patch[k].bytes = &kept->value[i][k];
    }
    return TY_OK;
}

static ty_status add_plain(struct kept *kept, uint32_t i)
{
    struct whatif *w = kept->w;
    const uint32_t n = w->axes.axis[i].n;
    kept->value[i] = calloc(n, sizeof *kept->value[i] + sizeof(struct ty_patch));
    if (!kept->value[i])
        return cli_refuse(&w->error, "whatif", "out of memory");
    struct ty_patch *patch = (struct ty_patch *)(void *)&kept->value[i][n];
    kept->cross.axis[kept->cross.n_axes++] =
        (struct ty_cross_axis){.kind = whatif_setting(w, i)->kind,
                               .field = field_of(whatif_setting(w, i)),
                               .n = n,
                               .stride = kept->stride[i],
                               .patch = patch};
    return read_values(kept, i, patch);
}

/* ---- loaded inputs -------------------------------------------------------------------------- */

/* The base's plan with what the loaded axes say of it. */
static void keep_plan(struct kept *kept)
{
    struct whatif *w = kept->w;
    kept->plan = w->base.score.plan;
    for (uint32_t i = 0; i < w->axes.n; i++) {
        const struct cli_setting *setting = whatif_setting(w, i);
        const struct ty_field *field = field_of(setting);
        if (kept->loaded[i] && setting->kind == TY_KIND_PLAN && field)
            memcpy((char *)&kept->plan + field->offset,
                   (const char *)&w->inputs.plan + field->offset, field->size);
    }
}

/* Loads the inputs at the places of the outer axes, and crosses the plain ones. */
static ty_status cross_plain(struct kept *kept)
{
    struct whatif *w = kept->w;
    struct cli_inputs *inputs = &w->inputs;
    struct ty_cross *cross = &kept->cross;
    cross->first = 0;
    for (uint32_t i = 0; i < w->axes.n; i++)
        cross->first += kept->loaded[i] ? kept->place[i] * kept->stride[i] : 0;
    if (cross->n_axes == 0 && !cli_shard_has(cross->share, cross->first))
        return TY_OK;
    axes_line(&w->axes, w->args, kept->place, &w->point);
    ty_status status = cli_load(&w->point, true, inputs, &w->error);
    if (status != TY_OK)
        return status;
    keep_plan(kept);
    cross->model = &inputs->model;
    cross->cluster = &inputs->cluster;
    cross->profile = &inputs->profile;
    cross->plan = &kept->plan;
    cross->options = inputs->options;
    cross->price = inputs->options.price;
    for (uint32_t i = 0; i < cross->n_axes; i++)
        if (cross->axis[i].kind == TY_KIND_PRICE)
            cross->price = &inputs->price;
    struct ty_error why = {0};
    status = ty_cross_run(cross, kept->fn, kept->user, &why);
    if (status != TY_OK && w->error.code == TY_OK)
        w->error = why;
    return status;
}

/* The loops over the loaded axes, from axis i inwards. */
static ty_status cross_from(struct kept *kept, uint32_t i)
{
    ty_status status = TY_OK;
    while (i < kept->w->axes.n && !kept->loaded[i])
        i++;
    if (i == kept->w->axes.n)
        return cross_plain(kept);
    for (uint32_t k = 0; status == TY_OK && k < kept->w->axes.axis[i].n; k++) {
        kept->place[i] = k;
        status = cross_from(kept, i + 1);
    }
    return status;
}

/* ---- interface ------------------------------------------------------------------------------ */

static ty_status sort_axes(struct kept *kept, uint32_t axes)
{
    struct whatif *w = kept->w;
    ty_status status = TY_OK;
    uint64_t stride = 1;
    for (uint32_t i = w->axes.n; i-- > 0;) {
        kept->place[i] = AXIS_OUT;
        kept->stride[i] = stride;
        stride *= axes >> i & 1 ? w->axes.axis[i].n : 1;
    }
    for (uint32_t i = 0; status == TY_OK && i < w->axes.n; i++)
        if (axes >> i & 1 && stands_alone(w, whatif_setting(w, i)))
            status = add_plain(kept, i);
        else
            kept->loaded[i] = axes >> i & 1;
    return status;
}

ty_status whatif_kept(struct whatif *w, uint32_t axes, const struct ty_share *share,
                      ty_cross_fn *fn, void *user)
{
    struct kept kept = {.w = w,
                        .fn = fn,
                        .user = user,
                        .cross = {.n_threads = w->args->jobs,
                                  .allow_tight = true, /* as predict: it runs, or may */
                                  .share = share}};
    ty_status status = sort_axes(&kept, axes);
    if (status == TY_OK)
        status = cross_from(&kept, 0);
    for (uint32_t i = 0; i < w->axes.n; i++)
        free(kept.value[i]);
    return status;
}

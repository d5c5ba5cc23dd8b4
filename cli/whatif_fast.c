/* SPDX-License-Identifier: MIT
 * A kept plan under settings that are plain fields: no file is read again for a point. */
#include "cli/whatif.h"
#include <stdlib.h>
#include <string.h>

static const struct ty_field *field_of(const struct cli_setting *setting)
{
    size_t n = 0;
    const struct ty_field *fields = ty_fields(setting->kind, &n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].path, setting->path) == 0)
            return &fields[i];
    return NULL;
}

/* Other inputs follow from some fields (presets from the GPU and the fabric), or other fields do
 * (composite forms of the plan). */
static bool stands_alone(const struct cli_setting *setting)
{
    static const char *const composite[] = {"recompute", "sharding", "schedule", "gbs", "seq"};
    const struct ty_field *field = field_of(setting);
    if (!field || field->size > sizeof(uint64_t) || setting->kind == TY_KIND_GPU ||
        setting->kind == TY_KIND_MODEL)
        return false;
    if (setting->kind == TY_KIND_CLUSTER)
        return strncmp(setting->path, "gpu.", 4) != 0 &&
               strcmp(setting->path, "network.fabric") != 0;
    for (size_t i = 0; setting->kind == TY_KIND_PLAN && i < sizeof composite / sizeof *composite;
         i++)
        if (strcmp(setting->path, composite[i]) == 0)
            return false;
    return true;
}

bool whatif_is_plain(const struct whatif *w)
{
    for (uint32_t i = 0; i < w->axes.n; i++)
        if (!stands_alone(whatif_setting(w, i)))
            return false;
    return true;
}

/* The values of all axes as the fields hold them. */
struct values {
    uint64_t value[AXES_MAX][AXIS_MAX_VALUES];
    struct ty_patch patch[AXES_MAX][AXIS_MAX_VALUES];
};

static ty_status read_values(struct whatif *w, uint32_t i, struct values *values,
                             struct ty_cross_axis *out)
{
    const struct cli_setting *setting = whatif_setting(w, i);
    const struct axis *axis = &w->axes.axis[i];
    union {
        struct ty_cluster cluster;
        struct ty_plan plan;
        struct ty_profile profile;
        struct ty_price price;
    } whole;
    *out = (struct ty_cross_axis){
        .kind = setting->kind, .field = field_of(setting), .n = axis->n, .patch = values->patch[i]};
    for (uint32_t k = 0; k < axis->n; k++) {
        ty_init(setting->kind, &whole);
        ty_status status =
            ty_field_set(setting->kind, &whole, setting->path, axis->text[k], &w->error);
        if (status != TY_OK)
            return status;
        memcpy(&values->value[i][k], (const char *)&whole + out->field->offset, out->field->size);
        values->patch[i][k].bytes = &values->value[i][k];
    }
    return TY_OK;
}

ty_status whatif_cross(struct whatif *w, ty_cross_fn *fn)
{
    struct values *values = calloc(1, sizeof *values);
    if (!values)
        return cli_refuse(&w->error, "whatif", "out of memory");
    struct cli_inputs *base = &w->base_inputs;
    struct ty_cross cross = {.model = &base->model,
                             .cluster = &base->cluster,
                             .profile = &base->profile,
                             .plan = &w->base.score.plan,
                             .price = base->options.price,
                             .options = base->options,
                             .n_threads = w->args->jobs,
                             .allow_tight = true, /* as predict: it runs, or may */
                             .share = &w->study.share,
                             .n_axes = w->axes.n};
    ty_status status = TY_OK;
    for (uint32_t i = 0; status == TY_OK && i < w->axes.n; i++) {
        status = read_values(w, i, values, &cross.axis[i]);
        if (whatif_setting(w, i)->kind == TY_KIND_PRICE)
            cross.price = &base->price;
    }
    struct ty_error why = {0};
    if (status == TY_OK) {
        status = ty_cross_run(&cross, fn, w, &why);
        if (status != TY_OK && w->error.code == TY_OK)
            w->error = why;
    }
    free(values);
    return status;
}

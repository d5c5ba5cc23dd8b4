/* SPDX-License-Identifier: MIT
 *
 * Inputs from built-in names, files and text. A profile is made in layers: what all share, the
 * preset of the GPU's architecture, that of the GPU itself where there is one, the network fabric,
 * the software stack, its release, the site or the user's file.
 */
#include "include/trainyard_storage.h"
#include "include/trainyard_tools.h"
#include "models/fields.h"
#include "models/spec/builtin.h"
#include "models/spec/fields_read.h"
#include "models/spec/open.h"
#include "models/spec/model.h"
#include "sim/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *folder_of(enum ty_kind kind)
{
    static const char *const folders[] = {
        [TY_KIND_GPU] = "gpus",        [TY_KIND_CLUSTER] = "clusters", [TY_KIND_MODEL] = "models",
        [TY_KIND_PLAN] = "plans",      [TY_KIND_PROFILE] = "profiles", [TY_KIND_PRICE] = "prices",
        [TY_KIND_STORAGE] = "storage",
    };
    return folders[kind];
}

const char *ty_builtin_name(enum ty_kind kind, size_t index)
{
    return builtin_name(folder_of(kind), index);
}

const char *ty_builtin_stack(size_t index)
{
    return builtin_name("stacks", index);
}

const char *ty_builtin_site(size_t index)
{
    return builtin_name("sites", index);
}

void ty_text_free(char *text)
{
    free(text);
}

/* ---- reading one object ----------------------------------------------------------------- */

/* "gpu" is a built-in name, a path or an object; the other keys are the table's. */
static ty_status cluster_from_json(const struct json_at *object, struct ty_cluster *cluster,
                                   struct ty_error *error)
{
    static const char *const read_elsewhere[] = {"storage", "gpu", NULL};
    static const char *const storage_alone[] = {"storage", NULL}; /* ty_storage_load */
    struct json_at gpu;
    if (!json_find(object, "gpu", &gpu) || json_type_of(&gpu) != JSON_TEXT)
        return fields_from_json(TY_KIND_CLUSTER, storage_alone, object, cluster, error);
    const char *name;
    struct ty_error reason = {0};
    ty_status status = json_get_text(&gpu, &name, error);
    if (status != TY_OK)
        return status;
    status = ty_gpu_load(name, &cluster->gpu, &reason);
    if (status != TY_OK)
        return json_refuse(&gpu, status, error, "%s: %s", reason.where, reason.text);
    return fields_from_json(TY_KIND_CLUSTER, read_elsewhere, object, cluster, error);
}

/* Fields that the object does not give keep what `value` holds. */
static ty_status value_from_json(enum ty_kind kind, const struct json_at *object, void *value,
                                 struct ty_error *error)
{
    ty_status status = json_want(object, JSON_OBJECT, error);
    if (status != TY_OK)
        return status;
    if (kind == TY_KIND_CLUSTER)
        return cluster_from_json(object, value, error);
    if (kind == TY_KIND_PLAN)
        return plan_from_json(object, value, error);
    /* ty_profile_tables_load reads "measured": a profile itself is plain values */
    static const char *const measured[] = {"measured", NULL};
    return fields_from_json(kind, kind == TY_KIND_PROFILE ? measured : NULL, object, value, error);
}

/* ---- built-in or file ------------------------------------------------------------------- */

static bool looks_like_path(const char *name)
{
    size_t length = strlen(name);
    return strchr(name, '/') || (length > 5 && strcmp(name + length - 5, ".json") == 0);
}

static ty_status refuse_name(const char *folder, const char *name, struct ty_error *error)
{
    const char *nearest = builtin_nearest(folder, name);
    return error_set(error, TY_ERR_INPUT, name, "no built-in name of %s and no file%s%s%s", folder,
                     nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                     nearest ? "\"?" : "");
}

/* A built-in name wins over a file of the same name; "./name" is always the file. */
ty_status spec_open(const char *folder, const char *name, struct json_document *document,
                    struct ty_error *error)
{
    const struct builtin_file *file = builtin_find(folder, name);
    if (file)
        return json_parse((const char *)file->text, file->bytes, file->name, document, error);
    if (looks_like_path(name))
        return json_load_file(name, document, error);
    FILE *found = fopen(name, "rb");
    if (!found)
        return refuse_name(folder, name, error);
    fclose(found);
    return json_load_file(name, document, error);
}

/* Layers a built-in file or a file over `value`. */
static ty_status layer(enum ty_kind kind, const char *folder, const char *name, void *value,
                       struct ty_error *error)
{
    struct json_document document = {0};
    ty_status status = spec_open(folder, name, &document, error);
    if (status == TY_OK)
        status = value_from_json(kind, &document.top, value, error);
    json_free(&document);
    return status;
}

static ty_status load(enum ty_kind kind, const char *name, void *value, struct ty_error *error)
{
    ty_init(kind, value);
    return layer(kind, folder_of(kind), name, value, error);
}

void name_by_file(const char *path, char *name, size_t bytes)
{
    if (name[0])
        return;
    const char *slash = strrchr(path, '/');
    text_format(name, bytes, "%s", slash ? slash + 1 : path);
    char *end = strstr(name, ".json");
    if (end)
        *end = '\0';
}

ty_status ty_cluster_load(const char *name_or_path, struct ty_cluster *out, struct ty_error *error)
{
    struct ty_cluster cluster;
    ty_status status = load(TY_KIND_CLUSTER, name_or_path, &cluster, error);
    if (status != TY_OK)
        return status;
    if (!cluster.gpu.name[0] && isnan(cluster.gpu.mem_bytes))
        return error_set(error, TY_ERR_INPUT, name_or_path,
                         "gpu: is missing; give a built-in name such as \"h100-sxm\", or an object "
                         "with peak, memory and sms");
    name_by_file(name_or_path, cluster.name, sizeof cluster.name);
    *out = cluster;
    return TY_OK;
}

ty_status ty_gpu_load(const char *name_or_path, struct ty_gpu *out, struct ty_error *error)
{
    struct ty_gpu gpu;
    ty_status status = load(TY_KIND_GPU, name_or_path, &gpu, error);
    if (status != TY_OK)
        return status;
    name_by_file(name_or_path, gpu.name, sizeof gpu.name);
    *out = gpu;
    return TY_OK;
}

ty_status ty_plan_load(const char *path, struct ty_plan *out, struct ty_error *error)
{
    struct ty_plan plan;
    ty_status status = load(TY_KIND_PLAN, path, &plan, error);
    if (status == TY_OK)
        *out = plan;
    return status;
}

/* YYYY-MM-DD */
static bool is_date(const char *text)
{
    static const char form[] = "dddd-dd-dd";
    for (size_t i = 0; i < sizeof form; i++)
        if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return false;
    return true;
}

ty_status ty_price_load(const char *path, struct ty_price *out, struct ty_error *error)
{
    struct ty_price price;
    ty_status status = load(TY_KIND_PRICE, path, &price, error);
    if (status != TY_OK)
        return status;
    if (!is_date(price.date))
        return error_set(error, TY_ERR_INPUT, path,
                         "date: prices need their day, such as \"2026-01-31\"");
    if (!price.currency[0])
        return error_set(error, TY_ERR_INPUT, path, "currency: is missing, such as \"USD\"");
    name_by_file(path, price.name, sizeof price.name);
    *out = price;
    return TY_OK;
}

ty_status ty_storage_load(const char *cluster, const char *plan, struct ty_storage *out,
                          struct ty_error *error)
{
    const struct {
        const char *folder, *name, *key;
    } places[] = {
        {"clusters", cluster, "storage"}, {"plans", plan, "input"}, {"plans", plan, "checkpoint"}};
    struct ty_storage storage;
    ty_status status = TY_OK;
    ty_init(TY_KIND_STORAGE, &storage);
    for (size_t i = 0; i < sizeof places / sizeof *places && status == TY_OK; i++) {
        struct json_document document = {0};
        if (!places[i].name)
            continue;
        status = spec_open(places[i].folder, places[i].name, &document, error);
        if (status == TY_OK)
            status =
                fields_from_member(TY_KIND_STORAGE, places[i].key, &document.top, &storage, error);
        json_free(&document);
    }
    if (status == TY_OK)
        *out = storage;
    return status;
}

ty_status ty_spec_parse(enum ty_kind kind, const char *text, size_t bytes, const char *origin,
                        void *out, struct ty_error *error)
{
    if (kind == TY_KIND_MODEL)
        return ty_model_parse(text, bytes, origin, out, error);
    struct json_document document = {0};
    ty_status status = json_parse(text, bytes, origin, &document, error);
    if (status != TY_OK)
        return status;
    union {
        struct ty_gpu gpu;
        struct ty_cluster cluster;
        struct ty_plan plan;
        struct ty_profile profile;
        struct ty_price price;
        struct ty_storage storage;
    } value;
    ty_init(kind, &value);
    status = value_from_json(kind, &document.top, &value, error);
    json_free(&document);
    if (status != TY_OK)
        return status;
    static const size_t sizes[] = {
        [TY_KIND_GPU] = sizeof value.gpu,     [TY_KIND_CLUSTER] = sizeof value.cluster,
        [TY_KIND_PLAN] = sizeof value.plan,   [TY_KIND_PROFILE] = sizeof value.profile,
        [TY_KIND_PRICE] = sizeof value.price, [TY_KIND_STORAGE] = sizeof value.storage,
    };
    memcpy(out, &value, sizes[kind]);
    return TY_OK;
}

/* ---- one field -------------------------------------------------------------------------- */

ty_status ty_field_set(enum ty_kind kind, void *value, const char *path, const char *text,
                       struct ty_error *error)
{
    if (kind == TY_KIND_MODEL)
        return model_set(value, path, text, error);
    if (kind == TY_KIND_CLUSTER && strcmp(path, "gpu") == 0)
        return ty_gpu_load(text, &((struct ty_cluster *)value)->gpu, error);
    size_t n;
    const struct ty_field *fields = ty_fields(kind, &n);
    const struct ty_field *field = fields_find(fields, n, path);
    if (!field)
        return error_set(error, TY_ERR_INPUT, path, "is no field; the nearest is \"%s\"",
                         fields_nearest(fields, n, path));
    if (kind == TY_KIND_PLAN)
        return plan_set(value, field, text, error);
    return field_from_text(field, text, value, error);
}

/* ---- profile ---------------------------------------------------------------------------- */

/* Name and source stay those of the layer below: the stack is named by its own field. */
static ty_status layer_unnamed(const char *folder, const char *name, struct ty_profile *profile,
                               struct ty_error *error)
{
    struct ty_profile with = *profile;
    ty_status status = layer(TY_KIND_PROFILE, folder, name, &with, error);
    if (status != TY_OK)
        return status;
    memcpy(with.name, profile->name, sizeof with.name);
    memcpy(with.source, profile->source, sizeof with.source);
    *profile = with;
    return TY_OK;
}

static ty_status layer_under(const char *folder, const char *name, struct ty_profile *profile,
                             struct ty_error *error)
{
    return builtin_find(folder, name) ? layer_unnamed(folder, name, profile, error)
                                      : refuse_name(folder, name, error);
}

/* "STACK" or "STACK@RELEASE": the release is a layer over its stack. */
static ty_status layer_stack(const char *stack, struct ty_profile *profile, struct ty_error *error)
{
    char base[64];
    text_format(base, sizeof base, "%.*s", (int)strcspn(stack, "@"), stack);
    ty_status status = layer_under("stacks", base, profile, error);
    if (status == TY_OK && strcmp(base, stack) != 0)
        status = layer_under("stacks", stack, profile, error);
    return status;
}

/* What the networks of a fabric have in common. */
static const char *fabric_preset(int fabric)
{
    switch (fabric) {
    case TY_FABRIC_OMNIPATH:
        return "fabric-omnipath";
    case TY_FABRIC_ROCE:
    case TY_FABRIC_EFA:
    case TY_FABRIC_ETHERNET:
        return "fabric-ethernet";
    default:
        return "fabric-infiniband";
    }
}

static ty_status layer_preset(const char *suffix, const char *otherwise, struct ty_profile *profile,
                              struct ty_error *error)
{
    char name[64];
    text_format(name, sizeof name, "preset-%s", suffix);
    if (!builtin_find("profiles", name)) {
        if (!otherwise)
            return TY_OK;
        text_format(name, sizeof name, "preset-%s", otherwise);
    }
    return layer(TY_KIND_PROFILE, "profiles", name, profile, error);
}

bool profile_has_layer(const struct ty_profile *profile, const struct ty_cluster *cluster,
                       const char *layer)
{
    char arch[64], gpu[64], fabric[64], stack[64], release[96];
    text_format(arch, sizeof arch, "profiles/preset-%s", cluster->gpu.arch);
    text_format(gpu, sizeof gpu, "profiles/preset-%s", cluster->gpu.name);
    text_format(fabric, sizeof fabric, "profiles/%s", fabric_preset(cluster->fabric));
    text_format(stack, sizeof stack, "stacks/%s", profile->stack);
    text_format(release, sizeof release, "stacks/%s@%s", profile->stack, profile->release);
    const char *const layers[] = {"profiles/common", arch, gpu, fabric, stack, release};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (strcmp(layer, layers[i]) == 0)
            return true;
    return false;
}

static ty_status presets(const char *stack, const struct ty_cluster *cluster,
                         struct ty_profile *out, struct ty_error *error)
{
    ty_init(TY_KIND_PROFILE, out);
    ty_status status = layer(TY_KIND_PROFILE, "profiles", "common", out, error);
    if (status == TY_OK)
        status = layer_preset(cluster->gpu.arch, "generic", out, error);
    if (status == TY_OK)
        status = layer_preset(cluster->gpu.name, NULL, out, error);
    if (status == TY_OK)
        status = layer_under("profiles", fabric_preset(cluster->fabric), out, error);
    if (status == TY_OK)
        status = layer_stack(stack, out, error);
    out->calibrated = false;
    return status;
}

/* A file gives what it gives; the rest is of the presets for its stack. */
static ty_status profile_over_presets(const char *path, const char *stack,
                                      const struct ty_cluster *cluster, struct ty_profile *out,
                                      struct ty_error *error)
{
    struct ty_profile own;
    ty_status status = load(TY_KIND_PROFILE, path, &own, error);
    if (status != TY_OK)
        return status;
    if (stack && own.stack[0] && strcmp(stack, own.stack) != 0)
        return error_set(error, TY_ERR_INPUT, path, "is a profile of the stack \"%s\", not \"%s\"",
                         own.stack, stack);
    if (!stack)
        stack = own.stack[0] && builtin_find("stacks", own.stack) ? own.stack : "generic";
    status = presets(stack, cluster, out, error);
    return status == TY_OK ? layer(TY_KIND_PROFILE, "profiles", path, out, error) : status;
}

ty_status ty_profile_load(const char *name_or_path, const char *stack,
                          const struct ty_cluster *cluster, struct ty_profile *out,
                          struct ty_error *error)
{
    struct ty_profile profile;
    ty_status status;
    if (!name_or_path || strcmp(name_or_path, "preset") == 0)
        status = presets(stack ? stack : "generic", cluster, &profile, error);
    else
        status = profile_over_presets(name_or_path, stack, cluster, &profile, error);
    if (status == TY_OK)
        *out = profile;
    return status;
}

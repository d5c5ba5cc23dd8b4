/* SPDX-License-Identifier: MIT
 *
 * A site: three ratios and intervals, and, in a file of calibrate runs, built-in constants that the
 * site's runs have moved. Each of these says which built-in file it is of, and counts only where a
 * profile is made with that file: what runs on one kind of GPU have shown does not go to another.
 */
#include "include/trainyard_tools.h"
#include "models/spec/builtin.h"
#include "models/spec/fields_read.h"
#include "models/spec/open.h"
#include "sim/error.h"

#include <string.h>

static bool is_builtin(const char *layer)
{
    char folder[32];
    const char *slash = strchr(layer, '/');
    if (!slash)
        return false;
    text_format(folder, sizeof folder, "%.*s", (int)(slash - layer), layer);
    return builtin_find(folder, slash + 1) != NULL;
}

/* A profile that is calibrated keeps what was measured on its machine: only software moves. */
static bool takes(const struct ty_profile *profile, const struct ty_cluster *cluster,
                  const char *layer)
{
    return profile_has_layer(profile, cluster, layer) &&
           !(profile->calibrated && strncmp(layer, "profiles/", 9) == 0);
}

/* {"of": "stacks/fsdp", "software": {...}} */
static ty_status read_layer(const struct json_at *layer, const struct ty_cluster *cluster,
                            struct ty_profile *profile, struct ty_error *error)
{
    static const char *const read_here[] = {"of", NULL};
    struct ty_profile with = *profile;
    struct json_at of;
    const char *name;
    if (!json_find(layer, "of", &of))
        return json_missing(layer, "of", error);
    ty_status status = json_get_text(&of, &name, error);
    if (status == TY_OK && !is_builtin(name))
        status = json_refuse(&of, TY_ERR_INPUT, error,
                             "\"%.60s\" is no built-in file; legal: \"profiles/common\", "
                             "\"stacks/fsdp\", ...",
                             name);
    if (status == TY_OK)
        status = fields_from_json(TY_KIND_PROFILE, read_here, layer, &with, error);
    if (status == TY_OK && takes(profile, cluster, name))
        *profile = with;
    return status;
}

static ty_status read_site(const struct json_at *top, const struct ty_cluster *cluster,
                           struct ty_profile *profile, struct ty_error *error)
{
    static const char *const read_below[] = {"refit", NULL};
    struct json_at refit, layer = {0};
    ty_status status = fields_from_json(TY_KIND_PROFILE, read_below, top, profile, error);
    if (status != TY_OK || !json_find(top, "refit", &refit))
        return status;
    status = json_want(&refit, JSON_ARRAY, error);
    while (status == TY_OK && json_next(&refit, &layer))
        status = read_layer(&layer, cluster, profile, error);
    return status;
}

ty_status ty_site_load(const char *name_or_path, const struct ty_cluster *cluster,
                       struct ty_profile *profile, struct ty_error *error)
{
    struct ty_profile with = *profile;
    struct json_document document = {0};
    with.site[0] = '\0';
    ty_status status = spec_open("sites", name_or_path, &document, error);
    if (status == TY_OK)
        status = read_site(&document.top, cluster, &with, error);
    json_free(&document);
    if (status != TY_OK)
        return status;
    name_by_file(name_or_path, with.site, sizeof with.site);
    memcpy(with.name, profile->name, sizeof with.name);
    memcpy(with.source, profile->source, sizeof with.source);
    *profile = with;
    return TY_OK;
}

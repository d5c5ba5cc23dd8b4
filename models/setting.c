/* SPDX-License-Identifier: MIT
 * A setting: the three inputs checked and completed, in the order in which they depend. */
#include "models/setting.h"

#include <math.h>
#include <string.h>

ty_status setting_init(const struct ty_model *model, const struct ty_cluster *cluster,
                       const struct ty_profile *profile, struct setting *out, struct notes *notes,
                       struct ty_error *error)
{
    memset(out, 0, sizeof *out); /* settings are compared as bytes (record_cache_use) */
    ty_status status = ty_model_check(model, error);
    if (status != TY_OK)
        return status;
    status = cluster_resolve(cluster, &out->cluster, notes, error);
    if (status != TY_OK)
        return status;
    status = profile_resolve(profile, &out->cluster, &out->profile, notes, error);
    if (status != TY_OK)
        return status;
    if (isnan(out->cluster.mem_reserved_bytes)) {
        out->cluster.mem_reserved_bytes = out->profile.runtime_bytes;
        notes_add(notes, TY_NOTE_DEFAULTED, NULL, "memory_reserved",
                  "memory.runtime of the profile", "%.3g GiB",
                  out->profile.runtime_bytes / 1073741824.0);
    }
    out->model = *model;
    ty_model_params(model, &out->params);
    return TY_OK;
}

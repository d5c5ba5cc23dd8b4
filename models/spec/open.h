/* SPDX-License-Identifier: MIT */
#ifndef MODELS_SPEC_OPEN_H
#define MODELS_SPEC_OPEN_H

#include "models/spec/json.h"

/* The built-in file of a folder ("profiles") with that name, else the file of that path. Free with
 * json_free. returns TY_OK, TY_ERR_IO, TY_ERR_INPUT, TY_ERR_NOMEM. */
ty_status spec_open(const char *folder, const char *name, struct json_document *document,
                    struct ty_error *error);

/* A name of its own for what came from a file without one: the file's, without folder and end. */
void name_by_file(const char *path, char *name, size_t bytes);
/* Whether a profile for a cluster is made with a built-in layer: "profiles/preset-hopper",
 * "stacks/fsdp@RELEASE". */
bool profile_has_layer(const struct ty_profile *profile, const struct ty_cluster *cluster,
                       const char *layer);

#endif

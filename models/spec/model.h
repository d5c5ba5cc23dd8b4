/* SPDX-License-Identifier: MIT
 *
 * Models as text: HuggingFace config.json in, our own form in and out.
 *
 * Own form: {"trainyard_model": 1, "hidden": .., "layers": .., "kinds": [{..}], "layer_kinds":
 * [{"kind": 0, "layers": 3}, ..]} with the names of the field tables; absent fields are 0, off or
 * ""; layer_kinds gives the kinds in order, by runs, and may be left out when there is one kind.
 */
#ifndef MODELS_SPEC_MODEL_H
#define MODELS_SPEC_MODEL_H

#include "models/spec/json.h"

#define MODEL_FORM_KEY     "trainyard_model" /* its presence tells our form from HuggingFace's */
#define MODEL_FORM_VERSION 1

/* Both write `out` only on TY_OK; a model that is read passes ty_model_check. name and source are
 * kept where the text gives them. returns TY_OK, TY_ERR_INPUT, TY_ERR_UNSUPPORTED. */
ty_status model_read_hf(const struct json_at *top, struct ty_model *out, struct ty_error *error);
ty_status model_read_own(const struct json_at *top, struct ty_model *out, struct ty_error *error);

/* Canonical text of the own form; free with ty_text_free. NULL when out of memory. */
char *model_write(const struct ty_model *model);

/* Sets one field from text: "hidden", "layers", "kinds[0].ffn". A new number of layers cuts the
 * pattern of kinds, or goes on with its last period. Ranges of single fields are checked, the model
 * as a whole is not. returns TY_OK, TY_ERR_INPUT. */
ty_status model_set(struct ty_model *model, const char *path, const char *text,
                    struct ty_error *error);

#endif

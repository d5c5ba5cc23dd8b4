/* SPDX-License-Identifier: MIT
 * Any bytes as a model. What is read is a decoder: it passes its check, its parts add up to its
 * parameters, its flop are positive, and its own form reads back; a change of one field (the text
 * of "_set", "PATH=VALUE") either fails or leaves something that can be checked and written. */
#include "include/trainyard_tools.h"
#include "models/spec/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_counts(const struct ty_model *model)
{
    struct ty_params params;
    ty_model_params(model, &params);
    double layers = 0.0;
    for (uint32_t i = 0; i < model->n_layers; i++)
        layers += params.layer[model->layer_kind[i]];
    require(isfinite(params.total) && params.total >= params.embedding + params.head + layers);
    require(params.active > 0.0 && params.active <= params.total);
    require(isfinite(params.mtp) && params.mtp >= 0.0);
    for (enum ty_flops flops = TY_FLOPS_AUTO; flops < TY_N_FLOPS; flops++) {
        const double few = ty_model_flop_per_token(model, 1, flops);
        const double many = ty_model_flop_per_token(model, UINT32_MAX, flops);
        require(few > 0.0 && isfinite(many) && many >= few);
    }
}

static void check_round_trip(const struct ty_model *model)
{
    struct ty_model back;
    struct ty_error error;
    char *once = ty_spec_write(TY_KIND_MODEL, model);
    require(once != NULL);
    if (ty_model_parse(once, strlen(once), "once", &back, &error) == TY_OK) {
        char *twice = ty_spec_write(TY_KIND_MODEL, &back);
        require(twice && strcmp(once, twice) == 0);
        ty_text_free(twice);
    } else {
        require(strstr(error.text, "longer than")); /* U+FFFD for bytes that are no UTF-8 */
    }
    ty_text_free(once);
}

static void change(struct ty_model *model, const char *text)
{
    char path[64];
    const char *equals = strchr(text, '=');
    if (!equals || (size_t)(equals - text) >= sizeof path)
        return;
    memcpy(path, text, (size_t)(equals - text));
    path[equals - text] = '\0';
    if (ty_field_set(TY_KIND_MODEL, model, path, equals + 1, NULL) == TY_OK &&
        ty_model_check(model, NULL) == TY_OK) {
        check_counts(model);
        check_round_trip(model);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct ty_model model;
    struct ty_error error = {TY_OK, "", ""};
    struct json_document document;
    const char *text = (const char *)data;
    const ty_status status = ty_model_parse(text, bytes, "fuzz/config.json", &model, &error);
    if (status != TY_OK) {
        require(error.code == status && error.where[0] != '\0' && error.text[0] != '\0');
        return 0;
    }
    require(ty_model_check(&model, NULL) == TY_OK);
    check_counts(&model);
    check_round_trip(&model);
    if (json_parse(text, bytes, "fuzz", &document, NULL) == TY_OK) {
        struct json_at at;
        const char *setting;
        if (json_find(&document.top, "_set", &at) && json_get_text(&at, &setting, NULL) == TY_OK)
            change(&model, setting);
        json_free(&document);
    }
    return 0;
}

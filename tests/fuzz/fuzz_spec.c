/* SPDX-License-Identifier: MIT
 * Any bytes as every kind of specification, as one field and as a quantity. What is read must be
 * legal by its table and come back from its canonical form to the same bits. */
#include "include/trainyard_tools.h"
#include "models/fields.h"
#include "models/setting.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(bool holds)
{
    if (!holds)
        abort();
}

union value {
    struct ty_gpu gpu;
    struct ty_cluster cluster;
    struct ty_plan plan;
    struct ty_profile profile;
    struct ty_model model;
};

static const size_t sizes[] = {
    [TY_KIND_GPU] = sizeof(struct ty_gpu),         [TY_KIND_CLUSTER] = sizeof(struct ty_cluster),
    [TY_KIND_MODEL] = sizeof(struct ty_model),     [TY_KIND_PLAN] = sizeof(struct ty_plan),
    [TY_KIND_PROFILE] = sizeof(struct ty_profile),
};

/* Plans take tokens for sequences and texts may hold bytes that are no UTF-8, which the writer
 * replaces: so the second writing, not the first, is compared. */
static void read_as(enum ty_kind kind, const char *text, size_t bytes)
{
    static union value value, again;
    struct ty_error error = {0};
    if (ty_spec_parse(kind, text, bytes, "fuzz", &value, &error) != TY_OK) {
        require(error.code != TY_OK && error.text[0]);
        return;
    }
    require(kind == TY_KIND_MODEL ? ty_model_check(&value.model, NULL) == TY_OK
                                  : fields_check(kind, &value, NULL) == TY_OK);
    char *once = ty_spec_write(kind, &value);
    if (ty_spec_parse(kind, once, strlen(once), "once", &again, &error) != TY_OK) {
        require(strstr(error.text, "longer than")); /* U+FFFD takes three bytes for one */
        ty_text_free(once);
        return;
    }
    char *twice = ty_spec_write(kind, &again);
    require(strcmp(once, twice) == 0);
    if (strstr(once, "\xef\xbf\xbd") == NULL)
        require(memcmp(&value, &again, sizes[kind]) == 0);
    ty_text_free(once);
    ty_text_free(twice);
    if (kind == TY_KIND_CLUSTER) {
        struct ty_cluster resolved;
        if (cluster_resolve(&value.cluster, &resolved, NULL, NULL) == TY_OK)
            require(cluster_domain(&resolved, 64) >= 1);
    }
}

/* "path\ntext": one field of each kind. */
static void set_fields(char *text)
{
    char *end = strchr(text, '\n');
    if (!end)
        return;
    *end = '\0';
    for (int kind = TY_KIND_GPU; kind <= TY_KIND_PROFILE; kind++) {
        static union value value;
        bool is_gpu_file = kind == TY_KIND_CLUSTER && strcmp(text, "gpu") == 0;
        ty_init((enum ty_kind)kind, &value);
        if (!is_gpu_file &&
            ty_field_set((enum ty_kind)kind, &value, text, end + 1, NULL) == TY_OK &&
            kind != TY_KIND_MODEL)
            require(fields_check((enum ty_kind)kind, &value, NULL) == TY_OK);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    if (!text)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    for (int kind = TY_KIND_GPU; kind <= TY_KIND_PROFILE; kind++)
        read_as((enum ty_kind)kind, text, bytes);
    double number;
    for (int unit = TY_UNIT_NONE; unit <= TY_UNIT_TOKENS; unit++)
        if (ty_quantity_parse(text, (enum ty_unit)unit, &number, NULL) == TY_OK)
            require(number - number == 0.0);
    set_fields(text);
    free(text);
    return 0;
}

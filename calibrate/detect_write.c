/* SPDX-License-Identifier: MIT
 * A detected cluster as a file: the fields that were read, and as remarks (keys that begin with
 * "_") where each came from, what contradicts it and what is missing. */
#include "calibrate/detect_merge.h"
#include "models/spec/fields_write.h"
#include "sim/error.h"

#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX 96u

static void write_fields(struct json_writer *json, const struct ty_cluster *cluster,
                         const char *gpu_name)
{
    struct ty_field rest[FIELDS_MAX];
    size_t n, n_rest = 0;
    const struct ty_field *fields = ty_fields(TY_KIND_CLUSTER, &n);
    if (gpu_name)
        json_text(json, "gpu", gpu_name);
    for (size_t i = 0; i < n && n_rest < FIELDS_MAX; i++)
        if (!gpu_name || strncmp(fields[i].path, "gpu.", 4) != 0)
            rest[n_rest++] = fields[i];
    fields_write(json, rest, n_rest, cluster);
}

const char *ty_trust_name(enum ty_trust trust)
{
    static const char *const names[] = {"hint", "rule", "stated", "read"};
    return trust <= TY_TRUST_READ ? names[trust] : "";
}

static void write_found(struct json_writer *json, const struct ty_detection *detection)
{
    json_array(json, "_found");
    for (uint32_t i = 0; i < detection->n_found; i++) {
        const struct ty_found *found = &detection->found[i];
        if (!found->chosen)
            continue;
        json_object(json, NULL);
        json_text(json, "field", found->field);
        json_text(json, "value", found->value);
        json_text(json, "from", found->place);
        json_text(json, "trust", ty_trust_name((enum ty_trust)found->trust));
        json_close(json);
    }
    json_close(json);
}

static void write_remarks(struct json_writer *json, const struct ty_detection *detection,
                          enum ty_remark kind, const char *key)
{
    json_array(json, key);
    for (uint32_t i = 0; i < detection->n_remarks; i++)
        if (detection->remarks[i].kind == (int)kind)
            json_text(json, NULL, detection->remarks[i].text);
    json_close(json);
}

ty_status detect_write(struct ty_detection *out, const char *gpu_name, struct ty_error *error)
{
    struct json_writer json;
    json_begin(&json);
    json_object(&json, NULL);
    write_fields(&json, &out->cluster, gpu_name);
    write_found(&json, out);
    write_remarks(&json, out, TY_REMARK_CONTRADICTION, "_contradictions");
    write_remarks(&json, out, TY_REMARK_GAP, "_gaps");
    write_remarks(&json, out, TY_REMARK_NOTE, "_notes");
    json_close(&json);
    out->json = json_finish(&json);
    return out->json ? TY_OK : error_set(error, TY_ERR_NOMEM, "detect", "no memory");
}

void ty_detection_free(struct ty_detection *detection)
{
    free(detection->found);
    free(detection->remarks);
    ty_text_free(detection->json);
    *detection = (struct ty_detection){0};
}

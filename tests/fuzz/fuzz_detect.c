/* SPDX-License-Identifier: MIT
 * Any bytes as a dump of a machine. The first byte chooses how many files they are cut into. What
 * is found is a cluster that its own file gives back; what is not is refused with a place and a
 * reason.
 */
#include "calibrate/detect.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check(const struct ty_detection *d)
{
    struct ty_cluster back;
    struct ty_error error = {0};
    ty_init(TY_KIND_CLUSTER, &back);
    require(d->json != NULL);
    if (!d->complete)
        return;
    require(ty_spec_parse(TY_KIND_CLUSTER, d->json, strlen(d->json), "json", &back, &error) ==
            TY_OK);
    char *ours = ty_spec_write(TY_KIND_CLUSTER, &d->cluster);
    char *again = ty_spec_write(TY_KIND_CLUSTER, &back);
    require(ours && again && strcmp(ours, again) == 0);
    ty_text_free(ours);
    ty_text_free(again);
}

static ty_status read_part(struct detect *detect, const uint8_t *data, size_t bytes,
                           struct ty_error *error)
{
    struct import_file file = {.path = detect->paths[detect->file], .text = malloc(bytes + 1)};
    require(file.text != NULL);
    memcpy(file.text, data, bytes);
    file.text[bytes] = '\0';
    file.bytes = bytes;
    ty_status status = TY_OK;
    if (text_to_utf8(&file.text, &file.bytes))
        status = detect_read_text(&file, detect, error);
    free(file.text);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const paths[] = {"a", "b", "c", "d"};
    const size_t n = bytes ? 1 + data[0] % 4 : 1;
    struct detect detect;
    struct ty_detection detection = {0};
    struct ty_error error = {0};
    ty_status status = TY_OK;
    detect_init(&detect, paths);
    for (size_t i = 0; i < n && status == TY_OK; i++, detect.file++) {
        const size_t from = bytes * i / n, to = bytes * (i + 1) / n;
        status = read_part(&detect, data + from, to - from, &error);
    }
    if (status == TY_OK)
        status = detect_merge(&detect, bytes % 3 ? NULL : "h100-sxm", &detection, &error);
    if (status == TY_OK)
        check(&detection);
    else
        require(error.code == status && *error.where && *error.text);
    ty_detection_free(&detection);
    detect_free(&detect);
    return 0;
}

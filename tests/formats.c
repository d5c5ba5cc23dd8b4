/* SPDX-License-Identifier: MIT
 * docs/formats.md: every example is accepted by the reader of its kind, every field is described.
 */
#include "include/trainyard_tools.h"
#include "tests/tap.h"

static const char *const kinds[] = {"gpu", "cluster", "model", "plan", "profile", "price"};

static char *read_page(void)
{
    FILE *file = fopen("docs/formats.md", "rb");
    if (!file)
        return NULL;
    char *page = calloc(1, 1 << 20);
    size_t length = page ? fread(page, 1, (1 << 20) - 1, file) : 0;
    fclose(file);
    return length > 0 ? page : NULL;
}

static void test_example(const char *page, enum ty_kind kind)
{
    char fence[32];
    snprintf(fence, sizeof fence, "```json %s\n", kinds[kind]);
    const char *start = strstr(page, fence);
    const char *end = start ? strstr(start + strlen(fence), "```") : NULL;
    if (!end) {
        ok(false, "%s: has an example", kinds[kind]);
        return;
    }
    static union {
        struct ty_cluster cluster;
        struct ty_model model;
        struct ty_plan plan;
        struct ty_profile profile;
        struct ty_price price;
    } value;
    struct ty_error error = {0};
    start += strlen(fence);
    ok(ty_spec_parse(kind, start, (size_t)(end - start), "example", &value, &error) == TY_OK,
       "%s: the example is read %s %s", kinds[kind], error.where, error.text);
    const char *more = strstr(end, fence);
    ok(!more, "%s: there is one example", kinds[kind]);
}

static void test_fields(const char *page, const struct ty_field *fields, size_t n, const char *name)
{
    const char *missing = NULL;
    for (size_t i = 0; i < n && !missing; i++) {
        char key[96];
        const char *path = fields[i].path;
        bool of_gpu = strcmp(name, "cluster") == 0 && strncmp(path, "gpu.", 4) == 0;
        snprintf(key, sizeof key, "\n| `%s` | ", of_gpu ? path + 4 : path);
        if (!strstr(page, key) || !strstr(page, fields[i].help))
            missing = path;
    }
    ok(!missing, "%s: all %zu fields are described %s", name, n, missing ? missing : "");
}

int main(void)
{
    char *page = read_page();
    if (!ok(page != NULL, "docs/formats.md can be read"))
        return tap_done();
    size_t n;
    for (int kind = TY_KIND_GPU; kind <= TY_KIND_PRICE; kind++) {
        const struct ty_field *fields = ty_fields((enum ty_kind)kind, &n);
        test_example(page, (enum ty_kind)kind);
        test_fields(page, fields, n, kinds[kind]);
    }
    const struct ty_field *fields = ty_layer_fields(&n);
    test_fields(page, fields, n, "layer kind");
    free(page);
    return tap_done();
}

/* SPDX-License-Identifier: MIT
 * Texts as files in a folder of their own, and what a detection holds. */
#ifndef TESTS_DETECT_FIXTURE_H
#define TESTS_DETECT_FIXTURE_H

#include "include/trainyard_tools.h"
#include "tests/tap.h"

#include <sys/stat.h>
#include <unistd.h>

#define FIXTURE_FILES 8

static char fixture_dir[] = "/tmp/trainyard-detect-XXXXXX";
static bool fixture_made;

/* Path of a file in the folder; made on the first call. */
__attribute__((unused)) static const char *fixture_path(const char *name)
{
    static char path[FIXTURE_FILES * 2][256];
    static int next;
    if (!fixture_made && !mkdtemp(fixture_dir)) {
        perror(fixture_dir);
        exit(1);
    }
    fixture_made = true;
    char *to = path[next++ % (FIXTURE_FILES * 2)];
    snprintf(to, sizeof path[0], "%s/%s", fixture_dir, name);
    return to;
}

__attribute__((unused)) static void fixture_write(const char *path, const char *text, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(text, 1, bytes, file) != bytes || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

/* Detects from texts, which become the files "a", "b", ..; gpu may be NULL. */
__attribute__((unused)) static ty_status detect_texts(const char *const *texts, uint32_t n,
                                                      const char *gpu, struct ty_detection *out,
                                                      struct ty_error *error)
{
    const char *paths[FIXTURE_FILES];
    for (uint32_t i = 0; i < n; i++) {
        const char name[2] = {(char)('a' + i), '\0'};
        paths[i] = fixture_path(name);
        fixture_write(paths[i], texts[i], strlen(texts[i]));
    }
    *error = (struct ty_error){0};
    *out = (struct ty_detection){0};
    return ty_detect(paths, n, gpu, out, error);
}

/* Says why where they are not read. */
__attribute__((unused)) static bool read_texts(const char *what, const char *const *texts,
                                               uint32_t n, const char *gpu, struct ty_detection *d)
{
    struct ty_error error;
    if (ok(detect_texts(texts, n, gpu, d, &error) == TY_OK, "%s: read", what))
        return true;
    printf("# %s: %s\n", error.where, error.text);
    return false;
}

__attribute__((unused)) static void refused(const char *what, const char *text, const char *reason)
{
    struct ty_detection d;
    struct ty_error error;
    const ty_status status = detect_texts(&text, 1, NULL, &d, &error);
    if (!ok(status == TY_ERR_INPUT && strstr(error.text, reason), "%s: refused", what))
        printf("# status %d, %s: %s\n", (int)status, error.where, error.text);
}

/* Number of remarks of a kind that hold a text. */
__attribute__((unused)) static int remarks_with(const struct ty_detection *d, enum ty_remark kind,
                                                const char *text)
{
    int n = 0;
    for (uint32_t i = 0; i < d->n_remarks; i++)
        n += d->remarks[i].kind == (int)kind && strstr(d->remarks[i].text, text) != NULL;
    return n;
}

/* Where the value of a field came from; NULL: nobody said. */
__attribute__((unused)) static const struct ty_found *chosen(const struct ty_detection *d,
                                                             const char *field)
{
    for (uint32_t i = 0; i < d->n_found; i++)
        if (d->found[i].chosen && strcmp(d->found[i].field, field) == 0)
            return &d->found[i];
    return NULL;
}

__attribute__((unused)) static void fixture_end(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", fixture_dir);
    if (fixture_made && system(command) != 0)
        perror(command);
}

#endif

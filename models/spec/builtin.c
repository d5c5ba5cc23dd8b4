/* SPDX-License-Identifier: MIT
 * Finding built-in files by folder and name. */
#include "models/spec/builtin.h"

#include "include/trainyard_tools.h"

#include <stdint.h>
#include <string.h>

/* The name behind "folder/", or NULL when the file is in another folder. */
static const char *name_in(const struct builtin_file *file, const char *folder)
{
    size_t length = strlen(folder);
    if (strncmp(file->name, folder, length) != 0 || file->name[length] != '/')
        return NULL;
    return file->name + length + 1;
}

const struct builtin_file *builtin_find(const char *folder, const char *name)
{
    for (const struct builtin_file *file = builtin_files; file->name; file++) {
        const char *own = name_in(file, folder);
        if (own && strcmp(own, name) == 0)
            return file;
    }
    return NULL;
}

const char *builtin_name(const char *folder, size_t index)
{
    for (const struct builtin_file *file = builtin_files; file->name; file++) {
        const char *own = name_in(file, folder);
        if (own && index-- == 0)
            return own;
    }
    return NULL;
}

const char *builtin_nearest(const char *folder, const char *name)
{
    const char *best = NULL;
    size_t least = SIZE_MAX;
    for (const struct builtin_file *file = builtin_files; file->name; file++) {
        const char *own = name_in(file, folder);
        size_t distance = own ? ty_text_distance(own, name) : SIZE_MAX;
        if (distance < least) {
            least = distance;
            best = own;
        }
    }
    return best;
}

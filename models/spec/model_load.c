/* SPDX-License-Identifier: MIT
 *
 * ty_model_load and ty_model_parse: built-in names, files, text; both forms. The name of a model is
 * what its text says, else the built-in name, else the file's (its folder's for a config.json).
 */
#include "include/trainyard_tools.h"
#include "models/spec/builtin.h"
#include "models/spec/model.h"
#include "sim/error.h"

#include <string.h>

/* Copies what fits, in whole UTF-8 characters. */
static void copy_cut(char *out, size_t bytes, const char *text, size_t length)
{
    if (length >= bytes)
        for (length = bytes - 1; length > 0 && (text[length] & 0xc0) == 0x80;)
            length--;
    memcpy(out, text, length);
    out[length] = '\0';
}

/* "a/llama/config.json" -> "llama", "a/x.json" -> "x". */
static void name_of_path(const char *path, char *out, size_t bytes)
{
    const char *end = path + strlen(path), *start;
    if (end - path > 5 && strcmp(end - 5, ".json") == 0)
        end -= 5;
    if (end - path > 7 && memcmp(end - 7, "/config", 7) == 0)
        end -= 7;
    for (start = end; start > path && start[-1] != '/'; start--)
        ;
    copy_cut(out, bytes, start, (size_t)(end - start));
}

/* Text of a key, cut to fit; nothing when it is absent or no text. */
static void copy_remark(const struct json_at *top, const char *key, char *out, size_t bytes)
{
    struct json_at at;
    const char *text;
    if (json_find(top, key, &at) && json_get_text(&at, &text, NULL) == TY_OK)
        copy_cut(out, bytes, text, strlen(text));
}

static ty_status read_document(const struct json_document *document, const char *origin,
                               struct ty_model *out, struct ty_error *error)
{
    struct json_at at;
    struct ty_model model;
    const bool own = json_type_of(&document->top) == JSON_OBJECT &&
                     json_find(&document->top, MODEL_FORM_KEY, &at);
    const ty_status status = own ? model_read_own(&document->top, &model, error)
                                 : model_read_hf(&document->top, &model, error);
    if (status != TY_OK)
        return status;
    if (!own)
        copy_remark(&document->top, "_source", model.source, sizeof model.source);
    if (model.name[0] == '\0')
        name_of_path(origin, model.name, sizeof model.name);
    *out = model;
    return TY_OK;
}

ty_status ty_model_parse(const char *text, size_t bytes, const char *origin, struct ty_model *out,
                         struct ty_error *error)
{
    struct json_document document;
    ty_status status = json_parse(text, bytes, origin, &document, error);
    if (status != TY_OK)
        return status;
    status = read_document(&document, origin, out, error);
    json_free(&document);
    return status;
}

ty_status ty_model_load(const char *name_or_path, struct ty_model *out, struct ty_error *error)
{
    if (name_or_path[0] == '{')
        return ty_model_parse(name_or_path, strlen(name_or_path), "model", out, error);
    const struct builtin_file *file = builtin_find("models", name_or_path);
    if (file)
        return ty_model_parse((const char *)file->text, file->bytes, name_or_path, out, error);
    struct json_document document;
    ty_status status = json_load_file(name_or_path, &document, error);
    if (status == TY_ERR_IO && !strchr(name_or_path, '/') && error) {
        const char *nearest = builtin_nearest("models", name_or_path);
        text_append(error->text, sizeof error->text, "; no built-in model has this name%s%s",
                    nearest ? "; the nearest is " : "", nearest ? nearest : "");
    }
    if (status != TY_OK)
        return status;
    status = read_document(&document, name_or_path, out, error);
    json_free(&document);
    return status;
}

/* SPDX-License-Identifier: MIT
 * The only file that knows expat. The text was brought to UTF-8 before, whatever its declaration
 * says. A document that declares an entity is refused: no dump does, and expansion could blow up.
 */
#include "calibrate/detect_xml.h"
#include "sim/error.h"

#include <expat.h>
#include <string.h>

#define PIECE_BYTES (16u << 20) /* expat takes lengths as int */

struct reading {
    XML_Parser parser;
    const struct xml_handler *handler;
    uint32_t depth;
    char text[XML_TEXT_BYTES + 1];
    size_t n_text;
    const char *refused;
};

static uint32_t line_of(const struct reading *r)
{
    return (uint32_t)XML_GetCurrentLineNumber(r->parser);
}

static void XMLCALL on_open(void *user, const XML_Char *name, const XML_Char **attributes)
{
    struct reading *r = user;
    if (r->depth >= XML_DEPTH_MAX) {
        r->refused = "is nested deeper than 256 elements";
        XML_StopParser(r->parser, XML_FALSE);
        return;
    }
    r->n_text = 0;
    const struct xml_element element = {
        .name = name, .attributes = attributes, .text = "", .depth = r->depth, .line = line_of(r)};
    r->depth++;
    r->handler->open(r->handler->user, &element);
}

static void XMLCALL on_close(void *user, const XML_Char *name)
{
    struct reading *r = user;
    r->depth--;
    if (r->handler->close) {
        while (r->n_text > 0 && strchr(" \t\r\n", r->text[r->n_text - 1]))
            r->n_text--;
        r->text[r->n_text] = '\0';
        const struct xml_element element = {.name = name,
                                            .text = r->text + strspn(r->text, " \t\r\n"),
                                            .depth = r->depth,
                                            .line = line_of(r)};
        r->handler->close(r->handler->user, &element);
    }
    r->n_text = 0;
}

static void XMLCALL on_text(void *user, const XML_Char *text, int bytes)
{
    struct reading *r = user;
    const size_t room = XML_TEXT_BYTES - r->n_text;
    const size_t take = (size_t)bytes < room ? (size_t)bytes : room;
    memcpy(r->text + r->n_text, text, take);
    r->n_text += take;
}

static void XMLCALL on_entity(void *user, const XML_Char *name, int is_parameter,
                              const XML_Char *value, int bytes, const XML_Char *base,
                              const XML_Char *system, const XML_Char *public_id,
                              const XML_Char *notation)
{
    struct reading *r = user;
    (void)name, (void)is_parameter, (void)value, (void)bytes;
    (void)base, (void)system, (void)public_id, (void)notation;
    r->refused = "declares an entity; no dump of a machine does";
    XML_StopParser(r->parser, XML_FALSE);
}

static ty_status parse(struct reading *r, const struct import_file *file, struct ty_error *error)
{
    for (size_t at = 0;;) {
        const size_t left = file->bytes - at;
        const size_t piece = left < PIECE_BYTES ? left : PIECE_BYTES;
        const enum XML_Status status =
            XML_Parse(r->parser, file->text + at, (int)piece, piece == left);
        at += piece;
        if (status == XML_STATUS_OK && piece == left)
            return TY_OK;
        if (status == XML_STATUS_OK)
            continue;
        const enum XML_Error code = XML_GetErrorCode(r->parser);
        char where[sizeof error->where];
        text_format(where, sizeof where, "%s:%u", file->path, line_of(r));
        if (code == XML_ERROR_NO_MEMORY)
            return error_set(error, TY_ERR_NOMEM, where, "no memory to read it");
        return error_set(error, TY_ERR_INPUT, where, "%s",
                         r->refused ? r->refused : XML_ErrorString(code));
    }
}

ty_status xml_read(const struct import_file *file, const struct xml_handler *handler,
                   struct ty_error *error)
{
    struct reading r = {.parser = XML_ParserCreate("UTF-8"), .handler = handler};
    if (!r.parser)
        return error_set(error, TY_ERR_NOMEM, file->path, "no memory to read it");
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, on_open, on_close);
    XML_SetCharacterDataHandler(r.parser, on_text);
    XML_SetEntityDeclHandler(r.parser, on_entity);
    const ty_status status = parse(&r, file, error);
    XML_ParserFree(r.parser);
    return status;
}

const char *xml_attribute(const struct xml_element *element, const char *name)
{
    for (const char *const *at = element->attributes; at && *at; at += 2)
        if (strcmp(at[0], name) == 0)
            return at[1];
    return "";
}

/* The document type names the root element; without one, declarations and comments are skipped. */
void xml_root(const struct import_file *file, char *out, size_t bytes)
{
    static const char doctype[] = "<!DOCTYPE";
    const char *at = file->text + strspn(file->text, " \t\r\n"), *end;
    *out = '\0';
    while (at[0] == '<' && (at[1] == '?' || strncmp(at, "<!--", 4) == 0)) {
        end = strstr(at + 2, at[1] == '?' ? "?>" : "-->");
        if (!end)
            return;
        at = strchr(end, '>') + 1;
        at += strspn(at, " \t\r\n");
    }
    if (strncmp(at, doctype, sizeof doctype - 1) == 0)
        at += sizeof doctype - 1 + strspn(at + sizeof doctype - 1, " \t\r\n");
    else if (*at++ != '<')
        return;
    text_format(out, bytes, "%.*s", (int)(strcspn(at, " \t\r\n/>[") & 0xff), at);
}

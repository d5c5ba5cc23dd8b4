/* SPDX-License-Identifier: MIT
 *
 * XML of dumps, read as a stream: a call for each element that opens and closes. Entities cannot
 * be declared and nothing outside the text is fetched, so a file costs time linear in its size.
 */
#ifndef CALIBRATE_DETECT_XML_H
#define CALIBRATE_DETECT_XML_H

#include "calibrate/import.h"

#define XML_DEPTH_MAX  256u
#define XML_TEXT_BYTES 4096u /* longer text of one element is cut */

struct xml_element {
    const char *name;
    const char *const *attributes; /* name, value, ..., NULL; none when it closes */
    const char *text;              /* of the element that closes, without blanks around */
    uint32_t depth, line;          /* depth 0: the root */
};

struct xml_handler {
    void (*open)(void *user, const struct xml_element *element);
    void (*close)(void *user, const struct xml_element *element); /* may be NULL */
    void *user;
};

/* returns TY_OK, TY_ERR_INPUT (error names file and line), TY_ERR_NOMEM. */
ty_status xml_read(const struct import_file *file, const struct xml_handler *handler,
                   struct ty_error *error);
/* "" when the element has none of that name. */
const char *xml_attribute(const struct xml_element *element, const char *name);
/* Name of the root element, "" when the text does not begin like XML. */
void xml_root(const struct import_file *file, char *out, size_t bytes);

#endif

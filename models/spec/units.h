/* SPDX-License-Identifier: MIT
 * Numbers with units, the one place that knows prefixes. See also ty_quantity_parse and
 * ty_quantity_text. */
#ifndef MODELS_SPEC_UNITS_H
#define MODELS_SPEC_UNITS_H

#include "include/trainyard.h"

#define QUANTITY_BYTES 48

/* True when a number of this unit stands alone: counts, ratios, tokens. */
bool unit_is_bare(enum ty_unit unit);
/* The shortest text that reads back to the same bits: "50 GB/s", "14 us". returns out. */
const char *quantity_write(double value, enum ty_unit unit, char out[QUANTITY_BYTES]);
/* An example for refusals: "400 Gb/s". */
const char *unit_example(enum ty_unit unit);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Levenshtein distance by rows:  d[i][j] = min(d[i-1][j] + 1, d[i][j-1] + 1, d[i-1][j-1] + (a !=
 * b))
 */
#include "include/trainyard_tools.h"

#include <string.h>

#define LONGEST 63

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t ty_text_distance(const char *a, const char *b)
{
    size_t n_a = smaller(strlen(a), LONGEST), n_b = smaller(strlen(b), LONGEST);
    size_t row[LONGEST + 1];
    for (size_t j = 0; j <= n_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = smaller(replaced, smaller(row[j], row[j - 1]) + 1);
        }
    }
    return row[n_b];
}

/* SPDX-License-Identifier: MIT
 * Status texts and the version. */
#include "include/trainyard.h"

const char *ty_status_text(ty_status status)
{
    switch (status) {
#define X(name, value, text)                                                                       \
    case name:                                                                                     \
        return text;
        TY_STATUS_LIST(X)
#undef X
    }
    return "unknown status";
}

const char *ty_version(void)
{
    return TY_VERSION;
}

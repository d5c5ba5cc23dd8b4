/* SPDX-License-Identifier: MIT
 * Errors and warnings on standard error. */
#include "cli/cli.h"
#include <stdarg.h>

ty_status cli_refuse(struct ty_error *error, const char *where, const char *format, ...)
{
    va_list args;
    error->code = TY_ERR_INPUT;
    snprintf(error->where, sizeof error->where, "%s", where);
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return TY_ERR_INPUT;
}

int cli_fail(const struct ty_error *error)
{
    fprintf(stderr, "trainyard: %s%s%s\n", error->where, *error->where ? ": " : "",
            *error->text ? error->text : ty_status_text(error->code));
    switch (error->code) {
    case TY_ERR_INPUT:
    case TY_ERR_RANGE:
    case TY_ERR_UNSUPPORTED:
        return CLI_BAD_INPUT;
    case TY_ERR_INFEASIBLE:
        return CLI_INFEASIBLE;
    default:
        return CLI_FAILED;
    }
}

void cli_warn(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("trainyard: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

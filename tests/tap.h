/* SPDX-License-Identifier: MIT
 * The test harness: TAP on standard output, read by prove. A test program calls ok() and its
 * kin and ends with `return tap_done();`. */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_count, tap_failed;

__attribute__((format(printf, 2, 3), unused)) static bool ok(bool passed, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("%sok %d - ", passed ? "" : "not ", ++tap_count);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
    tap_failed += !passed;
    return passed;
}

/* |got - want| <= relative * |want| */
__attribute__((unused)) static bool near(double got, double want, double relative, const char *what)
{
    bool good = fabs(got - want) <= relative * fabs(want);
    ok(good, "%s", what);
    if (!good)
        printf("#   got %.17g, want %.17g (relative error %.3g, allowed %.3g)\n", got, want,
               want != 0.0 ? fabs(got / want - 1.0) : (double)INFINITY, relative);
    return good;
}

/* |got - want| <= absolute */
__attribute__((unused)) static bool within(double got, double want, double absolute,
                                           const char *what)
{
    bool good = fabs(got - want) <= absolute;
    ok(good, "%s", what);
    if (!good)
        printf("#   got %.17g, want %.17g +- %.3g\n", got, want, absolute);
    return good;
}

__attribute__((unused)) static bool same_text(const char *got, const char *want, const char *what)
{
    bool good = strcmp(got, want) == 0;
    ok(good, "%s", what);
    if (!good)
        printf("#   got  \"%s\"\n#   want \"%s\"\n", got, want);
    return good;
}

__attribute__((unused)) static void skip(const char *what, const char *why)
{
    printf("ok %d - %s # SKIP %s\n", ++tap_count, what, why);
}

/* The folder of shared test material: $TRAINYARD_SHARED, else ../shared; may not exist. */
__attribute__((unused)) static const char *shared_path(const char *name)
{
    static char path[1024];
    const char *folder = getenv("TRAINYARD_SHARED");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "../shared", name);
    return path;
}

__attribute__((unused)) static int tap_done(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed != 0;
}

#endif

/* SPDX-License-Identifier: MIT
 * `trainyard version`: what a bug report needs. */
#include "cli/cli.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Both from the Makefile. */
#ifndef TY_BUILD_FLAGS
#define TY_BUILD_FLAGS     "unknown"
#define TY_BUILD_LIBRARIES "unknown"
#endif

#ifdef __clang__
#define COMPILER "" /* its version text names it */
#else
#define COMPILER "gcc "
#endif

bool cli_program_found(const char *name)
{
    const char *path = getenv("PATH");
    while (path && *path) {
        char file[512];
        size_t length = strcspn(path, ":");
        snprintf(file, sizeof file, "%.*s/%s", (int)length, path, name);
        if (access(file, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

int cmd_version(struct cli_args *args)
{
    (void)args;
    printf("trainyard %s\n", ty_version());
    printf("compiler   %s%s\n", COMPILER, __VERSION__);
    printf("flags      %s\n", TY_BUILD_FLAGS);
    printf("libraries  %s\n", TY_BUILD_LIBRARIES);
    printf("gnuplot    %s\n", cli_program_found("gnuplot") ? "found"
                                                           : "not found: report writes data and "
                                                             "scripts only");
    char measure[512];
    printf("cuda       %s\n", cli_find_measure(measure, sizeof measure)
                                  ? measure
                                  : "no trainyard-measure: CUDA devices are not measured; make "
                                    "CUDA=1 builds it");
    return CLI_OK;
}

/* SPDX-License-Identifier: MIT
 * `trainyard calibrate measure --device cuda`: runs trainyard-measure, the program that `make
 * CUDA=1` builds beside trainyard, and passes its options and exit status on. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Beside this program, else along PATH. returns false when it is nowhere. */
static bool find_program(char *out, size_t bytes)
{
    const ssize_t n = readlink("/proc/self/exe", out, bytes - 32);
    char *slash = NULL;
    if (n > 0) {
        out[n] = '\0';
        slash = strrchr(out, '/');
    }
    if (slash) {
        strcpy(slash + 1, "trainyard-measure");
        if (access(out, X_OK) == 0)
            return true;
    }
    snprintf(out, bytes, "trainyard-measure");
    return cli_program_found(out);
}

static int run_program(char *const argv[])
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        execvp(argv[0], argv);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0) {
        cli_warn("%s: %s", argv[0], strerror(errno));
        return CLI_FAILED;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : CLI_FAILED;
}

int cli_measure_cuda(struct cli_args *args, double budget_s)
{
    char program[512], budget[32];
    const char *argv[12];
    int n = 0;
    if (!find_program(program, sizeof program)) {
        cli_warn("trainyard-measure is not there: this trainyard was built without CUDA; `make "
                 "CUDA=1` builds it where nvcc and NCCL are");
        return CLI_NO_DEVICE;
    }
    snprintf(budget, sizeof budget, "%.17g", budget_s);
    argv[n++] = program;
    argv[n++] = "--budget";
    argv[n++] = budget;
    argv[n++] = "--out";
    argv[n++] = args->out;
    if (args->measure.resume)
        argv[n++] = "--resume";
    if (args->quiet)
        argv[n++] = "--quiet";
    argv[n] = NULL;
    return run_program((char *const *)argv);
}

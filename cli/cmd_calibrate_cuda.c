/* SPDX-License-Identifier: MIT
 * `trainyard calibrate measure --device cuda`: runs trainyard-measure, the program that `make
 * CUDA=1` builds beside trainyard, and passes its options and exit status on. */
#include "cli/cli.h"

#include "include/trainyard_measured.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

bool cli_find_measure(char *out, size_t bytes)
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

/* ---- shapes of a model ----------------------------------------------------------------------- */

struct shapes {
    FILE *out;
    double mbs;
};

static const char *precision_name(int precision)
{
    static const char *const names[] = {
#define X(id, name, bytes) name,
        TY_PRECISION_LIST(X)
#undef X
    };
    return names[precision];
}

/* "gemm forward bf16 m n k", "grouped_gemm forward bf16 groups m n k", "attention fwd bf16 batch
 * heads seq dim"; a shape that layers share stands there once for each. */
static void write_shape(void *user, const struct ty_shape *shape)
{
    static const char *const directions[] = {"forward", "dgrad", "wgrad"};
    const struct shapes *to = user;
    const struct ty_measured_gemm *gemm = &shape->gemm;
    const struct ty_measured_attention *attention = &shape->attention;
    if (shape->work == TY_WORK_ATTENTION)
        fprintf(to->out, "attention %s %s %.0f %.0f %.0f %.0f\n",
                attention->direction == TY_FORWARD ? "fwd" : "bwd",
                precision_name(attention->precision), to->mbs, attention->batch_heads / to->mbs,
                attention->seq, attention->head_dim);
    else if (shape->work == TY_WORK_GEMM && gemm->grouped)
        fprintf(to->out, "grouped_gemm %s %s %.0f %.0f %.0f %.0f\n", directions[gemm->direction],
                precision_name(gemm->precision), gemm->groups, ceil(gemm->m), gemm->n, gemm->k);
    else if (shape->work == TY_WORK_GEMM)
        fprintf(to->out, "gemm %s %s %.0f %.0f %.0f\n", directions[gemm->direction],
                precision_name(gemm->precision), gemm->m, gemm->n, gemm->k);
}

/* Into a new file at the template `path`. The cluster has no say in shapes; any will do. */
static int write_shapes(struct cli_args *args, char *path)
{
    struct ty_error error = {0};
    struct ty_model model;
    struct ty_plan plan;
    struct ty_cluster cluster;
    struct ty_profile profile;
    if (cli_load_model(args, args->model, &model, &error) != TY_OK ||
        cli_load_plan(args, &plan, &error) != TY_OK ||
        ty_cluster_load("dgx-h100", &cluster, &error) != TY_OK ||
        ty_profile_load(NULL, NULL, &cluster, &profile, &error) != TY_OK)
        return cli_fail(&error);
    const int file = mkstemp(path);
    struct shapes to = {.out = file >= 0 ? fdopen(file, "w") : NULL,
                        .mbs = plan.mbs ? plan.mbs : 1};
    if (!to.out) {
        cli_warn("%s: %s", path, strerror(errno));
        return CLI_FAILED;
    }
    const ty_status status =
        ty_plan_shapes(&model, &cluster, &profile, &plan, write_shape, &to, &error);
    if (fclose(to.out) != 0)
        return CLI_FAILED;
    return status == TY_OK ? CLI_OK : cli_fail(&error);
}

int cli_measure_cuda(struct cli_args *args, double budget_s)
{
    char program[512], budget[32], list[] = "/tmp/trainyard-shapes-XXXXXX";
    const char *argv[12];
    int n = 0;
    if (!cli_find_measure(program, sizeof program)) {
        cli_warn("trainyard-measure is not there: this trainyard was built without CUDA; `make "
                 "CUDA=1` builds it where nvcc and NCCL are");
        return CLI_NO_DEVICE;
    }
    if (args->measure.ranks || args->measure.blas || args->measure.folder)
        cli_warn("unused: --%s (the other devices read it)", args->measure.ranks  ? "ranks"
                                                             : args->measure.blas ? "blas"
                                                                                  : "folder");
    cli_warn_unused(args, args->model ? 1u << TY_KIND_MODEL | 1u << TY_KIND_PLAN : 0);
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
    const bool limited = args->model != NULL;
    if (limited) {
        const int status = write_shapes(args, list);
        if (status != CLI_OK)
            return status;
        argv[n++] = "--shapes";
        argv[n++] = list;
    }
    argv[n] = NULL;
    const int status = run_program((char *const *)argv);
    if (limited)
        unlink(list);
    return status;
}

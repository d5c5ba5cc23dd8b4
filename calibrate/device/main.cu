/* SPDX-License-Identifier: MIT
 * trainyard-measure: options, ranks, the list of points and the budget. */
#include "calibrate/device/device.h"

#include <algorithm>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <time.h>
#include <unistd.h>
#include <vector>

static const size_t ARENA_BYTES = (size_t)16 << 30, PINNED_BYTES = (size_t)256 << 20;
static const double ARENA_SHARE = 0.6;  /* of the free memory at most */
static const double KERNEL_SHARE = 0.5; /* of the budget, when there are collectives too */
static const double WARM_S = 20e-3, SAMPLE_S = 200e-6;

/* ---- return codes ---------------------------------------------------------------------------- */

static bool told(bool ok, const char *what, const char *text, const char *file, int line)
{
    if (!ok)
        fprintf(stderr, "trainyard-measure: %s:%d: %s: %s\n", file, line, what, text);
    return ok;
}

bool cuda_ok(cudaError_t code, const char *what, const char *file, int line)
{
    return told(code == cudaSuccess, what, cudaGetErrorString(code), file, line);
}

bool blas_ok(cublasStatus_t code, const char *what, const char *file, int line)
{
    return told(code == CUBLAS_STATUS_SUCCESS, what, cublasGetStatusString(code), file, line);
}

bool nccl_ok(ncclResult_t code, const char *what, const char *file, int line)
{
    return told(code == ncclSuccess, what, ncclGetErrorString(code), file, line);
}

/* ---- time and memory ------------------------------------------------------------------------- */

double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void *take(struct session *session, size_t bytes)
{
    const size_t whole = (bytes + 255) / 256 * 256;
    if (whole > session->arena_bytes)
        return NULL;
    if (whole > session->arena_bytes - session->at)
        session->at = 0;
    char *at = session->device[0].arena + session->at;
    session->at += whole;
    return at;
}

/* Seconds of `repeat` runs by events. */
static bool time_runs(struct session *session, const struct work *work, int repeat, double *time_s)
{
    const cudaStream_t stream = session->device[0].stream;
    cudaEvent_t start, end;
    float ms = 0.0f;
    bool ok = CUDA(cudaEventCreate(&start)) && CUDA(cudaEventCreate(&end)) && CUDA(cudaEventRecord(start, stream));
    for (int i = 0; ok && i < repeat; i++)
        ok = work->issue(session, work->arg);
    ok = ok && CUDA(cudaEventRecord(end, stream)) && CUDA(cudaEventSynchronize(end)) &&
         CUDA(cudaEventElapsedTime(&ms, start, end));
    cudaEventDestroy(start);
    cudaEventDestroy(end);
    *time_s = 1e-3 * (double)ms;
    return ok;
}

bool time_work(struct session *session, const struct work *work, double slice_s, struct timing *out)
{
    double time_s = 0.0, one_s = 1e-6;
    out->n = 0;
    const double start = now_s(), warm_s = session->options.brief ? 0.0 : WARM_S;
    do {
        if (!time_runs(session, work, 1, &time_s))
            return false;
        one_s = std::max(time_s, 1e-7);
    } while (now_s() - start < warm_s);
    const int repeat = session->options.brief ? 1 : (int)std::min(std::max(ceil(SAMPLE_S / one_s), 1.0), 1000.0);
    for (const double until = now_s() + slice_s;
         out->n < FEWEST_SAMPLES || (out->n < MOST_SAMPLES && now_s() < until);) {
        if (!time_runs(session, work, repeat, &time_s))
            return false;
        out->s[out->n++] = time_s / repeat;
    }
    return true;
}

/* ---- which points ---------------------------------------------------------------------------- */

static void add(std::vector<point> &list, const char *kind, const char *name, const char *dtype, double a, double b,
                double c, double d)
{
    struct point point = {kind, "", "", {a, b, c, d}};
    snprintf(point.name, sizeof point.name, "%s", name);
    snprintf(point.dtype, sizeof point.dtype, "%s", dtype);
    list.push_back(point);
}

/* The three GEMMs of a linear layer. */
static void add_linear(std::vector<point> &list, const char *dtype, double m, double n, double k)
{
    add(list, "gemm", "forward", dtype, m, n, k, 0);
    add(list, "gemm", "dgrad", dtype, m, k, n, 0);
    add(list, "gemm", "wgrad", dtype, k, n, m, 0);
}

/* Layers of 8 billion parameters and of smaller models, as a grid. */
static void add_grid(std::vector<point> &list)
{
    static const char *const dtypes[] = {"bf16", "fp8", "fp16", "tf32"};
    static const double shapes[][2] = {{6144, 4096}, {4096, 4096}, {28672, 4096}, {4096, 14336}, {3072, 1024}, {1024, 4096}};
    for (const char *dtype : dtypes)
        for (double tokens = 1024; tokens <= 8192; tokens *= 2)
            for (const auto &shape : shapes)
                add_linear(list, dtype, tokens, shape[0], shape[1]);
    for (double size = 128; size <= 2048; size *= 2)
        add(list, "gemm", "forward", "bf16", size, size, size, 0);
    for (double groups = 4; groups <= 64; groups *= 4)
        for (double tokens = 128; tokens <= 2048; tokens *= 4)
            add(list, "grouped_gemm", "forward", "bf16", groups, tokens, 4096, 2048);
    for (double seq = 1024; seq <= 8192; seq *= 2)
        for (double dim = 64; dim <= 128; dim *= 2)
            for (const char *passes : {"fwd", "bwd"})
                add(list, "attention", passes, "bf16", 1, 32, seq, dim);
}

/* Lines "gemm forward bf16 m n k", "grouped_gemm forward bf16 groups m n k",
 * "attention fwd bf16 batch heads seq dim", as trainyard calibrate measure --model writes them. */
static bool add_file(std::vector<point> &list, const char *path)
{
    static const char *const kinds[] = {"gemm", "grouped_gemm", "attention"};
    FILE *file = fopen(path, "r");
    char line[256], kind[24], name[24], dtype[8];
    if (!file) {
        perror(path);
        return false;
    }
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        double size[4] = {0, 0, 0, 0};
        const int n = sscanf(line, "%23s %23s %7s %lf %lf %lf %lf", kind, name, dtype, &size[0], &size[1], &size[2],
                             &size[3]);
        const char *known = NULL;
        for (const char *k : kinds)
            if (n >= 6 && strcmp(k, kind) == 0)
                known = k;
        if (!known) {
            fprintf(stderr, "trainyard-measure: %s:%d: is no shape\n", path, number);
            fclose(file);
            return false;
        }
        add(list, known, name, dtype, size[0], size[1], size[2], size[3]);
    }
    fclose(file);
    return true;
}

/* The shortest of every kernel: for compute-sanitizer. */
static void add_brief(std::vector<point> &list)
{
    for (const char *dtype : {"bf16", "fp8", "fp16", "tf32", "fp32"})
        add_linear(list, dtype, 256, 256, 256);
    add(list, "grouped_gemm", "forward", "bf16", 4, 128, 256, 256);
    for (const char *dtype : {"bf16", "fp16"})
        for (double dim = 64; dim <= 128; dim *= 2)
            for (const char *passes : {"fwd", "bwd"})
                add(list, "attention", passes, dtype, 1, 2, 256, dim);
}

static void add_rest(std::vector<point> &list, const struct session *session)
{
    static const char *const functions[] = {"norm", "activation", "loss", "permute", "cast", "adam", "copy", "triad"};
    const double most = session->options.brief ? 65536.0 : 268435456.0;
    for (double n = 65536; n <= most; n *= 4)
        for (const char *function : functions)
            add(list, "memory", function, "", n, 4096, 0, 0);
    add(list, "launch", "eager", "", 0, 0, 0, 0);
    add(list, "launch", "graph", "", 0, 0, 0, 0);
    for (double bytes = 4096; bytes <= (double)PINNED_BYTES && !(session->options.brief && bytes > 65536); bytes *= 16) {
        add(list, "copy", "h2d", "", bytes, 0, 0, 0);
        add(list, "copy", "d2h", "", bytes, 0, 0, 0);
        for (int from = 0; from < session->n_local; from++)
            for (int to = 0; to < session->n_local; to++)
                if (from != to)
                    add(list, "copy", "p2p", "", bytes, from, to, 0);
        if (session->n_local > 1)
            add(list, "copy", "p2p_all", "", bytes, 0, 1, 0);
    }
}

/* Kinds take turns: the i-th of n goes to the place (i + 1/2) / n. */
static void take_turns(std::vector<point> &list)
{
    std::vector<std::pair<double, size_t>> place;
    for (size_t i = 0; i < list.size(); i++) {
        double before = 0, all = 0;
        for (size_t k = 0; k < list.size(); k++)
            if (strcmp(list[k].kind, list[i].kind) == 0) {
                all++;
                before += k < i;
            }
        place.push_back({(before + 0.5) / all, i});
    }
    std::sort(place.begin(), place.end());
    std::vector<point> sorted;
    for (const auto &at : place)
        sorted.push_back(list[at.second]);
    list.swap(sorted);
}

/* ---- the run --------------------------------------------------------------------------------- */

static bool measure_point(struct session *session, const struct point *point, double slice_s)
{
    if (strcmp(point->kind, "gemm") == 0 || strcmp(point->kind, "grouped_gemm") == 0)
        return gemm_measure(session, point, slice_s);
    if (strcmp(point->kind, "attention") == 0)
        return attention_measure(session, point, slice_s);
    if (strcmp(point->kind, "memory") == 0)
        return memory_measure(session, point, slice_s);
    if (strcmp(point->kind, "copy") == 0)
        return copy_measure(session, point, slice_s);
    return launch_measure(session, point);
}

static void show(const struct session *session, size_t done, size_t total, double until_s)
{
    if (!session->options.quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "\r%zu of %zu points, %.0f s left\033[K", done, total, std::max(until_s - now_s(), 0.0));
}

/* returns false when the device is lost: no later call would succeed. */
static bool measure_kernels(struct session *session, std::vector<point> &list, double budget_s)
{
    const double until_s = now_s() + budget_s;
    size_t done = 0, left = 0, known = 0, impossible = 0;
    for (const auto &point : list) {
        show(session, done, list.size(), until_s);
        const double rest_s = until_s - now_s();
        done++;
        if (records_known(&point)) {
            known++;
        } else if (rest_s <= 0.0) {
            left++;
        } else if (!measure_point(session, &point, 0.5 * rest_s / (double)(list.size() - done + 1))) {
            impossible++;
            if (cudaGetLastError() != cudaSuccess && cudaDeviceSynchronize() != cudaSuccess)
                return false;
        }
    }
    fprintf(stderr, "\rkernels, launches, copies: %d points measured, %zu were there, %zu did not fit into the budget, %zu "
                    "this device cannot\033[K\n",
            records_written(), known, left, impossible);
    return true;
}

static bool open_device(struct device *device, size_t arena_bytes)
{
    return CUDA(cudaSetDevice(device->index)) && CUDA(cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking)) &&
           CUDA(cudaStreamCreateWithFlags(&device->beside, cudaStreamNonBlocking)) &&
           CUDA(cudaMalloc(&device->arena, arena_bytes)) && launch_fill(device->stream, arena_bytes, device->arena) &&
           CUDA(cudaStreamSynchronize(device->stream));
}

/* Devices may read each other where the links allow. */
static void open_peers(struct session *session)
{
    for (int i = 0; i < session->n_local; i++)
        for (int k = 0; k < session->n_local; k++) {
            int can = 0;
            const int a = session->device[i].index, b = session->device[k].index;
            if (i != k && cudaDeviceCanAccessPeer(&can, a, b) == cudaSuccess && can && CUDA(cudaSetDevice(a)))
                cudaDeviceEnablePeerAccess(b, 0);
        }
    cudaGetLastError();
}

static bool open_session(struct session *session)
{
    const struct options *options = &session->options;
    int n_devices = 0;
    size_t free_bytes = 0, total_bytes = 0;
    if (!CUDA(cudaGetDeviceCount(&n_devices)))
        return false;
    session->n_local = options->world > 1 ? 1 : std::min(n_devices, MAX_LOCAL);
    session->n_ranks = options->world > 1 ? options->world : session->n_local;
    session->n_nodes = 1;
    session->per_node = session->n_ranks;
    for (int i = 0; i < session->n_local; i++) {
        session->device[i].index = options->world > 1 ? options->local_rank % n_devices : i;
        session->device[i].rank = options->world > 1 ? options->rank : i;
    }
    if (!CUDA(cudaSetDevice(session->device[0].index)) || !CUDA(cudaMemGetInfo(&free_bytes, &total_bytes)))
        return false;
    session->arena_bytes = std::min(ARENA_BYTES, (size_t)(ARENA_SHARE * (double)free_bytes)) / 512 * 512;
    if (options->brief || options->check)
        session->arena_bytes = std::min(session->arena_bytes, (size_t)256 << 20);
    for (int i = 0; i < session->n_local; i++)
        if (!open_device(&session->device[i], session->arena_bytes))
            return false;
    open_peers(session);
    session->pinned_bytes = PINNED_BYTES;
    return CUDA(cudaSetDevice(session->device[0].index)) && CUDA(cudaMallocHost(&session->pinned, PINNED_BYTES)) &&
           BLAS(cublasLtCreate(&session->lt)) && BLAS(cublasCreate(&session->blas));
}

static int run(struct session *session)
{
    const struct options *options = &session->options;
    std::vector<point> list;
    if (!open_session(session))
        return 1;
    if (options->check)
        return check_kernels(session) == 0 ? 0 : 1;
    if (options->rank == 0 && !records_open(options))
        return 1;
    if (options->brief)
        add_brief(list);
    else if (!options->shapes)
        add_grid(list);
    else if (!add_file(list, options->shapes))
        return 2;
    add_rest(list, session);
    take_turns(list);
    session->deadline_s = now_s() + options->budget_s;
    const bool several = session->n_ranks > 1;
    if (options->rank == 0 && !measure_kernels(session, list, (several ? KERNEL_SHARE : 1.0) * options->budget_s)) {
        fprintf(stderr, "trainyard-measure: the device is lost\n");
        return 1;
    }
    if (several && comm_open(session))
        comm_measure_all(session, std::max(session->deadline_s - now_s(), 1.0));
    else if (several)
        fprintf(stderr, "trainyard-measure: no collectives: NCCL did not start\n");
    comm_close(session);
    if (options->rank != 0)
        return 0;
    fprintf(stderr, "%s: %d points measured on %d device%s\n", options->out, records_written(), session->n_ranks,
            several ? "s" : "; collectives need two");
    return records_close() ? 0 : 1;
}

/* ---- options --------------------------------------------------------------------------------- */

/* The rank as the launcher puts it into the environment: mpirun (Open MPI, MPICH), srun, torchrun. */
static int from_environment(const char *const names[], int otherwise)
{
    for (int i = 0; names[i]; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return otherwise;
}

static void find_rank(struct options *options)
{
    static const char *const rank[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK", NULL};
    static const char *const world[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "WORLD_SIZE", NULL};
    static const char *const local[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "LOCAL_RANK",
                                        NULL};
    options->world = std::max(from_environment(world, 1), 1);
    options->rank = options->world > 1 ? from_environment(rank, 0) : 0;
    options->local_rank = from_environment(local, options->rank);
}

static int usage(FILE *to, int status)
{
    fputs("usage: trainyard-measure --out R.jsonl [--budget SECONDS] [--shapes FILE] [--resume] [--quiet]\n"
          "                         [--id-file FILE] [--brief]\n"
          "       trainyard-measure --check     the own kernels against references\n"
          "       trainyard-measure --version\n"
          "Microbenchmarks of CUDA devices as records for trainyard calibrate fit. One process for all devices\n"
          "of a machine, or one a device under mpirun, srun or torchrun (--id-file: on storage that all see;\n"
          "default: OUT.nccl-id). Exit status 4: no device.\n",
          to);
    return status;
}

/* returns an exit status, -1: go on. */
static int read_options(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(name, "--help") == 0)
            return usage(stdout, 0);
        if (strcmp(name, "--version") == 0)
            return printf("trainyard-measure " TY_VERSION ", NCCL %d, CUDA %d\n", NCCL_VERSION_CODE, CUDART_VERSION) < 0;
        if (strcmp(name, "--resume") == 0)
            options->resume = true;
        else if (strcmp(name, "--quiet") == 0)
            options->quiet = true;
        else if (strcmp(name, "--check") == 0)
            options->check = true;
        else if (strcmp(name, "--brief") == 0)
            options->brief = true;
        else if (value && strcmp(name, "--out") == 0)
            options->out = argv[++i];
        else if (value && strcmp(name, "--shapes") == 0)
            options->shapes = argv[++i];
        else if (value && strcmp(name, "--id-file") == 0)
            options->id_file = argv[++i];
        else if (value && strcmp(name, "--budget") == 0)
            options->budget_s = atof(argv[++i]);
        else {
            fprintf(stderr, "trainyard-measure: %s: no such option, or its value is missing\n", name);
            return usage(stderr, 2);
        }
    }
    if (!options->out && !options->check)
        return usage(stderr, 2);
    if (!(options->budget_s > 0.0)) {
        fputs("trainyard-measure: --budget: needs seconds above 0\n", stderr);
        return 2;
    }
    return -1;
}

int main(int argc, char **argv)
{
    static struct session session;
    struct options *options = &session.options;
    int n_devices = 0;
    options->budget_s = 60.0;
    const int status = read_options(argc, argv, options);
    if (status >= 0)
        return status;
    find_rank(options);
    const std::string id_file = options->out ? std::string(options->out) + ".nccl-id" : "";
    if (!options->id_file)
        options->id_file = id_file.c_str();
    const cudaError_t found = cudaGetDeviceCount(&n_devices);
    if (found != cudaSuccess || n_devices == 0) {
        fprintf(stderr, "trainyard-measure: no CUDA device: %s\n",
                found != cudaSuccess ? cudaGetErrorString(found) : "the driver reports none");
        return EXIT_NO_DEVICE;
    }
    return run(&session);
}

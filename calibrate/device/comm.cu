/* SPDX-License-Identifier: MIT
 *
 * NCCL: every collective on every shape of group, all groups of a shape at once as in training, and a GEMM
 * beside a collective. One process with several devices or one process a device: all of them walk the same
 * list, and the first rank tells the others how often (a broadcast of one number). */
#include "calibrate/device/device.h"

#include <algorithm>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <string>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <vector>

static const double ID_WAIT_S = 120.0;
static const double LARGEST_BYTES = 4294967296.0;

/* ---- opening --------------------------------------------------------------------------------- */

static bool write_id(const char *path, const ncclUniqueId *id)
{
    const std::string part = std::string(path) + ".part";
    FILE *file = fopen(part.c_str(), "w");
    const bool ok = file && fwrite(id, sizeof *id, 1, file) == 1;
    if (!file || fclose(file) != 0 || !ok || rename(part.c_str(), path) != 0) {
        perror(path);
        return false;
    }
    return true;
}

/* Waits for the file of the first rank; one of an earlier job is older than this process. */
static bool read_id(const char *path, ncclUniqueId *id)
{
    const time_t began = time(NULL);
    for (const double until = now_s() + ID_WAIT_S; now_s() < until; usleep(50000)) {
        struct stat about;
        if (stat(path, &about) != 0 || about.st_mtime + 30 < began || about.st_size != sizeof *id)
            continue;
        FILE *file = fopen(path, "r");
        const bool ok = file && fread(id, sizeof *id, 1, file) == 1;
        if (file)
            fclose(file);
        if (ok)
            return true;
    }
    fprintf(stderr, "trainyard-measure: %s: the first rank did not write it within %.0f s\n", path, ID_WAIT_S);
    return false;
}

/* The same number on all ranks: that of the first. Through the end of the arena. */
static bool agree(struct session *session, int *value)
{
    if (session->options.world == 1)
        return true;
    int *at[MAX_LOCAL];
    bool ok = true;
    for (int i = 0; i < session->n_local; i++)
        at[i] = (int *)(session->device[i].arena + session->arena_bytes - 256);
    ok = CUDA(cudaMemcpyAsync(at[0], value, sizeof *value, cudaMemcpyHostToDevice, session->device[0].stream)) &&
         NCCL(ncclGroupStart());
    for (int i = 0; ok && i < session->n_local; i++)
        ok = NCCL(ncclBroadcast(at[i], at[i], 1, ncclInt, 0, session->device[i].comm, session->device[i].stream));
    return ok && NCCL(ncclGroupEnd()) &&
           CUDA(cudaMemcpyAsync(value, at[0], sizeof *value, cudaMemcpyDeviceToHost, session->device[0].stream)) &&
           CUDA(cudaStreamSynchronize(session->device[0].stream));
}

/* Ranks of one host are next to each other; hosts are told apart by a hash of their names. */
static bool count_nodes(struct session *session)
{
    char host[256] = "";
    unsigned long long hash = 1469598103934665603ull;
    std::vector<unsigned long long> all(session->n_ranks);
    gethostname(host, sizeof host - 1);
    for (const char *c = host; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211ull;
    bool ok = NCCL(ncclGroupStart());
    for (int i = 0; ok && i < session->n_local; i++) {
        struct device *d = &session->device[i];
        unsigned long long *own = (unsigned long long *)d->arena, *every = own + 32;
        ok = CUDA(cudaSetDevice(d->index)) &&
             CUDA(cudaMemcpy(own, &hash, sizeof hash, cudaMemcpyHostToDevice)) &&
             NCCL(ncclAllGather(own, every, 1, ncclUint64, d->comm, d->stream));
    }
    ok = ok && NCCL(ncclGroupEnd()) && CUDA(cudaSetDevice(session->device[0].index)) &&
         CUDA(cudaStreamSynchronize(session->device[0].stream)) &&
         CUDA(cudaMemcpy(all.data(), (unsigned long long *)session->device[0].arena + 32,
                         all.size() * sizeof all[0], cudaMemcpyDeviceToHost));
    session->n_nodes = 1;
    for (int i = 1; i < session->n_ranks; i++)
        session->n_nodes += all[i] != all[i - 1];
    session->per_node = session->n_ranks / session->n_nodes;
    return ok;
}

bool comm_open(struct session *session)
{
    const struct options *options = &session->options;
    ncclUniqueId id;
    const bool first = options->rank == 0;
    if (first && !NCCL(ncclGetUniqueId(&id)))
        return false;
    if (options->world > 1 && !(first ? write_id(options->id_file, &id) : read_id(options->id_file, &id)))
        return false;
    bool ok = NCCL(ncclGroupStart());
    for (int i = 0; ok && i < session->n_local; i++) {
        struct device *d = &session->device[i];
        ok = CUDA(cudaSetDevice(d->index)) && NCCL(ncclCommInitRank(&d->comm, session->n_ranks, id, d->rank));
    }
    ok = NCCL(ncclGroupEnd()) && ok && CUDA(cudaSetDevice(session->device[0].index));
    if (first && options->world > 1)
        unlink(options->id_file);
    return ok && count_nodes(session);
}

void comm_close(struct session *session)
{
    for (int i = 0; i < session->n_local; i++)
        if (session->device[i].comm)
            ncclCommDestroy(session->device[i].comm);
}

/* ---- groups ---------------------------------------------------------------------------------- */

struct group {
    int size, per_domain, index; /* index: this process's first device in its group */
    ncclComm_t comm[MAX_LOCAL];
    bool split;
};

/* size ranks next to each other, or one of each of size nodes; channels 0: NCCL's choice. */
static bool open_group(struct session *session, int size, bool across, int channels, struct group *out)
{
    *out = {};
    out->size = size;
    out->per_domain = across ? 1 : std::min(size, session->per_node);
    out->split = true;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    if (channels > 0)
        config.minCTAs = config.maxCTAs = channels;
    bool ok = NCCL(ncclGroupStart());
    for (int i = 0; ok && i < session->n_local; i++) {
        const int rank = session->device[i].rank, node = rank / session->per_node;
        const int color = across ? rank % session->per_node + session->per_node * (node / size) : rank / size;
        ok = CUDA(cudaSetDevice(session->device[i].index)) &&
             NCCL(ncclCommSplit(session->device[i].comm, color, rank, &out->comm[i], &config));
        if (i == 0)
            out->index = across ? node % size : rank % size;
    }
    return NCCL(ncclGroupEnd()) && CUDA(cudaSetDevice(session->device[0].index)) && ok;
}

static void close_group(struct session *session, struct group *group)
{
    for (int i = 0; i < session->n_local && group->split; i++)
        if (group->comm[i])
            ncclCommDestroy(group->comm[i]);
}

/* ---- collectives ----------------------------------------------------------------------------- */

static const char *const ops[] = {"all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv"};

/* One device's part. bytes as nccl-tests counts them. */
static bool issue_part(const char *op, size_t bytes, int n, const char *from, char *to, ncclComm_t comm,
                       cudaStream_t stream)
{
    const size_t part = bytes / n;
    int rank;
    if (strcmp(op, "all_reduce") == 0)
        return NCCL(ncclAllReduce(from, to, bytes / 2, ncclBfloat16, ncclSum, comm, stream));
    if (strcmp(op, "all_gather") == 0)
        return NCCL(ncclAllGather(from, to, part / 2, ncclBfloat16, comm, stream));
    if (strcmp(op, "reduce_scatter") == 0)
        return NCCL(ncclReduceScatter(from, to, part / 2, ncclBfloat16, ncclSum, comm, stream));
    if (!NCCL(ncclCommUserRank(comm, &rank)))
        return false;
    if (strcmp(op, "sendrecv") == 0)
        return NCCL(ncclSend(from, bytes, ncclInt8, (rank + 1) % n, comm, stream)) &&
               NCCL(ncclRecv(to, bytes, ncclInt8, (rank + n - 1) % n, comm, stream));
    for (int peer = 0; peer < n; peer++)
        if (!NCCL(ncclSend(from + peer * part, part, ncclInt8, peer, comm, stream)) ||
            !NCCL(ncclRecv(to + peer * part, part, ncclInt8, peer, comm, stream)))
            return false;
    return true;
}

static bool issue_collective(struct session *session, const struct group *group, const char *op, size_t bytes,
                             bool beside)
{
    bool ok = NCCL(ncclGroupStart());
    for (int i = 0; ok && i < session->n_local; i++) {
        struct device *d = &session->device[i];
        ok = issue_part(op, bytes, group->size, d->arena, d->arena + session->arena_bytes / 2, group->comm[i],
                        beside ? d->beside : d->stream);
    }
    return NCCL(ncclGroupEnd()) && ok;
}

/* `repeat` collectives between two events of the first device; seconds of one. */
static bool time_once(struct session *session, const struct group *group, const char *op, size_t bytes, int repeat,
                      double *time_s)
{
    const cudaStream_t stream = session->device[0].stream;
    cudaEvent_t start, end;
    float ms = 0.0f;
    bool ok = CUDA(cudaEventCreate(&start)) && CUDA(cudaEventCreate(&end)) && CUDA(cudaEventRecord(start, stream));
    for (int i = 0; ok && i < repeat; i++)
        ok = issue_collective(session, group, op, bytes, false);
    ok = ok && CUDA(cudaEventRecord(end, stream)) && CUDA(cudaEventSynchronize(end)) &&
         CUDA(cudaEventElapsedTime(&ms, start, end));
    cudaEventDestroy(start);
    cudaEventDestroy(end);
    *time_s = 1e-3 * (double)ms / repeat;
    return ok;
}

/* How many samples of how many runs: the first rank decides. */
static bool plan(struct session *session, double time_s, double slice_s, int *repeat, int *samples)
{
    *repeat = (int)std::min(std::max(200e-6 / std::max(time_s, 1e-7), 1.0), 1000.0);
    *samples = (int)std::min(std::max(slice_s / (*repeat * std::max(time_s, 1e-7)), (double)FEWEST_SAMPLES), 25.0);
    return agree(session, repeat) && agree(session, samples);
}

static bool measure_collective(struct session *session, const struct group *group, const char *op, double bytes,
                               double slice_s)
{
    struct timing timing = {};
    struct point point = {"collective", "", "bf16", {bytes, (double)group->size, (double)group->per_domain, 0}};
    char more[96];
    double time_s;
    int repeat, samples, skip;
    snprintf(point.name, sizeof point.name, "%s", op);
    skip = now_s() > session->deadline_s || records_known(&point);
    if (!agree(session, &skip))
        return false;
    if (skip)
        return true;
    for (int i = 0; i < 2; i++) /* warm up: connections are made at the first */
        if (!time_once(session, group, op, (size_t)bytes, 1, &time_s))
            return false;
    if (!plan(session, time_s, slice_s, &repeat, &samples))
        return false;
    for (timing.n = 0; timing.n < samples; timing.n++)
        if (!time_once(session, group, op, (size_t)bytes, repeat, &timing.s[timing.n]))
            return false;
    snprintf(more, sizeof more, ", \"nodes\": %d, \"in_place\": 0",
             std::max(1, group->size / std::max(group->per_domain, 1)));
    return session->options.rank != 0 || records_add(session, &point, &timing, more, "");
}

static double largest_bytes(const struct session *session)
{
    return std::min(LARGEST_BYTES, (double)(session->arena_bytes / 2));
}

static bool measure_group(struct session *session, int size, bool across, double budget_s)
{
    struct group group;
    bool ok = open_group(session, size, across, 0, &group);
    const double most = session->options.brief ? 1048576.0 : largest_bytes(session);
    const double slice_s = budget_s / (23.0 * 5.0);
    for (double bytes = 1024.0; ok && bytes <= most; bytes *= 2.0)
        for (const char *op : ops)
            ok = ok && measure_collective(session, &group, op, bytes, slice_s);
    close_group(session, &group);
    return ok;
}

/* ---- a GEMM beside a collective ---------------------------------------------------------------
 * Both alone, then together, as many of each as take about as long. What ends first was beside the other
 * all the time; the other ran the rest of its time alone:
 *
 *   beside = t_first / (n - (t - t_first) / alone) */

enum { GEMM = 4096 };
static const double OVERLAP_BYTES = 268435456.0, OVERLAP_S = 20e-3;

static bool issue_gemms(struct session *session, int n)
{
    const float one = 1.0f, zero = 0.0f;
    const size_t bytes = (size_t)GEMM * GEMM * 2;
    bool ok = BLAS(cublasSetStream(session->blas, session->device[0].stream));
    for (int i = 0; ok && i < n; i++) {
        const void *a = take(session, bytes), *b = take(session, bytes);
        void *c = take(session, bytes);
        ok = a && b && c &&
             BLAS(cublasGemmEx(session->blas, CUBLAS_OP_N, CUBLAS_OP_N, GEMM, GEMM, GEMM, &one, a, CUDA_R_16BF, GEMM, b,
                               CUDA_R_16BF, GEMM, &zero, c, CUDA_R_16BF, GEMM, CUBLAS_COMPUTE_32F,
                               CUBLAS_GEMM_DEFAULT));
    }
    return ok;
}

/* n_gemms and n_collectives at once; the time of each stream, 0 for none. */
static bool time_both(struct session *session, const struct group *group, size_t bytes, int n_gemms,
                      int n_collectives, double *gemm_s, double *collective_s)
{
    struct device *d = &session->device[0];
    cudaEvent_t at[4];
    float ms[2] = {0.0f, 0.0f};
    bool ok = true;
    for (auto &event : at)
        ok = ok && CUDA(cudaEventCreate(&event));
    ok = ok && CUDA(cudaEventRecord(at[0], d->stream)) && CUDA(cudaStreamWaitEvent(d->beside, at[0], 0)) &&
         CUDA(cudaEventRecord(at[2], d->beside));
    for (int i = 0; ok && i < n_collectives; i++)
        ok = issue_collective(session, group, "all_reduce", bytes, true);
    ok = ok && CUDA(cudaEventRecord(at[3], d->beside)) && issue_gemms(session, n_gemms) &&
         CUDA(cudaEventRecord(at[1], d->stream));
    for (int i = 0; ok && i < session->n_local; i++)
        ok = CUDA(cudaStreamSynchronize(session->device[i].beside)) &&
             CUDA(cudaStreamSynchronize(session->device[i].stream));
    ok = ok && CUDA(cudaEventElapsedTime(&ms[0], at[0], at[1])) && CUDA(cudaEventElapsedTime(&ms[1], at[2], at[3]));
    for (auto &event : at)
        cudaEventDestroy(event);
    *gemm_s = 1e-3 * (double)ms[0];
    *collective_s = 1e-3 * (double)ms[1];
    return ok;
}

static double beside_s(double first_s, double own_s, int n, double alone_s)
{
    if (own_s <= first_s)
        return own_s / n;
    const double during = n - (own_s - first_s) / alone_s;
    return during > 0.0 ? first_s / during : own_s / n;
}

static bool measure_overlap(struct session *session, int channels)
{
    const double bytes = session->options.brief ? 1048576.0 : std::min(OVERLAP_BYTES, largest_bytes(session));
    struct group group;
    double gemm_s = 0.0, collective_s = 0.0, unused, both[2];
    char more[128], values[256];
    int n_gemms, n_collectives;
    struct point point = {"overlap", "all_reduce", "bf16", {bytes, (double)channels, 0, 0}};
    bool ok = open_group(session, session->n_ranks, false, channels, &group);
    for (int i = 0; ok && i < 2; i++) /* the first warms up */
        ok = time_both(session, &group, (size_t)bytes, 10, 0, &gemm_s, &unused) &&
             time_both(session, &group, (size_t)bytes, 0, 10, &unused, &collective_s);
    gemm_s /= 10.0;
    collective_s /= 10.0;
    n_gemms = (int)std::min(std::max(ceil(OVERLAP_S / std::max(gemm_s, 1e-6)), 1.0), 1000.0);
    n_collectives = (int)std::min(std::max(ceil(OVERLAP_S / std::max(collective_s, 1e-6)), 1.0), 1000.0);
    ok = ok && agree(session, &n_gemms) && agree(session, &n_collectives) &&
         time_both(session, &group, (size_t)bytes, n_gemms, n_collectives, &both[0], &both[1]);
    if (ok && session->options.rank == 0) {
        const double first_s = std::min(both[0], both[1]);
        snprintf(more, sizeof more, ", \"ranks\": %d, \"nodes\": %d, \"m\": %d, \"n\": %d, \"k\": %d", session->n_ranks,
                 session->n_nodes, GEMM, GEMM, GEMM);
        snprintf(values, sizeof values,
                 "\"gemm_alone_s\": %.9g, \"gemm_beside_s\": %.9g, \"collective_alone_s\": %.9g, "
                 "\"collective_beside_s\": %.9g",
                 gemm_s, beside_s(first_s, both[0], n_gemms, gemm_s), collective_s,
                 beside_s(first_s, both[1], n_collectives, collective_s));
        ok = records_add(session, &point, NULL, more, values);
    }
    close_group(session, &group);
    return ok;
}

void comm_measure_all(struct session *session, double budget_s)
{
    std::vector<std::pair<int, bool>> shapes;
    for (int size = 2; size < session->n_ranks; size *= 2)
        if (session->n_ranks % size == 0)
            shapes.push_back({size, false});
    shapes.push_back({session->n_ranks, false});
    for (int size = 2; session->per_node > 1 && size <= session->n_nodes; size *= 2)
        if (session->n_nodes % size == 0)
            shapes.push_back({size, true});
    bool ok = true;
    static const int channel_counts[] = {0, 4, 16};
    for (const int channels : channel_counts)
        ok = ok && measure_overlap(session, channels);
    for (const auto &shape : shapes)
        ok = ok && measure_group(session, shape.first, shape.second, budget_s / shapes.size());
    if (!ok)
        fprintf(stderr, "trainyard-measure: collectives ended early\n");
}

/* SPDX-License-Identifier: MIT
 *
 * Storage below a folder: one test file, removed from its folder at once, so that nothing is left
 * whatever happens. Each point runs for its share of the budget with one thread a client. Direct
 * I/O goes past the host's memory; where the file system has none, records say so (page_cache).
 *
 * Loader, in three steps of the same work on a sample (tokens widened for the embedding): from
 * memory, from a file in the host's memory, from the disk. What differs is where the time goes. */
#define _GNU_SOURCE
#include "calibrate/measure.h"
#include "calibrate/statistics.h"
#include "sim/error.h"
#include "sim/random.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { ALIGN_BYTES = 4096, MOST_LATENCIES = 20000, MOST_CLIENTS = 4 };
static const double FILL_SHARE = 0.15; /* of the budget goes into writing the file */
static const double MOST_FILE_BYTES = 1073741824.0, FEWEST_FILE_BYTES = 4194304.0;
static const double FREE_SHARE = 0.1; /* of the free space at most */
#define CHUNK_BYTES  ((size_t)1 << 20)
#define CACHED_BYTES ((size_t)64 << 20)

struct store {
    struct measure_run *run;
    int direct, cached; /* two ways to the same file */
    bool is_direct;
    size_t bytes;
};

struct client {
    const struct store *store;
    const struct measure_point *point;
    pthread_t thread;
    uint32_t id, n_clients;
    double until_s, start_s, end_s;
    double *latency_s; /* [MOST_LATENCIES] */
    uint32_t n_latencies;
    uint64_t n_operations;
    int error;
};

/* ---- the file -------------------------------------------------------------------------------- */

static bool fill(struct store *store, char *chunk, double most_bytes)
{
    const double until_s = measure_now_s() + FILL_SHARE * store->run->options->budget_s;
    cpu_random(1, CHUNK_BYTES / sizeof(float), (float *)(void *)chunk);
    while ((double)store->bytes < most_bytes &&
           ((double)store->bytes < FEWEST_FILE_BYTES || measure_now_s() < until_s)) {
        ssize_t n = pwrite(store->direct, chunk, CHUNK_BYTES, (off_t)store->bytes);
        if (n < 0 && errno == EINVAL && store->is_direct) { /* opened, but not done */
            store->is_direct = false;
            close(store->direct);
            store->direct = dup(store->cached);
            continue;
        }
        if (n != (ssize_t)CHUNK_BYTES)
            break;
        store->bytes += CHUNK_BYTES;
    }
    return (double)store->bytes >= FEWEST_FILE_BYTES && fsync(store->cached) == 0;
}

static bool open_store(struct store *store, char *chunk, char *why, size_t why_bytes)
{
    const char *folder = store->run->options->folder ? store->run->options->folder : ".";
    char path[512];
    struct statvfs space;
    text_format(path, sizeof path, "%s/.trainyard-measure.%ld", folder, (long)getpid());
    store->cached = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (store->cached < 0) {
        text_format(why, why_bytes, "%.60s: %s", folder, strerror(errno));
        return false;
    }
    store->direct = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
    store->is_direct = store->direct >= 0;
    if (!store->is_direct)
        store->direct = dup(store->cached);
    unlink(path);
    double most_bytes = MOST_FILE_BYTES;
    if (fstatvfs(store->cached, &space) == 0)
        most_bytes = fmin(most_bytes, FREE_SHARE * (double)space.f_bavail * (double)space.f_frsize);
    if (fill(store, chunk, most_bytes))
        return true;
    text_format(why, why_bytes, "%.60s: no room for a test file of 4 MiB, ten times over", folder);
    return false;
}

/* ---- clients --------------------------------------------------------------------------------- */

static off_t place_of(struct client *client, struct random_stream *random, uint64_t i, size_t block)
{
    const size_t share = client->store->bytes / client->n_clients, n = share / block;
    const uint64_t at = *client->point->more == 'r' ? random_below(random, n) : i % n;
    return (off_t)(client->id * (share / CHUNK_BYTES * CHUNK_BYTES) + at * block);
}

static bool operate(struct client *client, off_t place, char *buffer, size_t block)
{
    const struct store *store = client->store;
    const char *op = client->point->name;
    if (strcmp(op, "read") == 0)
        return pread(store->direct, buffer, block, place) == (ssize_t)block;
    if (strcmp(op, "write") == 0)
        return pwrite(store->direct, buffer, block, place) == (ssize_t)block;
    return pwrite(store->cached, buffer, block, place) == (ssize_t)block &&
           fsync(store->cached) == 0;
}

static void *be_client(void *at)
{
    struct client *client = at;
    const size_t block = (size_t)client->point->size[0];
    struct random_stream random;
    void *buffer;
    random_init(&random, 1, client->id);
    if (posix_memalign(&buffer, ALIGN_BYTES, block) != 0) {
        client->error = ENOMEM;
        return NULL;
    }
    memset(buffer, 0x5a, block);
    client->start_s = client->end_s = measure_now_s();
    while (client->end_s < client->until_s && !client->error) {
        const double start_s = client->end_s;
        if (!operate(client, place_of(client, &random, client->n_operations, block), buffer, block))
            client->error = errno ? errno : EIO;
        client->end_s = measure_now_s();
        if (client->n_latencies < MOST_LATENCIES)
            client->latency_s[client->n_latencies++] = client->end_s - start_s;
        client->n_operations++;
    }
    free(buffer);
    return NULL;
}

/* Operations of all clients over the time from the first start to the last end. */
static bool report(struct store *store, const struct measure_point *point,
                   const struct client *clients, uint32_t n_clients)
{
    double start_s = HUGE_VAL, end_s = 0.0, sum_s = 0.0, n_operations = 0.0;
    uint32_t n = 0;
    double *all_s = malloc(n_clients * MOST_LATENCIES * sizeof *all_s);
    if (!all_s)
        return measure_send_none(store->run, "!no memory for its latencies");
    for (uint32_t i = 0; i < n_clients; i++) {
        start_s = fmin(start_s, clients[i].start_s);
        end_s = fmax(end_s, clients[i].end_s);
        n_operations += (double)clients[i].n_operations;
        for (uint32_t k = 0; k < clients[i].n_latencies; k++)
            sum_s += all_s[n++] = clients[i].latency_s[k];
    }
    stat_sort(all_s, n);
    struct record_fields values = {.n = 0};
    const double rate = n_operations / (end_s - start_s);
    if (strcmp(point->name, "fsync") != 0)
        record_number(&values, RECORD_VALUE, "bandwidth_bytes_per_s", rate * point->size[0]);
    record_number(&values, RECORD_VALUE, "operations_per_s", rate);
    record_number(&values, RECORD_VALUE, "latency_mean_s", sum_s / n);
    record_number(&values, RECORD_VALUE, "latency_p50_s", stat_quantile(all_s, n, 0.5));
    record_number(&values, RECORD_VALUE, "latency_p99_s", stat_quantile(all_s, n, 0.99));
    record_number(&values, RECORD_VALUE, "samples", n_operations);
    free(all_s);
    const bool waits = store->is_direct || strcmp(point->name, "fsync") == 0;
    return measure_send(store->run, point, &values, waits ? 0 : RECORD_PAGE_CACHE);
}

static bool run_clients(struct store *store, const struct measure_point *point, double slice_s)
{
    struct client clients[MOST_CLIENTS] = {{0}};
    const uint32_t n = (uint32_t)point->size[1];
    double *latencies = malloc(n * MOST_LATENCIES * sizeof *latencies);
    uint32_t started = 0;
    int failed = latencies ? 0 : ENOMEM;
    for (uint32_t i = 0; i < n && !failed; i++) {
        clients[i] = (struct client){.store = store,
                                     .point = point,
                                     .id = i,
                                     .n_clients = n,
                                     .until_s = measure_now_s() + slice_s,
                                     .latency_s = latencies + i * MOST_LATENCIES};
        failed = pthread_create(&clients[i].thread, NULL, be_client, &clients[i]);
        started += !failed;
    }
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(clients[i].thread, NULL);
        failed = failed ? failed : clients[i].error;
    }
    char why[120];
    text_format(why, sizeof why, "!storage %s: %s", point->name, strerror(failed));
    const bool sent =
        failed ? measure_send_none(store->run, why) : report(store, point, clients, n);
    free(latencies);
    return sent;
}

/* ---- loader ---------------------------------------------------------------------------------- */

static bool load(const struct store *store, const char *step, off_t place, char *sample,
                 size_t bytes)
{
    if (strcmp(step, "synthetic") == 0)
        return true;
    if (strcmp(step, "cached") == 0)
        return pread(store->cached, sample, bytes, place) == (ssize_t)bytes;
    if (!store->is_direct)
        posix_fadvise(store->cached, place, (off_t)bytes, POSIX_FADV_DONTNEED);
    return pread(store->direct, sample, bytes, place) == (ssize_t)bytes;
}

static bool run_loader(struct store *store, const struct measure_point *point, char *chunk,
                       double slice_s)
{
    const size_t bytes = (size_t)point->size[0], n_tokens = bytes / sizeof(uint16_t);
    const bool cold = strcmp(point->name, "cold") == 0;
    const size_t used = cold || store->bytes < CACHED_BYTES ? store->bytes : CACHED_BYTES;
    int32_t *wide = malloc(n_tokens * sizeof *wide);
    struct random_stream random;
    random_init(&random, 2, 0);
    for (size_t at = 0; !cold && at < used; at += CHUNK_BYTES)
        if (pread(store->cached, chunk, CHUNK_BYTES, (off_t)at) < 0)
            break;
    const double start_s = measure_now_s();
    double now_s = start_s, n = 0.0;
    bool ok = wide != NULL;
    for (; ok && now_s < start_s + slice_s; n++) {
        const off_t place = (off_t)(random_below(&random, used / bytes) * bytes);
        const uint16_t *tokens = (const uint16_t *)(const void *)chunk;
        ok = load(store, point->name, place, chunk, bytes);
        for (size_t i = 0; ok && i < n_tokens; i++)
            wide[i] = tokens[i];
        now_s = measure_now_s();
    }
    free(wide);
    if (!ok)
        return measure_send_none(store->run, "!loader: the file could not be read");
    struct record_fields values = {.n = 0};
    record_number(&values, RECORD_PARAMETER, "workers", 1.0);
    record_number(&values, RECORD_VALUE, "samples_per_s", n / (now_s - start_s));
    record_number(&values, RECORD_VALUE, "samples", n);
    return measure_send(store->run, point, &values,
                        cold && !store->is_direct ? RECORD_PAGE_CACHE : 0);
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool run_points(struct store *store, char *chunk)
{
    struct measure_run *run = store->run;
    bool sent = true;
    for (uint32_t i = 0; sent && i < run->list->n; i++) {
        const struct measure_point *point = &run->list->point[i];
        const double left_s = fmax(0.0, run->deadline_s - measure_now_s());
        const double slice_s = left_s / (run->list->n - i); /* one operation at least */
        sent = point->kind == RECORD_KIND_LOADER ? run_loader(store, point, chunk, slice_s)
                                                 : run_clients(store, point, slice_s);
    }
    return sent;
}

int measure_storage(struct measure_run *run)
{
    struct store store = {.run = run, .direct = -1, .cached = -1};
    void *chunk;
    char why[160];
    if (posix_memalign(&chunk, ALIGN_BYTES, CHUNK_BYTES) != 0)
        return 3;
    int status = 2;
    if (open_store(&store, chunk, why, sizeof why)) {
        text_format(why, sizeof why, "#a file of %zu MiB, %s", store.bytes >> 20,
                    store.is_direct ? "direct I/O"
                                    : "no direct I/O here: the host's memory may have served it");
        measure_send_none(run, why);
        status = run_points(&store, chunk) ? 0 : 1;
    } else {
        measure_send_none(run, why);
    }
    free(chunk);
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * Every sample, damaged: cut anywhere, with CRLF, in UTF-16, with bytes overwritten. It is read
 * like the whole one or refused with a reason, never more. A log of 100 MB takes seconds.
 */
#include "tests/micro_fixture.h"

#include "sim/random.h"
#include <unistd.h>

static const char *const samples[] = {"babelstream_h100.csv",
                                      "cookbook_mm_a100.out",
                                      "dlio_summary.json",
                                      "fio_randread.json",
                                      "ib_write_bw_hdr.txt",
                                      "ior_summary.txt",
                                      "mlperf_storage_report.json",
                                      "nccl_2.17_allreduce_b200x16.log",
                                      "nccl_2.19_allreduce_b200x16.json",
                                      "nccl_2.19_periter_allreduce_h100x16.log",
                                      "nccl_legacy2021_alltoall_a100x8.log",
                                      "nccl_mpirun_tag_allreduce_h100x16.log",
                                      "nccl_noisy_allreduce_h100x8.log",
                                      "nvbandwidth_gb200.json",
                                      "nvbandwidth_gb200.txt",
                                      "torch_all_reduce_bench_h200x8.md"};

static char scratch[] = "/tmp/trainyard-micro-XXXXXX";

struct bytes {
    char *at;
    size_t n;
};

static struct bytes load(const char *name)
{
    struct bytes out = {malloc(1 << 20), 0};
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", shared_path("data/micro/samples"), name);
    FILE *file = fopen(path, "rb");
    if (file && out.at)
        out.n = fread(out.at, 1, 1 << 20, file);
    if (file)
        fclose(file);
    return out;
}

static void save(const char *at, size_t n)
{
    FILE *file = fopen(scratch, "wb");
    if (!file || fwrite(at, 1, n, file) != n)
        printf("Bail out! cannot write %s\n", scratch);
    if (file)
        fclose(file);
}

/* Records of the bytes: their number, or -1 when they are refused; *sane: with a reason. */
static long records_of(const char *at, size_t n, bool *sane)
{
    struct ty_import import = {0};
    struct ty_error error = {0};
    save(at, n);
    const ty_status status = ty_import_file(scratch, &import, &error);
    const long found = status == TY_OK ? (long)import.n_records : -1;
    *sane = status == TY_OK ? import.n_records > 0 : status == TY_ERR_INPUT && *error.text;
    ty_import_free(&import);
    return found;
}

static void check_cut(const char *name, struct bytes whole, long n_whole)
{
    long most = 0;
    bool all_sane = true;
    for (size_t cut = 0; cut <= whole.n; cut += whole.n / 37 + 1) {
        bool sane;
        const long n = records_of(whole.at, cut, &sane);
        most = n > most ? n : most;
        all_sane = all_sane && sane;
    }
    ok(all_sane && most <= n_whole, "%s cut at 37 places", name);
}

static void check_forms(const char *name, struct bytes whole, long n_whole)
{
    char *form = malloc(2 * whole.n + 2);
    bool sane;
    size_t n = 0;
    for (size_t i = 0; i < whole.n; i++) {
        if (whole.at[i] == '\n')
            form[n++] = '\r';
        form[n++] = whole.at[i];
    }
    ok(records_of(form, n, &sane) == n_whole, "%s with CRLF: the same records", name);
    n = 0;
    form[n++] = (char)0xff;
    form[n++] = (char)0xfe;
    for (size_t i = 0; i < whole.n; i++) {
        form[n++] = whole.at[i];
        form[n++] = 0;
    }
    ok(records_of(form, n, &sane) == n_whole, "%s in UTF-16: the same records", name);
    free(form);
}

static void check_overwritten(const char *name, struct bytes whole)
{
    struct random_stream random;
    random_init(&random, 7, 0);
    char *copy = malloc(whole.n + 1);
    bool all_sane = true;
    for (int round = 0; round < 30; round++) {
        memcpy(copy, whole.at, whole.n);
        for (int i = 0; i < 20; i++)
            copy[random_u64(&random) % whole.n] = (char)random_u64(&random);
        bool sane;
        records_of(copy, whole.n, &sane);
        all_sane = all_sane && sane;
    }
    free(copy);
    ok(all_sane, "%s with 20 bytes overwritten, 30 times", name);
}

/* The debug lines of a large job before a small table. */
static void check_large(size_t bytes)
{
    static const char noise[] = "host:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P\n";
    static const char head[] = "# nThread 1 nGpus 1 minBytes 8 maxBytes 8\n";
    static const char table[] = "# size count type redop root time algbw busbw #wrong\n"
                                " 1048576 262144 float sum -1 100.0 10.49 19.66 0\n";
    char *text = malloc(bytes + 1);
    size_t n = 0;
    bool sane;
    memcpy(text, head, sizeof head - 1);
    n += sizeof head - 1;
    for (; n + sizeof noise + sizeof table < bytes; n += sizeof noise - 1)
        memcpy(text + n, noise, sizeof noise - 1);
    memcpy(text + n, table, sizeof table - 1);
    ok(records_of(text, n + sizeof table - 1, &sane) == 1, "one row behind %zu MB of debug lines",
       bytes >> 20);
    free(text);
}

int main(void)
{
    bool sane;
    const int file = mkstemp(scratch);
    if (file >= 0)
        close(file);
    ok(records_of("", 0, &sane) == -1 && sane, "an empty file is refused");
    ok(records_of("\n\n\n", 3, &sane) == -1 && sane, "so is one of empty lines");
    check_large(getenv("TRAINYARD_LONG") ? 100u << 20 : 2u << 20);
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        struct bytes whole = load(samples[i]);
        if (whole.n == 0) {
            skip(samples[i], "no shared material");
        } else {
            const long n = records_of(whole.at, whole.n, &sane);
            ok(n > 0, "%s: %ld records", samples[i], n);
            check_cut(samples[i], whole, n);
            check_forms(samples[i], whole, n);
            check_overwritten(samples[i], whole);
        }
        free(whole.at);
    }
    unlink(scratch);
    return tap_done();
}

/* SPDX-License-Identifier: MIT
 * What records must hold, by hand-written lines of each kind of docs/import.md. */
#include "calibrate/record_kinds.h"
#include "tests/tap.h"

static const struct {
    enum record_kind kind;
    const char *lacks; /* NULL: complete */
    const char *line;
} cases[] = {
    {RECORD_KIND_GEMM, NULL,
     "{\"kind\": \"gemm\", \"parameters\": {\"m\": 4096, \"n\": 8192, \"k\": 1024, \"dtype\": "
     "\"bf16\", \"direction\": \"wgrad\"}, \"values\": {\"time_s\": 1e-4}}"},
    {RECORD_KIND_GEMM, NULL,
     "{\"kind\": \"gemm\", \"parameters\": {\"m\": 1, \"n\": 2, \"k\": 3, \"dtype\": \"fp8\"}, "
     "\"values\": {\"rate_flops_per_s\": 1e12}}"},
    {RECORD_KIND_GEMM, "dtype",
     "{\"kind\": \"gemm\", \"parameters\": {\"m\": 1, \"n\": 2, \"k\": 3}, \"values\": "
     "{\"time_s\": "
     "1}}"},
    {RECORD_KIND_GEMM, "time_s",
     "{\"kind\": \"gemm\", \"parameters\": {\"m\": 1, \"n\": 2, \"k\": 3, \"dtype\": \"fp8\"}, "
     "\"values\": {\"time_s\": 0}}"},
    {RECORD_KIND_GROUPED_GEMM, "groups",
     "{\"kind\": \"grouped_gemm\", \"parameters\": {\"groups\": -8, \"m\": 1, \"n\": 2, \"k\": 3, "
     "\"dtype\": \"fp8\"}, \"values\": {\"time_s\": 1}}"},
    {RECORD_KIND_ATTENTION, NULL,
     "{\"kind\": \"attention\", \"parameters\": {\"batch\": 1, \"heads\": 32, \"seq_len\": 4096, "
     "\"head_dim\": 128, \"passes\": \"fwd\", \"dtype\": \"bf16\"}, \"values\": {\"time_s\": "
     "1e-3}}"},
    {RECORD_KIND_MEMORY, NULL,
     "{\"kind\": \"memory\", \"parameters\": {\"function\": \"norm\", \"moved_bytes\": 1e6}, "
     "\"values\": {\"time_s\": 1e-6}}"},
    {RECORD_KIND_LAUNCH, "mode", "{\"kind\": \"launch\", \"values\": {\"time_s\": 1e-6}}"},
    {RECORD_KIND_COPY, NULL,
     "{\"kind\": \"copy\", \"parameters\": {\"test\": \"h2d\", \"size_bytes\": 1e6}, \"values\": "
     "{\"time_s\": 1e-4}}"},
    {RECORD_KIND_COLLECTIVE, "ranks",
     "{\"kind\": \"collective\", \"parameters\": {\"op\": \"all_reduce\", \"size_bytes\": 8}, "
     "\"values\": {\"time_s\": 1e-5}}"},
    {RECORD_KIND_OVERLAP, "collective_beside_s",
     "{\"kind\": \"overlap\", \"parameters\": {\"op\": \"all_gather\", \"ranks\": 8}, \"values\": "
     "{\"gemm_alone_s\": 1e-3, \"gemm_beside_s\": 1.1e-3, \"collective_alone_s\": 1e-3}}"},
    {RECORD_KIND_STORAGE, NULL,
     "{\"kind\": \"storage\", \"parameters\": {\"op\": \"fsync\"}, \"values\": "
     "{\"latency_mean_s\": "
     "1e-3}}"},
    {RECORD_KIND_DECODE, NULL,
     "{\"kind\": \"decode\", \"parameters\": {\"format\": \"jpeg\", \"cores\": 1}, \"values\": "
     "{\"samples_per_s\": 200}}"},
    {RECORD_KIND_LOADER, "step", "{\"kind\": \"loader\", \"values\": {\"samples_per_s\": 200}}"},
    {RECORD_N_KINDS, NULL, "{\"kind\": \"network\", \"values\": {\"latency_s\": 1e-6}}"},
};

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct record_list list;
        record_list_init(&list);
        if (!ok(record_read(cases[i].line, "line", &list, NULL) == TY_OK && list.n == 1,
                "line %zu is a record", i)) {
            record_list_free(&list);
            continue;
        }
        ok(record_kind_of(&list.record[0]) == cases[i].kind, "its kind");
        const char *lacks = record_lacks(&list.record[0]);
        same_text(lacks ? lacks : "", cases[i].lacks ? cases[i].lacks : "", "what it lacks");
        record_list_free(&list);
    }
    same_text(record_kind_name(RECORD_KIND_GROUPED_GEMM), "grouped_gemm", "name of a kind");
    return tap_done();
}

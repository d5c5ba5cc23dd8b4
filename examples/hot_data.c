/* SPDX-License-Identifier: MIT
 * A data set of which one part is read far more often than the rest: where it lies on 16 nodes with
 * NVMe before a file system, which tier serves the reads, and how long it takes to move when the
 * hot part becomes another one.
 * cc hot_data.c $(pkg-config --cflags --libs trainyard) */
#include <stdio.h>
#include <trainyard_storage.h>

#define N_CLASSES 3

int main(void)
{
    /* 20 TB hot, 60 TB warm, 400 TB that nobody reads. Reads per second of all nodes. */
    const struct ty_data_class classes[N_CLASSES] = {{20e12, 8000}, {60e12, 2000}, {400e12, 0}};
    const double all_on_pfs[N_CLASSES][TY_N_TIERS] = {
        {[TY_TIER_PFS] = 20e12}, {[TY_TIER_PFS] = 60e12}, {[TY_TIER_PFS] = 400e12}};
    double placed[N_CLASSES][TY_N_TIERS], share[TY_N_TIERS], arriving[TY_N_TIERS], move_s;
    struct ty_cluster cluster;
    struct ty_storage storage;
    struct ty_error error;
    ty_init(TY_KIND_CLUSTER, &cluster);
    cluster.gpu.bf16_flop_per_s = 989e12;
    cluster.gpu.mem_bytes = 80e9;
    cluster.gpu.mem_bytes_per_s = 3.35e12;
    ty_init(TY_KIND_STORAGE, &storage);
    storage.tier[TY_TIER_NVME].capacity_bytes = 3.84e12;
    const struct ty_data data = {.cluster = &cluster, .storage = &storage, .n_nodes = 16,
        .tiers = 1u << TY_TIER_NVME | 1u << TY_TIER_PFS, .n_classes = N_CLASSES, .classes = classes};
    if (ty_data_place(&data, placed[0], share, &error) != TY_OK ||
        ty_data_move(&data, all_on_pfs[0], placed[0], 2e9, arriving, &move_s, &error) != TY_OK)
        return fprintf(stderr, "%s: %s\n", error.where, error.text), 1;
    printf("nvme holds %.2f TB and serves %.1f %% of the reads\n", arriving[TY_TIER_NVME] / 1e12,
           100.0 * share[TY_TIER_NVME]);
    printf("it fills in %.0f s at 2 GB/s a node\n", move_s);
    return 0;
}

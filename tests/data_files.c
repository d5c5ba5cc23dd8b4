/* SPDX-License-Identifier: MIT
 * The built-in data: every file loads, names itself, has a source, can be used and reads back from
 * its canonical form to the same bits. Spot values: handbook 4.1 and 6.1. */
#include "include/trainyard_tools.h"
#include "models/setting.h"
#include "tests/tap.h"

static struct ty_error error;

static bool reads_back(enum ty_kind kind, const void *value, size_t bytes)
{
    union {
        struct ty_cluster cluster;
        struct ty_profile profile;
    } back;
    char *text = ty_spec_write(kind, value);
    bool same = text &&
                ty_spec_parse(kind, text, strlen(text), "written", &back, &error) == TY_OK &&
                memcmp(value, &back, bytes) == 0;
    ty_text_free(text);
    return same;
}

static bool sorted(enum ty_kind kind)
{
    const char *previous = "", *name;
    for (size_t i = 0; (name = ty_builtin_name(kind, i)); i++) {
        if (strcmp(previous, name) >= 0)
            return false;
        previous = name;
    }
    return true;
}

static size_t test_gpus(void)
{
    const char *name;
    size_t n = 0;
    for (; (name = ty_builtin_name(TY_KIND_GPU, n)); n++) {
        struct ty_gpu gpu;
        bool loads = ty_gpu_load(name, &gpu, &error) == TY_OK;
        ok(loads && strcmp(gpu.name, name) == 0 && gpu.source[0] && gpu.arch[0] &&
               reads_back(TY_KIND_GPU, &gpu, sizeof gpu),
           "gpu %s %s %s", name, loads ? "" : error.where, loads ? "" : error.text);
    }
    return n;
}

/* Complete: only fields that a cluster may leave open are open. */
static bool is_complete(const struct ty_cluster *cluster)
{
    return !isnan(cluster->nic_bytes_per_s) && cluster->gpus_per_node && cluster->nics_per_node &&
           !isnan(cluster->oversubscription) && cluster->fabric;
}

static size_t test_clusters(void)
{
    const char *name;
    size_t n = 0;
    for (; (name = ty_builtin_name(TY_KIND_CLUSTER, n)); n++) {
        struct ty_cluster cluster, resolved;
        bool loads = ty_cluster_load(name, &cluster, &error) == TY_OK &&
                     cluster_resolve(&cluster, &resolved, NULL, &error) == TY_OK;
        ok(loads && strcmp(cluster.name, name) == 0 && cluster.source[0] && is_complete(&cluster) &&
               reads_back(TY_KIND_CLUSTER, &cluster, sizeof cluster),
           "cluster %s %s %s", name, loads ? "" : error.where, loads ? "" : error.text);
    }
    return n;
}

/* Every stack on every cluster leaves no constant to the priors. */
static void test_stacks(void)
{
    const char *stack, *name;
    for (size_t s = 0; (stack = ty_builtin_stack(s)); s++) {
        bool good = true;
        for (size_t i = 0; (name = ty_builtin_name(TY_KIND_CLUSTER, i)); i++) {
            struct ty_cluster cluster, resolved;
            struct ty_profile profile, complete;
            struct notes notes = {0};
            bool loads = ty_cluster_load(name, &cluster, &error) == TY_OK &&
                         cluster_resolve(&cluster, &resolved, NULL, &error) == TY_OK &&
                         ty_profile_load(NULL, stack, &cluster, &profile, &error) == TY_OK &&
                         profile_resolve(&profile, &resolved, &complete, &notes, &error) == TY_OK;
            if (!loads || notes.n != 1 || profile.default_sharding == TY_SHARDING_AUTO ||
                profile.default_attention == TY_KERNEL_AUTO || !profile.name[0] ||
                strncmp(profile.stack, stack, strcspn(stack, "@")) != 0) {
                printf("# %s on %s: %s %s\n", stack, name, error.where, error.text);
                good = false;
            }
        }
        ok(good, "stack %s on every cluster", stack);
    }
}

static void test_profiles(void)
{
    const char *name;
    for (size_t i = 0; (name = ty_builtin_name(TY_KIND_PROFILE, i)); i++) {
        struct ty_cluster cluster;
        struct ty_profile profile;
        bool loads = ty_cluster_load("dgx-a100", &cluster, &error) == TY_OK &&
                     ty_profile_load(name, NULL, &cluster, &profile, &error) == TY_OK;
        ok(loads && profile.source[0] && reads_back(TY_KIND_PROFILE, &profile, sizeof profile),
           "profile %s %s", name, loads ? "" : error.text);
    }
}

static void test_spots(void)
{
    struct ty_cluster cluster, resolved;
    struct ty_gpu gpu;
    ok(ty_gpu_load("h100-sxm", &gpu, &error) == TY_OK && gpu.sms == 132 && gpu.boost_hz == 1.83e9,
       "h100-sxm");
    /* UT-4.1: 1830 MHz x 512 x 528 x 2 */
    near(gpu.bf16_flop_per_s, 1830e6 * 512 * 528 * 2, 1e-3, "its peak is clock x tensor cores");
    ok(ty_gpu_load("a100-sxm-80gb", &gpu, &error) == TY_OK, "a100-sxm-80gb");
    near(gpu.bf16_flop_per_s, 1410e6 * 256 * 432 * 2, 1e-3, "its peak is clock x tensor cores");
    ok(ty_cluster_load("gb200-nvl72", &cluster, &error) == TY_OK &&
           cluster_resolve(&cluster, &resolved, NULL, &error) == TY_OK &&
           resolved.scaleup_domain == 72 && resolved.gpus_per_node == 4,
       "gb200-nvl72: 72 in a domain, 4 a node");
    ok(ty_cluster_load("hgx-h100-500w", &cluster, &error) == TY_OK &&
           cluster_resolve(&cluster, &resolved, NULL, &error) == TY_OK &&
           gpu_clock_ratio(&resolved) < 0.9 && resolved.gpu.mem_bytes_per_s == 2.4e12,
       "hgx-h100-500w: capped, slower memory");
    ok(ty_cluster_load("jeanzay-a100", &cluster, &error) == TY_OK &&
           cluster.nics_per_node * cluster.nic_bytes_per_s / 8 == 6.25e9,
       "jeanzay-a100: 6.25 GB/s per GPU (ACCURACY 1.9)");
}

int main(void)
{
    size_t n_gpus = test_gpus(), n_clusters = test_clusters();
    ok(n_gpus >= 30, "%zu GPUs", n_gpus);
    ok(n_clusters >= 16, "%zu clusters", n_clusters);
    ok(sorted(TY_KIND_GPU) && sorted(TY_KIND_CLUSTER) && sorted(TY_KIND_PROFILE),
       "names are sorted");
    test_stacks();
    test_profiles();
    test_spots();
    return tap_done();
}

/* SPDX-License-Identifier: MIT
 *
 * Fits of what should not be there: damaged lines are refused with their place, impossible records
 * dropped with the reason, too few ones leave the priors; a profile file reads back what was
 * fitted; the same records give the same bits; each allocation may fail. */
#include "calibrate/fit_records.h"
#include "include/trainyard_tools.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#include <unistd.h>

static char path[] = "/tmp/trainyard-damaged-XXXXXX";
static struct ty_cluster cluster;
static struct ty_error error;

/* ---- allocations that fail --------------------------------------------------------------------
 */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define OWN_MALLOC 0
static long n_left = -1;
#else
#define OWN_MALLOC 1
static long n_left = -1; /* allocations until the one that fails; below 0: none does */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);

static bool fails(void)
{
    return n_left >= 0 && n_left-- == 0;
}
void *malloc(size_t bytes)
{
    return fails() ? NULL : __libc_malloc(bytes);
}
void *calloc(size_t n, size_t bytes)
{
    return fails() ? NULL : __libc_calloc(n, bytes);
}
void *realloc(void *block, size_t bytes)
{
    return fails() ? NULL : __libc_realloc(block, bytes);
}
#endif

/* ---- files ------------------------------------------------------------------------------------
 */

#define GEMM(m, t)                                                                                 \
    "{\"kind\": \"gemm\", \"parameters\": {\"m\": " m                                              \
    ", \"n\": 4096, \"k\": 4096, \"dtype\": \"bf16\"}, \"values\": {\"time_s\": " t "}}\n"

static void write_text(const char *text, size_t bytes)
{
    FILE *file = fopen(path, "w");
    if (!file || fwrite(text, 1, bytes, file) != bytes || fclose(file) != 0) {
        puts("Bail out! no place for files");
        exit(1);
    }
}

static ty_status fit_text(const char *text, struct ty_calibration *fit)
{
    const char *const paths[] = {path};
    write_text(text, strlen(text));
    return ty_calibration_fit(paths, 1, &cluster, fit, &error);
}

static const struct ty_constant *constant(const struct ty_calibration *fit, const char *name)
{
    uint32_t i = 0;
    while (i + 1 < fit->n_constants && strcmp(fit->constants[i].field->path, name) != 0)
        i++;
    return &fit->constants[i];
}

static bool dropped(const struct ty_calibration *fit, const char *why)
{
    for (uint32_t i = 0; i < fit->n_drops; i++)
        if (strstr(fit->drops[i].why, why))
            return true;
    return false;
}

/* ---- refused ----------------------------------------------------------------------------------
 */

static void test_refused(void)
{
    static const char *const texts[] = {"",
                                        "\n\n",
                                        GEMM("4096", "1e-3") "{\"kind\": \"gemm\", \"param",
                                        "{\"kind\": \"gemm\"",
                                        GEMM("4096", "NaN"),
                                        GEMM("4096", "1e999"),
                                        GEMM("\"x", "1"),
                                        "{\"kind\": 7}\n",
                                        GEMM("4096", "1e-3") "not JSON\n",
                                        "{\"kind\": \"gemm\", \"values\": [1]}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct ty_calibration fit;
        ok(fit_text(texts[i], &fit) == TY_ERR_INPUT && *error.where && *error.text,
           "damaged %zu: %s: %.60s", i, error.where + strlen(path), error.text);
    }
    const char *const none[] = {"/nonexistent/records.jsonl"};
    struct ty_calibration fit;
    ok(ty_calibration_fit(none, 1, &cluster, &fit, &error) == TY_ERR_IO, "no such file");
}

/* Every prefix of good lines is fitted or refused. */
static void test_truncated(void)
{
    static const char text[] = GEMM("4096", "2e-4") GEMM("8192", "4e-4") GEMM("2048", "1.1e-4");
    const char *const paths[] = {path};
    bool survived = true;
    for (size_t bytes = 0; bytes < sizeof text; bytes += 3) {
        struct ty_calibration fit;
        write_text(text, bytes);
        const ty_status status = ty_calibration_fit(paths, 1, &cluster, &fit, &error);
        survived &= status == TY_OK || status == TY_ERR_INPUT;
        if (status == TY_OK)
            ty_calibration_free(&fit);
    }
    ok(survived, "every truncation is fitted or refused");
}

/* ---- dropped ----------------------------------------------------------------------------------
 */

static void test_dropped(void)
{
    static const char text[] =
        GEMM("4096", "0") GEMM("4096", "-1") GEMM("4096", "\"fast\"") GEMM("4096", "1e-9") GEMM(
            "1e300", "1") "{\"kind\": \"gemm\", \"parameters\": {\"m\": 1, \"n\": 1, \"k\": 1, "
                          "\"dtype\": \"int8\"}, \"values\": {\"time_s\": 1}}\n"
                          "{\"kind\": \"gemm\", \"parameters\": {\"m\": 64, \"n\": 64, \"k\": 64, "
                          "\"dtype\": "
                          "\"bf16\"}, \"values\": {\"time_us\": 12}}\n"
                          "{\"kind\": \"weather\", \"values\": {\"time_s\": 1}}\n"
                          "{\"kind\": \"launch\", \"parameters\": {\"mode\": \"sideways\"}, "
                          "\"values\": {\"time_s\": "
                          "1}}\n"
                          "{\"kind\": \"gemm\", \"parameters\": {\"m\": 64, \"n\": 64, \"k\": 64, "
                          "\"dtype\": "
                          "\"bf16\"}, \"values\": {\"time_s\": 1e-5}, \"hardware\": {\"gpu\": "
                          "\"A100-SXM4-80GB\"}}\n"
                          "{\"kind\": \"collective\", \"parameters\": {\"op\": \"all_reduce\", "
                          "\"size_bytes\": 8, "
                          "\"ranks\": 1}, \"values\": {\"time_s\": 1e-5}}\n"
                          "{\"kind\": \"collective\", \"parameters\": {\"op\": \"broadcast\", "
                          "\"size_bytes\": 8, "
                          "\"ranks\": 8}, \"values\": {\"time_s\": 1e-5}}\n"
                          "{\"kind\": \"gemm\", \"parameters\": {\"m\": 64, \"n\": 64, \"k\": 64, "
                          "\"dtype\": "
                          "\"bf16\"}, \"values\": {\"time_s\": 1e-5}, \"rejected\": \"a joke\"}\n";
    static const char *const reasons[] = {"gemm without time_s",  "faster than the peak",
                                          "no such time or size", "its dtype",
                                          "of a kind that no",    "neither eager nor graph",
                                          "of another GPU",       "no group of this machine",
                                          "steps do not use",     "rejected by its reader"};
    struct ty_calibration fit;
    if (!ok(fit_text(text, &fit) == TY_OK, "records of which none can be used"))
        return;
    ok(fit.n_records == 13 && fit.n_used == 0, "all %u of them are dropped", fit.n_records);
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        ok(dropped(&fit, reasons[i]), "dropped: %s", reasons[i]);
    bool priors = true;
    for (uint32_t i = 0; i < fit.n_constants; i++)
        priors &= fit.constants[i].state >= TY_CONSTANT_TOO_FEW &&
                  fit.constants[i].value == fit.constants[i].prior;
    ok(priors, "every constant is its prior, and says so");
    ok(fit.profile.fitted == 0 && isnan(fit.profile.gemm_ratio_16), "and none is in the profile");
    ty_calibration_free(&fit);
}

static void test_few(void)
{
    struct ty_calibration fit;
    if (!ok(fit_text(GEMM("4096", "3e-4") GEMM("8192", "6e-4"), &fit) == TY_OK, "two records"))
        return;
    ok(constant(&fit, "device.gemm_ratio_16")->state == TY_CONSTANT_TOO_FEW, "are too few");
    ok(fit.measured.n_gemms == 2, "but stay as measured shapes");
    ty_calibration_free(&fit);
    /* 100 equal records say one thing: the others of the form are not to be told from it */
    char text[100 * sizeof GEMM("4096", "1.5e-3")] = "";
    for (int i = 0; i < 100; i++)
        strcat(text, GEMM("4096", "1.5e-3"));
    if (!ok(fit_text(text, &fit) == TY_OK, "a hundred times the same shape"))
        return;
    const struct ty_constant *k0 = constant(&fit, "device.gemm_k0");
    ok(k0->state != TY_CONSTANT_TOO_FEW && k0->value >= k0->min && k0->value <= k0->max,
       "a singular problem: constants stay within their bounds");
    ok(fit.measured.n_gemms == 1 && fabs(fit.measured.gemms[0].time_s / 1.5e-3 - 1.0) < 1e-12,
       "one shape at its median");
    ty_calibration_free(&fit);
    /* 2 m n k = 137 Gflop in 137 us: 1001 Tflop/s, over the peak but within a boost */
    text[0] = '\0';
    for (int i = 0; i < 20; i++)
        strcat(text, GEMM("4096", "1.375e-4"));
    if (!ok(fit_text(text, &fit) == TY_OK, "faster than any form"))
        return;
    ok(constant(&fit, "device.gemm_ratio_16")->state == TY_CONSTANT_AT_MAX,
       "a constant at its bound is named");
    ty_calibration_free(&fit);
}

/* A processor whose kernels are shorter than the presets have them: 0.5 us for 1 kB, 1e-6 s/MB. */
static void test_short_kernels(void)
{
    char text[4096] = "";
    struct ty_calibration fit;
    for (double bytes = 1e3; bytes < 1e9; bytes *= 4.0)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "{\"kind\": \"memory\", \"parameters\": {\"function\": \"copy\", "
                 "\"moved_bytes\": %.0f}, \"values\": {\"time_s\": %.9g}}\n",
                 bytes, 0.5e-6 + bytes / 1e12);
    if (!ok(fit_text(text, &fit) == TY_OK, "kernels shorter than the presets have them"))
        return;
    ok(fit.n_used == fit.n_records, "are no outliers");
    ok(constant(&fit, "device.kernel_floor")->value <= 0.51e-6, "and lower the floor");
    ok(fit.profile.kernel_floor_s <= 0.51e-6, "also in the profile");
    near(constant(&fit, "device.mem_half_size")->value, 0.5e6, 0.02, "the ramp is found");
    ty_calibration_free(&fit);
}

static void test_monotone(void)
{
    /* blocks that fall become their geometric mean: (4, 1) -> 2; then 3 */
    double time_s[] = {1.0, 4.0, 1.0, 3.0};
    fit_monotone(time_s, 4);
    near(time_s[0], 1.0, 1e-12, "before");
    near(time_s[1], 2.0, 1e-12, "pooled");
    near(time_s[2], 2.0, 1e-12, "pooled");
    near(time_s[3], 3.0, 1e-12, "behind");
    double falling[] = {8.0, 4.0, 2.0};
    fit_monotone(falling, 3);
    ok(fabs(falling[0] - 4.0) < 1e-12 && falling[0] == falling[2], "all one block: 4");
}

/* ---- the file ---------------------------------------------------------------------------------
 */

static const char good[] = GEMM("4096", "2e-4") GEMM("8192", "4e-4") GEMM("2048", "1.1e-4")
    GEMM("1024", "7e-5") "{\"kind\": \"grouped_gemm\", \"parameters\": {\"groups\": 8, \"m\": 512, "
                         "\"n\": 2048, \"k\": "
                         "1024, \"dtype\": \"bf16\", \"direction\": \"wgrad\"}, \"values\": "
                         "{\"time_s\": 9e-5}}\n"
                         "{\"kind\": \"attention\", \"parameters\": {\"batch\": 1, \"heads\": 32, "
                         "\"seq_len\": 4096, "
                         "\"head_dim\": 128, \"passes\": \"bwd\", \"dtype\": \"bf16\"}, "
                         "\"values\": {\"time_s\": "
                         "1.5e-3}}\n"
                         "{\"kind\": \"memory\", \"parameters\": {\"function\": \"norm\", "
                         "\"moved_bytes\": 1e8}, "
                         "\"values\": {\"time_s\": 5e-5}}\n"
                         "{\"kind\": \"memory\", \"parameters\": {\"function\": \"cast\", "
                         "\"moved_bytes\": 1e9}, "
                         "\"values\": {\"time_s\": 4.1e-4}}\n"
                         "{\"kind\": \"collective\", \"parameters\": {\"op\": \"all_reduce\", "
                         "\"size_bytes\": 1048576, "
                         "\"ranks\": 8}, \"values\": {\"time_s\": 3e-5}}\n"
                         "{\"kind\": \"collective\", \"parameters\": {\"op\": \"all_reduce\", "
                         "\"size_bytes\": 16777216, "
                         "\"ranks\": 8}, \"values\": {\"time_s\": 1.2e-4}}\n";

static void test_round_trip(void)
{
    struct ty_calibration fit;
    struct ty_profile profile;
    struct ty_profile_tables tables;
    if (!ok(fit_text(good, &fit) == TY_OK, "records of every kind"))
        return;
    char *text = ty_calibration_json(&fit, "own");
    ok(text != NULL, "a profile file");
    write_text(text, strlen(text));
    if (!ok(ty_profile_load(path, NULL, &cluster, &profile, &error) == TY_OK &&
                ty_profile_tables_load(path, &cluster, &tables, &error) == TY_OK,
            "reads back"))
        printf("# %s: %s\n", error.where, error.text);
    same_text(profile.name, "own", "its name");
    ok(profile.calibrated && profile.fitted == fit.profile.fitted, "what is fitted");
    near(profile.gemm_k0, fit.profile.gemm_k0, 0.0, "a constant");
    const struct ty_measured *m = &tables.measured;
    ok(m->n_gemms == 5 && m->n_attentions == 1 && m->n_memory == 2 && tables.collectives.n == 1,
       "all tables");
    bool same = true;
    for (uint32_t i = 0; i < m->n_gemms; i++) {
        const struct ty_measured_gemm *a = &m->gemms[i], *b = &fit.measured.gemms[i];
        same &= a->m == b->m && a->k == b->k && a->direction == b->direction &&
                a->grouped == b->grouped && a->groups == b->groups && a->inner == b->inner &&
                fabs(a->time_s / b->time_s - 1.0) < 1e-14;
    }
    ok(same, "every GEMM");
    near(m->attentions[0].pairs, fit.measured.attentions[0].pairs, 0.0, "attention");
    near(tables.collectives.table[0].time_s[1], 1.2e-4, 1e-12, "collective");
    ok(tables.collectives.table[0].ranks_per_domain == 8, "its group");
    ty_profile_tables_free(&tables);

    struct ty_cluster other = cluster;
    other.nic_bytes_per_s *= 2.0;
    ok(ty_profile_tables_load(path, &other, &tables, &error) == TY_OK &&
           tables.measured.n_gemms == 5 && tables.collectives.n == 1,
       "another NIC: kernels stay, and collectives inside the domain");
    ty_profile_tables_free(&tables);
    fixture_a100(&other.gpu);
    ok(ty_profile_tables_load(path, &other, &tables, &error) == TY_OK &&
           tables.measured.n_gemms == 0 && tables.collectives.n == 0,
       "another GPU: no table is of it");
    ty_profile_tables_free(&tables);

    struct ty_calibration again;
    ok(fit_text(good, &again) == TY_OK, "the same records again");
    char *same_again = ty_calibration_json(&again, "own");
    same_text(same_again, text, "the same bits");
    ty_text_free(same_again);
    ty_text_free(text);
    ty_calibration_free(&again);
    ty_calibration_free(&fit);
}

static void test_damaged_profile(void)
{
    static const char *const texts[] = {
        "{\"measured\": 3}",
        "{\"measured\": {\"gemm\": {}}}",
        "{\"measured\": {\"gemm\": [{\"precision\": \"bf16\", \"direction\": \"up\"}]}}",
        "{\"measured\": {\"gemm\": [{\"precision\": \"bf16\", \"direction\": \"forward\", \"m\": "
        "0, \"n\": 1, \"k\": 1, \"time_us\": 1}]}}",
        "{\"measured\": {\"memory\": {\"size_bytes\": [1, 2], \"time_us\": [1]}}}",
        "{\"measured\": {\"memory\": {\"size_bytes\": [2, 1], \"time_us\": [1, 2]}}}",
        "{\"measured\": {\"memory\": {\"size_bytes\": [1, 2], \"time_us\": [2, 1]}}}",
        "{\"measured\": {\"tables\": [{\"op\": \"all_reduce\", \"ranks\": 8, \"ranks_per_domain\": "
        "9, \"source\": \"x\", \"size_bytes\": [1], \"time_us\": [1]}]}}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct ty_profile_tables tables;
        write_text(texts[i], strlen(texts[i]));
        ok(ty_profile_tables_load(path, &cluster, &tables, &error) == TY_ERR_INPUT &&
               tables.memory == NULL,
           "damaged profile %zu: %.80s", i, error.text);
    }
}

/* ---- memory -----------------------------------------------------------------------------------
 */

static void test_out_of_memory(void)
{
    if (!OWN_MALLOC) {
        skip("allocations that fail", "a sanitizer has its own");
        return;
    }
    const char *const paths[] = {path};
    write_text(good, sizeof good - 1);
    ty_status status = TY_ERR_NOMEM;
    bool reported = true;
    long n = 0;
    for (; status != TY_OK && n < 5000; n++) {
        struct ty_calibration fit;
        n_left = n;
        status = ty_calibration_fit(paths, 1, &cluster, &fit, &error);
        char *text = status == TY_OK ? ty_calibration_json(&fit, "x") : NULL;
        const bool failed = n_left < 0;
        n_left = -1;
        if (status != TY_OK && status != TY_ERR_NOMEM)
            printf("# allocation %ld: %s: %s\n", n, error.where, error.text);
        reported &= status == TY_OK || (status == TY_ERR_NOMEM && failed);
        if (status == TY_OK) {
            status = text ? TY_OK : TY_ERR_NOMEM;
            ty_calibration_free(&fit);
        }
        free(text);
    }
    ok(reported && status == TY_OK && n > 50, "each of %ld allocations may fail", n);
}

int main(void)
{
    const int fd = mkstemp(path);
    fixture_dgx_h100(&cluster);
    if (fd < 0)
        return 1;
    close(fd);
    test_refused();
    test_truncated();
    test_dropped();
    test_few();
    test_short_kernels();
    test_monotone();
    test_round_trip();
    test_damaged_profile();
    test_out_of_memory();
    remove(path);
    return tap_done();
}

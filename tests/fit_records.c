/* SPDX-License-Identifier: MIT
 *
 * Records to constants: times made here from known constants, by the equations of ACCURACY 1.1,
 * 1.2 and 1.5 written out once more, with 5 % of noise and 3 % of outliers, give them back within
 * 2 %; the state of each constant; what is dropped; monotone tables against a closed form. */
#include "calibrate/fit_records.h"
#include "sim/random.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#include <gsl/gsl_errno.h>
#include <unistd.h>

static const double NOISE = 0.05, OUTLIERS = 0.03;

/* An H100 as handbook 4.1 has it. */
static const double PEAK = 989e12, BW = 3.35e12, SMS = 132.0;
static struct ty_cluster cluster;
static struct ty_error error;
static char path[] = "/tmp/trainyard-fit-XXXXXX";

/* ---- the truth --------------------------------------------------------------------------------
 */

static const struct {
    double ratio_16, ratio_8, k0, wave, backward, mem, half_bytes, floor_s;
    double attention, half_seq, head_power, attention_backward;
    double ar, ag, latency_s, ramp, nic, growth, alltoall;
} truth = {0.62, 0.55, 240.0, 0.7,   1.12,  0.88, 3e6,  4.5e-6, 520e12, 900.0,
           0.45, 1.4,  360e9, 310e9, 21e-6, 0.7,  0.85, 1.9,    0.8};

/* Tiles and waves, or memory: ACCURACY 1.1. */
static double gemm_s(double m, double n, double k, bool fp8, bool backward, double extra_bytes)
{
    static const double tile[4][3] = {
        {256, 128, 1.0}, {128, 128, 0.95}, {128, 64, 0.82}, {64, 64, 0.68}};
    const double p = fp8 ? 2.0 * PEAK * truth.ratio_8 : PEAK * truth.ratio_16;
    const double in = fp8 ? 1.0 : 2.0;
    double best = INFINITY;
    for (int i = 0; i < 4; i++) {
        const double x = ceil(m / tile[i][0]) * ceil(n / tile[i][1]) / SMS;
        const double a = x + truth.wave * (ceil(x) - x), b = truth.wave + (1.0 - truth.wave) * x;
        const double waves = a > b ? a : b;
        const double t = waves * SMS * 2.0 * tile[i][0] * tile[i][1] *
                         (k + truth.k0 * (fp8 ? 2.0 : 1.0)) / (p * tile[i][2]);
        best = t < best ? t : best;
    }
    const double bytes = in * (m * k + k * n) + 2.0 * m * n + extra_bytes;
    const double memory_s = bytes / (BW * truth.mem);
    const double t = (best > memory_s ? best : memory_s) * (backward ? truth.backward : 1.0);
    return t > truth.floor_s ? t : truth.floor_s;
}

/* F s/(s + h): ACCURACY 1.2, without the limit of memory, which long sequences never meet. */
static double attention_s(double heads, double seq, double head_dim, bool backward)
{
    const double x = heads * ceil(seq / 128.0) / SMS;
    const double occupancy = x / (x + 0.5 * truth.wave * (ceil(x) - x));
    const double flop = 2.0 * heads * seq * seq * head_dim * (backward ? 2.5 : 1.0);
    const double rate = truth.attention * pow(fmin(1.0, head_dim / 128.0), truth.head_power) * seq /
                        (seq + truth.half_seq) * occupancy;
    return fmax(truth.floor_s, flop / rate * (backward ? truth.attention_backward : 1.0));
}

static double memory_s(double bytes)
{
    return fmax(truth.floor_s, (bytes + truth.half_bytes) / (BW * truth.mem));
}

/* ACCURACY 1.5: 450 GB/s NVLink, 50 GB/s NIC each, 14 us a hop, S0 of 12 MB. */
static double collective_s(bool reduce, double ranks, double bytes)
{
    const double factor = (reduce ? 2.0 : 1.0) * (ranks - 1.0) / ranks, nodes = ranks / 8.0;
    double b = reduce ? truth.ar : truth.ag, latency_s = truth.latency_s;
    if (nodes > 1.0) {
        b = fmin(b, 8.0 * 50e9 * truth.nic);
        latency_s += log2(nodes) * fmax(truth.growth * truth.latency_s, 2.0 * 14e-6);
    }
    return latency_s + factor * bytes / b * (1.0 + truth.ramp * sqrt(12e6 / bytes));
}

/* ---- its records ------------------------------------------------------------------------------
 */

static struct random_stream stream;

static double noisy(double time_s)
{
    if (random_unit(&stream) < OUTLIERS)
        time_s *= 2.0 + 3.0 * random_unit(&stream);
    return time_s * exp(NOISE * random_normal(&stream));
}

static double pick(double low, double high)
{
    return round(low * pow(high / low, random_unit(&stream)));
}

static void gemm_records(FILE *file, int n)
{
    for (int i = 0; i < n; i++) {
        static const char *const directions[] = {"forward", "dgrad", "wgrad"};
        const double m = 8.0 * pick(8, 2048), cols = 8.0 * pick(8, 2048), k = 8.0 * pick(8, 2048);
        const int direction = i % 3;
        const bool fp8 = i % 4 == 3;
        const double t =
            gemm_s(m, cols, k, fp8, direction > 0, direction == 2 ? 8.0 * m * cols : 0.0);
        fprintf(file,
                "{\"kind\": \"gemm\", \"parameters\": {\"m\": %g, \"n\": %g, \"k\": %g, \"dtype\": "
                "\"%s\", \"direction\": \"%s\"}, \"values\": {\"time_s\": %.9g}}\n",
                m, cols, k, fp8 ? "fp8" : "bf16", directions[direction], noisy(t));
    }
}

static void attention_records(FILE *file, int n)
{
    for (int i = 0; i < n; i++) {
        static const double dims[] = {64, 80, 96, 128};
        const double seq = 128.0 * pick(2, 256), heads = pick(8, 128), dim = dims[i % 4];
        fprintf(file,
                "{\"kind\": \"attention\", \"parameters\": {\"batch\": 2, \"heads\": %g, "
                "\"seq_len\": %g, \"head_dim\": %g, \"passes\": \"%s\", \"dtype\": \"bf16\"}, "
                "\"values\": {\"time_s\": %.9g}}\n",
                heads, seq, dim, i % 2 ? "bwd" : "fwd",
                noisy(attention_s(2.0 * heads, seq, dim, i % 2 == 1)));
    }
}

static void memory_records(FILE *file, int n)
{
    for (int i = 0; i < n; i++) {
        const double bytes = pick(1e4, 4e9);
        fprintf(file,
                "{\"kind\": \"memory\", \"parameters\": {\"function\": \"norm\", \"moved_bytes\": "
                "%.0f}, \"values\": {\"time_s\": %.9g}}\n",
                bytes, noisy(memory_s(bytes)));
    }
}

static void collective_records(FILE *file)
{
    for (int repeat = 0; repeat < 6; repeat++)
        for (int ranks = 8; ranks <= 64; ranks *= 2)
            for (double bytes = 1024.0; bytes < 5e9; bytes *= 2.0)
                for (int reduce = 0; reduce < 2; reduce++)
                    fprintf(file,
                            "{\"kind\": \"collective\", \"parameters\": {\"op\": \"%s\", "
                            "\"size_bytes\": %.0f, \"ranks\": %d, \"nodes\": %d}, \"values\": "
                            "{\"time_s\": %.9g}}\n",
                            reduce ? "all_reduce" : "all_gather", bytes, ranks, ranks / 8,
                            noisy(collective_s(reduce, ranks, bytes)));
}

static void other_records(FILE *file)
{
    fputs("{\"kind\": \"launch\", \"parameters\": {\"mode\": \"eager\"}, \"values\": {\"time_s\": "
          "6.5e-06}}\n"
          "{\"kind\": \"overlap\", \"parameters\": {\"op\": \"all_gather\", \"ranks\": 8}, "
          "\"values\": {\"gemm_alone_s\": 0.8, \"gemm_beside_s\": 1, \"collective_alone_s\": 0.9, "
          "\"collective_beside_s\": 1}}\n"
          "{\"kind\": \"copy\", \"parameters\": {\"test\": \"h2d\", \"size_bytes\": 1e8}, "
          "\"values\": {\"time_s\": 0.002}}\n"
          "{\"kind\": \"copy\", \"parameters\": {\"test\": \"h2d\", \"size_bytes\": 1e3}, "
          "\"values\": {\"time_s\": 0.001}}\n"
          "{\"kind\": \"storage\", \"parameters\": {\"op\": \"read\", \"pattern\": "
          "\"sequential\"}, \"values\": {\"bandwidth_bytes_per_s\": 3e9}}\n"
          "{\"kind\": \"decode\", \"parameters\": {\"format\": \"jpeg\", \"cores\": 4}, "
          "\"values\": {\"samples_per_s\": 800}}\n",
          file);
}

/* ---- recovery ---------------------------------------------------------------------------------
 */

static const struct ty_constant *constant(const struct ty_calibration *fit, const char *name)
{
    for (uint32_t i = 0; i < fit->n_constants; i++)
        if (strcmp(fit->constants[i].field->path, name) == 0)
            return &fit->constants[i];
    printf("Bail out! no constant %s\n", name);
    exit(1);
}

static void found(const struct ty_calibration *fit, const char *name, double want, double allowed)
{
    const struct ty_constant *c = constant(fit, name);
    near(c->value, want, allowed, name);
    printf("# %s: %g, wanted %g; %u records, informed %.2f, residual median %.3f P90 %.3f; %s\n",
           name, c->value, want, c->n_records, c->informed, c->median_error, c->p90_error,
           ty_constant_state_name(c->state));
}

static bool fit_path(struct ty_calibration *fit)
{
    const char *const paths[] = {path};
    const bool good = ty_calibration_fit(paths, 1, &cluster, fit, &error) == TY_OK;
    if (!ok(good, "fitted"))
        printf("# %s: %s\n", error.where, error.text);
    return good;
}

static void test_recovery(void)
{
    struct ty_calibration fit;
    FILE *file = fopen(path, "w");
    random_init(&stream, 7, 0);
    gemm_records(file, 4000);
    attention_records(file, 1200);
    memory_records(file, 400);
    collective_records(file);
    other_records(file);
    fclose(file);
    gsl_error_handler_t *before = gsl_set_error_handler(NULL);
    gsl_set_error_handler(before);
    if (!fit_path(&fit))
        return;
    gsl_error_handler_t *after = gsl_set_error_handler(NULL);
    gsl_set_error_handler(after);
    ok(before == after, "GSL's error handler is what it was");
    found(&fit, "device.gemm_ratio_16", truth.ratio_16, 0.02);
    found(&fit, "device.gemm_ratio_8", truth.ratio_8, 0.02);
    found(&fit, "device.gemm_k0", truth.k0, 0.02);
    found(&fit, "device.gemm_wave_loss", truth.wave, 0.02);
    found(&fit, "device.gemm_backward", truth.backward, 0.02);
    found(&fit, "device.mem_ratio", truth.mem, 0.02);
    found(&fit, "device.mem_half_size", truth.half_bytes, 0.02);
    found(&fit, "device.kernel_floor", truth.floor_s, 0.02);
    found(&fit, "device.attention_rate", truth.attention, 0.02);
    found(&fit, "device.attention_half_seq", truth.half_seq, 0.02);
    found(&fit, "device.attention_head_power", truth.head_power, 0.02);
    found(&fit, "device.attention_backward", truth.attention_backward, 0.02);
    found(&fit, "fabric.allreduce_busbw", truth.ar, 0.02);
    found(&fit, "fabric.allgather_busbw", truth.ag, 0.02);
    found(&fit, "fabric.collective_latency", truth.latency_s, 0.02);
    found(&fit, "fabric.latency_growth", truth.growth, 0.02);
    found(&fit, "fabric.ramp_ratio", truth.ramp, 0.02);
    found(&fit, "fabric.nic_ratio", truth.nic, 0.02);
    near(fit.profile.allreduce_ratio, truth.ar / 450e9, 0.02,
         "the profile has its share of NVLink");
    near(fit.profile.attention_ratio, truth.attention / PEAK, 0.02, "and of the peak");
    found(&fit, "device.launch_issue", 6.5e-6, 0.02);
    found(&fit, "fabric.slow_compute_scaleup", 0.2, 0.05);
    found(&fit, "fabric.slow_comm", 0.1, 0.05);
    for (uint32_t i = 0; i < fit.n_drops; i++)
        printf("# dropped %u: %s; first %s\n", fit.drops[i].n, fit.drops[i].why,
               fit.drops[i].first);
    for (uint32_t i = 0; i < fit.n_rates; i++)
        printf("# %s %g %s\n", fit.rates[i].name, fit.rates[i].value, fit.rates[i].unit);
    ty_calibration_free(&fit);
}

int main(void)
{
    const int fd = mkstemp(path);
    fixture_dgx_h100(&cluster);
    cluster.nic_bytes_per_s = 50e9;
    if (fd < 0)
        return 1;
    close(fd);
    test_recovery();
    remove(path);
    return tap_done();
}

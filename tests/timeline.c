/* SPDX-License-Identifier: MIT
 * Profiles as timelines: a step whose every share is known by construction, as a trace of the
 * PyTorch profiler and as an export of Nsight Systems; names of kernels; damaged files; the gap.
 *
 * One step, microseconds:
 *   gemm 0-400, attention 400-500, all-reduce 300-700, elementwise 600-650, optimizer 700-800,
 *   copy 850-900, next step at 1000
 * so the all-reduce is exposed 500-600 and 650-700, and 800-850 and 900-1000 are idle.
 */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "include/trainyard_gap.h"
#include "tests/tap.h"

#include <sqlite3.h>
#include <unistd.h>

static const struct kernel {
    const char *name, *category;
    int start_us, end_us, stream;
} kernels[] = {
    {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "kernel", 0, 400, 7},
    {"void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64>>", "kernel", 400, 500, 7},
    {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "kernel", 300,
     700, 20},
    {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
     "kernel", 600, 650, 7},
    {"void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>", "kernel", 700,
     800, 7},
    {"Memcpy DtoH (Device -> Pinned)", "gpu_memcpy", 850, 900, 7},
};
enum { N_KERNELS = sizeof kernels / sizeof *kernels, N_STEPS = 3 };

static char folder[] = "/tmp/timeline-XXXXXX";
static char path[64];

static const char *file_name(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *bytes, size_t n)
{
    FILE *file = fopen(file_name(name), "wb");
    if (!file || fwrite(bytes, 1, n, file) != n || fclose(file) != 0)
        exit(1);
}

/* ---- the sample ----------------------------------------------------------------------------- */

/* N_STEPS steps and a fourth mark-less one; unknown: the elementwise kernel has a strange name. */
static size_t chrome_text(char *out, size_t bytes, bool marks, bool unknown)
{
    size_t n = (size_t)snprintf(out, bytes,
                                "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0}],\n"
                                "\"traceEvents\": [\n{\"ph\": \"M\", \"name\": \"x\", \"args\": "
                                "{\"labels\": [1, {\"a\": \"\\u00e4\\\"\"}]}}");
    for (int step = 0; step < N_STEPS; step++) {
        const int at = 1000 * step;
        if (marks)
            n += (size_t)snprintf(out + n, bytes - n,
                                  ",\n{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": "
                                  "\"ProfilerStep#%d\", \"pid\": 9, \"tid\": 9, \"ts\": %d, "
                                  "\"dur\": 1000, \"args\": {\"External id\": 3}}",
                                  step + 4, at);
        for (int i = 0; i < N_KERNELS; i++)
            n += (size_t)snprintf(
                out + n, bytes - n,
                ",\n{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 0, \"tid\": %d, "
                "\"ts\": %d.000, \"dur\": %d, \"args\": {\"device\": 0, \"stream\": %d, "
                "\"grid\": [1, 2, 3], \"est. achieved occupancy %%\": 50}}",
                kernels[i].category, unknown && i == 3 ? "zorch_7" : kernels[i].name,
                kernels[i].stream, at + kernels[i].start_us,
                kernels[i].end_us - kernels[i].start_us, kernels[i].stream);
    }
    n += (size_t)snprintf(out + n, bytes - n,
                          ",\n{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 1, "
                          "\"ts\": 5, \"dur\": 1, \"args\": {\"device\": 1, \"stream\": 7}}\n"
                          "], \"traceName\": \"x.json\", \"baseTimeNanoseconds\": 17e17}\n");
    return n;
}

static void check_step(const struct ty_timeline *t, const char *what)
{
    static const struct {
        enum ty_activity activity;
        double busy_us, alone_us;
    } want[] = {{TY_ACTIVITY_GEMM, 400, 400},       {TY_ACTIVITY_ATTENTION, 100, 100},
                {TY_ACTIVITY_ALL_REDUCE, 400, 150}, {TY_ACTIVITY_MEMORY_BOUND, 50, 50},
                {TY_ACTIVITY_OPTIMIZER, 100, 100},  {TY_ACTIVITY_MEMCPY, 50, 50},
                {TY_ACTIVITY_SEND_RECV, 0, 0}};
    bool right = true;
    double sum_s = t->idle_s;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        right &= fabs(t->busy_s[want[i].activity] * 1e6 - want[i].busy_us) < 1e-6 &&
                 fabs(t->alone_s[want[i].activity] * 1e6 - want[i].alone_us) < 1e-6;
    for (int i = 0; i < TY_N_ACTIVITIES; i++)
        sum_s += t->alone_s[i];
    ok(right, "%s: busy and alone by activity", what);
    ok(fabs(t->idle_s * 1e6 - 150) < 1e-6 && fabs(t->comm_s * 1e6 - 400) < 1e-6 &&
           fabs(t->exposed_comm_s * 1e6 - 150) < 1e-6,
       "%s: idle, communication, exposed", what);
    near(sum_s, t->step_s, 1e-9, "the parts tile the step");
    ok(t->device == 0 && t->n_devices == 2, "%s: the busiest of two devices", what);
}

static void test_chrome(void)
{
    static char text[32768];
    struct ty_timeline t;
    struct ty_error error;
    size_t n = chrome_text(text, sizeof text, true, false);
    write_file("a.json", text, n);
    if (!ok(ty_timeline_load(path, 0, &t, &error) == TY_OK, "trace of the PyTorch profiler"))
        printf("#   %s: %s\n", error.where, error.text);
    ok(t.marked && t.n_steps == 2 && fabs(t.step_s - 1e-3) < 1e-12, "its steps by their marks");
    check_step(&t, "pytorch");
    /* one mark of the device among three of the host: those of the host count */
    const char *late = strstr(text, ",\n{\"ph\": \"X\", \"cat\": \"kernel\"");
    static char mixed[33000];
    snprintf(mixed, sizeof mixed, "%.*s%s%s", (int)(late - text), text,
             ",\n{\"ph\": \"X\", \"cat\": \"gpu_user_annotation\", \"name\": \"ProfilerStep#4\", "
             "\"ts\": 7, \"dur\": 9}",
             late);
    write_file("a.json", mixed, strlen(mixed));
    ok(ty_timeline_load(path, 0, &t, NULL) == TY_OK && t.n_steps == 2 &&
           fabs(t.step_s - 1e-3) < 1e-12,
       "the clock that marks more than one step");
    /* without marks: from the first kernel to the last copy, 2.9 ms; three steps are told */
    n = chrome_text(text, sizeof text, false, false);
    write_file("a.json", text, n);
    ok(ty_timeline_load(path, 3, &t, NULL) == TY_OK && !t.marked && t.n_steps == 3,
       "steps told by the caller");
    near(t.step_s, 2.9e-3 / 3, 1e-9, "... of the whole profile");
    ok(ty_timeline_load(path, 0, &t, NULL) == TY_OK && !t.marked && t.n_steps == 1,
       "no mark and nothing told: one step");
}

/* ---- Nsight Systems ------------------------------------------------------------------------- */

static void execute(sqlite3 *db, const char *sql)
{
    char *why = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK) {
        printf("# %s\n", why);
        exit(1);
    }
}

static void write_nsys(const char *name, const char *name_column)
{
    sqlite3 *db;
    char sql[512];
    if (sqlite3_open(file_name(name), &db) != SQLITE_OK)
        exit(1);
    snprintf(sql, sizeof sql,
             "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;"
             "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
             "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, \"end\" INT, deviceId INT,"
             " streamId INT, %s INT);"
             "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, \"end\" INT, deviceId INT);"
             "CREATE TABLE NVTX_EVENTS (start INT, \"end\" INT, text TEXT, textId INT);"
             "INSERT INTO StringIds VALUES (90, 'iteration 2'), (91, 'gemm')",
             name_column);
    execute(db, sql);
    for (int i = 0; i < N_KERNELS; i++) {
        snprintf(sql, sizeof sql, "INSERT INTO StringIds VALUES (%d, '%s')", i, kernels[i].name);
        execute(db, sql);
        for (int step = 0; step < N_STEPS; step++) {
            const bool copy = strcmp(kernels[i].category, "kernel") != 0;
            const long at = 1000000L * step;
            snprintf(sql, sizeof sql,
                     copy ? "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (%ld, %ld, 0)"
                          : "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (%ld, %ld, 0, 7, %d)",
                     at + 1000L * kernels[i].start_us, at + 1000L * kernels[i].end_us, i);
            execute(db, sql);
        }
    }
    execute(db, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5000, 6000, 1, 7, 91);"
                "INSERT INTO NVTX_EVENTS VALUES (0, 900000, 'iteration 1', NULL),"
                " (10, 20, 'forward step 1', NULL), (1000000, 1900000, NULL, 90),"
                " (2000000, 2900000, 'iteration 3', NULL), (2500000, NULL, 'iteration 9', NULL)");
    sqlite3_close(db);
}

static void test_nsys(void)
{
    struct ty_timeline t;
    struct ty_error error;
    write_nsys("a.sqlite", "demangledName");
    if (!ok(ty_timeline_load(path, 0, &t, &error) == TY_OK, "export of Nsight Systems"))
        printf("#   %s: %s\n", error.where, error.text);
    ok(t.marked && t.n_steps == 2 && fabs(t.step_s - 1e-3) < 1e-12, "its steps by NVTX ranges");
    check_step(&t, "nsys");
    write_nsys("b.sqlite", "shortName");
    ok(ty_timeline_load(path, 0, &t, NULL) == TY_OK && t.n_steps == 2, "with short names only");
}

/* ---- names ---------------------------------------------------------------------------------- */

/* As the libraries name them in their sources. */
static void test_names(void)
{
    static const struct {
        const char *name;
        enum ty_activity want;
    } names[] = {
        {"nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT", TY_ACTIVITY_GEMM},
        {"ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_nn", TY_ACTIVITY_GEMM},
        {"Cijk_Alik_Bljk_BBS_BH_MT256x256x32_MI16x16x16x1", TY_ACTIVITY_GEMM},
        {"triton_tem_fused_mm_1", TY_ACTIVITY_GEMM},
        {"triton_poi_fused_add_mul_3", TY_ACTIVITY_MEMORY_BOUND},
        {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob", TY_ACTIVITY_ATTENTION},
        {"fmha_cutlassF_bf16_aligned_64x128_rf_sm80", TY_ACTIVITY_ATTENTION},
        {"void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", TY_ACTIVITY_ATTENTION},
        {"ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", TY_ACTIVITY_REDUCE_SCATTER},
        {"ncclKernel_AllGather_RING_LL_Sum_int8_t", TY_ACTIVITY_ALL_GATHER},
        {"ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)", TY_ACTIVITY_SEND_RECV},
        {"ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", TY_ACTIVITY_OTHER_COMM},
        {"void deep_ep::intranode::dispatch<8, 768>", TY_ACTIVITY_ALL_TO_ALL},
        {"void multi_tensor_apply_kernel<L2NormFunctor<float>>", TY_ACTIVITY_OPTIMIZER},
        {"void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel",
         TY_ACTIVITY_MEMORY_BOUND},
        {"void at::native::reduce_kernel<512, 1>", TY_ACTIVITY_MEMORY_BOUND},
        {"zorch_7", TY_ACTIVITY_UNKNOWN},
        {"", TY_ACTIVITY_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        same_text(ty_activity_name(ty_activity_of(names[i].name)), ty_activity_name(names[i].want),
                  names[i].name);
}

/* ---- damage --------------------------------------------------------------------------------- */

static void refused(const char *what, const char *says)
{
    struct ty_timeline t;
    struct ty_error error = {.code = TY_OK};
    const ty_status status = ty_timeline_load(path, 0, &t, &error);
    if (!ok(status == TY_ERR_INPUT && strstr(error.text, says), "%s is refused", what))
        printf("#   %s: %s: %s\n", ty_status_text(status), error.where, error.text);
}

static void test_damage(void)
{
    static char text[32768], copy[32768];
    const size_t n = chrome_text(text, sizeof text, true, false);
    struct ty_timeline t;
    bool cut_refused = true;
    for (size_t length = 0; length + 2 < n; length += 37) {
        write_file("cut.json", text, length);
        cut_refused &= ty_timeline_load(path, 0, &t, NULL) == TY_ERR_INPUT;
    }
    ok(cut_refused, "a trace that was cut is refused, wherever");
    uint32_t random = 1, n_survived = 0;
    for (int i = 0; i < 300; i++) {
        memcpy(copy, text, n);
        for (int k = 0; k < 3; k++) {
            random = random * 1664525u + 1013904223u;
            copy[random % n] = (char)(random >> 24);
        }
        write_file("bad.json", copy, n);
        const ty_status status = ty_timeline_load(path, 0, &t, NULL);
        n_survived += status == TY_OK || status == TY_ERR_INPUT;
    }
    ok(n_survived == 300, "any bytes are read or refused");
    write_file("a.gz", "\x1f\x8b\x08\x00", 4);
    refused("a compressed trace", "gunzip");
    write_file("a.txt", "iteration 1", 11);
    refused("a text", "neither");
    write_file("empty.json", "{\"traceEvents\": []}", 19);
    refused("a trace without kernels", "no GPU kernel");
    write_file("deep.json", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
               68);
    refused("nesting", "nested more than 64");
    write_file("short.sqlite", "SQLite format 3\0 and nothing that follows", 41);
    refused("a database that is none", "CUPTI");
    sqlite3 *db;
    if (sqlite3_open(file_name("other.sqlite"), &db) == SQLITE_OK)
        execute(db, "CREATE TABLE a (b INT)");
    sqlite3_close(db);
    refused("another database", "CUPTI_ACTIVITY_KIND_KERNEL");
    file_name("none");
    ok(ty_timeline_load(path, 0, &t, NULL) == TY_ERR_IO, "a file that is not there");
}

/* ---- the gap -------------------------------------------------------------------------------- */

/* Predicted 800 us: gemm 300, attention 100, memory 50, dp 100, launch 150, optimizer 100. Measured
 * 1000: gemm + 100, exposed + 50, idle and copies 200 instead of 150. */
static void test_gap(void)
{
    static char text[32768];
    static struct ty_gap gap;
    struct ty_prediction p = {.step_time_s = 800e-6, .plan = {.pp = 1, .n_gpus = 8}};
    struct ty_timeline t;
    p.breakdown_s[TY_PART_GEMM] = 300e-6;
    p.breakdown_s[TY_PART_ATTENTION] = p.breakdown_s[TY_PART_DP] = 100e-6;
    p.breakdown_s[TY_PART_OPTIMIZER] = 100e-6;
    p.breakdown_s[TY_PART_MEMORY_BOUND] = 50e-6;
    p.breakdown_s[TY_PART_LAUNCH] = 150e-6;
    for (int unknown = 0; unknown < 2; unknown++) {
        write_file("g.json", text, chrome_text(text, sizeof text, true, unknown));
        if (!ok(ty_timeline_load(path, 0, &t, NULL) == TY_OK, "the profile"))
            return;
        ty_gap_of_timeline(&p, &t, &gap);
        double predicted_s = 0.0, measured_s = 0.0;
        for (uint32_t i = 0; i < gap.n_lines; i++) {
            predicted_s += gap.lines[i].predicted_s;
            measured_s += gap.lines[i].measured_s;
        }
        near(predicted_s, 800e-6, 1e-9, "the lines sum to the predicted step");
        near(measured_s, 1000e-6, 1e-9, "... and to the measured one");
        ok(gap.n_causes == (unknown ? 4u : 3u) && strstr(gap.causes[0].text, "gemm"),
           "the largest cause first");
        within(gap.causes[0].explained_pct, 50.0, 1e-6, "gemm explains 100 of 200 us");
        within(gap.causes[1].explained_pct, 25.0, 1e-6, "the next 50");
        within(gap.unexplained_pct, unknown ? 25.0 : 0.0, 1e-6,
               "a kernel of unknown kind stays unexplained");
    }
    same_text(t.unknown, "zorch_7", "... and is named");
}

static const struct ty_gap_line *line_of(const struct ty_gap *gap, const char *name)
{
    for (uint32_t i = 0; i < gap->n_lines; i++)
        if (strcmp(gap->lines[i].name, name) == 0)
            return &gap->lines[i];
    return NULL;
}

/* Who uses which operation: tp with sequence parallelism gathers and scatters, replicas reduce;
 * with sharding both gather and scatter. */
static void test_axes(void)
{
    static struct ty_gap gap;
    struct ty_prediction p = {.step_time_s = 1.0,
                              .plan = {.pp = 1, .tp = 2, .dp = 4, .cp = 1, .sp = TY_ON}};
    struct ty_timeline t = {.step_s = 1.0, .idle_s = 0.4, .comm_s = 0.6, .n_steps = 1};
    p.breakdown_s[TY_PART_TP] = 0.25;
    p.breakdown_s[TY_PART_DP] = 0.15;
    t.alone_s[TY_ACTIVITY_ALL_GATHER] = t.alone_s[TY_ACTIVITY_REDUCE_SCATTER] = 0.1;
    t.alone_s[TY_ACTIVITY_ALL_REDUCE] = 0.3;
    t.alone_s[TY_ACTIVITY_SEND_RECV] = 0.1;
    p.plan.sharding = TY_SHARDING_NONE;
    ty_gap_of_timeline(&p, &t, &gap);
    const struct ty_gap_line *tp = line_of(&gap, "tp"), *dp = line_of(&gap, "dp");
    ok(tp && fabs(tp->measured_s - 0.2) < 1e-12 && tp->predicted_s == 0.25, "tp by its operations");
    ok(dp && dp->measured_s == 0.3 && dp->predicted_s == 0.15, "dp by its own");
    const struct ty_gap_line *other = line_of(&gap, "other communication");
    ok(other && other->measured_s == 0.1, "what no axis uses");
    p.plan.sharding = TY_SHARDING_ZERO1;
    ty_gap_of_timeline(&p, &t, &gap);
    tp = line_of(&gap, "tp + dp");
    ok(tp && fabs(tp->measured_s - 0.5) < 1e-12 && fabs(tp->predicted_s - 0.4) < 1e-12,
       "axes that share operations are one line");
    p.plan.pp = 2;
    ty_gap_of_timeline(&p, &t, &gap);
    const struct ty_gap_line *pipe = line_of(&gap, "pipeline, idle and host");
    ok(pipe && fabs(pipe->measured_s - 0.5) < 1e-12, "sends are waiting, with a pipeline");
    for (int part = 0; part < TY_N_PARTS; part++)
        p.breakdown_s[part] = 1.0;
    ty_gap_of_timeline(&p, &t, &gap);
    double sum_s = 0.0;
    for (uint32_t i = 0; i < gap.n_lines; i++)
        sum_s += gap.lines[i].predicted_s;
    near(sum_s, TY_N_PARTS, 1e-12, "every part of a prediction is in one line");
    t.busy_s[TY_ACTIVITY_OTHER_COMM] = t.alone_s[TY_ACTIVITY_OTHER_COMM] = 0.4;
    ty_gap_of_timeline(&p, &t, &gap);
    ok(!line_of(&gap, "tp + dp"), "kernels that do not say what they do: nothing is told apart");
}

/* One figure: candidates, nearest to the whole gap first, none proven. */
static void test_figure(void)
{
    static struct ty_gap gap;
    static struct ty_explanation e;
    struct ty_note notes[2] = {{.field = "sharding", .value = "zero1", .effect_pct = 4.0},
                               {.field = "compile", .value = "off", .effect_pct = -3.0}};
    struct ty_prediction p = {.step_time_s = 1.0, .n_notes = 2, .notes = notes};
    p.interval_80[0] = 0.9;
    p.interval_80[1] = 1.2;
    e.resources[TY_RESOURCE_FLOPS].path_share = 0.9;
    ty_gap_of_step(&p, &e, 1.1, &gap);
    ok(gap.within_80 && gap.n_causes == 2 && gap.n_lines == 0, "candidates of a slower step");
    within(gap.causes[0].explained_pct, 100.0, 1e-9, "a tenth less of 90 % of the path: T 0.9/9");
    within(gap.causes[1].explained_pct, 40.0, 1e-9, "an assumption worth 4 % of 10 %");
    within(gap.unexplained_pct, 100.0, 0.0, "nothing is proven");
    ty_gap_of_step(&p, &e, 0.5, &gap);
    ok(!gap.within_80 && gap.n_causes == 2 && strstr(gap.causes[1].text, "compile"),
       "a faster step has other candidates");
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    test_chrome();
    test_nsys();
    test_names();
    test_damage();
    test_gap();
    test_axes();
    test_figure();
    static const char *const files[] = {"a.json",    "a.sqlite",     "b.sqlite",     "cut.json",
                                        "bad.json",  "a.gz",         "a.txt",        "empty.json",
                                        "deep.json", "short.sqlite", "other.sqlite", "g.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(file_name(files[i]));
    rmdir(folder);
    return tap_done();
}

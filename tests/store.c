/* SPDX-License-Identifier: MIT
 * The study database: values the test chose go in, SQL reads them back; views are checked against
 * rankings worked out by hand; a killed writer loses its open batch and nothing else. */
#include "reports/store.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCH 4096 /* rows a transaction, docs/database.md */

static char folder[] = "/tmp/trainyard-store-XXXXXX";
static struct ty_error error;

static const char *file_in(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* The first column of the first row as text. */
static const char *ask(ty_store *store, const char *sql)
{
    static char out[512];
    struct store_rows *rows;
    out[0] = '\0';
    if (store_ask(store, sql, 0, &rows, &error) != TY_OK)
        return error.text;
    if (store_next(rows))
        snprintf(out, sizeof out, "%s", store_text(rows, 0));
    if (store_done(rows, &error) != TY_OK)
        return error.text;
    return out;
}

static double ask_number(ty_store *store, const char *sql)
{
    double value;
    return store_ask_number(store, sql, 0, NAN, &value, &error) == TY_OK ? value : (double)NAN;
}

static ty_store *open_new(const char *name)
{
    ty_store *store = NULL;
    ty_status status = ty_store_open(file_in(name), false, &store, &error);
    ok(status == TY_OK, "a new study opens: %s", status == TY_OK ? name : error.text);
    return store;
}

static struct ty_score score_of(uint64_t plan_id, uint32_t gpus, uint32_t tp, double tokens_per_s)
{
    struct ty_score score = {.plan_id = plan_id};
    ty_init(TY_KIND_PLAN, &score.plan);
    score.plan.n_gpus = gpus;
    score.plan.tp = tp;
    score.plan.pp = score.plan.cp = score.plan.ep = 1;
    score.tokens_per_s = tokens_per_s;
    score.tokens_per_s_per_gpu = tokens_per_s / gpus;
    score.step_time_s = 1e6 / tokens_per_s;
    score.peak_bytes = 60e9;
    score.headroom_bytes = 12e9;
    for (int part = 0; part < TY_N_PARTS; part++)
        score.breakdown_s[part] = part == TY_PART_GEMM ? score.step_time_s : 0.0;
    return score;
}

static void inputs(void)
{
    ty_store *store = open_new("inputs.db");
    struct ty_model model;
    struct ty_cluster cluster;
    struct ty_profile profile;
    fixture_llama3_8b(&model);
    fixture_dgx_h100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    snprintf(model.name, sizeof model.name, "%s", "x'); DROP TABLE study; --");
    snprintf(profile.name, sizeof profile.name, "preset");
    int64_t first = 0, second = 0;
    const char *command = "trainyard sweep --model \"it's\nme\"";
    ty_status status = ty_store_begin(
        store,
        &(struct ty_study){
            .command = command, .model = &model, .cluster = &cluster, .profile = &profile},
        &first, &error);
    ok(status == TY_OK && first == 1, "the first study is number 1");
    same_text(ask(store, "SELECT command FROM study"), command, "its command line, as typed");
    same_text(ask(store, "SELECT name FROM input WHERE kind = 'model'"), model.name,
              "a name with SQL in it is only a name");
    ok(ask_number(store, "SELECT count(*) FROM input WHERE study_id = 1") == 3, "three inputs");
    ok(strlen(ask(store, "SELECT created_utc FROM study")) == strlen("2000-01-01T00:00:00Z"),
       "created: ISO 8601 in UTC");
    same_text(ask(store, "SELECT version FROM version WHERE component = 'trainyard'"), ty_version(),
              "version of the library");
    same_text(ask(store, "SELECT version FROM version WHERE component = 'sqlite'"),
              sqlite3_libversion(), "version of SQLite");
    status = ty_store_begin(store, &(struct ty_study){.model = &model}, &second, &error);
    ok(status == TY_OK && second == 2, "a second study in the same file");
    same_text(ask(store, "SELECT count(DISTINCT hash) || ' ' || count(*) FROM input"
                         " WHERE kind = 'model'"),
              "1 2", "the same model has the same hash");
    ty_store_close(store);
}

/* FNV-1a, 64 bits, checked with the published vector for "foobar" (draft-eastlake-fnv). */
static uint64_t fnv(const char *text)
{
    uint64_t hash = 14695981039346656037u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

static void hashes(void)
{
    ok(fnv("foobar") == 0x85944171f73967e8u, "the test's hash is FNV-1a");
    ty_store *store = NULL;
    if (ty_store_open(file_in("inputs.db"), true, &store, &error) != TY_OK) {
        ok(false, "inputs.db opens again");
        return;
    }
    struct store_rows *rows;
    ty_status status =
        store_ask(store, "SELECT json, hash FROM input WHERE study_id = ?1", 1, &rows, &error);
    int n_good = 0;
    while (status == TY_OK && store_next(rows)) {
        char want[32];
        snprintf(want, sizeof want, "fnv1a64:%016llx",
                 (unsigned long long)fnv(store_text(rows, 0)));
        n_good += strcmp(want, store_text(rows, 1)) == 0;
    }
    ok(status == TY_OK && store_done(rows, &error) == TY_OK && n_good == 3,
       "each hash is that of its json");
    ty_store_close(store);
}

static void scores(void)
{
    ty_store *store = open_new("scores.db");
    int64_t study_id = 0;
    ty_status status = ty_store_begin(store, &(struct ty_study){0}, &study_id, &error);
    struct ty_score score = score_of(7, 64, 4, 2.5e5);
    score.plan.precision = TY_BF16_PRECISION;
    score.plan.recompute = TY_RECOMPUTE_SELECTIVE;
    score.plan.recompute_modules = TY_MODULE_CORE_ATTN | TY_MODULE_MOE;
    score.plan.overlap = TY_OVERLAP_TP | TY_OVERLAP_GRAD | TY_OVERLAP_GIVEN;
    score.plan.dp = 16;
    score.plan.n_micro = 8;
    score.plan.moe_imbalance = 1.25;
    snprintf(score.plan.order, sizeof score.plan.order, "tp-cp-ep-pp-dp");
    score.mfu = 0.41;
    score.breakdown_s[TY_PART_GEMM] = 3.0;
    score.breakdown_s[TY_PART_BUBBLE] = 1.0;
    if (status == TY_OK)
        status = ty_store_add_score(store, study_id, &score, (double)NAN, &error);
    score.plan_id = 8;
    score.step_time_s = score.tokens_per_s = score.mfu = NAN;
    if (status == TY_OK)
        status = ty_store_add_score(store, study_id, &score, (double)NAN, &error);
    ok(status == TY_OK, "scores are added");
    same_text(ask(store, "SELECT gpus || ' ' || tp || ' ' || dp || ' ' || n_micro FROM prediction"),
              "64 4 16 8", "sizes of the plan");
    same_text(
        ask(store, "SELECT precision || ' ' || recompute || ' ' || \"order\" FROM prediction"),
        "bf16 selective tp-cp-ep-pp-dp", "enums by name, texts as given");
    same_text(ask(store, "SELECT recompute_modules || ' ' || overlap FROM prediction"),
              "core_attn,moe tp,grad", "flags by name");
    ok(ask_number(store, "SELECT mfu FROM prediction WHERE plan_id = 7") == 0.41, "mfu");
    ok(ask_number(store, "SELECT moe_imbalance FROM prediction WHERE plan_id = 7") == 1.25,
       "a number of the plan");
    ok(ask_number(store, "SELECT budget_bytes FROM prediction WHERE plan_id = 7") == 72e9,
       "budget = peak + headroom = 60 + 12 GB");
    ok(ask_number(store, "SELECT feasible FROM prediction WHERE plan_id = 8") == 0 &&
           isnan(ask_number(store, "SELECT step_time_s FROM prediction WHERE plan_id = 8")),
       "NaN becomes NULL, and not feasible");
    ok(ask_number(store, "SELECT sum(time_s) FROM breakdown JOIN prediction ON id = prediction_id"
                         " WHERE plan_id = 7") == 4.0,
       "breakdown by rows: 3 s of GEMM and 1 s of bubble");
    same_text(ask(store, "SELECT group_concat(part) FROM breakdown WHERE prediction_id = 1"
                         " AND time_s > 0"),
              "gemm,bubble", "parts by name");
    ok(ty_store_add_score(store, 99, &score, (double)NAN, &error) == TY_ERR_STORE,
       "an unknown study is refused");
    ty_store_close(store);
}

static void detailed(void)
{
    ty_store *store = open_new("detailed.db");
    int64_t study_id = 0;
    struct ty_stage_memory stages[2] = {{.bytes = {10e9, 5e9}}, {.bytes = {11e9, 6e9}}};
    struct ty_group group = {"tp", 8, 1, 8, 1, "nvlink"};
    struct ty_violation violation = {"heads_tp", "tp 3 does not divide 32 heads", "1, 2, 4"};
    struct ty_note notes[2] = {
        {TY_NOTE_DEFAULTED, "network.nic_latency", "14 us", "'default'", 0.5},
        {TY_NOTE_UNUSED, "ep", "1", "dense model", NAN},
    };
    struct ty_prediction p = {.feasible = true,
                              .fit = TY_FIT_TIGHT,
                              .flops = TY_FLOPS_MEGATRON,
                              .largest_component = TY_MEM_GRADS,
                              .step_time_s = 2.0,
                              .interval_80 = {NAN, NAN},
                              .n_stages = 2,
                              .stages = stages,
                              .n_groups = 1,
                              .groups = &group,
                              .n_violations = 1,
                              .violations = &violation,
                              .n_notes = 2,
                              .notes = notes};
    ty_init(TY_KIND_PLAN, &p.plan);
    ty_status status = ty_store_begin(store, &(struct ty_study){0}, &study_id, &error);
    if (status == TY_OK)
        status = ty_store_add_prediction(store, study_id, &p, (double)NAN, &error);
    ok(status == TY_OK, "a full prediction is added");
    same_text(ask(store, "SELECT fit || ' ' || largest_component || ' ' || flop_convention"
                         " FROM prediction"),
              "tight gradients megatron", "fit, largest component, convention by name");
    ok(ask_number(store, "SELECT sum(bytes) FROM memory WHERE stage = 1") == 17e9,
       "memory of stage 1: 11 + 6 GB");
    ok(ask_number(store, "SELECT count(*) FROM memory") == 2 * TY_N_MEM,
       "every component of every stage");
    same_text(ask(store, "SELECT name || size || ranks_per_domain || link FROM group_link"),
              "tp88nvlink", "groups");
    same_text(ask(store, "SELECT group_concat(kind || ':' || field || ':' || reason || ':' ||"
                         " coalesce(effect_pct, 'none'), ' ') FROM note"),
              "defaulted:network.nic_latency:'default':0.5 unused:ep:dense model:none", "notes");
    same_text(ask(store, "SELECT rule || ': ' || legal FROM violation"), "heads_tp: 1, 2, 4",
              "violations");
    uint64_t rejected[TY_N_REJECTS] = {[TY_REJECT_HEADS] = 30, [TY_REJECT_MEMORY_LOGITS] = 5};
    status = ty_store_add_rejections(store, study_id, rejected, &error);
    if (status == TY_OK)
        status = ty_store_add_rejections(store, study_id, rejected, &error);
    ok(status == TY_OK, "rejections are added twice");
    same_text(ask(store, "SELECT group_concat(reason || '=' || count || '=' || round(share, 4))"
                         " FROM rejected"),
              "heads_or_ffn_not_divisible=60=0.8571,memory_logits=10=0.1429",
              "counts add up, most frequent first, shares 6/7 and 1/7");
    ok(ask_number(store, "SELECT count(*) FROM pragma_foreign_key_check") == 0,
       "foreign keys hold");
    ty_store_close(store);
}

static void views(void)
{
    ty_store *store = open_new("views.db");
    int64_t study_id = 0;
    ty_status status = ty_store_begin(store, &(struct ty_study){0}, &study_id, &error);
    /* 64 GPUs: tp 2 has two plans; 128 GPUs is slower than the best of 64; 256 is faster */
    struct ty_score rows[] = {score_of(1, 64, 2, 100e3), score_of(2, 64, 2, 120e3),
                              score_of(3, 64, 4, 110e3), score_of(4, 128, 2, 115e3),
                              score_of(5, 256, 8, 300e3)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == TY_OK; i++)
        status = ty_store_add_score(store, study_id, &rows[i], (double)NAN, &error);
    /* the full prediction of plan 2 */
    struct ty_prediction p = {.feasible = true, .plan = rows[1].plan, .step_time_s = 8.0};
    p.tokens_per_s = 120e3;
    p.tokens_per_s_per_gpu = 120e3 / 64;
    if (status == TY_OK)
        status = ty_store_add_prediction(store, study_id, &p, (double)NAN, &error);
    ok(status == TY_OK, "six rows");
    same_text(ask(store, "SELECT group_concat(gpus || ':' || rank || ':' || tp || ':' || detailed,"
                         " ' ') FROM (SELECT * FROM best ORDER BY gpus, rank)"),
              "64:1:2:1 64:2:4:0 128:1:2:0 256:1:8:0",
              "best: one row a (tp, pp, cp, ep), ranked, the detailed one first");
    same_text(ask(store, "SELECT group_concat(gpus || ':' || tokens_per_s, ' ') FROM"
                         " (SELECT * FROM pareto ORDER BY gpus)"),
              "64:120000.0 256:300000.0", "pareto: 128 GPUs are beaten by 64");
    ty_store_close(store);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (file) {
        fputs(text, file);
        fclose(file);
    }
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db;
    if (sqlite3_open(path, &db) == SQLITE_OK)
        sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_close(db);
}

static void refused(ty_status want, const char *name, bool read_only, const char *what)
{
    ty_store *store = NULL;
    ty_status status = ty_store_open(file_in(name), read_only, &store, &error);
    ok(status == want && store == NULL && error.text[0], "%s", what);
    if (status == TY_OK)
        ty_store_close(store);
}

static void refusals(void)
{
    write_file(file_in("text.db"), "hello, this is no database at all, only a longish text file\n");
    refused(TY_ERR_INPUT, "text.db", false, "a text file is refused");
    run_sql(file_in("other.db"), "CREATE TABLE music(id)");
    refused(TY_ERR_INPUT, "other.db", false, "a database of something else is refused");
    refused(TY_ERR_INPUT, "other.db", true, "also to read");
    refused(TY_ERR_IO, "missing.db", true, "a missing file is refused to a reader");
    refused(TY_ERR_IO, "no/such/folder.db", false, "a missing folder is refused");
    write_file(file_in("empty.db"), "");
    refused(TY_ERR_INPUT, "empty.db", true, "an empty file is no study to a reader");
    ty_store_close(open_new("newer.db"));
    run_sql(file_in("newer.db"), "PRAGMA user_version = 5");
    refused(TY_ERR_INPUT, "newer.db", true, "a newer schema is refused");

    ty_store *store = NULL;
    int64_t study_id;
    if (ty_store_open(file_in("views.db"), true, &store, &error) == TY_OK)
        ok(ty_store_begin(store, &(struct ty_study){0}, &study_id, &error) == TY_ERR_IO,
           "a store opened to read refuses to write");
    ty_store_close(store);
    ty_store_close(NULL);
}

_Noreturn static void slow_writer(const char *path)
{
    ty_store *store;
    int64_t study_id;
    if (ty_store_open(path, false, &store, &error) != TY_OK ||
        ty_store_begin(store, &(struct ty_study){0}, &study_id, &error) != TY_OK)
        _exit(1);
    for (uint64_t i = 0;; i++) {
        struct ty_score score = score_of(i, 64, 2, 1e5);
        if (ty_store_add_score(store, study_id, &score, (double)NAN, &error) != TY_OK)
            _exit(1);
    }
}

static double rows_in(const char *name)
{
    ty_store *store;
    if (ty_store_open(file_in(name), true, &store, &error) != TY_OK)
        return -1;
    double n = ask_number(store, "SELECT count(*) FROM prediction");
    ty_store_close(store);
    return n;
}

static void killed_writer(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        slow_writer(file_in("killed.db"));
    /* until it has committed something; 20 s at most */
    for (int i = 0; i < 400 && rows_in("killed.db") < 2 * BATCH; i++)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    kill(child, SIGKILL);
    int how;
    waitpid(child, &how, 0);
    ok(WIFSIGNALED(how), "a writer is killed in the middle");
    ty_store *store = NULL;
    ok(ty_store_open(file_in("killed.db"), false, &store, &error) == TY_OK, "its study opens");
    same_text(ask(store, "PRAGMA integrity_check"), "ok", "the database is whole");
    double n = ask_number(store, "SELECT count(*) FROM prediction");
    ok(n >= 2 * BATCH && fmod(n, BATCH) == 0, "it holds whole batches: %.0f rows", n);
    ok(ask_number(store, "SELECT max(plan_id) + 1 FROM prediction") == n,
       "with no gap: only the open batch is lost");
    ty_store_close(store);
}

static void at_rest(void)
{
    struct stat info;
    ok(stat(file_in("killed.db-wal"), &info) != 0 && stat(file_in("views.db-wal"), &info) != 0,
       "a closed study is one plain file");
    ok(store_is_network(0x6969) && store_is_network(0x0BD00BD0) && store_is_network(0x65735546),
       "NFS, Lustre and FUSE are network file systems");
    /* a 32-bit magic may arrive sign-extended */
    ok(store_is_network((unsigned long)(int)0xFF534D42), "CIFS, sign-extended");
    ok(!store_is_network(0xEF53) && !store_is_network(0x58465342) && !store_is_network(0x01021994),
       "ext4, XFS and tmpfs are not");
}

/* 2 x 3 points; point 4 is place 1 of the first axis and place 1 of the second. */
static void points(void)
{
    static const char *const nics[] = {"100 Gb/s", "200 Gb/s"}, *const gpus[] = {"a", "b", "c"};
    static const double numbers[] = {100, 200}, none[] = {NAN, NAN, NAN}, speeds[] = {1, 2, 3};
    const struct ty_axis axes[] = {{"network.nic", 2, 3, nics, numbers, 1.5, speeds},
                                   {"gpu", 3, 1, gpus, none, 1.5, speeds}};
    ty_store *store = open_new("points.db");
    int64_t study = 0;
    ty_status status =
        ty_store_begin(store, &(struct ty_study){.command = "whatif"}, &study, &error);
    for (uint64_t point = 0; point < 6 && status == TY_OK; point++) {
        struct ty_score score = score_of(point, 8, 1, 100.0 + (double)point);
        if (point == 5)
            score.step_time_s = NAN;
        status = ty_store_add_score(store, study, &score, (double)NAN, &error);
    }
    if (status == TY_OK)
        status = ty_store_add_axes(store, study, axes, 2, &error);
    ok(status == TY_OK && ty_store_flush(store, &error) == TY_OK, "six points and their axes");
    /* As after a kill between the axes and the mark of completeness: 2 + 3 values, once each. */
    status = ty_store_add_axes(store, study, axes, 2, &error);
    ok(status == TY_OK && ty_store_flush(store, &error) == TY_OK &&
           ask_number(store, "SELECT count(*) FROM axis") == 5,
       "axes written again by a resumed study");
    same_text(ask(store, "SELECT group_concat(text, '; ') FROM (SELECT text FROM point"
                         " WHERE point = 4 ORDER BY axis)"),
              "200 Gb/s; b", "the values of a point");
    ok(ask_number(store, "SELECT count(*) FROM point") == 12, "two for each of the six");
    ok(ask_number(store, "SELECT feasible FROM prediction WHERE plan_id = 5") == 0,
       "a point where nothing fits");
    ok(ask_number(store,
                  "SELECT alone_tokens_per_s_per_gpu FROM axis WHERE axis = 1 AND place = 2") == 3,
       "the speed of a value alone");
    ty_store_close(store);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    points();
    inputs();
    hashes();
    scores();
    detailed();
    views();
    refusals();
    killed_writer();
    at_rest();
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 || tap_done();
}

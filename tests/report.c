/* SPDX-License-Identifier: MIT
 *
 * The report of studies whose numbers the test chose: the data behind each plot is compared with
 * values worked out by hand, hostile names must come out as text, and studies with little in them
 * still give a page. Drawing itself is skipped where gnuplot is not installed.
 */
#include "include/trainyard_tools.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/trainyard-report-XXXXXX";
static struct ty_error error;
static bool gnuplot, xmllint;

static const char *path_of(const char *name)
{
    static char path[2][300];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static bool exists(const char *name)
{
    struct stat info;
    return stat(path_of(name), &info) == 0 && info.st_size > 0;
}

/* Runs a shell command in the test's folder. */
static bool shell(const char *command)
{
    char line[600];
    snprintf(line, sizeof line, "cd %s && { %s; } >/dev/null 2>&1", folder, command);
    return system(line) == 0;
}

/* A whole file; the next call frees it. */
static const char *contents(const char *name)
{
    static char *text;
    free(text);
    text = NULL;
    FILE *file = fopen(path_of(name), "r");
    if (!file)
        return "(no file)";
    size_t bytes = 0, capacity = 1 << 20;
    text = malloc(capacity);
    if (text)
        bytes = fread(text, 1, capacity - 1, file);
    fclose(file);
    if (!text)
        return "(no memory)";
    text[bytes] = '\0';
    return text;
}

static void holds(const char *name, const char *want, const char *what)
{
    const char *text = contents(name);
    if (!ok(strstr(text, want) != NULL, "%s", what))
        printf("#   %s lacks \"%s\"\n", name, want);
}

static struct ty_score score_of(uint32_t gpus, uint32_t tp, uint32_t pp, double tokens_per_s)
{
    static uint64_t plan_id;
    struct ty_score score = {.plan_id = plan_id++};
    ty_init(TY_KIND_PLAN, &score.plan);
    score.plan.n_gpus = gpus;
    score.plan.tp = tp;
    score.plan.pp = pp;
    score.plan.cp = score.plan.ep = score.plan.mbs = 1;
    score.tokens_per_s = tokens_per_s;
    score.tokens_per_s_per_gpu = tokens_per_s / gpus;
    score.step_time_s = 4e6 / tokens_per_s;
    score.mfu = 0.4;
    score.peak_bytes = 60e9;
    score.breakdown_s[TY_PART_GEMM] = 0.75 * score.step_time_s;
    score.breakdown_s[TY_PART_DP] = 0.25 * score.step_time_s;
    return score;
}

static ty_store *open_study(const char *name, const char *model_name, const char *cluster_name,
                            int64_t *study_id)
{
    ty_store *store = NULL;
    struct ty_model model;
    struct ty_cluster cluster;
    fixture_llama3_8b(&model);
    fixture_dgx_h100(&cluster);
    snprintf(model.name, sizeof model.name, "%s", model_name);
    snprintf(cluster.name, sizeof cluster.name, "%s", cluster_name);
    struct ty_study study = {.command = model_name, .model = &model, .cluster = &cluster};
    if (ty_store_open(path_of(name), false, &store, &error) != TY_OK ||
        ty_store_begin(store, &study, study_id, &error) != TY_OK)
        ok(false, "%s: %s: %s", name, error.where, error.text);
    return store;
}

static void add_scores(ty_store *store, int64_t study_id, const struct ty_score *scores, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ty_store_add_score(store, study_id, &scores[i], (double)NAN, &error) != TY_OK)
            ok(false, "a score is added: %s", error.text);
}

/* The full prediction of a score on two stages of 10 + 20 and 10 + 10 GiB. */
static void add_detail(ty_store *store, int64_t study_id, const struct ty_score *score)
{
    const double gib = 1073741824.0;
    struct ty_stage_memory stages[2] = {
        {.bytes = {[TY_MEM_WEIGHTS] = 10 * gib, [TY_MEM_ACTIVATIONS] = 20 * gib}},
        {.bytes = {[TY_MEM_WEIGHTS] = 10 * gib, [TY_MEM_ACTIVATIONS] = 10 * gib}}};
    struct ty_note note = {TY_NOTE_DEFAULTED, "power_limit", "700 W", "a <b>note</b>", 1.5};
    struct ty_violation violation = {"heads_tp", "3 does not divide 32", "1 & 2"};
    struct ty_prediction p = {.feasible = score != NULL, .n_stages = 2, .stages = stages};
    ty_init(TY_KIND_PLAN, &p.plan);
    p.budget_bytes = 40 * gib;
    p.n_notes = 1;
    p.notes = &note;
    p.step_time_s = NAN;
    if (score) {
        p.plan = score->plan;
        p.step_time_s = score->step_time_s;
        p.tokens_per_s = score->tokens_per_s;
        p.mfu = score->mfu;
        p.tokens_per_s_per_gpu = score->tokens_per_s_per_gpu;
        memcpy(p.breakdown_s, score->breakdown_s, sizeof p.breakdown_s);
    } else {
        p.n_violations = 1;
        p.violations = &violation;
    }
    if (ty_store_add_prediction(store, study_id, &p, (double)NAN, &error) != TY_OK)
        ok(false, "a prediction is added: %s", error.text);
}

/* Writes the report of a database beside it. */
static uint32_t report(const char *db, const char *out)
{
    uint32_t n_plots = 99;
    ty_status status = ty_report_write(path_of(db), path_of(out), &n_plots, &error);
    ok(status == TY_OK, "%s: %s", db, status == TY_OK ? "a report" : error.text);
    return n_plots;
}

static void well_formed(const char *out)
{
    char command[100];
    snprintf(command, sizeof command, "xmllint --noout %s/index.html %s/*.svg", out, out);
    if (!xmllint || !gnuplot)
        skip("pages and drawings are well-formed", "xmllint or gnuplot is not installed");
    else
        ok(shell(command), "%s: page and drawings are well-formed XML", out);
}

static void full_study(void)
{
    int64_t id;
    ty_store *store = open_study("full.db", "llama3-8b", "dgx-h100", &id);
    /* 64 -> 128 GPUs: 180 of the ideal 200 thousand tokens/s = 0.9; 256: 300 of 400 = 0.75 */
    struct ty_score scores[] = {score_of(64, 1, 1, 80e3), score_of(64, 2, 1, 100e3),
                                score_of(64, 4, 2, 90e3), score_of(128, 2, 1, 180e3),
                                score_of(256, 2, 2, 300e3)};
    add_scores(store, id, scores, 5);
    add_detail(store, id, &scores[1]);
    uint64_t rejected[TY_N_REJECTS] = {[TY_REJECT_HEADS] = 3, [TY_REJECT_BATCH] = 1};
    ok(ty_store_add_rejections(store, id, rejected, &error) == TY_OK, "rejections");
    ty_store_close(store);
    uint32_t n_plots = report("full.db", "full");

    same_text(contents("full/scaling.tsv"),
              "# gpus\ttokens_per_s\tideal_tokens_per_s\tefficiency_ratio\n"
              "64\t100000\t100000\t1\n128\t180000\t200000\t0.9\n256\t300000\t400000\t0.75\n",
              "scaling: best plans, ideal line, efficiency");
    holds("full/grid.tsv", "\n0\t0\t1\t1\t1250\n1\t0\t2\t1\t1562.5\n2\t1\t4\t2\t1406.25\n",
          "grid: tokens/s/GPU of the cells at 64 GPUs, which has most of them");
    holds("full/pareto.tsv", "\n64\t80000\t1\t1\t1\n64\t90000\t1\t4\t2\n", "pareto: every plan");
    holds("full/pareto.tsv", "\n\n# gpus\ttokens_per_s\tplans\ttp\tpp\n64\t100000\t1\t2\t1\n",
          "pareto: then the front");
    holds("full/breakdown.tsv", "\n64\t2\t1\t1\t1\t1\t40\t30\t0\t0\t0\t0\t0\t0\t0\t10\t",
          "breakdown: 30 s of GEMM and 10 s of DP");
    holds("full/memory.tsv", "\n0\t10737418240\t0\t0\t21474836480\t0\t0\t0\t0\t0\n1\t10737418240\t",
          "memory: bytes of each stage by component");
    holds("full/index.html", "heads_or_ffn_not_divisible</td><td>3</td><td>75.0 %", "rejections");
    holds("full/index.html", "<td>1,562</td><td>100,000</td><td>40.0 %</td><td>40.000 s</td>",
          "the table of best plans, with units");
    holds("full/index.html", "a &#60;b&#62;note&#60;/b&#62;", "notes, escaped");
    const char *page = contents("full/index.html");
    ok(!strstr(page, "src=") && !strstr(page, "<link") && !strstr(page, "@import") &&
           !strstr(page, "<script"),
       "the page loads nothing and runs nothing");
    if (!gnuplot) {
        skip("five plots", "gnuplot is not installed");
        return;
    }
    ok(n_plots == 5, "five plots");
    ok(exists("full/scaling.svg") && exists("full/breakdown.svg") && exists("full/memory.svg") &&
           exists("full/grid.svg") && exists("full/pareto.svg"),
       "each as SVG");
    ok(strncmp(contents("full/grid.png"), "\x89PNG", 4) == 0 && exists("full/pareto.png"),
       "and as PNG");
    ok(shell("cp -r full moved && cd moved && rm scaling.png && gnuplot scaling.gp && "
             "test -s scaling.png"),
       "a script redraws its plot wherever the folder lies");
    holds("full/index.html", "id=\"scaling-gnuplot_canvas\"", "drawings are part of the page");
    well_formed("full");
}

static void hostile_names(void)
{
    int64_t id;
    ty_store *store = open_study("hostile.db", "<script>alert(1)</script>'\"; system('touch x1') #",
                                 "`touch x2` @{}_^&\\\n\t\xFF\xC0 %s'", &id);
    struct ty_score scores[] = {score_of(8, 1, 1, 1e3), score_of(16, 2, 1, 2e3),
                                score_of(16, 1, 2, 1e3)};
    add_scores(store, id, scores, 3);
    add_detail(store, id, &scores[1]);
    ty_store_close(store);
    uint32_t n_plots = report("hostile.db", "hostile");
    ok(!exists("hostile/x1") && access(path_of("hostile/x1"), F_OK) != 0 &&
           access(path_of("hostile/x2"), F_OK) != 0,
       "nothing in a name is run");
    ok(!strstr(contents("hostile/index.html"), "<script"), "no script in the page");
    holds("hostile/index.html", "&#60;script&#62;alert(1)&#60;/script&#62;&#39;&#34;; system(",
          "the name is shown as it is");
    holds("hostile/scaling.gp",
          "'<script>alert(1)</script>''\"; system(''touch x1'') # on "
          "`touch x2` @{}_^&\\  ?? %s'', best plan",
          "one single-quoted string of gnuplot, on one line");
    if (gnuplot)
        ok(n_plots == 5, "five plots");
    else
        skip("five plots", "gnuplot is not installed");
    well_formed("hostile");
}

static void small_studies(void)
{
    int64_t id;
    ty_store *store = open_study("one.db", "llama3-8b", "dgx-h100", &id);
    struct ty_score score = score_of(64, 2, 2, 100e3);
    add_detail(store, id, &score);
    ty_store_close(store);
    uint32_t n_plots = report("one.db", "one");
    ok(!gnuplot || n_plots == 2, "one prediction: breakdown and memory");
    holds("one/index.html", "It needs feasible plans at two GPU counts", "and why not more");
    holds("one/index.html", "All feasible plans have the same two sizes", "nor a grid");
    holds("one/index.html", "The plan: gpus 64, tp 2", "its plan in words");

    store = open_study("none.db", "llama3-8b", "dgx-h100", &id);
    add_detail(store, id, NULL);
    ty_store_close(store);
    n_plots = report("none.db", "none");
    ok(!gnuplot || n_plots == 1, "nothing feasible: only the memory that is missing");
    holds("none/index.html", "No plan of this study is feasible", "said in words");
    holds("none/index.html", "<td class=\"text\">1 &#38; 2</td>", "with the broken rules");
    well_formed("none");

    store = open_study("two.db", "first", "dgx-h100", &id);
    add_detail(store, id, &score);
    ty_store_close(store);
    store = open_study("two.db", "second", "dgx-h100", &id);
    add_detail(store, id, &score);
    ty_store_close(store);
    n_plots = report("two.db", "two");
    ok(!gnuplot || n_plots == 4, "two studies: the plots of both");
    ok(exists("two/study1-memory.tsv") && exists("two/study2-memory.gp"), "in files of their own");
    holds("two/index.html", "<h1>second on dgx-h100</h1>", "two sections");
}

static void refusals(void)
{
    int64_t id;
    uint32_t n_plots = 99;
    ty_store_close(open_study("empty.db", "llama3-8b", "dgx-h100", &id));
    ok(ty_report_write(path_of("empty.db"), path_of("empty"), &n_plots, &error) == TY_ERR_INPUT,
       "a database without predictions is refused");
    ok(access(path_of("empty"), F_OK) != 0 && n_plots == 99, "and leaves nothing");
    ok(ty_report_write(path_of("missing.db"), path_of("m"), &n_plots, &error) == TY_ERR_IO,
       "a missing database is refused");
    ok(ty_report_write(path_of("one.db"), path_of("no/such"), &n_plots, &error) == TY_ERR_IO,
       "a folder that cannot be made is refused");
}

static void without_gnuplot(void)
{
    char *before = getenv("PATH");
    char *path = before ? strdup(before) : NULL;
    setenv("PATH", folder, 1);
    uint32_t n_plots = report("full.db", "plain");
    if (path)
        setenv("PATH", path, 1);
    free(path);
    ok(n_plots == 0, "without gnuplot no plot is claimed");
    ok(exists("plain/scaling.tsv") && exists("plain/scaling.gp") && !exists("plain/scaling.svg"),
       "data and scripts are kept");
    holds("plain/index.html", "gnuplot is not installed; <code>gnuplot scaling.gp</code>",
          "the page says so");
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    gnuplot = shell("gnuplot --version");
    xmllint = shell("xmllint --version");
    full_study();
    hostile_names();
    small_studies();
    refusals();
    without_gnuplot();
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 || tap_done();
}

/* SPDX-License-Identifier: MIT
 * Readers of job traces: rows in each form as their owners publish them, what is wrong with real
 * traces, and the counts of whole traces. */
#include "calibrate/csv.h"
#include "calibrate/trace.h"
#include "tests/tap.h"

#include <unistd.h>

static char path[] = "/tmp/trainyard-trace-XXXXXX";
static struct ty_trace trace;
static struct ty_error error;

static bool write_text(const char *text)
{
    FILE *file = fopen(path, "wb");
    return file && fputs(text, file) >= 0 && fclose(file) == 0;
}

static bool reads(const char *text, const char *format)
{
    ty_trace_free(&trace);
    return write_text(text) && ty_trace_read(path, NULL, NULL, &trace, &error) == TY_OK &&
           strcmp(trace.format, format) == 0;
}

static bool job_is(uint64_t index, double submit_s, double duration_s, uint32_t gpus)
{
    const struct ty_pool_job *job = &trace.jobs[index];
    const bool good = index < trace.n_jobs && fabs(job->submit_s - submit_s) < 1e-6 &&
                      fabs(job->duration_s - duration_s) < 1e-6 && job->gpus == gpus;
    if (!good && index < trace.n_jobs)
        printf("# job %llu: submit %.9g, duration %.9g, %u GPUs\n", (unsigned long long)index,
               job->submit_s, job->duration_s, job->gpus);
    return good;
}

static void test_native(void)
{
    ok(reads("submit_s,gpus,duration_s\n5,8,100\n0,1,10\n", "native"), "native: three columns");
    ok(job_is(0, 5, 100, 8) && job_is(1, 0, 10, 1), "native: in the order of the file");
    ok(trace.notes[TY_TRACE_UNSORTED] == 1, "native: one row out of order is counted");
    ok(reads("job_id,queue,submit_s,gpus,share,duration_s,limit_s,deadline_s,priority,gpu,worker,"
             "min_gpus,max_gpus,level,serial,restart_s,cpus,mem_gib\n"
             "a,team,1,8,,60,120,500,-3,H100|A100,4,4,16,leaf,0.05,30,12,2\n"
             "b,,2,1,0.25,60,,,,,,,,,,,,\n",
             "native"),
       "native: every column");
    const struct ty_pool_job *job = &trace.jobs[0];
    ok(isnan(trace.recorded_wait_s.mean), "native: no start, no recorded wait");
    ok(job->limit_s == 120 && job->deadline_s == 500 && job->priority == -3 && job->worker == 4 &&
           job->min_gpus == 4 && job->max_gpus == 16 && job->level == TY_POOL_LEAF &&
           job->serial == 0.05 && job->restart_s == 30 && job->cpus == 12 &&
           job->mem_bytes == 2147483648.0 && strcmp(job->gpu, "H100|A100") == 0,
       "native: their values");
    ok(strcmp(trace.names[0], "a") == 0 && strcmp(trace.queues[0].name, "team") == 0 &&
           trace.jobs[1].queue == 1 && trace.n_queues == 2,
       "native: names and queues");
    ok(trace.jobs[1].share == 0.25 && isnan(trace.jobs[1].limit_s) && isnan(trace.jobs[1].cpus),
       "native: a part of a GPU; empty cells are defaults");
    ty_trace_free(&trace);
    ok(ty_trace_read(path, NULL, "team", &trace, &error) == TY_OK && trace.n_jobs == 1,
       "native: one queue has one job");
    ok(ty_trace_read(path, NULL, "nobody", &trace, &error) == TY_ERR_INPUT &&
           strstr(error.text, "nobody"),
       "native: a queue without jobs is refused by name");
}

/* What is wrong with real traces: each row is counted under its reason, none stops the reading. */
static void test_bad_rows(void)
{
    ok(reads("job_id,submit_s,start_s,end_s,gpus\n"
             "ran,0,5,25,1\n"
             "never,1,,,2\n"
             "open,2,6,,2\n"
             "cpu,3,6,9,0\n"
             "half,4,6,9,0.5\n"
             "odd,5,6,9,1.5\n"
             "backwards,6,9,8,1\n"
             "instant,7,9,9,1\n"
             "word,8,soon,9,1\n"
             "huge,9,10,20,1e30\n"
             "negative,10,10,20,-1\n"
             "ran,30,35,45,1\n",
             "native"),
       "bad rows: the file is read");
    const uint64_t *n = trace.notes;
    ok(n[TY_TRACE_ROWS] == 12 && trace.n_jobs == 3, "bad rows: three jobs of twelve rows");
    ok(n[TY_TRACE_NEVER_RAN] == 1, "never started");
    ok(n[TY_TRACE_NO_END] == 1, "no end");
    ok(n[TY_TRACE_NO_GPU] == 1, "no GPU");
    ok(n[TY_TRACE_SHARES] == 1 && trace.jobs[1].share == 0.5 && trace.jobs[1].gpus == 1,
       "half a GPU is a part of one");
    ok(n[TY_TRACE_ROUNDED] == 1 && trace.jobs[2].gpus == 2, "1.5 GPUs are 2");
    ok(n[TY_TRACE_NO_TIME] == 1, "ran for no time");
    ok(n[TY_TRACE_BAD] == 4 && trace.bad_line == 8,
       "four rows that cannot be, the first on line 8");
    ok(n[TY_TRACE_RESTARTS] == 1 && job_is(0, 0, 30, 1), "a restart adds its run: 20 + 10 s");
    ty_trace_free(&trace);
    ok(ty_trace_read(path, "native", NULL, &trace, &error) == TY_OK, "bad rows: by name");
    static const char *const refused[] = {
        "a,b\n1,2\n",         "submit_s,gpus,duration_s\n0,0,5\n", "submit_s,gpus\n0,1\n", "", "[",
        "[{\"jobid\": \"x\"", "submit_s,duration_s\n0,1\n"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct ty_trace none;
        ok(write_text(refused[i]) &&
               ty_trace_read(path, NULL, NULL, &none, &error) == TY_ERR_INPUT && *error.text,
           "no trace: %s", error.text);
    }
    struct ty_trace none;
    ok(ty_trace_read("/nonexistent/trace", NULL, NULL, &none, &error) == TY_ERR_IO,
       "a missing file is an I/O error");
    ok(ty_trace_read(path, "pbs", NULL, &none, &error) == TY_ERR_INPUT && strstr(error.text, "pbs"),
       "an unknown format is refused by name");
}

static void test_sacct(void)
{
    /* Columns and spellings of `sacct -P -o ...`, Slurm 23. */
    ok(reads(
           "JobID|JobName|Partition|Submit|Start|End|State|Timelimit|NNodes|AllocCPUS|Priority|"
           "ReqTRES|AllocTRES\n"
           "100|say \"hi\"|gpu|2024-02-28T23:59:00|2024-02-29T00:00:00|2024-02-29T01:00:00|"
           "COMPLETED|1-00:00:00|2|32|4294901759|gres/gpu=16|"
           "billing=32,cpu=32,gres/gpu:a100=16,gres/gpu=16,mem=64G,node=2\n"
           "100.batch|batch||2024-02-29T00:00:00|2024-02-29T00:00:00|2024-02-29T01:00:00|"
           "COMPLETED||1|16|||cpu=16,gres/gpu=8\n"
           "101_3|x|gpu|2024-02-29T00:00:30|None|2024-02-29T00:05:00|CANCELLED by 7|02:00:00|1|0|"
           "1|gres/gpu=8|\n"
           "102|x|gpu|2024-02-29T00:01:00|2024-02-29T00:02:00|Unknown|RUNNING|UNLIMITED|1|8|1|"
           "gres/gpu=1|cpu=8,gres/gpu=1\n"
           "103|x|cpu|2024-02-29T00:01:00|2024-02-29T00:02:00|2024-02-29T00:03:00|COMPLETED|30:00|"
           "1|8|1|cpu=8|cpu=8\n"
           "104|x|gpu|2024-03-01T00:00:00|2024-03-01T00:00:00|2024-03-01T00:10:00|NODE_FAIL|30:00|"
           "1|8|1|gres/gpu=2|gres/gpu:h100=2\n"
           "104|x|gpu|2024-03-01T00:10:00|2024-03-01T00:20:00|2024-03-01T00:25:00|COMPLETED|30:00|"
           "1|8|1|gres/gpu=2|gres/gpu:h100=2\n",
           "sacct"),
       "sacct: read");
    ok(trace.n_jobs == 2 && job_is(0, 0, 3600, 16), "sacct: over the leap day, one hour");
    ok(trace.jobs[0].worker == 8 && trace.jobs[0].limit_s == 86400 && trace.jobs[0].cpus == 16 &&
           trace.jobs[0].priority == INT32_MAX && strcmp(trace.jobs[0].gpu, "a100") == 0,
       "sacct: two nodes of 8, a limit of one day, 16 cores a worker");
    /* 2024-02-28 23:59 to 2024-03-01 00:00: 60 s and one day. */
    ok(job_is(1, 86460, 900, 2) && trace.notes[TY_TRACE_RESTARTS] == 1,
       "sacct: a requeued job is one job of 600 + 300 s");
    ok(trace.notes[TY_TRACE_STEPS] == 1 && trace.notes[TY_TRACE_NEVER_RAN] == 1 &&
           trace.notes[TY_TRACE_NO_END] == 1 && trace.notes[TY_TRACE_NO_GPU] == 1,
       "sacct: steps, cancelled, running and CPU jobs are left out");
    ok(trace.dated, "sacct: times count from the first submission");
}

static void test_published_forms(void)
{
    /* README of InternLM/AcmeTrace. */
    ok(reads("job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,"
             "duration,queue,gpu_time\n"
             "5778469,u5907,1,8,128,Other,COMPLETED,2023-03-01 00:23:58+08:00,"
             "2023-03-01 00:24:11+08:00,2023-03-01 01:09:04+08:00,2693,13,21544.0\n",
             "acme"),
       "acme: read");
    ok(job_is(0, 0, 2693, 8) && trace.jobs[0].cpus == 16, "acme: 2693 s on 8 GPUs");
    ok(reads("job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,"
             "duration,queue\n"
             "1,u1,vcA,16,96,2,COMPLETED,2020-09-01 00:00:10,2020-09-01 00:00:20,"
             "2020-09-01 00:01:20,60,10\n"
             "2,u1,vcB,1,6,1,FAILED,2020-09-01 00:00:05,2020-09-01 00:00:06,2020-09-01 00:00:07,"
             "1,1\n",
             "helios"),
       "helios: read");
    ok(job_is(0, 5, 60, 16) && trace.jobs[0].worker == 8 && job_is(1, 0, 1, 1) &&
           trace.n_queues == 2,
       "helios: gangs of two nodes, virtual clusters as queues");
    /* alibaba/clusterdata, openb_pod_list. */
    ok(reads("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
             "deletion_time,scheduled_time\n"
             "openb-pod-0001,6000,12288,1,460,,LS,Running,427061,12902960,427061\n"
             "openb-pod-0035,16000,32768,1,1000,V100M16|V100M32,LS,Running,9967058,9968575,"
             "9967063\n"
             "openb-pod-0096,18708,64512,1,1000,,LS,Pending,10019975,10020052,\n",
             "openb"),
       "openb: read");
    ok(job_is(0, 427061, 12902960 - 427061, 1) && trace.jobs[0].share == 0.46 &&
           trace.jobs[0].cpus == 6 && trace.jobs[0].mem_bytes == 12288 * 1048576.0,
       "openb: a part of a GPU with its cores and memory");
    ok(job_is(1, 9967058, 9968575 - 9967063, 1) &&
           strcmp(trace.jobs[1].gpu, "V100M16|V100M32") == 0 &&
           trace.notes[TY_TRACE_NEVER_RAN] == 1,
       "openb: types; a pod that was never scheduled");
    /* msr-fiddle/philly-traces, README. */
    ok(reads("[{\"status\": \"Pass\", \"vc\": \"ee9e8c\", \"jobid\": \"application_1\", "
             "\"attempts\": [{\"start_time\": \"2017-10-09 07:02:00\", \"end_time\": "
             "\"2017-10-09 07:03:00\", \"detail\": [{\"ip\": \"m1\", \"gpus\": [\"gpu0\", "
             "\"gpu1\"]}, {\"ip\": \"m2\", \"gpus\": [\"gpu0\", \"gpu{\\\"1\"]}]}, "
             "{\"start_time\": \"2017-10-09 08:00:00\", \"end_time\": \"2017-10-09 08:00:30\", "
             "\"detail\": [{\"ip\": \"m1\", \"gpus\": [\"gpu0\", \"gpu1\"]}]}], "
             "\"submitted_time\": \"2017-10-09 07:01:51\", \"user\": \"ce2f4a\"},\n"
             "{\"status\": \"Killed\", \"vc\": \"ee9e8c\", \"jobid\": \"application_2\", "
             "\"attempts\": [], \"submitted_time\": \"2017-10-09 07:01:00\", \"user\": \"x\"},\n"
             "{\"status\": \"Killed\", \"vc\": \"ee9e8c\", \"jobid\": \"application_3\", "
             "\"attempts\": [{\"start_time\": \"2017-10-09 07:02:00\", \"end_time\": \"None\", "
             "\"detail\": []}], \"submitted_time\": \"2017-10-09 07:01:00\", \"user\": \"x\"}]\n",
             "philly"),
       "philly: read");
    ok(trace.n_jobs == 1 && job_is(0, 0, 90, 4) && trace.jobs[0].worker == 2,
       "philly: two attempts of 60 and 30 s on two machines of two GPUs");
    ok(trace.notes[TY_TRACE_RESTARTS] == 1 && trace.notes[TY_TRACE_NEVER_RAN] == 1 &&
           trace.notes[TY_TRACE_NO_END] == 1 && trace.notes[TY_TRACE_ROWS] == 3,
       "philly: a job without an attempt, and one without an end");
}

static void test_times(void)
{
    bool dated = false, bad = false;
    /* `date -u -d` of each. */
    ok(trace_time_s("1970-01-01 00:00:00", &dated, &bad) == 0.0, "the epoch");
    ok(trace_time_s("2000-02-29T12:00:00", &dated, &bad) == 951825600.0, "a leap day of 2000");
    ok(trace_time_s("2023-03-01 00:23:58+08:00", &dated, &bad) == 1677601438.0, "a time zone");
    ok(trace_time_s("2023-02-28 16:23:58Z", &dated, &bad) == 1677601438.0, "the same in UTC");
    ok(trace_time_s("2023-02-28 11:23:58.5-0500", &dated, &bad) == 1677601438.5, "fractions");
    ok(dated && !bad, "all are dates");
    ok(isnan(trace_time_s("None", &dated, &bad)) && !bad, "None is no time");
    static const char *const wrong[] = {"2023-13-01 00:00:00",
                                        "2023-01-01 25:00:00",
                                        "2023-01-01",
                                        "2023-01-01 00:00:00+8h",
                                        "1e999",
                                        "12 s"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        bad = false;
        trace_time_s(wrong[i], &dated, &bad);
        ok(bad, "%s is no time", wrong[i]);
    }
}

static void test_tables(void)
{
    struct ty_pool_nodes groups[4];
    uint32_t n = 0;
    ok(write_text("nodes,gpu_model,gpus_per_node,cpus,memory_mib\n549,G2,8,96,393216\n129,,0,32,1\n"
                  "2,T4,2,,\n") &&
           ty_pool_nodes_read(path, groups, 4, &n, &error) == TY_OK && n == 2,
       "node types: those without GPUs are left out");
    ok(groups[0].n_nodes == 549 && groups[0].gpus_per_node == 8 && groups[0].cpus == 96 &&
           groups[0].mem_bytes == 393216 * 1048576.0 && strcmp(groups[0].gpu, "G2") == 0 &&
           isnan(groups[1].cpus),
       "node types: values, empty cells");
    ok(write_text("nodes,gpus_per_node\n1.5,8\n") &&
           ty_pool_nodes_read(path, groups, 4, &n, &error) == TY_ERR_INPUT &&
           strstr(error.text, "line 2: nodes"),
       "node types: a bad cell is named");
    ok(reads("submit_s,gpus,duration_s,queue\n0,1,1,a\n0,1,1,b\n", "native"), "a trace of queues");
    ok(write_text("queue,weight,quota_gpus,cohort\nb,2,16,1\n") &&
           ty_trace_queues_read(path, &trace, &error) == TY_OK && trace.queues[1].weight == 2 &&
           trace.queues[1].quota_gpus == 16 && trace.queues[1].cohort == 1 &&
           isnan(trace.queues[1].borrow_gpus) && isnan(trace.queues[0].weight),
       "queues: by name");
    ok(write_text("queue,weight\nc,2\n") &&
           ty_trace_queues_read(path, &trace, &error) == TY_ERR_INPUT &&
           strstr(error.text, "\"c\""),
       "queues: one that no job is in");
}

/* Counts of the whole traces, from the README beside them. */
static void test_whole_traces(void)
{
    ty_trace_free(&trace);
    if (ty_trace_read(shared_path("data/traces/philly-vc-sample.csv"), NULL, NULL, &trace,
                      &error) != TY_OK) {
        skip("whole traces", "the traces are not there");
        return;
    }
    double sum_s = 0;
    for (uint64_t i = 0; i < trace.n_jobs; i++)
        sum_s += trace.jobs[i].duration_s;
    ok(trace.n_jobs == 15264 && trace.n_queues == 15, "philly sample: 15,264 jobs of 15 clusters");
    within(sum_s / 15264, 133241, 0.5, "philly sample: mean duration");
    ty_trace_free(&trace);
    ok(ty_trace_read(shared_path("data/traces/openb-2023-pods.csv"), NULL, NULL, &trace, &error) ==
           TY_OK,
       "openb 2023: read");
    ok(trace.notes[TY_TRACE_ROWS] == 8152 &&
           trace.n_jobs + trace.notes[TY_TRACE_NO_GPU] + trace.notes[TY_TRACE_NEVER_RAN] == 8152,
       "openb 2023: 8,152 pods, each a job or left out for a reason");
    /* Waits of the 6,203 GPU pods that ran, by a script in another language. */
    const struct ty_pool_spread *wait_s = &trace.recorded_wait_s;
    ok(trace.n_jobs == 6203 && wait_s->median == 2 && wait_s->p90 == 139 && wait_s->p99 == 1110 &&
           wait_s->max == 14330,
       "openb 2023: recorded waits");
    ty_trace_free(&trace);
    ok(ty_trace_read(shared_path("data/traces/muri-philly-992-jobs.csv"), NULL, NULL, &trace,
                     &error) == TY_OK &&
           trace.n_jobs == 992 && strcmp(trace.format, "muri") == 0,
       "muri: 992 jobs");
    double work_gpu_s = 0, last_s = 0;
    for (uint64_t i = 0; i < trace.n_jobs; i++) {
        work_gpu_s += trace.jobs[i].gpus * trace.jobs[i].duration_s;
        last_s = fmax(last_s, trace.jobs[i].submit_s);
    }
    ok(work_gpu_s / (64 * last_s) > 0.75 && work_gpu_s / (64 * last_s) < 0.85,
       "muri: offered load near 0.80 of 64 GPUs");
    ty_trace_free(&trace);
    ok(ty_trace_read(shared_path("data/traces/tiresias-60-jobs.csv"), NULL, NULL, &trace, &error) ==
               TY_OK &&
           trace.n_jobs == 60 && strcmp(trace.format, "tiresias") == 0,
       "tiresias: 60 jobs");
}

/* 400 jobs that the authors of Muri ran on 64 V100 under three schedulers: mean completion within
 * 15 %. The replay has no restarts and no interference, so it should be the faster one. */
static void test_testbed(void)
{
    static const char *const names[][2] = {
        {"srtf", "jct_s_srtf"}, {"srsf", "jct_s_srsf"}, {"las", "jct_s_tiresias"}};
    struct csv csv;
    char file[1024];
    snprintf(file, sizeof file, "%s", shared_path("data/traces/muri-testbed-400-jobs.csv"));
    ty_trace_free(&trace);
    if (csv_read(file, &csv, &error) != TY_OK ||
        ty_trace_read(file, NULL, NULL, &trace, &error) != TY_OK) {
        skip("testbed", "its trace is not there");
        return;
    }
    const struct ty_pool_nodes nodes = {
        .n_nodes = 1, .gpus_per_node = 64, .cpus = NAN, .mem_bytes = NAN};
    struct ty_pool pool;
    ty_pool_init(&pool);
    pool.groups = &nodes;
    pool.n_groups = 1;
    for (size_t i = 0; i < 3; i++) {
        double sum_s = 0;
        struct ty_pool_result result;
        for (uint64_t row = 0; row < csv.n_rows; row++)
            sum_s += strtod(csv_cell(&csv, row, csv_column(&csv, names[i][1])), NULL);
        pool.policy = names[i][0];
        ok(ty_pool_run(&pool, trace.jobs, trace.n_jobs, &result, &error) == TY_OK, "testbed: %s",
           pool.policy);
        const double ratio = result.metrics.jct_s.mean * (double)csv.n_rows / sum_s;
        ok(ratio > 0.85 && ratio < 1.0, "testbed: %s completes in %.3f of the measured time",
           pool.policy, ratio);
        ty_pool_result_free(&result);
    }
    csv_free(&csv);
}

/* A million rows: read and replayed; every tenth is broken. */
static void test_many_rows(void)
{
    const uint64_t n = getenv("TRAINYARD_LONG") ? 1000000 : 50000;
    FILE *file = fopen(path, "wb");
    fputs("job_id,submit_s,gpus,duration_s\n", file);
    for (uint64_t i = 0; i < n; i++)
        fprintf(file, "j%llu,%llu,%s,%u\n", (unsigned long long)i, (unsigned long long)i,
                i % 10 == 9 ? "many" : "1", 60u);
    fclose(file);
    ty_trace_free(&trace);
    ok(ty_trace_read(path, NULL, NULL, &trace, &error) == TY_OK &&
           trace.notes[TY_TRACE_BAD] == n / 10 && trace.n_jobs == n - n / 10,
       "%llu rows: read, the broken tenth left out", (unsigned long long)n);
    struct ty_pool pool;
    ty_pool_init(&pool);
    const struct ty_pool_nodes nodes = {
        .n_nodes = 8, .gpus_per_node = 8, .cpus = NAN, .mem_bytes = NAN};
    pool.groups = &nodes;
    pool.n_groups = 1;
    struct ty_pool_result result;
    ok(ty_pool_run(&pool, trace.jobs, trace.n_jobs, &result, &error) == TY_OK &&
           result.metrics.n_done == trace.n_jobs && result.metrics.wait_s.max == 0.0,
       "%llu rows: replayed; 54 GPUs of 64 are in use, nobody waits", (unsigned long long)n);
    char *json = ty_pool_json(&pool, &trace, &result);
    ok(json && strstr(json, "\"policy\": \"fifo\"") && strstr(json, "\"bad\": "), "JSON of it");
    ty_text_free(json);
    ty_pool_result_free(&result);
}

int main(void)
{
    const int descriptor = mkstemp(path);
    if (descriptor < 0)
        return 1;
    close(descriptor);
    test_native();
    test_bad_rows();
    test_sacct();
    test_published_forms();
    test_times();
    test_tables();
    test_whole_traces();
    test_testbed();
    test_many_rows();
    ty_trace_free(&trace);
    unlink(path);
    return tap_done();
}

/* SPDX-License-Identifier: MIT
 *
 * Traces that are tables: a form is the list of its column names for each thing a job has.
 *
 *   native    docs/pool.md
 *   sacct     Slurm's `sacct -P`, any columns that hold submit, start, end and TRES
 *   helios    S-Lab HeliosData, cluster_log.csv
 *   acme      InternLM AcmeTrace, trace_seren.csv and trace_kalos.csv
 *   openb     alibaba/clusterdata, cluster-trace-gpu-v2023
 *   muri, tiresias   the traces of these two simulators */
#include "calibrate/csv.h"
#include "calibrate/trace.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum field {
    ID,
    QUEUE,
    SUBMIT,
    START,
    END,
    DURATION,
    LIMIT,
    DEADLINE,
    GPUS,
    SHARE,
    CPUS,
    MEM,
    NODES,
    WORKER,
    MIN_GPUS,
    MAX_GPUS,
    GPU,
    PRIORITY,
    LEVEL,
    SERIAL,
    CURVE,
    RESTART,
    CHECKPOINT,
    TRES,
    TRES_ASKED,
    N_FIELDS
};

struct form {
    const char *name, *key; /* key: a column that no form above has */
    const char *column[N_FIELDS];
    double time_unit_s, share_unit, cpu_unit, mem_unit_bytes;
    bool by_duration; /* a run time makes an end unnecessary */
    bool whole_node;  /* a job is one worker */
    bool cpus_of_job; /* cores are of the job, not of a worker */
};

#define MIB 1048576.0

/* What the tables of Helios and Acme share. */
#define HELIOS_COLUMNS                                                                             \
    [ID] = "job_id", [SUBMIT] = "submit_time", [START] = "start_time", [END] = "end_time",         \
    [DURATION] = "duration", [GPUS] = "gpu_num", [CPUS] = "cpu_num", [NODES] = "node_num"

static const struct form forms[] = {
    {.name = "sacct",
     .key = "Submit",
     .column = {[ID] = "JobID",
                [QUEUE] = "Partition",
                [SUBMIT] = "Submit",
                [START] = "Start",
                [END] = "End",
                [DURATION] = "ElapsedRaw",
                [LIMIT] = "Timelimit",
                [CPUS] = "AllocCPUS",
                [NODES] = "NNodes",
                [PRIORITY] = "Priority",
                [TRES] = "AllocTRES",
                [TRES_ASKED] = "ReqTRES"},
     .cpus_of_job = true},
    {.name = "openb",
     .key = "gpu_milli",
     .column = {[ID] = "name|job_id",
                [QUEUE] = "qos",
                [SUBMIT] = "creation_time|submit_s",
                [START] = "scheduled_time|start_s",
                [END] = "deletion_time|end_s",
                [GPUS] = "num_gpu|gpus",
                [SHARE] = "gpu_milli",
                [CPUS] = "cpu_milli",
                [MEM] = "memory_mib",
                [GPU] = "gpu_spec"},
     .share_unit = 1e-3,
     .cpu_unit = 1e-3,
     .mem_unit_bytes = MIB,
     .whole_node = true},
    {.name = "helios",
     .key = "vc|gpu_num",
     .column = {[QUEUE] = "vc", HELIOS_COLUMNS},
     .cpus_of_job = true},
    {.name = "acme",
     .key = "gpu_num",
     .column = {[QUEUE] = "type", HELIOS_COLUMNS},
     .cpus_of_job = true},
    {.name = "muri",
     .key = "submit_ms",
     .column = {[ID] = "job_id",
                [SUBMIT] = "submit_ms",
                [DURATION] = "duration_ms",
                [GPUS] = "gpus",
                [PRIORITY] = "priority"},
     .time_unit_s = 1e-3},
    {.name = "tiresias",
     .key = "num_gpu",
     .column =
         {[ID] = "job_id", [SUBMIT] = "submit_time", [DURATION] = "duration", [GPUS] = "num_gpu"}},
    {.name = "native",
     .key = "submit_s",
     .column = {[ID] = "job_id",         [QUEUE] = "queue|vc",
                [SUBMIT] = "submit_s",   [START] = "start_s",
                [END] = "end_s",         [DURATION] = "duration_s",
                [LIMIT] = "limit_s",     [DEADLINE] = "deadline_s",
                [GPUS] = "gpus",         [SHARE] = "share",
                [CPUS] = "cpus",         [MEM] = "mem_gib",
                [NODES] = "nodes",       [WORKER] = "worker",
                [MIN_GPUS] = "min_gpus", [MAX_GPUS] = "max_gpus",
                [GPU] = "gpu",           [PRIORITY] = "priority",
                [LEVEL] = "level",       [SERIAL] = "serial",
                [RESTART] = "restart_s", [CHECKPOINT] = "checkpoint_gib",
                [CURVE] = "curve"},
     .mem_unit_bytes = 1024.0 * MIB,
     .by_duration = true},
};

enum { N_FORMS = sizeof forms / sizeof forms[0] };

const char *trace_table_format(size_t index)
{
    return index < N_FORMS ? forms[index].name : NULL;
}

/* ---- columns ------------------------------------------------------------------------------ */

/* Takes the next of names that are parted by '|'. */
static bool next_name(const char **names, char name[32])
{
    if (!*names || !**names)
        return false;
    const size_t length = strcspn(*names, "|");
    text_format(name, 32, "%.*s", (int)length, *names);
    *names += length + ((*names)[length] == '|');
    return true;
}

/* Column of the first of the names that the table has; -1: none. */
static int find_column(const struct csv *csv, const char *names)
{
    char name[32];
    int column = -1;
    while (column < 0 && next_name(&names, name))
        column = csv_column(csv, name);
    return column;
}

/* All names of the key are columns. */
static bool has_key(const struct csv *csv, const char *key)
{
    char name[32];
    bool all = true;
    while (all && next_name(&key, name))
        all = csv_column(csv, name) >= 0;
    return all;
}

struct table {
    struct csv csv;
    const struct form *form;
    int column[N_FIELDS];
    uint64_t row;
};

static const char *cell(const struct table *table, enum field field)
{
    return csv_cell(&table->csv, table->row, table->column[field]);
}

/* ---- cells -------------------------------------------------------------------------------- */

/* "1-02:03:04", "02:03:04", "03:04" of Slurm, or seconds. */
static double limit_s(const char *text, bool *bad)
{
    double total = 0.0, part = 0.0;
    const char *at = text;
    if (!strchr(text, ':'))
        return trace_number(text, bad);
    for (; *at; at++) {
        if (*at >= '0' && *at <= '9')
            part = 10.0 * part + (*at - '0');
        else if (*at == '-' || *at == ':') {
            total = (total + part) * (*at == '-' ? 24.0 : 60.0);
            part = 0.0;
        } else
            *bad = true;
    }
    return total + part;
}

/* GPUs of "cpu=8,gres/gpu=4,gres/gpu:a100=4,node=1": the entry without a type, else the sum of
 * those with one. type: the one type, if there is one. */
static double tres_gpus(const char *text, char *type, size_t bytes, bool *bad)
{
    double total = NAN, typed = 0.0;
    uint32_t n_types = 0;
    while (*text) {
        const size_t length = strcspn(text, ",");
        char entry[128];
        text_format(entry, sizeof entry, "%.*s", (int)(length < 127 ? length : 127), text);
        char *equals = strchr(entry, '=');
        if (equals)
            *equals = '\0';
        if (equals && strcmp(entry, "gres/gpu") == 0)
            total = trace_number(equals + 1, bad);
        if (equals && strncmp(entry, "gres/gpu:", 9) == 0) {
            typed += trace_number(equals + 1, bad);
            text_format(type, bytes, "%s", n_types++ == 0 ? entry + 9 : "");
        }
        text += length + (text[length] == ',');
    }
    return isnan(total) ? typed : total;
}

static uint32_t count_of(const char *text, bool *bad)
{
    const double value = trace_number(text, bad);
    if (isnan(value))
        return 0;
    *bad |= value < 0.0 || value > 1048576.0 || value != floor(value);
    return *bad ? 0 : (uint32_t)value;
}

static int level_of(const char *text, bool *bad)
{
    static const char *const names[] = {"", "node", "leaf", "pod"};
    for (int i = 0; i < 4; i++)
        if (strcmp(text, names[i]) == 0)
            return i;
    *bad = strcmp(text, "any") != 0;
    return TY_POOL_ANY;
}

static double times(double value, double unit)
{
    return unit > 0.0 ? value * unit : value;
}

/* ---- a row -------------------------------------------------------------------------------- */

/* Fills the times; returns why the job is left out, TY_TRACE_ROWS: it is not. */
static enum ty_trace_note read_times(struct table *table, struct trace_builder *builder,
                                     struct ty_pool_job *job)
{
    bool bad = false, *dated = &builder->trace.dated;
    const double unit_s = table->form->time_unit_s;
    const double start_s = times(trace_time_s(cell(table, START), dated, &bad), unit_s);
    const double end_s = times(trace_time_s(cell(table, END), dated, &bad), unit_s);
    job->submit_s = times(trace_time_s(cell(table, SUBMIT), dated, &bad), unit_s);
    builder->wait_s = start_s - job->submit_s;
    job->duration_s = times(trace_number(cell(table, DURATION), &bad), unit_s);
    job->deadline_s = trace_time_s(cell(table, DEADLINE), dated, &bad);
    job->limit_s = limit_s(cell(table, LIMIT), &bad);
    if (bad || isnan(job->submit_s) || job->submit_s < 0.0 || job->duration_s < 0.0 ||
        end_s < start_s || job->limit_s <= 0.0)
        return TY_TRACE_BAD;
    if (table->column[START] >= 0 && isnan(start_s) && !(job->duration_s > 0.0))
        return TY_TRACE_NEVER_RAN;
    if (table->column[END] >= 0 && isnan(end_s) &&
        (isnan(job->duration_s) || !table->form->by_duration))
        return TY_TRACE_NO_END;
    if (isnan(job->duration_s))
        job->duration_s = end_s - start_s;
    if (isnan(job->duration_s))
        return TY_TRACE_NEVER_RAN;
    return job->duration_s > 0.0 ? TY_TRACE_ROWS : TY_TRACE_NO_TIME;
}

/* GPUs, a part of one, rounding. */
static enum ty_trace_note read_gpus(const struct table *table, struct trace_builder *builder,
                                    struct ty_pool_job *job, char *type, size_t bytes)
{
    bool bad = false;
    double gpus = trace_number(cell(table, GPUS), &bad);
    if (table->column[TRES] >= 0 || table->column[TRES_ASKED] >= 0) {
        const char *given = cell(table, TRES);
        gpus = tres_gpus(*given ? given : cell(table, TRES_ASKED), type, bytes, &bad);
    }
    const double share = times(trace_number(cell(table, SHARE), &bad), table->form->share_unit);
    if (bad || gpus < 0.0 || gpus > 1048576.0)
        return TY_TRACE_BAD;
    if (!(gpus > 0.0))
        return TY_TRACE_NO_GPU;
    if (gpus < 1.0)
        job->share = gpus < 0.001 ? 0.001 : gpus;
    else if (gpus != floor(gpus))
        builder->trace.notes[TY_TRACE_ROUNDED]++;
    job->gpus = (uint32_t)ceil(gpus);
    if (job->gpus == 1 && share > 0.0 && share < 1.0)
        job->share = share < 0.001 ? 0.001 : share;
    return share > 1.0 || share < 0.0 ? TY_TRACE_BAD : TY_TRACE_ROWS;
}

/* Workers, and what the host must give each. */
static enum ty_trace_note read_shape(const struct table *table, struct ty_pool_job *job)
{
    bool bad = false;
    const uint32_t nodes = count_of(cell(table, NODES), &bad);
    job->worker = count_of(cell(table, WORKER), &bad);
    if (job->worker == 0 && nodes > 1 && job->gpus % nodes == 0)
        job->worker = job->gpus / nodes;
    if (table->form->whole_node)
        job->worker = job->gpus;
    job->min_gpus = count_of(cell(table, MIN_GPUS), &bad);
    job->max_gpus = count_of(cell(table, MAX_GPUS), &bad);
    job->cpus = times(trace_number(cell(table, CPUS), &bad), table->form->cpu_unit);
    if (table->form->cpus_of_job)
        job->cpus /= (double)(job->gpus / (job->worker ? job->worker : 1));
    job->mem_bytes = times(trace_number(cell(table, MEM), &bad), table->form->mem_unit_bytes);
    job->serial = trace_number(cell(table, SERIAL), &bad);
    job->restart_s = trace_number(cell(table, RESTART), &bad);
    job->checkpoint_bytes =
        times(trace_number(cell(table, CHECKPOINT), &bad), table->form->mem_unit_bytes);
    job->level = level_of(cell(table, LEVEL), &bad);
    const double priority = trace_number(cell(table, PRIORITY), &bad);
    if (!isnan(priority))
        job->priority = (int32_t)fmax(INT32_MIN, fmin(INT32_MAX, priority));
    const uint32_t worker = job->worker ? job->worker : 1;
    const uint32_t least = job->min_gpus ? job->min_gpus : job->gpus;
    const uint32_t most = job->max_gpus ? job->max_gpus : job->gpus;
    bad |= job->gpus % worker || least % worker || most % worker || least > most;
    bad |= job->share < 1.0 && most > 1;
    bad |= job->cpus < 0.0 || job->mem_bytes < 0.0 || job->restart_s < 0.0 ||
           job->checkpoint_bytes < 0.0 || job->serial < 0.0 || job->serial > 1.0;
    return bad ? TY_TRACE_BAD : TY_TRACE_ROWS;
}

/* A step of a Slurm job: "123.batch", "123_4.0". */
static bool is_step(const struct table *table)
{
    return table->column[TRES] >= 0 && strchr(cell(table, ID), '.');
}

static bool read_row(struct table *table, struct trace_builder *builder)
{
    struct ty_pool_job job;
    ty_pool_job_init(&job);
    char type[64] = "";
    builder->trace.notes[TY_TRACE_ROWS]++;
    builder->line = table->row + 2;
    enum ty_trace_note why = is_step(table) ? TY_TRACE_STEPS : TY_TRACE_ROWS;
    if (why == TY_TRACE_ROWS)
        why = read_gpus(table, builder, &job, type, sizeof type);
    if (why == TY_TRACE_ROWS)
        why = read_times(table, builder, &job);
    if (why == TY_TRACE_ROWS)
        why = read_shape(table, &job);
    if (why != TY_TRACE_ROWS) {
        trace_skip(builder, why);
        return true;
    }
    const char *gpu = *type ? type : cell(table, GPU);
    job.gpu = *gpu ? gpu : NULL;
    job.curve = *cell(table, CURVE) ? cell(table, CURVE) : NULL;
    return trace_add(builder, cell(table, ID), cell(table, QUEUE), &job);
}

/* ---- the file ----------------------------------------------------------------------------- */

static ty_status choose_form(struct table *table, const char *path, const char *format,
                             struct ty_error *error)
{
    for (size_t i = 0; i < N_FORMS && !table->form; i++)
        if (format ? strcmp(forms[i].name, format) == 0 : has_key(&table->csv, forms[i].key))
            table->form = &forms[i];
    if (!table->form)
        return error_set(error, TY_ERR_INPUT, path,
                         format ? "\"%s\" is no format of a trace"
                                : "no known form of a trace; a native one has the columns "
                                  "submit_s, gpus and duration_s",
                         format ? format : "");
    for (int i = 0; i < N_FIELDS; i++)
        table->column[i] = find_column(&table->csv, table->form->column[i]);
    static const enum field needed[] = {SUBMIT, GPUS, END};
    for (size_t i = 0; i < 3; i++) {
        const enum field field = needed[i];
        const enum field other = field == GPUS ? TRES : field == END ? DURATION : field;
        const bool asked = field == GPUS && table->column[TRES_ASKED] >= 0;
        if (table->column[field] < 0 && table->column[other] < 0 && !asked)
            return error_set(error, TY_ERR_INPUT, path, "a trace of form %s needs column %s",
                             table->form->name,
                             table->form->column[field] ? table->form->column[field]
                                                        : table->form->column[other]);
    }
    return TY_OK;
}

/* Slurm parts fields by '|', the others by commas. */
static ty_status read_csv(const char *path, struct csv *csv, struct ty_error *error)
{
    ty_status status = csv_read_delimited(path, '|', csv, NULL);
    if (status == TY_OK && csv->n_columns > 1 && csv_column(csv, "Submit") >= 0)
        return TY_OK;
    if (status == TY_OK)
        csv_free(csv);
    return csv_read(path, csv, error);
}

ty_status trace_read_table(struct trace_builder *builder, const char *format,
                           struct ty_error *error)
{
    struct table table = {0};
    ty_status status = read_csv(builder->path, &table.csv, error);
    if (status != TY_OK)
        return status;
    status = choose_form(&table, builder->path, format, error);
    if (status == TY_OK)
        text_format(builder->trace.format, sizeof builder->trace.format, "%s", table.form->name);
    for (; status == TY_OK && table.row < table.csv.n_rows; table.row++)
        if (!read_row(&table, builder))
            status = error_set(error, TY_ERR_NOMEM, builder->path,
                               "out of memory, or more than 65536 queues");
    csv_free(&table.csv);
    return status;
}

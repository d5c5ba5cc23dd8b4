/* SPDX-License-Identifier: MIT
 *
 * fio --output-format=json, with notes printed before or behind the object. bw is in KiB/s and
 * bw_bytes in bytes/s (fio 3; before, bw alone), runtime in ms, lat_ns in ns (fio 2: lat in us).
 *   bw_bytes = 1024 bw = iops block
 */
#include "calibrate/micro.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

struct job {
    struct record_list *list;
    struct record head;
    struct json_at own, global; /* options; node NULL: none */
};

/* An option of the job, or of all jobs. */
static const char *option(const struct job *job, const char *key)
{
    const char *text = job->own.node ? micro_json_text(&job->own, key) : "";
    return *text || !job->global.node ? text : micro_json_text(&job->global, key);
}

static double option_number(const struct job *job, const char *key)
{
    double value;
    return micro_number(option(job, key), &value) ? value : (double)NAN;
}

/* "4k", "4096", "128k,64k" for reads and writes; NAN for ranges and splits. */
static double block_bytes(const struct job *job, bool writes)
{
    const char *text = option(job, *option(job, "bs") ? "bs" : "blocksize");
    if (*option(job, "bsrange") || *option(job, "bssplit") || strchr(text, '-'))
        return (double)NAN;
    const char *comma = strchr(text, ',');
    char word[24];
    micro_copy_word(writes && comma ? comma + 1 : text, ",", word, sizeof word);
    return *word ? micro_size_bytes(word, 1024.0) : 4096.0; /* fio's default */
}

/* lat_ns, or lat in microseconds. */
static bool find_latency(const struct json_at *side, const char *name, struct json_at *out,
                         double *unit_s)
{
    char key[16];
    text_format(key, sizeof key, "%s_ns", name);
    *unit_s = 1e-9;
    if (json_find(side, key, out))
        return true;
    *unit_s = 1e-6;
    return json_find(side, name, out);
}

static void read_latency(const struct json_at *side, struct record_fields *f)
{
    struct json_at at, percentile;
    double unit_s;
    if (find_latency(side, "lat", &at, &unit_s))
        record_number(f, RECORD_VALUE, "latency_mean_s", micro_json_number(&at, "mean") * unit_s);
    if (!find_latency(side, "clat", &at, &unit_s) || !json_find(&at, "percentile", &percentile))
        return;
    record_number(f, RECORD_VALUE, "latency_p50_s",
                  micro_json_number(&percentile, "50.000000") * unit_s);
    record_number(f, RECORD_VALUE, "latency_p99_s",
                  micro_json_number(&percentile, "99.000000") * unit_s);
}

static void read_side(struct job *job, const struct json_at *result, const char *op)
{
    struct json_at side;
    if (!json_find(result, op, &side) || !(micro_json_number(&side, "io_bytes") != 0.0))
        return;
    const double kib = micro_json_number(&side, "bw") * 1024.0;
    const double printed = micro_json_number(&side, "bw_bytes");
    const double bandwidth = isnan(printed) ? kib : printed;
    const double iops = micro_json_number(&side, "iops");
    const double block = block_bytes(job, strcmp(op, "write") == 0);
    job->head.rejected = NULL;
    if (micro_json_number(result, "error") > 0.0)
        job->head.rejected = "fio reports an error in this job";
    else if (!(bandwidth > 0.0))
        job->head.rejected = "bandwidth must be above 0";
    else if (!isnan(printed) && !isnan(kib) && !micro_agrees(printed, kib, 1024.0))
        job->head.rejected = "bw_bytes is not 1024 x bw";
    else if (!isnan(block) && iops > 0.0 && !micro_agrees(bandwidth, iops * block, 1024.0))
        job->head.rejected = "the bandwidth is not iops x block size";
    const char *rw = option(job, *option(job, "rw") ? "rw" : "readwrite");
    struct record_fields f = {.n = 0};
    record_text(&f, RECORD_PARAMETER, "op", op);
    record_text(&f, RECORD_PARAMETER, "pattern",
                strncmp(rw, "rand", 4) == 0 ? "random" : "sequential");
    record_number(&f, RECORD_PARAMETER, "block_bytes", block);
    record_number(&f, RECORD_PARAMETER, "depth", option_number(job, "iodepth"));
    record_number(&f, RECORD_PARAMETER, "jobs", option_number(job, "numjobs"));
    record_text(&f, RECORD_PARAMETER, "engine", record_copy(job->list, option(job, "ioengine")));
    record_text(&f, RECORD_PARAMETER, "name",
                record_copy(job->list, micro_json_text(result, "jobname")));
    record_number(&f, RECORD_VALUE, "bandwidth_bytes_per_s", bandwidth);
    record_number(&f, RECORD_VALUE, "operations_per_s", iops);
    record_number(&f, RECORD_VALUE, "time_s", micro_json_number(&side, "runtime") * 1e-3);
    read_latency(&side, &f);
    job->head.flags = strcmp(option(job, "direct"), "1") == 0 ? 0 : RECORD_PAGE_CACHE;
    record_add(job->list, &job->head, &f);
}

/* The items of "jobs"; of "client_stats", without their sum over all clients. */
static void read_jobs(struct job *job, const struct json_at *top, const char *key)
{
    static const char *const ops[] = {"read", "write"};
    struct json_at array, item = {0};
    if (!json_find(top, key, &array))
        return;
    while (json_next(&array, &item)) {
        if (strcmp(micro_json_text(&item, "jobname"), "All clients") == 0)
            continue;
        if (!json_find(&item, "job options", &job->own))
            job->own.node = NULL;
        for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
            read_side(job, &item, ops[i]);
    }
}

ty_status micro_read_fio(struct import_file *file, struct record_list *list, struct ty_error *error)
{
    struct json_document document = {0};
    ty_status status = micro_json(file, &document, error);
    if (status != TY_OK)
        return status;
    struct job job = {.list = list,
                      .head = {.kind = "storage",
                               .tool = "fio",
                               .file = record_copy(list, micro_file_name(file->path))}};
    struct record_fields f = {.n = 0};
    record_text(&f, RECORD_SOFTWARE, "tool_version",
                record_copy(list, micro_json_text(&document.top, "fio version")));
    record_stamp(list, &job.head, &f);
    if (!json_find(&document.top, "global options", &job.global))
        job.global.node = NULL;
    read_jobs(&job, &document.top, "jobs");
    read_jobs(&job, &document.top, "client_stats");
    json_free(&document);
    return record_list_status(list, file->path, error);
}

/* SPDX-License-Identifier: MIT
 * `trainyard comm`: how long a collective takes, and whether a measured one is normal. */
#include "cli/comm_tables.h"
#include <math.h>
#include <string.h>

enum { MAX_SIZES = 256 };

/* ---- what is asked -------------------------------------------------------------------------- */

static ty_status parse_op(const char *name, enum ty_collective_op *op, struct ty_error *error)
{
    char legal[120] = "";
    for (*op = 0; *op < TY_N_COLLECTIVES; (*op)++) {
        if (strcmp(ty_collective_name(*op), name) == 0)
            return TY_OK;
        snprintf(legal + strlen(legal), sizeof legal - strlen(legal), "%s%s", *op ? ", " : "",
                 ty_collective_name(*op));
    }
    return cli_refuse(error, "--op", "\"%s\" is not one of %s", name, legal);
}

static ty_status parse_size(const char *text, size_t length, double *out, struct ty_error *error)
{
    char one[40];
    struct ty_error reason;
    snprintf(one, sizeof one, "%.*s", (int)(length < sizeof one ? length : sizeof one), text);
    const enum ty_unit unit = one[strspn(one, "0123456789")] ? TY_UNIT_BYTES : TY_UNIT_COUNT;
    if (ty_quantity_parse(one, unit, out, &reason) != TY_OK || !(*out >= 1.0) || !(*out <= 0x1p60))
        return cli_refuse(error, "--sizes", "\"%s\" is no size of 1 byte to 2^60 (8, 64KiB, 1MiB)",
                          one);
    return TY_OK;
}

static ty_status parse_range(const char *text, const char *dots, double size_bytes[], uint32_t *n,
                             struct ty_error *error)
{
    double low, high;
    ty_status status = parse_size(text, (size_t)(dots - text), &low, error);
    if (status == TY_OK)
        status = parse_size(dots + 2, strlen(dots + 2), &high, error);
    if (status != TY_OK)
        return status;
    if (high < low)
        return cli_refuse(error, "--sizes", "\"%s\" ends below its start", text);
    for (*n = 0; low <= high; low *= 2.0) /* 61 at most */
        size_bytes[(*n)++] = low;
    return TY_OK;
}

/* "1MiB..8GiB" in doublings, or "1MiB,64MiB". */
static ty_status parse_sizes(const char *text, double size_bytes[MAX_SIZES], uint32_t *n,
                             struct ty_error *error)
{
    const char *dots = strstr(text, "..");
    if (dots)
        return parse_range(text, dots, size_bytes, n, error);
    for (*n = 0;; text++) {
        const size_t length = strcspn(text, ",");
        if (*n == MAX_SIZES)
            return cli_refuse(error, "--sizes", "more than %d sizes", MAX_SIZES);
        const ty_status status = parse_size(text, length, &size_bytes[(*n)++], error);
        if (status != TY_OK || !*(text += length))
            return status;
    }
}

static ty_status ask(const struct cli_args *args, const struct ty_cluster *cluster,
                     const struct ty_collective_tables *tables, struct ty_comm *out,
                     struct ty_error *error)
{
    double size_bytes[MAX_SIZES];
    uint32_t n = 0;
    struct ty_collective_query query = {
        .cluster = cluster, .op = TY_N_COLLECTIVES, .ranks = args->comm.ranks};
    ty_status status = args->comm.op ? parse_op(args->comm.op, &query.op, error) : TY_OK;
    if (status != TY_OK)
        return status;
    if (args->comm.compare)
        return args->comm.sizes ? cli_refuse(error, "--sizes", "the log has its own sizes")
                                : ty_comm_compare(&query, args->comm.compare, tables, out, error);
    if (!args->comm.op)
        return cli_refuse(error, "--op", "not given; all_reduce, for example");
    if (!args->comm.ranks)
        return cli_refuse(error, "--gpus", "not given: the ranks of the group");
    status = parse_sizes(args->comm.sizes ? args->comm.sizes : "1MiB..8GiB", size_bytes, &n, error);
    return status == TY_OK ? ty_comm_predict(&query, size_bytes, n, tables, out, error) : status;
}

/* ---- answer --------------------------------------------------------------------------------- */

/* "64 KiB": sizes of benchmarks are powers of two. */
static const char *size_text(double size_bytes, char *out, size_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    for (; size_bytes >= 1024.0 && unit < 4; unit++)
        size_bytes /= 1024.0;
    snprintf(out, bytes, "%.4g %s", size_bytes, units[unit]);
    return out;
}

static void print_point(const struct ty_comm_point *point, bool measured)
{
    const struct ty_collective_time *time = &point->predicted;
    const char *origin = ty_collective_origin_name(time->origin);
    char size[40], text[40], choice[32];
    snprintf(choice, sizeof choice, "%s%s%s", time->algorithm, *time->protocol ? "/" : "",
             time->protocol);
    printf("%12s %10s %+4.0f..%+3.0f %% %8.2f %8.2f  %-15s %-8s %s",
           size_text(point->size_bytes, size, sizeof size),
           cli_time_text(time->time_s, text, sizeof text),
           100.0 * (time->low_s / time->time_s - 1.0), 100.0 * (time->high_s / time->time_s - 1.0),
           time->algbw_bytes_per_s / 1e9, time->busbw_bytes_per_s / 1e9, choice, time->limit,
           origin);
    if (measured)
        printf("%*s %8.2f %+6.0f %%  %s", 24 - (int)strlen(origin),
               cli_time_text(point->measured_s, text, sizeof text),
               point->measured_busbw_bytes_per_s / 1e9, 100.0 * point->off,
               ty_comm_verdict_name(point->verdict));
    putchar('\n');
}

/* The tables the numbers come from, each once. */
static void print_sources(const struct ty_comm *comm)
{
    bool any = false;
    for (uint32_t i = 0; i < comm->n; i++) {
        const struct ty_collective_table *table = comm->points[i].predicted.table;
        bool seen = !table;
        for (uint32_t k = 0; k < i && !seen; k++)
            seen = comm->points[k].predicted.table == table;
        if (seen)
            continue;
        printf("%s  %s, %s over %u GPUs: %s\n", any ? "" : "\nTables\n", table->cluster->name,
               ty_collective_name(table->op), table->ranks, table->source);
        any = true;
    }
}

static void print_comm(const struct ty_comm *comm, bool measured)
{
    bool extrapolated = false;
    printf("%s over %u GPUs of %s\n\n%12s %10s %11s %8s %8s  %-15s %-8s %s%s\n",
           ty_collective_name(comm->query.op), comm->query.ranks, comm->query.cluster->name, "size",
           "time", "80 %", "algbw", "busbw", "algorithm", "limit", "from",
           measured ? "            measured    busbw  busbw off" : "");
    for (uint32_t i = 0; i < comm->n; i++) {
        print_point(&comm->points[i], measured);
        extrapolated |= comm->points[i].predicted.origin >= TY_FROM_NEIGHBOUR;
    }
    puts("\nalgbw and busbw in GB/s, as nccl-tests counts them; of measured times, 80 % are in the "
         "range");
    if (extrapolated)
        puts("\"neighbour\" and \"model\" are extrapolated: no table of this cluster and group");
    print_sources(comm);
    if (!measured)
        return;
    printf("\n%u of %u sizes are normal, %u low, %u high\n", comm->n - comm->n_low - comm->n_high,
           comm->n, comm->n_low, comm->n_high);
    if (comm->n_low)
        printf("Likely cause: %s\n", comm->cause);
}

static int answer(const struct cli_args *args, const struct ty_comm *comm)
{
    if (!args->json) {
        print_comm(comm, args->comm.compare != NULL);
        return CLI_OK;
    }
    return cli_print(ty_comm_json(comm));
}

int cmd_comm(struct cli_args *args)
{
    struct ty_error error = {0};
    struct ty_cluster cluster;
    struct comm_tables tables;
    struct ty_comm comm = {0};
    int status = CLI_OK;
    if (cli_load_cluster(args, args->cluster, &cluster, &error) != TY_OK)
        return cli_fail(&error);
    if (comm_tables_load(args, &cluster, &tables, &error) != TY_OK) {
        comm_tables_free(&tables);
        return cli_fail(&error);
    }
    cli_warn_unused(args, 1u << TY_KIND_CLUSTER |
                              (args->profile && !args->comm.table ? 1u << TY_KIND_PROFILE : 0));
    if (ask(args, &cluster, &tables.all, &comm, &error) == TY_OK) {
        status = args->comm.algorithm ? cli_comm_algorithms(args, &comm) : answer(args, &comm);
        ty_comm_free(&comm);
    } else {
        if (error.code == TY_ERR_IO) /* the only file here is the log */
            error.code = TY_ERR_INPUT;
        status = cli_fail(&error);
    }
    comm_tables_free(&tables);
    return status;
}

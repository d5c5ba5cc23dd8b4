/* SPDX-License-Identifier: MIT
 * `trainyard comm --algorithm`: a collective by its algorithms on the fabric of the cluster, as one
 * weighted flow and send by send. */
#include "cli/comm_tables.h"
#include <math.h>
#include <string.h>

/* Beyond so many sends, only as one flow. */
static const uint64_t MAX_FLOWS = 20000000;
/* A piece through rings pays the latency of all their rounds: larger ones. */
static const double CHUNK_BYTES = 16777216.0, RING_BYTES = 134217728.0, MAX_CHUNKS = 64.0;

struct row {
    double size_bytes, send_by_send_s; /* NAN: too many sends */
    struct ty_collective_ran ran;
};

static ty_status parse_algorithm(const char *name, enum ty_algorithm *first,
                                 enum ty_algorithm *last, struct ty_error *error)
{
    char legal[200] = "all";
    *first = TY_ALGORITHM_AUTO;
    *last = TY_N_ALGORITHMS - 1;
    if (strcmp(name, "all") == 0)
        return TY_OK;
    for (*first = TY_ALGORITHM_AUTO; *first < TY_N_ALGORITHMS; (*first)++) {
        *last = *first;
        if (strcmp(ty_algorithm_name(*first), name) == 0)
            return TY_OK;
        snprintf(legal + strlen(legal), sizeof legal - strlen(legal), ", %s",
                 ty_algorithm_name(*first));
    }
    return cli_refuse(error, "--algorithm", "\"%s\" is not one of %s", name, legal);
}

/* Pieces that follow each other through the phases; those of rings and messages are one already. */
static uint32_t chunks_of(enum ty_algorithm algorithm, double size_bytes)
{
    const bool whole = algorithm == TY_ALGORITHM_AUTO || algorithm == TY_ALGORITHM_RING ||
                       algorithm == TY_ALGORITHM_PAT || algorithm >= TY_ALGORITHM_DIRECT;
    const double chunk_bytes = algorithm == TY_ALGORITHM_TWO_LEVEL ? RING_BYTES : CHUNK_BYTES;
    return whole ? 1 : (uint32_t)fmin(MAX_CHUNKS, fmax(1.0, size_bytes / chunk_bytes));
}

static ty_status run_row(const struct ty_comm *comm, enum ty_algorithm algorithm, struct row *row,
                         struct ty_error *error)
{
    struct ty_collective_run run = {.cluster = comm->query.cluster,
                                    .op = comm->query.op,
                                    .algorithm = algorithm,
                                    .size_bytes = row->size_bytes,
                                    .n = comm->query.ranks,
                                    .n_chunks = chunks_of(algorithm, row->size_bytes),
                                    .hop_s = {(double)NAN, (double)NAN}};
    struct ty_collective_ran detailed;
    ty_status status = ty_collective_simulate(&run, &row->ran, error);
    row->send_by_send_s = (double)NAN;
    run.detailed = true;
    if (status == TY_OK && row->ran.n_flows <= MAX_FLOWS) {
        status = ty_collective_simulate(&run, &detailed, error);
        row->send_by_send_s = detailed.time_s;
    }
    return status;
}

static void print_text(const struct row *row, bool first)
{
    char size[40], flow[40], sends[40], rate[40];
    if (first)
        printf("%12s  %-12s %12s %14s %14s  %s\n", "size", "algorithm", "one flow", "send by send",
               "busbw", "level");
    printf("%12s  %-12s %12s %14s %14s  %s\n", cli_bytes_text(row->size_bytes, size, sizeof size),
           ty_algorithm_name(row->ran.algorithm), cli_time_text(row->ran.time_s, flow, sizeof flow),
           isnan(row->send_by_send_s) ? "-"
                                      : cli_time_text(row->send_by_send_s, sends, sizeof sends),
           ty_quantity_text(row->ran.busbw_bytes_per_s, TY_UNIT_BYTES_PER_S, rate, sizeof rate),
           ty_level_name(row->ran.level));
}

static void print_json(const struct row *row, bool first)
{
    printf("%s\n{\"size_bytes\": %.17g, \"algorithm\": \"%s\", \"one_flow_s\": %.17g, ",
           first ? "[" : ",", row->size_bytes, ty_algorithm_name(row->ran.algorithm),
           row->ran.time_s);
    if (isnan(row->send_by_send_s))
        printf("\"send_by_send_s\": null, ");
    else
        printf("\"send_by_send_s\": %.17g, ", row->send_by_send_s);
    printf("\"busbw_bytes_per_s\": %.17g, \"level\": \"%s\"}", row->ran.busbw_bytes_per_s,
           ty_level_name(row->ran.level));
}

int cli_comm_algorithms(const struct cli_args *args, const struct ty_comm *comm)
{
    enum ty_algorithm first, last;
    struct ty_error error = {0};
    uint32_t n = 0;
    if (parse_algorithm(args->comm.algorithm, &first, &last, &error) != TY_OK)
        return cli_fail(&error);
    for (uint32_t i = 0; i < comm->n; i++)
        for (enum ty_algorithm algorithm = first; algorithm <= last; algorithm++) {
            struct row row = {.size_bytes = comm->points[i].size_bytes};
            if (first != last && algorithm == TY_ALGORITHM_AUTO)
                continue;
            const ty_status status = run_row(comm, algorithm, &row, &error);
            if (status == TY_ERR_UNSUPPORTED && first != last)
                continue;
            if (status != TY_OK)
                return cli_fail(&error);
            (args->json ? print_json : print_text)(&row, n++ == 0);
        }
    if (args->json)
        puts("\n]");
    return CLI_OK;
}

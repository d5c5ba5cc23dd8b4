/* SPDX-License-Identifier: MIT
 *
 * Inside of `calibrate measure`: a list of points, run by processes that the caller forks (ranks),
 * the first of which leads and sends each record through a pipe.
 *
 *   measure.c          the caller's side: list, pipe, budget, what is known already
 *   measure_rank.c     the ranks' side: repetitions, statistics, records
 *   measure_list.c     which points: a grid, or the shapes of a model
 *   measure_cpu.c      how each point of a processor is run
 *   measure_storage.c  how each point of storage is run
 */
#ifndef CALIBRATE_MEASURE_H
#define CALIBRATE_MEASURE_H

#include "calibrate/cpu_kernels.h"
#include "calibrate/record_kinds.h"
#include "include/trainyard_measure.h"

/* One point. The sizes by kind:
 *   gemm m n k; grouped_gemm groups m n k; attention batch heads seq head_dim; memory elements row;
 *   copy, collective size_bytes ranks; decode sample_bytes cores;
 *   storage block_bytes clients; loader sample_bytes */
struct measure_point {
    enum record_kind kind;
    const char *name, *more; /* direction, passes, function, test, op, format, step; pattern */
    double size[4];
};

struct measure_list {
    struct measure_point *point;
    uint32_t n, capacity;
    bool out_of_memory;
};

void measure_add(struct measure_list *list, enum record_kind kind, const char *name,
                 const double size[4]);
/* measure_list.c. ranks: how many there are. */
ty_status measure_list_cpu(const struct ty_measure_options *options, uint32_t ranks,
                           struct measure_list *list, struct ty_error *error);
void measure_list_storage(struct measure_list *list);
/* Parameters of its record. */
void measure_parameters(const struct measure_point *point, struct record_fields *fields);
/* Points that the records at path hold are taken out. returns how many in *n_known. */
ty_status measure_forget(const char *path, struct measure_list *list, uint32_t *n_known,
                         struct ty_error *error);

/* ---- ranks ----------------------------------------------------------------------------------- */

/* Memory that the ranks share; floats follow it, one block a rank. */
struct measure_shared {
    struct cpu_meeting all, pair; /* pair: of the first two */
    _Atomic int32_t command;      /* the leader's: what comes next */
    _Atomic uint32_t repeat;      /* runs in one sample */
    _Atomic uint32_t disturbed[CPU_MAX_RANKS];
    _Atomic double on_core_s[CPU_MAX_RANKS], wall_s[CPU_MAX_RANKS]; /* of all samples */
};

#define MEASURE_SHARED_FLOATS ((size_t)8 << 20) /* of one rank: 32 MiB */

struct measure_run {
    const struct ty_measure_options *options;
    const struct measure_list *list;
    struct measure_shared *shared;
    uint32_t rank, n_ranks;
    int out, pipe[2]; /* records; the pipe that is measured */
    double deadline_s;
    struct cpu_blas blas;
    struct cpu_group group, pair;
    float *arena;                  /* [arena_floats] private, filled */
    size_t arena_floats, at, turn; /* at, turn: where the next operands lie */
    struct record_fields stamp;
    char cpu[64], host[64], kernel[96], date[16], benchmark[32];
};

double measure_now_s(void);
/* The ranks' side; does not return to the caller's code: its result is an exit status. */
int measure_rank(struct measure_run *run);
/* What every record carries. */
void measure_stamp(struct measure_run *run);
/* Sends a record. values: parameters are added. */
bool measure_send(struct measure_run *run, const struct measure_point *point,
                  struct record_fields *values, uint32_t flags);
/* Sends that a point has no record, and why. */
bool measure_send_none(struct measure_run *run, const char *why);

/* measure_cpu.c: floats that a point needs of the arena; whether this rank takes part; one run of
 * it (false: stopped); its values besides the time. */
double measure_cpu_floats(const struct measure_point *point);
double measure_cpu_guess_s(const struct measure_point *point);
bool measure_cpu_takes_part(const struct measure_run *run, const struct measure_point *point);
bool measure_cpu_once(struct measure_run *run, const struct measure_point *point);
void measure_cpu_values(const struct measure_point *point, double time_s,
                        struct record_fields *values);

/* measure_storage.c: measures all points. */
int measure_storage(struct measure_run *run);

#endif

/* SPDX-License-Identifier: MIT
 * What a table of a collective is about, and which of its rows can be true. */
#include "calibrate/micro_collective.h"
#include "sim/error.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SLOW_RATIO                                                                                 \
    1.3 /* slower than a larger size by this: not a choice of algorithm, but noise                 \
         */
#define MAX_RANKS  20000u
#define VOTERS_MAX 256u /* rows that decide on operation and ranks */
#define GB_PER_S   1e9

enum factor_form { TWICE_ROUND, ROUND, ONE };

static const struct {
    const char *name, *joined; /* joined: in file names, without "_" and "-" */
    enum factor_form form;
    bool reduces, rooted;
} ops[] = {
    {"all_reduce", "allreduce", TWICE_ROUND, true, false},
    {"all_gather", "allgather", ROUND, false, false},
    {"reduce_scatter", "reducescatter", ROUND, true, false},
    {"all_to_all", "alltoall", ROUND, false, false},
    {"send_recv", "sendrecv", ONE, false, false},
    {"broadcast", "broadcast", ONE, false, true},
    {"reduce", "reduce", ONE, true, true},
    {"gather", "gather", ROUND, false, true},
    {"scatter", "scatter", ROUND, false, true},
};
#define N_OPS (sizeof ops / sizeof ops[0])

static double factor(size_t op, double ranks)
{
    const double share = (ranks - 1.0) / ranks;
    return ops[op].form == ONE ? 1.0 : ops[op].form == ROUND ? share : 2.0 * share;
}

/* ---- names --------------------------------------------------------------------------------- */

/* Lower case without "_" and "-": "All-Reduce" and "all_reduce_perf" both begin "allreduce". */
static void join_name(const char *text, char *out, size_t bytes)
{
    size_t n = 0;
    for (; *text && n + 1 < bytes; text++)
        if (*text != '_' && *text != '-')
            out[n++] = (char)tolower((unsigned char)*text);
    out[n] = '\0';
}

const char *collective_op_named(const char *text)
{
    char joined[32];
    join_name(text, joined, sizeof joined);
    for (size_t i = 0; i < N_OPS; i++)
        if (strncmp(joined, ops[i].joined, strlen(ops[i].joined)) == 0)
            return ops[i].name;
    return NULL;
}

const char *collective_dtype(struct record_list *list, const char *word)
{
    static const char *const known[][2] = {
        {"float", "fp32"},   {"half", "fp16"}, {"bfloat16", "bf16"}, {"double", "fp64"},
        {"float32", "fp32"}, {"int8", "int8"}, {"int32", "int32"},   {"fp8_e4m3", "fp8"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(word, known[i][0]) == 0)
            return known[i][1];
    return record_copy(list, word);
}

/* ---- rows ---------------------------------------------------------------------------------- */

void collective_row_init(struct collective_row *row)
{
    const double none = (double)NAN;
    *row = (struct collective_row){.algbw_bytes_per_s = none,
                                   .busbw_bytes_per_s = none,
                                   .n_wrong = none,
                                   .time_min_s = none,
                                   .time_max_s = none,
                                   .time_p99_s = none,
                                   .cv = none,
                                   .root = none,
                                   .dtype = "",
                                   .redop = ""};
}

void collective_add(struct collective_table *table, const struct collective_row *row)
{
    void *rows = table->row;
    table->list->too_many |= table->n >= RECORD_LIST_MAX;
    if (table->list->too_many || table->list->out_of_memory)
        return;
    if (!array_grow(&table->list->arena.allocator, &rows, &table->capacity, table->n + 1,
                    sizeof *row)) {
        table->list->out_of_memory = true;
        return;
    }
    table->row = rows;
    table->row[table->n++] = *row;
}

void collective_free(struct collective_table *table)
{
    array_free(&table->list->arena.allocator, table->row, table->capacity, sizeof *table->row);
    table->row = NULL;
    table->n = table->capacity = 0;
}

/* ---- which operation, how many ranks -------------------------------------------------------- */

/* The rows whose digits tell a ratio; the first VOTERS_MAX of them. */
struct voters {
    const struct collective_row *row[VOTERS_MAX];
    uint32_t n;
};

static void gather_voters(const struct collective_table *table, struct voters *voters)
{
    voters->n = 0;
    for (size_t i = 0; i < table->n && voters->n < VOTERS_MAX; i++) {
        const struct collective_row *row = &table->row[i];
        if (!row->rejected && row->busbw_bytes_per_s >= 0.0 &&
            row->algbw_bytes_per_s > 20.0 * row->bw_half_digit_bytes_per_s)
            voters->row[voters->n++] = row;
    }
}

/* Whether the printed digits of busbw and algbw allow the factor; slack 0.0001 or more. */
static bool allows(const struct collective_row *row, double f, double slack)
{
    const double expected = f * row->algbw_bytes_per_s;
    return fabs(row->busbw_bytes_per_s - expected) <=
           (1.0 + f) * row->bw_half_digit_bytes_per_s + slack * expected;
}

static uint32_t votes(const struct voters *voters, double f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < voters->n; i++)
        n += allows(voters->row[i], f, 1e-4);
    return n;
}

/* The number of ranks whose factor the most rows allow, in [2, MAX_RANKS]: all numbers with as many
 * votes are lo to hi. returns the votes.
 *   n = 2 / (2 - r) all-reduce, 1 / (1 - r) the others; r = busbw / algbw */
static uint32_t recover_ranks(const struct voters *voters, size_t op, uint32_t *lo, uint32_t *hi)
{
    const double scale = ops[op].form == TWICE_ROUND ? 2.0 : 1.0;
    uint32_t best = 0;
    *lo = *hi = 0;
    for (uint32_t i = 0; i < voters->n; i++) {
        const struct collective_row *row = voters->row[i];
        const double gap = scale - row->busbw_bytes_per_s / row->algbw_bytes_per_s;
        const double guess = gap > 0.0 ? scale / gap : 0.0;
        if (!(guess > 1.5 && guess < MAX_RANKS))
            continue;
        const uint32_t n = (uint32_t)lround(guess);
        const uint32_t n_votes = votes(voters, factor(op, n));
        if (n_votes > best) {
            best = n_votes;
            *lo = *hi = n;
        }
    }
    while (*lo > 2 && votes(voters, factor(op, *lo - 1.0)) == best)
        --*lo;
    while (best && *hi < MAX_RANKS && votes(voters, factor(op, *hi + 1.0)) == best)
        ++*hi;
    return best;
}

/* Whether the columns and at least half of the rows allow the operation. */
static bool op_possible(const struct collective_table *table, const struct voters *voters,
                        size_t op)
{
    const struct collective_row *row = table->row;
    while (row < table->row + table->n - 1 && row->rejected)
        row++;
    const bool reduces = *row->redop && strcmp(row->redop, "none") != 0;
    if (*row->redop && reduces != ops[op].reduces)
        return false;
    if (!isnan(row->root) && (row->root >= 0.0) != ops[op].rooted)
        return false;
    uint32_t lo, hi, n;
    if (table->ranks > 1 || ops[op].form == ONE)
        n = votes(voters, factor(op, table->ranks));
    else
        n = recover_ranks(voters, op, &lo, &hi);
    return 2 * n >= voters->n;
}

static bool file_names(const struct collective_table *table, size_t op)
{
    char joined[256];
    join_name(micro_file_name(table->path), joined, sizeof joined);
    for (size_t i = 0; i < N_OPS; i++) /* the first that is in the name: longer ones come first */
        if (strstr(joined, ops[i].joined))
            return i == op;
    return false;
}

/* Index of the operation: named in the text, or the only one that the rows allow, or the one of
 * those that the file is named after; N_OPS when it stays open. */
static size_t find_op(const struct collective_table *table, const struct voters *voters)
{
    size_t only = N_OPS, n_possible = 0, named = N_OPS;
    for (size_t i = 0; i < N_OPS; i++) {
        if (table->op && strcmp(table->op, ops[i].name) == 0)
            return i;
        if (table->op || !op_possible(table, voters, i))
            continue;
        only = i;
        n_possible++;
        if (file_names(table, i))
            named = i;
    }
    return n_possible == 1 ? only : named;
}

/* ---- which rows can be true ------------------------------------------------------------------ */

__attribute__((format(printf, 3, 4))) static void
reject(struct collective_table *table, struct collective_row *row, const char *format, ...);

static void reject(struct collective_table *table, struct collective_row *row, const char *format,
                   ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    row->rejected = record_copy(table->list, text);
}

static void check_alone(struct collective_table *table, struct collective_row *row)
{
    if (row->rejected)
        return;
    if (row->size_bytes == 0.0)
        reject(table, row, "size 0: nothing is sent");
    else if (!(row->time_s > 0.0) || !(row->size_bytes > 0.0))
        reject(table, row, "size and time must be above 0");
    else if (table->ranks == 1)
        reject(table, row, "one rank: nothing is sent");
    else if (row->n_wrong > 0.0)
        reject(table, row, "%.0f wrong results", row->n_wrong);
    if (row->rejected || isnan(row->algbw_bytes_per_s))
        return;
    const double rate = row->size_bytes / row->time_s;
    const double open = rate * row->time_half_digit_s / row->time_s;
    if (!micro_agrees(row->algbw_bytes_per_s, rate, open + row->bw_half_digit_bytes_per_s))
        reject(table, row, "algbw is %.4g GB/s, but size / time is %.4g",
               row->algbw_bytes_per_s / GB_PER_S, rate / GB_PER_S);
}

static void check_busbw(struct collective_table *table, struct collective_row *row, size_t op)
{
    if (row->rejected)
        return;
    if (isnan(row->busbw_bytes_per_s) || isnan(row->algbw_bytes_per_s) ||
        (table->ranks == 0 && ops[op].form != ONE))
        return;
    const double f = factor(op, table->ranks);
    if (!allows(row, f, 0.02))
        reject(table, row, "busbw is %.4g GB/s, but %s on %u ranks with algbw %.4g GB/s gives %.4g",
               row->busbw_bytes_per_s / GB_PER_S, ops[op].name, table->ranks,
               row->algbw_bytes_per_s / GB_PER_S, f * row->algbw_bytes_per_s / GB_PER_S);
}

/* A point slower than a larger one of its sweep: the first points of a sweep are cold, later ones
 * disturbed. Sizes that do not grow begin a new sweep. */
static void mark_slow(struct collective_table *table, bool in_place)
{
    double fastest_s = HUGE_VAL, size_bytes = HUGE_VAL;
    struct collective_row *cold = NULL; /* the first row of the sweep while all before are slow */
    for (size_t i = table->n; i-- > 0;) {
        struct collective_row *row = &table->row[i];
        if (row->in_place != in_place || row->rejected)
            continue;
        if (row->size_bytes >= size_bytes) {
            fastest_s = HUGE_VAL;
            if (cold)
                cold->flags = (cold->flags & ~(uint32_t)RECORD_OUTLIER) | RECORD_COLD;
            cold = NULL;
        }
        size_bytes = row->size_bytes;
        const bool slow = row->time_s > SLOW_RATIO * fastest_s;
        row->flags |= slow ? RECORD_OUTLIER : 0;
        cold = slow ? row : NULL;
        fastest_s = fmin(fastest_s, row->time_s);
    }
    if (cold)
        cold->flags = (cold->flags & ~(uint32_t)RECORD_OUTLIER) | RECORD_COLD;
}

/* ---- records --------------------------------------------------------------------------------- */

/* A bandwidth whose printed digits say something. */
static double told(double bandwidth, double half_digit)
{
    return bandwidth * 0.05 > half_digit ? bandwidth : (double)NAN;
}

static void add_record(struct collective_table *table, struct record *head,
                       const struct collective_row *row, const char *op)
{
    struct record_fields f = {.n = 0};
    record_text(&f, RECORD_PARAMETER, "op", op);
    record_number(&f, RECORD_PARAMETER, "size_bytes", row->size_bytes);
    record_number(&f, RECORD_PARAMETER, "ranks", table->ranks ? table->ranks : (double)NAN);
    record_number(&f, RECORD_PARAMETER, "nodes", table->nodes ? table->nodes : (double)NAN);
    record_number(&f, RECORD_PARAMETER, "in_place", row->in_place);
    record_text(&f, RECORD_PARAMETER, "dtype", row->dtype);
    if (strcmp(row->redop, "none") != 0)
        record_text(&f, RECORD_PARAMETER, "redop", row->redop);
    record_number(&f, RECORD_PARAMETER, "root", row->root >= 0.0 ? row->root : (double)NAN);
    const double half = row->bw_half_digit_bytes_per_s;
    record_number(&f, RECORD_VALUE, "time_s", row->time_s);
    record_number(&f, RECORD_VALUE, "algbw_bytes_per_s", told(row->algbw_bytes_per_s, half));
    record_number(&f, RECORD_VALUE, "busbw_bytes_per_s", told(row->busbw_bytes_per_s, half));
    record_number(&f, RECORD_VALUE, "time_min_s", row->time_min_s);
    record_number(&f, RECORD_VALUE, "time_max_s", row->time_max_s);
    record_number(&f, RECORD_VALUE, "time_p99_s", row->time_p99_s);
    record_number(&f, RECORD_VALUE, "time_cv", row->cv);
    head->line = row->line;
    head->flags = row->flags | table->flags;
    head->rejected = row->rejected;
    record_add(table->list, head, &f);
}

static void settle(struct collective_table *table, const struct voters *voters, size_t op)
{
    uint32_t lo, hi;
    if (op == N_OPS || table->ranks || ops[op].form == ONE)
        return;
    if (2 * recover_ranks(voters, op, &lo, &hi) < voters->n || lo == 0)
        return;
    table->ranks = lo + (hi - lo) / 2;
    table->flags |= hi > lo ? RECORD_APPROXIMATE : 0;
}

void collective_finish(struct collective_table *table)
{
    for (size_t i = 0; i < table->n; i++)
        check_alone(table, &table->row[i]);
    struct voters voters;
    gather_voters(table, &voters);
    const size_t op = table->n ? find_op(table, &voters) : N_OPS;
    settle(table, &voters, op);
    struct record head = {.kind = "collective",
                          .tool = table->tool,
                          .file = record_copy(table->list, micro_file_name(table->path))};
    record_stamp(table->list, &head, &table->stamp);
    for (size_t i = 0; i < table->n; i++) {
        struct collective_row *row = &table->row[i];
        if (op == N_OPS && !row->rejected)
            row->rejected = "the operation is not printed and the rows allow several or none: name "
                            "the file after it (all_gather.log)";
        else if (op < N_OPS)
            check_busbw(table, row, op);
    }
    mark_slow(table, false);
    mark_slow(table, true);
    for (size_t i = 0; i < table->n; i++)
        add_record(table, &head, &table->row[i], op < N_OPS ? ops[op].name : "");
    table->n = 0;
    table->op = NULL;
    table->ranks = table->nodes = table->flags = 0;
    table->stamp.n = 0;
}

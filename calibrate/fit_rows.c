/* SPDX-License-Identifier: MIT
 *
 * Records as rows of the fit. What cannot be used is dropped here, each time with the reason:
 * rejected by its reader, incomplete, of another machine, or impossible (faster than the peak of
 * the device or link). */
#include "calibrate/fit_records.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

/* A clock may boost a little over what the sheet counts with. */
static const double OVER_PEAK = 1.05;
/* Caches serve small kernels faster than memory does. source: handbook 4.4, "over 100 MB" */
static const double CACHED_BYTES = 100e6;

enum { MAX_DROPS = 64 };

void fit_drop(struct records_fit *fit, const struct record *record, const char *why)
{
    struct ty_calibration *out = fit->out;
    uint32_t at = 0;
    char reason[sizeof out->drops->why];
    text_format(reason, sizeof reason, "%s", why);
    while (at < out->n_drops && strcmp(out->drops[at].why, reason) != 0)
        at++;
    if (at == MAX_DROPS) /* the last one takes the rest */
        at--;
    if (at == out->n_drops) {
        struct ty_calibration_drop *drop = &out->drops[out->n_drops++];
        text_format(drop->why, sizeof drop->why, "%s", reason);
        record_describe(record, drop->first, sizeof drop->first);
    }
    out->drops[at].n++;
}

static double value_or(const struct record *record, const char *key, double otherwise)
{
    const double value = record_value(record, key);
    return value > 0.0 ? value : otherwise;
}

/* No kernel comes out faster than its device can do it. */
static const char *too_fast(const struct records_fit *fit, const struct fit_row *row)
{
    const struct ty_gpu *gpu = &ty_forms_cluster(fit->forms)->gpu;
    const int precision = row->of == ROW_GEMM ? row->gemm.precision : row->attention.precision;
    const double peak_flop_per_s = ty_gpu_peak(gpu, (enum ty_precision)precision);
    if (row->flop > 0.0 && !(peak_flop_per_s > 0.0))
        return "the machine has no peak for that dtype";
    if (row->flop > OVER_PEAK * peak_flop_per_s * row->time_s)
        return "impossible: faster than the peak of the device";
    if (row->of == ROW_MEMORY && row->bytes > CACHED_BYTES &&
        row->bytes > OVER_PEAK * gpu->mem_bytes_per_s * row->time_s)
        return "impossible: faster than the memory of the device";
    return NULL;
}

/* ---- kernels -------------------------------------------------------------------------------- */

static int direction_of(const struct record *record)
{
    const char *name = record_value_text(record, "direction");
    if (strcmp(name, "dgrad") == 0)
        return TY_DGRAD;
    return strcmp(name, "wgrad") == 0 ? TY_WGRAD : TY_FORWARD;
}

static const char *gemm_row(const struct record *record, bool grouped, struct fit_row *row)
{
    const char *statistic = record_value_text(record, "statistic");
    const struct ty_measured_gemm gemm = {
        .precision = fit_precision(record_value_text(record, "dtype")),
        .direction = direction_of(record),
        .grouped = grouped,
        .m = record_value(record, "m"),
        .n = record_value(record, "n"),
        .k = record_value(record, "k"),
        .groups = value_or(record, grouped ? "groups" : "batch", 1.0),
        .inner =
            value_or(record, "inner", fmin(record_value(record, "n"), record_value(record, "k")))};
    if (gemm.precision == TY_AUTO_PRECISION)
        return "its dtype is none that a model is trained in";
    if (strcmp(statistic, "max") == 0 || strcmp(statistic, "min") == 0)
        return "a best case, not the usual time";
    row->of = ROW_GEMM;
    row->gemm = gemm;
    row->x = row->flop = ty_measured_gemm_flop(&gemm);
    row->time_s = value_or(record, "time_s", row->flop / record_value(record, "rate_flops_per_s"));
    return NULL;
}

/* fwd, bwd, or both one after the other. */
static const char *attention_row(const struct record *record, struct fit_row *row)
{
    const char *passes = record_value_text(record, "passes");
    const bool causal = !(record_value(record, "causal") <= 0.0);
    const double seq = record_value(record, "seq_len");
    struct ty_measured_attention attention = {
        .precision = fit_precision(record_value_text(record, "dtype")),
        .direction = strcmp(passes, "bwd") == 0 ? TY_DGRAD : TY_FORWARD,
        .batch_heads = record_value(record, "batch") * record_value(record, "heads"),
        .queries = value_or(record, "queries", seq),
        .seq = seq,
        .head_dim = record_value(record, "head_dim")};
    attention.pairs = attention.batch_heads * attention.queries * seq * (causal ? 0.5 : 1.0);
    if (attention.precision == TY_AUTO_PRECISION)
        return "its dtype is none that a model is trained in";
    if (strcmp(passes, "fwd") != 0 && strcmp(passes, "bwd") != 0)
        return "forward and backward are not told apart";
    row->of = ROW_ATTENTION;
    row->attention = attention;
    row->flop = ty_measured_attention_flop(&attention);
    row->time_s = value_or(record, "time_s", row->flop / record_value(record, "rate_flops_per_s"));
    row->x = seq;
    return NULL;
}

/* BabelStream gives the rate of its shortest time; others bytes and time. */
static const char *memory_row(const struct record *record, struct fit_row *row)
{
    const double rate = record_value(record, "bandwidth_bytes_per_s");
    row->of = ROW_MEMORY;
    row->time_s = value_or(record, "time_s", record_value(record, "time_min_s"));
    const double bytes = value_or(record, "moved_bytes", rate * row->time_s);
    if (!(row->time_s > 0.0))
        row->time_s = bytes / rate;
    if (!(bytes > 0.0) || !(row->time_s > 0.0))
        return "neither bytes moved nor a time to tell them by";
    row->x = row->bytes = bytes;
    return NULL;
}

static const char *launch_row(const struct record *record, struct fit_row *row)
{
    const char *mode = record_value_text(record, "mode");
    if (strcmp(mode, "eager") != 0 && strcmp(mode, "graph") != 0)
        return "its mode is neither eager nor graph";
    row->of = strcmp(mode, "eager") == 0 ? ROW_ISSUE : ROW_REPLAY;
    row->time_s = record_value(record, "time_s");
    row->x = 1.0;
    return NULL;
}

/* ---- collectives ---------------------------------------------------------------------------- */

static uint32_t count_of(const struct record *record, const char *key)
{
    const double value = record_value(record, key);
    return value >= 1.0 && value < 0x1p24 ? (uint32_t)value : 0;
}

/* Ranks in one domain, as the record says or its nodes tell. */
static uint32_t per_domain(const struct records_fit *fit, const struct record *record)
{
    const uint32_t given = count_of(record, "ranks_per_domain");
    const uint32_t ranks = count_of(record, "ranks"), nodes = count_of(record, "nodes");
    if (given || nodes <= 1 || ranks % nodes != 0)
        return given;
    return ranks / nodes < ty_forms_cluster(fit->forms)->gpus_per_node ? ranks / nodes : 0;
}

static const char *group_of(const struct records_fit *fit, const struct record *record,
                            struct fit_row *row)
{
    enum ty_collective_op op = 0;
    const uint32_t ranks = count_of(record, "ranks"), domain = per_domain(fit, record);
    while (op < TY_N_COLLECTIVES &&
           strcmp(ty_collective_name(op), record_value_text(record, "op")) != 0)
        op++;
    if (op == TY_N_COLLECTIVES)
        return "an operation that steps do not use";
    if (ranks < 2 || domain > ranks || !ty_forms_group(fit->forms, ranks, domain, &row->group))
        return "its group is no group of this machine";
    if (row->group.n_domains > 1 && !fit->network_known)
        return "crosses the network, which only --cluster tells";
    row->op = op;
    return NULL;
}

static const char *collective_row(const struct records_fit *fit, const struct record *record,
                                  struct fit_row *row)
{
    row->of = ROW_COLLECTIVE;
    const char *why = group_of(fit, record, row);
    if (why)
        return why;
    if (record->flags & (RECORD_COLD | RECORD_OUTLIER))
        return "start-up is in it, or it is slower than a larger size";
    if (record->flags & RECORD_COARSE)
        return "its digits leave more than 5 % open";
    row->bytes = row->x = record_value(record, "size_bytes");
    row->time_s = record_value(record, "time_s");
    return NULL;
}

/* Two rows: what the collective takes from the GEMM and the GEMM from the collective. */
static const char *overlap_rows(const struct records_fit *fit, const struct record *record,
                                struct fit_row row[2])
{
    const char *why = group_of(fit, record, row);
    if (why)
        return why;
    row[0].of = ROW_BESIDE;
    row[0].x = 1.0;
    row[1] = row[0];
    row[0].compute = true;
    row[0].time_s = record_value(record, "gemm_beside_s") / record_value(record, "gemm_alone_s");
    row[1].time_s =
        record_value(record, "collective_beside_s") / record_value(record, "collective_alone_s");
    if (!(row[0].time_s > 0.5) || !(row[1].time_s > 0.5))
        return "impossible: faster beside another than alone";
    return NULL;
}

/* ---- all ------------------------------------------------------------------------------------ */

static const char *unusable(const struct records_fit *fit, const struct record *record)
{
    if (record->rejected)
        return "rejected by its reader";
    if (record_kind_of(record) == RECORD_N_KINDS)
        return "of a kind that no constant depends on";
    if (record->flags & RECORD_SPECIFICATION)
        return "a maker's figure, not a measurement";
    if (record->flags & RECORD_INVALID_DATA)
        return "the tool found wrong results";
    if (record->flags & RECORD_PAGE_CACHE)
        return "served by the host's memory";
    if (!fit_is_of(fit, record))
        return "of another GPU than this machine's";
    return NULL;
}

/* returns why there are none, or NULL and their number. Rates need no row. */
static const char *rows_of(const struct records_fit *fit, const struct record *record,
                           struct fit_row row[2], uint32_t *n)
{
    *n = 1;
    switch (record_kind_of(record)) {
    case RECORD_KIND_GEMM:
        return gemm_row(record, false, row);
    case RECORD_KIND_GROUPED_GEMM:
        return gemm_row(record, true, row);
    case RECORD_KIND_ATTENTION:
        return attention_row(record, row);
    case RECORD_KIND_MEMORY:
        return memory_row(record, row);
    case RECORD_KIND_LAUNCH:
        return launch_row(record, row);
    case RECORD_KIND_COLLECTIVE:
        return collective_row(fit, record, row);
    case RECORD_KIND_OVERLAP:
        *n = 2;
        return overlap_rows(fit, record, row);
    default:
        *n = 0;
        return NULL;
    }
}

static bool possible(const struct fit_row *row)
{
    return row->time_s > 1e-12 && row->time_s < 1e9 && row->x > 0.0 && row->x < 1e30 &&
           row->flop < 1e30 && row->bytes < 1e30;
}

static const char *add_rows(struct records_fit *fit, const struct record *record)
{
    struct fit_row row[2] = {{.record = record}, {.record = record}};
    uint32_t n;
    const char *why = rows_of(fit, record, row, &n);
    if (!why && n && row[0].of <= ROW_MEMORY)
        why = too_fast(fit, &row[0]);
    for (uint32_t i = 0; !why && i < n; i++) {
        if (!possible(&row[i]))
            return "impossible: no such time or size";
        fit->rows[fit->n_rows++] = row[i];
    }
    return why;
}

ty_status fit_rows_of(struct records_fit *fit)
{
    const struct record_list *list = fit->records;
    fit->out->drops = arena_get(fit->arena, MAX_DROPS, sizeof *fit->out->drops);
    fit->rows = arena_get(fit->arena, 2 * list->n + 1, sizeof *fit->rows);
    if (!fit->out->drops || !fit->rows)
        return TY_ERR_NOMEM;
    fit->out->n_records = (uint32_t)list->n;
    for (size_t i = 0; i < list->n; i++) {
        const struct record *record = &list->record[i];
        char text[96];
        const char *why = unusable(fit, record), *lacks = why ? NULL : record_lacks(record);
        if (lacks) {
            text_format(text, sizeof text, "%s without %s above 0", record->kind, lacks);
            why = text;
        }
        if (!why)
            why = add_rows(fit, record);
        if (why)
            fit_drop(fit, record, why);
        else
            fit->out->n_used++;
    }
    return TY_OK;
}

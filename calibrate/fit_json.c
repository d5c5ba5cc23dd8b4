/* SPDX-License-Identifier: MIT
 * The profile file that a fit gives: fields and tables, which profiles are read from, and under
 * "_fit" what the fit says of itself, for people and for `calibrate show`. */
#include "calibrate/fit_records.h"
#include "models/fields.h"
#include "models/spec/fields_write.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

/* ---- tables --------------------------------------------------------------------------------- */

static const char *direction_name(int direction)
{
    return direction == TY_WGRAD ? "wgrad" : direction == TY_DGRAD ? "dgrad" : "forward";
}

static void write_gemms(struct json_writer *json, const struct ty_measured *measured)
{
    json_array(json, "gemm");
    for (uint32_t i = 0; i < measured->n_gemms; i++) {
        const struct ty_measured_gemm *gemm = &measured->gemms[i];
        json_object(json, NULL);
        json_text(json, "precision", precision_names[gemm->precision]);
        json_text(json, "direction", direction_name(gemm->direction));
        if (gemm->grouped) {
            json_bool(json, "grouped", true);
            json_number(json, "inner", gemm->inner);
        }
        json_number(json, "m", gemm->m);
        json_number(json, "n", gemm->n);
        json_number(json, "k", gemm->k);
        if (gemm->groups > 1.0)
            json_number(json, "groups", gemm->groups);
        json_number(json, "time_us", 1e6 * gemm->time_s);
        json_close(json);
    }
    json_close(json);
}

static void write_attentions(struct json_writer *json, const struct ty_measured *measured)
{
    json_array(json, "attention");
    for (uint32_t i = 0; i < measured->n_attentions; i++) {
        const struct ty_measured_attention *attention = &measured->attentions[i];
        json_object(json, NULL);
        json_text(json, "precision", precision_names[attention->precision]);
        json_text(json, "direction", direction_name(attention->direction));
        json_number(json, "batch_heads", attention->batch_heads);
        json_number(json, "queries", attention->queries);
        json_number(json, "seq", attention->seq);
        json_number(json, "head_dim", attention->head_dim);
        json_number(json, "pairs", attention->pairs);
        json_number(json, "time_us", 1e6 * attention->time_s);
        json_close(json);
    }
    json_close(json);
}

static void write_numbers(struct json_writer *json, const char *key, const double *numbers,
                          double unit, uint32_t n)
{
    json_array(json, key);
    for (uint32_t i = 0; i < n; i++)
        json_number(json, NULL, numbers[i] * unit);
    json_close(json);
}

static void write_collectives(struct json_writer *json, const struct ty_collective_tables *tables)
{
    json_array(json, "tables");
    for (uint32_t i = 0; i < tables->n; i++) {
        const struct ty_collective_table *table = &tables->table[i];
        json_object(json, NULL);
        json_text(json, "op", ty_collective_name(table->op));
        json_count(json, "ranks", table->ranks);
        json_count(json, "ranks_per_domain", table->ranks_per_domain);
        json_text(json, "source", table->source);
        write_numbers(json, "size_bytes", table->size_bytes, 1.0, table->n);
        write_numbers(json, "time_us", table->time_s, 1e6, table->n);
        json_close(json);
    }
    json_close(json);
}

static void write_tables(struct json_writer *json, const struct ty_calibration *fit)
{
    const struct ty_cluster *cluster = &fit->cluster;
    json_object(json, "measured");
    json_object(json, "machine");
    json_text(json, "gpu", cluster->gpu.name);
    json_number(json, "scaleup_bytes_per_s", cluster->scaleup_bytes_per_s);
    json_number(json, "nic_bytes_per_s", cluster->nic_bytes_per_s);
    json_count(json, "nics_per_node", cluster->nics_per_node);
    json_close(json);
    write_gemms(json, &fit->measured);
    write_attentions(json, &fit->measured);
    json_object(json, "memory");
    write_numbers(json, "size_bytes", fit->measured.memory_bytes, 1.0, fit->measured.n_memory);
    write_numbers(json, "time_us", fit->measured.memory_time_s, 1e6, fit->measured.n_memory);
    json_close(json);
    write_collectives(json, &fit->collectives);
    json_close(json);
}

/* ---- what the fit says of itself ------------------------------------------------------------ */

static const char *unit_name(enum ty_unit unit)
{
    static const char *const names[] = {[TY_UNIT_NONE] = "",
                                        [TY_UNIT_COUNT] = "",
                                        [TY_UNIT_RATIO] = "",
                                        [TY_UNIT_BYTES] = "B",
                                        [TY_UNIT_BYTES_PER_S] = "B/s",
                                        [TY_UNIT_S] = "s",
                                        [TY_UNIT_FLOP_PER_S] = "flop/s",
                                        [TY_UNIT_HZ] = "Hz",
                                        [TY_UNIT_W] = "W",
                                        [TY_UNIT_TOKENS] = "tok"};
    return names[unit];
}

static void write_constants(struct json_writer *json, const struct ty_calibration *fit)
{
    json_array(json, "constants");
    for (uint32_t i = 0; i < fit->n_constants; i++) {
        const struct ty_constant *constant = &fit->constants[i];
        json_object(json, NULL);
        json_text(json, "name", constant->field->path);
        json_number(json, "value", constant->value);
        json_text(json, "unit", unit_name(constant->field->unit));
        json_number(json, "min", constant->min);
        json_number(json, "max", constant->max);
        json_number(json, "prior", constant->prior);
        json_text(json, "source", constant->source);
        json_text(json, "state", ty_constant_state_name(constant->state));
        json_count(json, "records", constant->n_records);
        json_number(json, "informed", constant->informed);
        json_number(json, "median_error", constant->median_error);
        json_number(json, "p90_error", constant->p90_error);
        json_close(json);
    }
    json_close(json);
}

/* As a cluster file, for a machine that nobody has described. */
static void write_machine(struct json_writer *json, const struct ty_cluster *cluster)
{
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_CLUSTER, &n);
    json_object(json, "machine");
    fields_write(json, fields, n, cluster);
    json_close(json);
}

static void write_drops(struct json_writer *json, const struct ty_calibration *fit)
{
    json_array(json, "dropped");
    for (uint32_t i = 0; i < fit->n_drops; i++) {
        json_object(json, NULL);
        json_count(json, "records", fit->drops[i].n);
        json_text(json, "why", fit->drops[i].why);
        json_text(json, "first", fit->drops[i].first);
        json_close(json);
    }
    json_close(json);
}

static void write_rates(struct json_writer *json, const struct ty_calibration *fit)
{
    json_array(json, "rates");
    for (uint32_t i = 0; i < fit->n_rates; i++) {
        json_object(json, NULL);
        json_text(json, "name", fit->rates[i].name);
        json_number(json, "value", fit->rates[i].value);
        json_text(json, "unit", fit->rates[i].unit);
        json_count(json, "records", fit->rates[i].n_records);
        json_close(json);
    }
    json_close(json);
}

static void write_points(struct json_writer *json, const struct ty_calibration *fit)
{
    json_array(json, "points");
    for (uint32_t i = 0; i < fit->n_points; i++) {
        const struct ty_calibration_point *point = &fit->points[i];
        json_object(json, NULL);
        json_text(json, "work", ty_work_name(point->work));
        json_number(json, "x", point->x);
        json_number(json, "measured_us", 1e6 * point->measured_s);
        json_number(json, "form_us", 1e6 * point->form_s);
        if (point->outlier)
            json_bool(json, "outlier", true);
        json_close(json);
    }
    json_close(json);
}

char *ty_calibration_json(const struct ty_calibration *fit, const char *name)
{
    struct json_writer json;
    size_t n_fields;
    const struct ty_field *fields = ty_fields(TY_KIND_PROFILE, &n_fields);
    struct ty_profile profile = fit->profile;
    text_format(profile.name, sizeof profile.name, "%s", name);
    text_format(profile.source, sizeof profile.source, "calibrate fit: %u of %u records, %.60s",
                fit->n_used, fit->n_records, fit->cluster.name);
    json_begin(&json);
    json_object(&json, NULL);
    fields_write(&json, fields, n_fields, &profile);
    write_tables(&json, fit);
    json_object(&json, "_fit");
    json_text(&json, "cluster", fit->cluster.name);
    json_text(&json, "gpu", fit->cluster.gpu.name);
    json_text(&json, "note", *fit->note ? fit->note : NULL);
    json_count(&json, "records", fit->n_records);
    json_count(&json, "used", fit->n_used);
    write_machine(&json, &fit->cluster);
    write_constants(&json, fit);
    write_rates(&json, fit);
    write_drops(&json, fit);
    write_points(&json, fit);
    json_close(&json);
    json_close(&json);
    return json_finish(&json);
}

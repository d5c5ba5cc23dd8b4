/* SPDX-License-Identifier: MIT
 *
 * `calibrate fit`: files of records, the machine they are of, rows, constants, tables, rates. What
 * it gives lives in one arena that belongs to the ty_fit. */
#include "calibrate/fit_records.h"
#include "calibrate/micro.h"
#include "sim/error.h"

#include <stdlib.h>
#include <string.h>

/* ---- files ---------------------------------------------------------------------------------- */

/* Records are lines of JSON that say their kind; anything else is a benchmark's own output. */
static bool holds_records(const struct import_file *file)
{
    const char *start = file->text + strspn(file->text, " \t\r\n");
    const size_t line = strcspn(start, "\n");
    const char *kind = *start == '{' ? strstr(start, "\"kind\"") : NULL;
    return kind && kind < start + line;
}

static ty_status read_file(const char *path, struct record_list *list, struct ty_error *error)
{
    struct import_file file = {.path = path};
    ty_status status = import_read_file(&file, error);
    if (status == TY_OK)
        status = holds_records(&file) ? record_read(file.text, path, list, error)
                                      : micro_read(&file, list, error);
    free(file.text);
    return status;
}

static ty_status read_files(const char *const *paths, uint32_t n, struct record_list *list,
                            struct ty_error *error)
{
    ty_status status = TY_OK;
    for (uint32_t i = 0; status == TY_OK && i < n; i++)
        status = read_file(paths[i], list, error);
    if (status == TY_OK && list->n == 0)
        status = error_set(error, TY_ERR_INPUT, n ? paths[0] : "--records", "holds no record");
    return status;
}

/* ---- the fit -------------------------------------------------------------------------------- */

static ty_status fit_all(struct records_fit *fit, const struct ty_cluster *cluster,
                         struct ty_error *error)
{
    ty_status status = fit_machine(fit, cluster, error);
    if (status != TY_OK)
        return status;
    status = fit_rows_of(fit);
    if (status == TY_OK)
        status = fit_constants(fit);
    if (status == TY_OK)
        status = fit_tables(fit);
    if (status == TY_OK)
        status = fit_rates(fit);
    return status == TY_OK ? status : error_set(error, status, "fit", "%s", ty_status_text(status));
}

ty_status ty_calibration_fit(const char *const *paths, uint32_t n_paths,
                             const struct ty_cluster *cluster, struct ty_calibration *out,
                             struct ty_error *error)
{
    struct ty_calibration fit = {0};
    struct record_list list;
    struct arena *arena = malloc(sizeof *arena);
    struct records_fit *work = calloc(1, sizeof *work);
    ty_status status = TY_ERR_NOMEM;
    record_list_init(&list);
    if (arena && work) {
        arena_init(arena, NULL);
        fit.memory = arena;
        *work = (struct records_fit){.out = &fit, .arena = arena, .records = &list};
        status = read_files(paths, n_paths, &list, error);
    } else {
        free(arena);
        error_set(error, status, "fit", "out of memory");
    }
    if (status == TY_OK)
        status = fit_all(work, cluster, error);
    if (work)
        ty_forms_destroy(work->forms);
    free(work);
    record_list_free(&list);
    if (status == TY_OK)
        *out = fit;
    else
        ty_calibration_free(&fit);
    return status;
}

void ty_calibration_free(struct ty_calibration *fit)
{
    if (fit->memory)
        arena_destroy(fit->memory);
    free(fit->memory);
    *fit = (struct ty_calibration){0};
}

const char *ty_constant_state_name(enum ty_constant_state state)
{
    static const char *const names[] = {
        [TY_CONSTANT_FITTED] = "fitted",
        [TY_CONSTANT_AT_MIN] = "fitted, at its lower bound",
        [TY_CONSTANT_AT_MAX] = "fitted, at its upper bound",
        [TY_CONSTANT_SHORTEST] = "the shortest record: its preset is longer",
        [TY_CONSTANT_TOO_FEW] = "prior: fewer than three records depend on it",
        [TY_CONSTANT_UNKNOWN] = "prior: its records say nothing about it"};
    return (unsigned)state <= TY_CONSTANT_UNKNOWN ? names[state] : "";
}

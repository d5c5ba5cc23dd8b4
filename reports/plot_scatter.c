/* SPDX-License-Identifier: MIT
 * Predicted against measured step time of a validation, both logarithmic; one colour a family. */
#include "include/trainyard_tools.h"
#include "reports/report.h"
#include "sim/error.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

static bool drawn(const struct ty_run_row *row)
{
    return row->measured_s > 0.0 && row->predicted_s > 0.0;
}

/* One block of lines a family, blocks parted by two empty lines. */
static void write_points(const struct ty_validation *validation, FILE *data)
{
    const char *family;
    fputs("# measured_s\tpredicted_s\tid\n", data);
    for (uint32_t block = 0; (family = ty_validation_value(validation, TY_RUN_FAMILY, block));
         block++) {
        fprintf(data, "%s# %s\nnan\tnan\t-\n", block ? "\n\n" : "", family); /* no empty block */
        for (uint32_t i = 0; i < validation->n_rows; i++) {
            const struct ty_run_row *row = &validation->rows[i];
            if (!drawn(row) || strcmp(row->family, family) != 0)
                continue;
            plot_value(data, row->measured_s, '\t');
            plot_value(data, row->predicted_s, '\t');
            fprintf(data, "%s\n", row->id);
        }
    }
}

static ty_status write_data(const struct report *report, const struct study *study,
                            const struct ty_validation *validation, const struct plot *plot)
{
    FILE *data;
    ty_status status = report_create(report, study, plot->name, ".tsv", &data);
    if (status != TY_OK)
        return status;
    write_points(validation, data);
    return report_close(report, data);
}

/* Okabe and Ito's colours, told apart by everybody; then again with other marks. */
static void write_curves(const struct ty_validation *validation, const struct plot *plot, FILE *gp)
{
    static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                          "#e69f00", "#56b4e9", "#999999"};
    const uint32_t n_colours = sizeof colours / sizeof colours[0];
    const char *family;
    fputs("set logscale xy\nset xlabel 'measured step time, s'\n"
          "set ylabel 'predicted step time, s'\n"
          "set grid xtics ytics back lt 1 lc rgb '#e4e4e4' lw 1\n"
          "plot x with lines lc rgb '#444444' lw 1.5 title 'equal', \\\n"
          "     1.1*x with lines ls 2 title '10 % off', x/1.1 with lines ls 2 notitle",
          gp);
    for (uint32_t block = 0; (family = ty_validation_value(validation, TY_RUN_FAMILY, block));
         block++) {
        if (strcmp(family, "/") == 0)
            continue;
        fprintf(
            gp,
            ", \\\n     '%s.tsv' index %u using 1:2 with points pt %u ps 0.6 lc rgb '%s' title ",
            plot->name, block, block < n_colours ? 7u : 9u, colours[block % n_colours]);
        plot_quote(gp, family);
    }
    fputc('\n', gp);
}

static ty_status draw(struct report *report, const struct ty_validation *validation)
{
    const struct ty_run_filter all = {TY_RUN_STEP_TIME, TY_RUN_SOURCE, NULL, false};
    const struct ty_error_stats stats = ty_validation_stats(validation, &all);
    struct study study = {.about = "one mark a run"};
    struct plot plot = {.name = "scatter", .title = "Predicted against measured step time"};
    char detail[96];
    text_format(detail, sizeof detail, "%u runs: median error %.1f %%, P90 %.1f %%", stats.n,
                100.0 * stats.median_ape, 100.0 * stats.p90_ape);
    FILE *gp;
    ty_status status = write_data(report, &study, validation, &plot);
    if (status == TY_OK)
        status = plot_begin(report, &study, &plot, detail, &gp);
    if (status != TY_OK)
        return status;
    write_curves(validation, &plot, gp);
    status = plot_end(report, &study, &plot, gp);
    report->n_plots += plot.state == PLOT_DRAWN;
    return status;
}

ty_status ty_validation_plot(const struct ty_validation *validation, const char *out_folder,
                             uint32_t *n_plots, struct ty_error *error)
{
    struct report report = {.folder = out_folder, .error = error};
    if (mkdir(out_folder, 0777) != 0 && errno != EEXIST)
        return error_set(error, TY_ERR_IO, out_folder, "cannot be made: %s", strerror(errno));
    const ty_status status = draw(&report, validation);
    if (status == TY_OK)
        *n_plots = report.n_plots;
    return status;
}

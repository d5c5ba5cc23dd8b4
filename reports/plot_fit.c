/* SPDX-License-Identifier: MIT
 * What `calibrate fit` fitted: measured and fitted times, and their quotient, over what they are
 * drawn over; two plots for each kind of work that the profile file has points of. */
#include "include/trainyard_records.h"
#include "models/spec/json.h"
#include "reports/report.h"
#include "sim/error.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

/* In the order of enum ty_work. */
static const struct look {
    const char *fit, *residuals; /* names of the plots */
    const char *title, *x;
} looks[TY_N_WORKS] = {
    {"fit-gemm", "residuals-gemm", "GEMM", "flop of the multiplication"},
    {"fit-attention", "residuals-attention", "Attention", "sequence length"},
    {"fit-memory", "residuals-memory", "Memory traffic", "bytes moved"},
    {"fit-collectives", "residuals-collectives", "Collectives", "payload, bytes"}};

struct fit_plot {
    struct report *report;
    const struct study *study;
    const struct json_at *points;
    enum ty_work work;
};

/* ---- points --------------------------------------------------------------------------------- */

static double number_of(const struct json_at *point, const char *key)
{
    struct json_at at;
    double number;
    return json_find(point, key, &at) && json_get_double(&at, 0.0, 1e300, &number, NULL) == TY_OK
               ? number
               : (double)NAN;
}

static bool is_of(const struct json_at *point, enum ty_work work)
{
    struct json_at at;
    const char *text;
    return json_find(point, "work", &at) && json_get_text(&at, &text, NULL) == TY_OK &&
           strcmp(text, ty_work_name(work)) == 0;
}

static bool is_outlier(const struct json_at *point)
{
    struct json_at at;
    bool outlier = false;
    return json_find(point, "outlier", &at) && json_get_bool(&at, &outlier, NULL) == TY_OK &&
           outlier;
}

/* x, measured s, fitted s, fitted over measured - 1 in percent: the points that were fitted, then
 * the outliers. returns the number of points. */
static uint32_t write_points(const struct fit_plot *plot, FILE *data)
{
    uint32_t n = 0;
    fputs("# x\tmeasured_s\tfitted_s\toff_percent\n", data);
    for (int outliers = 0; outliers < 2; outliers++) {
        struct json_at point = {0};
        fputs(outliers ? "\n\n# left out\nnan\tnan\tnan\tnan\n" : "# fitted\nnan\tnan\tnan\tnan\n",
              data);
        while (json_next(plot->points, &point)) {
            const double measured_s = 1e-6 * number_of(&point, "measured_us");
            const double fitted_s = 1e-6 * number_of(&point, "form_us");
            if (!is_of(&point, plot->work) || is_outlier(&point) != (outliers == 1))
                continue;
            plot_value(data, number_of(&point, "x"), '\t');
            plot_value(data, measured_s, '\t');
            plot_value(data, fitted_s, '\t');
            plot_value(data, 100.0 * (fitted_s / measured_s - 1.0), '\n');
            n++;
        }
    }
    return n;
}

/* ---- plots ---------------------------------------------------------------------------------- */

static void write_fit(const struct fit_plot *plot, FILE *gp)
{
    const struct look *look = &looks[plot->work];
    fprintf(gp,
            "set logscale xy\nset format x '%%.0s%%c'\nset format y '%%.0s %%cs'\nset xlabel "
            "'%s'\nset ylabel 'time'\n"
            "plot '%s.tsv' index 0 using 1:2 with points ls 1 ps 0.6 title 'measured', \\\n"
            "     '%s.tsv' index 1 using 1:2 with points ls 3 pt 2 title 'left out', \\\n"
            "     '%s.tsv' index 0 using 1:3 with points lc rgb '#222222' pt 6 ps 0.6 title "
            "'fit'\n",
            look->x, look->fit, look->fit, look->fit);
}

static void write_residuals(const struct fit_plot *plot, FILE *gp)
{
    const struct look *look = &looks[plot->work];
    fprintf(gp,
            "set logscale x\nset format x '%%.0s%%c'\nset xlabel '%s'\n"
            "set ylabel 'fit over measured, %% off'\nset yrange [-60:60]\n"
            "plot 0 with lines ls 2 notitle, \\\n"
            "     '%s.tsv' index 0 using 1:4 with points ls 1 ps 0.6 title 'fitted', \\\n"
            "     '%s.tsv' index 1 using 1:4 with points ls 3 pt 2 title 'left out'\n",
            look->x, look->fit, look->fit);
}

static ty_status draw_one(const struct fit_plot *plot, const char *name, const char *title,
                          uint32_t n, void (*write)(const struct fit_plot *, FILE *))
{
    struct plot drawn = {.name = name, .title = title};
    char detail[48];
    FILE *gp;
    text_format(detail, sizeof detail, "%u records", n);
    ty_status status = plot_begin(plot->report, plot->study, &drawn, detail, &gp);
    if (status != TY_OK)
        return status;
    write(plot, gp);
    status = plot_end(plot->report, plot->study, &drawn, gp);
    plot->report->n_plots += drawn.state == PLOT_DRAWN;
    return status;
}

static bool has_points(const struct fit_plot *plot)
{
    struct json_at point = {0};
    while (json_next(plot->points, &point))
        if (is_of(&point, plot->work))
            return true;
    return false;
}

static ty_status draw_work(const struct fit_plot *plot)
{
    const struct look *look = &looks[plot->work];
    char title[64];
    FILE *data;
    if (!has_points(plot))
        return TY_OK;
    ty_status status = report_create(plot->report, plot->study, look->fit, ".tsv", &data);
    if (status != TY_OK)
        return status;
    const uint32_t n = write_points(plot, data);
    status = report_close(plot->report, data);
    text_format(title, sizeof title, "%s: measured and fitted times", look->title);
    if (status == TY_OK)
        status = draw_one(plot, look->fit, title, n, write_fit);
    text_format(title, sizeof title, "%s: how far the fit is off", look->title);
    return status == TY_OK ? draw_one(plot, look->residuals, title, n, write_residuals) : status;
}

/* ---- all ------------------------------------------------------------------------------------ */

static ty_status draw(const struct json_document *document, const char *profile_path,
                      struct report *report)
{
    struct json_at fit, points;
    struct study study = {.id = 0};
    if (!json_find(&document->top, "_fit", &fit) || !json_find(&fit, "points", &points))
        return error_set(report->error, TY_ERR_INPUT, profile_path,
                         "is no profile of calibrate fit: it has no \"_fit\" with points");
    ty_status status = json_want(&points, JSON_ARRAY, report->error);
    if (status == TY_OK && mkdir(report->folder, 0777) != 0 && errno != EEXIST)
        status = error_set(report->error, TY_ERR_IO, report->folder, "cannot be made: %s",
                           strerror(errno));
    text_format(study.about, sizeof study.about, "%.120s", profile_path);
    struct fit_plot plot = {report, &study, &points, TY_WORK_GEMM};
    for (; status == TY_OK && plot.work < TY_N_WORKS; plot.work++)
        status = draw_work(&plot);
    return status;
}

ty_status ty_calibration_plot(const char *profile_path, const char *out_folder, uint32_t *n_plots,
                              struct ty_error *error)
{
    struct report report = {.folder = out_folder, .error = error};
    struct json_document document = {0};
    ty_status status = json_load_file(profile_path, &document, error);
    if (status == TY_OK)
        status = draw(&document, profile_path, &report);
    json_free(&document);
    if (status == TY_OK)
        *n_plots = report.n_plots;
    return status;
}

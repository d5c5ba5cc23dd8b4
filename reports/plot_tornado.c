/* SPDX-License-Identifier: MIT
 * What each resource and each change of one knob would do to the speed, largest first. */
#include "include/trainyard_tools.h"
#include "reports/report.h"
#include "sim/error.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_BARS 24

struct bar {
    char label[96];
    double gain_pct; /* of tokens/s */
    int kind;        /* 0: resource, 1: change that fits, 2: does not fit */
};

struct bars {
    struct bar bar[TY_N_RESOURCES + 160];
    uint32_t n;
};

static int by_size(const void *a, const void *b)
{
    const double left = fabs(((const struct bar *)a)->gain_pct);
    const double right = fabs(((const struct bar *)b)->gain_pct);
    return (left < right) - (left > right);
}

static void collect(const struct ty_explanation *e, struct bars *bars)
{
    const uint32_t most = sizeof bars->bar / sizeof *bars->bar;
    for (uint32_t r = 0; r < TY_RESOURCE_MEMORY; r++) {
        struct bar *bar = &bars->bar[bars->n];
        bar->gain_pct = e->resources[r].gain_pct;
        text_format(bar->label, sizeof bar->label, "%s x 1.1",
                    ty_resource_name((enum ty_resource)r));
        bars->n += fabs(bar->gain_pct) > 0.005;
    }
    for (uint32_t i = 0; i < e->n_changes && bars->n < most; i++) {
        const struct ty_change *change = &e->changes[i];
        struct bar *bar = &bars->bar[bars->n];
        bar->gain_pct = 100.0 * (e->step_time_s / change->step_time_s - 1.0);
        bar->kind = change->fit == TY_FIT_NO ? 2 : 1;
        text_format(bar->label, sizeof bar->label, "%s %s to %s", change->knob, change->from,
                    change->to);
        bars->n += fabs(bar->gain_pct) > 0.005;
    }
    qsort(bars->bar, bars->n, sizeof *bars->bar, by_size);
    bars->n = bars->n < MAX_BARS ? bars->n : MAX_BARS;
}

/* One block of lines a kind: place, gain, label. */
static void write_bars(const struct bars *bars, FILE *data)
{
    for (int kind = 0; kind < 3; kind++) {
        fprintf(data, "%snan\tnan\t-\n", kind ? "\n\n" : "# place\tgain_pct\tlabel\n");
        for (uint32_t i = 0; i < bars->n; i++) {
            if (bars->bar[i].kind != kind)
                continue;
            plot_value(data, (double)(bars->n - i), '\t');
            plot_value(data, bars->bar[i].gain_pct, '\t');
            fprintf(data, "%s\n", bars->bar[i].label);
        }
    }
}

static void write_script(const struct bars *bars, FILE *gp)
{
    static const struct {
        const char *colour, *title;
    } kinds[] = {{"#0072b2", "10 % more of a resource"},
                 {"#009e73", "one change of the plan"},
                 {"#bbbbbb", "one that does not fit"}};
    fprintf(gp,
            "set xlabel 'change of tokens/s, %%'\nset yrange [0.3:%u.7]\nset grid xtics\n"
            "set grid noytics\nset xzeroaxis\nset lmargin 34\nset key below\n"
            "set ytics font ',11' scale 0 (",
            bars->n);
    for (uint32_t i = 0; i < bars->n; i++) {
        fputs(i ? ", " : "", gp);
        plot_quote(gp, bars->bar[i].label);
        fprintf(gp, " %u", bars->n - i);
    }
    fputs(")\nplot ", gp);
    for (int kind = 0; kind < 3; kind++) {
        fprintf(gp,
                "%s'tornado.tsv' index %d using (0):1:(0):2:($1-0.38):($1+0.38) "
                "with boxxyerror lc rgb '%s' title ",
                kind ? ", \\\n     " : "", kind, kinds[kind].colour);
        plot_quote(gp, kinds[kind].title);
    }
    fputc('\n', gp);
}

static ty_status draw(struct report *report, const struct bars *bars, const char *about)
{
    struct study study = {0};
    struct plot plot = {.name = "tornado", .title = "What would change the speed"};
    FILE *file;
    text_format(study.about, sizeof study.about, "%s", about);
    ty_status status = report_create(report, &study, plot.name, ".tsv", &file);
    if (status != TY_OK)
        return status;
    write_bars(bars, file);
    status = report_close(report, file);
    if (status == TY_OK)
        status = plot_begin(report, &study, &plot, "each alone", &file);
    if (status != TY_OK)
        return status;
    write_script(bars, file);
    status = plot_end(report, &study, &plot, file);
    report->n_plots += plot.state == PLOT_DRAWN;
    return status;
}

ty_status ty_explanation_plot(const struct ty_explanation *explanation, const char *about,
                              const char *out_folder, uint32_t *n_plots, struct ty_error *error)
{
    struct report report = {.folder = out_folder, .error = error};
    if (mkdir(out_folder, 0777) != 0 && errno != EEXIST)
        return error_set(error, TY_ERR_IO, out_folder, "cannot be made: %s", strerror(errno));
    struct bars *bars = calloc(1, sizeof *bars);
    if (!bars)
        return error_set(error, TY_ERR_NOMEM, out_folder, "no memory for the plot");
    collect(explanation, bars);
    const ty_status status = draw(&report, bars, about);
    free(bars);
    if (status == TY_OK)
        *n_plots = report.n_plots;
    return status;
}

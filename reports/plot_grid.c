/* SPDX-License-Identifier: MIT
 *
 * Heat map of TP against PP at one GPU count: the largest count with most cells. The sizes are
 * categories, not numbers: each gets one column or row.
 */
#include "reports/report.h"
#include "sim/error.h"

#include <math.h>

#define MAX_SIZES 24 /* columns or rows that stay readable; larger sizes are left out */

struct grid {
    double gpus;
    int n_tp, n_pp;
    double tp[MAX_SIZES], pp[MAX_SIZES];
    double low, high;
};

static int place_of(const double *sizes, int n, double size)
{
    for (int i = 0; i < n; i++)
        if (sizes[i] == size)
            return i;
    return -1;
}

/* Distinct sizes, smallest first. sql: constant. */
static ty_status ask_sizes(const struct report *report, const struct study *study, const char *sql,
                           double sizes[MAX_SIZES], int *n)
{
    struct store_rows *rows;
    ty_status status = store_ask(report->store, sql, study->id, &rows, report->error);
    if (status != TY_OK)
        return status;
    for (*n = 0; *n < MAX_SIZES && store_next(rows); ++*n)
        sizes[*n] = store_number(rows, 0);
    return store_done(rows, report->error);
}

/* The GPU count with most cells; of equals the largest. */
#define GRID_GPUS                                                                                  \
    "(SELECT gpus FROM prediction WHERE study_id = ?1 AND feasible GROUP BY gpus"                  \
    " ORDER BY count(DISTINCT tp * 65536 + pp) DESC, gpus DESC LIMIT 1)"
#define GRID_ROWS " FROM prediction WHERE study_id = ?1 AND feasible AND gpus = " GRID_GPUS

static ty_status write_grid_data(const struct report *report, const struct study *study,
                                 const struct plot *plot, struct grid *grid)
{
    FILE *data;
    struct store_rows *rows;
    ty_status status = report_create(report, study, plot->name, ".tsv", &data);
    if (status != TY_OK)
        return status;
    fputs("# column\trow\ttp\tpp\ttokens_per_s_per_gpu\n", data);
    status = store_ask(report->store,
                       "SELECT tp, pp, max(tokens_per_s_per_gpu), gpus" GRID_ROWS
                       " GROUP BY tp, pp ORDER BY tp, pp",
                       study->id, &rows, report->error);
    grid->low = INFINITY;
    grid->high = 0;
    while (status == TY_OK && store_next(rows)) {
        int column = place_of(grid->tp, grid->n_tp, store_number(rows, 0));
        int row = place_of(grid->pp, grid->n_pp, store_number(rows, 1));
        double value = store_number(rows, 2);
        if (column < 0 || row < 0)
            continue;
        grid->gpus = store_number(rows, 3);
        grid->low = fmin(grid->low, value);
        grid->high = fmax(grid->high, value);
        fprintf(data, "%d\t%d\t", column, row);
        plot_value(data, store_number(rows, 0), '\t');
        plot_value(data, store_number(rows, 1), '\t');
        plot_value(data, value, '\n');
    }
    if (status == TY_OK)
        status = store_done(rows, report->error);
    ty_status closed = report_close(report, data);
    return status == TY_OK ? closed : status;
}

static void write_ticks(FILE *gp, char axis, const double *sizes, int n)
{
    fprintf(gp, "set %ctics scale 0 (", axis);
    for (int i = 0; i < n; i++)
        fprintf(gp, "%s'%.0f' %d", i ? ", " : "", sizes[i], i);
    fprintf(gp, ")\nset %crange [-0.5:%g]\n", axis, n - 0.5);
}

/* source of the colours: ColorBrewer YlGnBu, safe for colour-blind readers */
static void write_grid(FILE *gp, const struct study *study, const struct plot *plot,
                       const struct grid *grid)
{
    bool flat = grid->high - grid->low < 1e-3 * grid->high; /* no range of its own */
    double low = flat ? 0.0 : grid->low;
    write_ticks(gp, 'x', grid->tp, grid->n_tp);
    write_ticks(gp, 'y', grid->pp, grid->n_pp);
    bool wide = grid->high >= 1e4; /* figures in thousands */
    bool crowded = grid->n_tp > 12;
    fprintf(gp,
            "set xlabel 'tensor parallel size (TP)'\nset ylabel 'pipeline parallel size (PP)'\n"
            "unset grid\nunset border\nset key off\n"
            "set object 1 rectangle from graph 0,0 to graph 1,1 behind fc rgb '#eeeeee' "
            "fs solid noborder\n"
            "set palette defined (0 '#ffffd9', 1 '#edf8b1', 2 '#c7e9b4', 3 '#7fcdbb', "
            "4 '#41b6c4', 5 '#1d91c0', 6 '#225ea8', 7 '#253494')\n"
            "set cbrange [%g:%g]\nset colorbox user origin 0.9,0.2 size 0.02,0.6\n"
            "set cblabel '%stokens/s/GPU' offset 0.5,0\nset cbtics scale 0.5\n"
            "set rmargin at screen 0.87\n",
            low / (wide ? 1e3 : 1.0), grid->high / (wide ? 1e3 : 1.0), wide ? "thousand " : "");
    fprintf(gp,
            "u = %g\ndark(v) = v > %g\n"
            "plot '%s%s.tsv' using 1:2:(0.5):(0.5):($5/u) with boxxyerror fc palette "
            "fs solid border rgb '#ffffff', \\\n"
            "  '' using 1:2:(dark($5) ? '' : sprintf('%s', $5/u)) with labels "
            "textcolor rgb '#222222', \\\n"
            "  '' using 1:2:(dark($5) ? sprintf('%s', $5/u) : '') with labels "
            "textcolor rgb '#ffffff'\n",
            wide ? 1e3 : 1.0, low + 0.6 * (grid->high - low), study->prefix, plot->name,
            crowded ? ""
            : wide  ? "%.1f"
                    : "%.0f",
            crowded ? ""
            : wide  ? "%.1f"
                    : "%.0f");
}

ty_status plot_grid(struct report *report, const struct study *study, struct plot *plot)
{
    struct grid grid = {0};
    ty_status status = ask_sizes(report, study, "SELECT DISTINCT tp" GRID_ROWS " ORDER BY tp",
                                 grid.tp, &grid.n_tp);
    if (status == TY_OK)
        status = ask_sizes(report, study, "SELECT DISTINCT pp" GRID_ROWS " ORDER BY pp", grid.pp,
                           &grid.n_pp);
    if (status != TY_OK)
        return status;
    if (grid.n_tp * grid.n_pp < 2) {
        plot->reason =
            grid.n_tp ? "All feasible plans have the same two sizes." : "No plan is feasible.";
        return TY_OK;
    }
    FILE *gp;
    char detail[32];
    status = write_grid_data(report, study, plot, &grid);
    text_format(detail, sizeof detail, "%.0f GPUs", grid.gpus);
    if (status == TY_OK)
        status = plot_begin(report, study, plot, detail, &gp);
    if (status != TY_OK)
        return status;
    write_grid(gp, study, plot, &grid);
    return plot_end(report, study, plot, gp);
}

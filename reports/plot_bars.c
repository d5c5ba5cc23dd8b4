/* SPDX-License-Identifier: MIT
 *
 * Stacked bars: parts of the step, components of memory. Colours are told apart by lightness as
 * well as hue, so that they survive colour-blindness and a black-and-white print.
 * source: Okabe and Ito 2008 (memory); ColorBrewer sequential blues and oranges (step)
 */
#include "reports/report.h"
#include "sim/error.h"

#include <math.h>

#define MAX_BARS 10
_Static_assert(TY_N_MEM == 9, "stage_label sums columns 2 to 10");

struct segment {
    const char *title, *fill, *ink; /* colours of the bar and of the figure in it */
};

static const struct segment part_segment[TY_N_PARTS] = {
    [TY_PART_GEMM] = {"GEMM", "#08519c", "#ffffff"},
    [TY_PART_ATTENTION] = {"attention", "#3182bd", "#ffffff"},
    [TY_PART_MEMORY_BOUND] = {"memory-bound", "#6baed6", "#222222"},
    [TY_PART_LAUNCH] = {"launch", "#c6dbef", "#222222"},
    [TY_PART_TP] = {"TP", "#8c2d04", "#ffffff"},
    [TY_PART_CP] = {"CP", "#cc4c02", "#ffffff"},
    [TY_PART_EP] = {"EP", "#f0731f", "#222222"},
    [TY_PART_PP] = {"PP", "#fdae6b", "#222222"},
    [TY_PART_DP] = {"DP", "#fdd9b5", "#222222"},
    [TY_PART_BUBBLE] = {"bubble", "#bdbdbd", "#222222"},
    [TY_PART_OPTIMIZER] = {"optimizer", "#1b7837", "#ffffff"},
    [TY_PART_INPUT_STALL] = {"input stall", "#762a83", "#ffffff"},
    [TY_PART_CHECKPOINT] = {"checkpoint", "#c2a5cf", "#222222"},
    [TY_PART_OFFLOAD] = {"offload", "#e7d4e8", "#222222"},
};

static const struct segment memory_segment[TY_N_MEM] = {
    [TY_MEM_WEIGHTS] = {"weights", "#0072b2", "#ffffff"},
    [TY_MEM_GRADS] = {"gradients", "#56b4e9", "#222222"},
    [TY_MEM_OPTIMIZER] = {"optimizer", "#009e73", "#ffffff"},
    [TY_MEM_ACTIVATIONS] = {"activations", "#e69f00", "#222222"},
    [TY_MEM_LOGITS] = {"logits", "#d55e00", "#ffffff"},
    [TY_MEM_TRANSIENT] = {"transient", "#f0e442", "#222222"},
    [TY_MEM_BUFFERS] = {"buffers", "#cc79a7", "#222222"},
    [TY_MEM_RUNTIME] = {"runtime", "#999999", "#222222"},
    [TY_MEM_RESERVE] = {"reserve", "#dddddd", "#222222"},
};

/* A stack of columns of a data file: what is plotted of column k is column(k) / (scale). */
struct stack {
    const struct segment *segment; /* [n] */
    const bool *shown;             /* [n]: not zero throughout */
    int n, first_column;
    const char *scale;  /* gnuplot expression */
    double least;       /* figure shown in segments of at least this height */
    const char *figure; /* printf format of it */
    const char *labels; /* ":xtic(...)" */
    int n_bars;
};

/* Bars of one width whether there are two or twelve; the figure sits in the middle of its segment:
 * the sum of the columns below plus half its own. */
static void write_stack(FILE *gp, const char *file, const struct stack *stack)
{
    double margin = stack->n_bars < 6 ? 0.5 * (6 - stack->n_bars) : 0.0;
    fprintf(gp,
            "set style data histograms\nset style histogram rowstacked\nset boxwidth 0.72\n"
            "set xrange [%g:%g]\nset grid noxtics\nset xtics scale 0\nset key invert\nplot ",
            -0.6 - margin, stack->n_bars - 0.4 + margin);
    bool first = true;
    for (int i = 0; i < stack->n; i++) {
        if (!stack->shown[i])
            continue;
        fprintf(gp, "%s'%s' using (column(%d)/(%s))%s lc rgb '%s' title '%s'",
                first ? "" : ", \\\n  ", file, stack->first_column + i, stack->scale,
                first ? stack->labels : "", stack->segment[i].fill, stack->segment[i].title);
        first = false;
    }
    for (int i = 0; i < stack->n; i++) {
        if (!stack->shown[i])
            continue;
        int column = stack->first_column + i;
        fprintf(gp,
                ", \\\n  '' using 0:(((sum[k=%d:%d] column(k)) - column(%d)/2)/(%s)):"
                "(column(%d)/(%s) >= %g ? sprintf('%s', column(%d)/(%s)) : '') with labels "
                "textcolor rgb '%s' notitle",
                stack->first_column, column, column, stack->scale, column, stack->scale,
                stack->least, stack->figure, column, stack->scale, stack->segment[i].ink);
    }
}

/* ---- step breakdown ----------------------------------------------------------------------- */

#define PART_COLUMNS          TY_PART_LIST(PART_COLUMN)
#define PART_COLUMN(id, name) ", \"" name "_s\""
#define BAR_COLUMNS           "SELECT gpus, tp, pp, cp, ep, mbs, step_time_s" PART_COLUMNS " FROM best"
#define FIRST_PART            7 /* place of the first part among them */

struct bars {
    int n;
    double gpus; /* of the last bar */
    bool shown[TY_N_PARTS];
    bool any_cp, any_ep; /* worth a line in the label */
};

/* several: the best plan of each GPU count, thinned to MAX_BARS; else the best plans of the one. */
static ty_status write_breakdown_data(const struct report *report, const struct study *study,
                                      FILE *data, struct bars *bars)
{
    bool several = study->n_counts > 1;
    int64_t every = several ? (int64_t)ceil(study->n_counts / MAX_BARS) : 1;
    struct store_rows *rows;
    ty_status status =
        store_ask(report->store,
                  several ? BAR_COLUMNS " WHERE study_id = ?1 AND rank = 1 ORDER BY gpus"
                          : BAR_COLUMNS " WHERE study_id = ?1 ORDER BY rank LIMIT 10",
                  study->id, &rows, report->error);
    if (status != TY_OK)
        return status;
    fputs("# gpus\ttp\tpp\tcp\tep\tmbs\tstep_time_s", data);
    for (int part = 0; part < TY_N_PARTS; part++)
        fprintf(data, "\t%s_s", ty_part_name((enum ty_part)part));
    fputc('\n', data);
    for (int64_t i = 0; store_next(rows); i++) {
        if (i % every != 0)
            continue;
        for (int k = 0; k < FIRST_PART; k++)
            plot_value(data, store_number(rows, k), '\t');
        bars->gpus = store_number(rows, 0);
        bars->any_cp |= store_number(rows, 3) > 1;
        bars->any_ep |= store_number(rows, 4) > 1;
        for (int part = 0; part < TY_N_PARTS; part++) {
            double time_s = store_number(rows, FIRST_PART + part);
            bars->shown[part] |= time_s > 0;
            plot_value(data, time_s > 0 ? time_s : 0.0, part + 1 < TY_N_PARTS ? '\t' : '\n');
        }
        bars->n++;
    }
    return store_done(rows, report->error);
}

/* Tick label of a bar: what its plan is, in lines as narrow as the bars ask for. returns how many
 * lines. */
static int write_bar_labels(const struct bars *bars, bool several, char *out, size_t bytes)
{
    bool narrow = bars->n > 6;
    text_format(out, bytes, ":xtic(sprintf(\"%sTP %%d%sPP %%d", several ? "%d GPUs\\n" : "",
                narrow ? "\\n" : ", ");
    text_append(out, bytes, "%s%s\", %s$2, $3", bars->any_cp ? "\\nCP %d" : "",
                bars->any_ep ? "\\nEP %d" : "", several ? "$1, " : "");
    text_append(out, bytes, "%s%s))", bars->any_cp ? ", $4" : "", bars->any_ep ? ", $5" : "");
    return 1 + several + narrow + bars->any_cp + bars->any_ep;
}

ty_status plot_breakdown(struct report *report, const struct study *study, struct plot *plot)
{
    struct bars bars = {0};
    FILE *file;
    ty_status status = report_create(report, study, plot->name, ".tsv", &file);
    if (status != TY_OK)
        return status;
    status = write_breakdown_data(report, study, file, &bars);
    ty_status closed = report_close(report, file);
    if (status != TY_OK || closed != TY_OK)
        return status != TY_OK ? status : closed;
    bool any = false;
    for (int part = 0; part < TY_N_PARTS; part++)
        any = any || bars.shown[part];
    if (!any) {
        plot->reason = "No feasible plan has a breakdown.";
        return TY_OK;
    }
    bool several = study->n_counts > 1;
    char detail[64] = "best plan of each GPU count";
    if (!several)
        text_format(detail, sizeof detail, "%.0f GPUs%s", bars.gpus,
                    bars.n > 1 ? ", fastest first" : "");
    FILE *gp;
    status = plot_begin(report, study, plot, detail, &gp);
    if (status != TY_OK)
        return status;
    char data[96], labels[160];
    text_format(data, sizeof data, "%s%s.tsv", study->prefix, plot->name);
    int n_lines = write_bar_labels(&bars, several, labels, sizeof labels);
    fprintf(gp,
            "set ylabel 'share of the step, %%'\nset yrange [0:108]\nset ytics 0,20,100\n"
            "set xtics font ',%d'\nset bmargin %d\n",
            bars.n > 6 ? 11 : 12, 2 + n_lines);
    write_stack(gp, data,
                &(struct stack){.segment = part_segment,
                                .shown = bars.shown,
                                .n = TY_N_PARTS,
                                .first_column = FIRST_PART + 1,
                                .scale = "$7/100",
                                .least = 4,
                                .figure = "%.0f",
                                .labels = labels,
                                .n_bars = bars.n});
    fputs(", \\\n  '' using 0:(100):(sprintf($7 < 1 ? '%.3g ms' : '%.3g s', $7 < 1 ? 1e3*$7 : $7))"
          " with labels offset 0,0.8 textcolor rgb '#222222' notitle\n",
          gp);
    return plot_end(report, study, plot, gp);
}

/* ---- memory by stage ---------------------------------------------------------------------- */

#define MEM_SUMS          TY_MEM_LIST(MEM_SUM)
#define MEM_SUM(id, name) ", sum(bytes) FILTER (WHERE component = '" name "')"

struct memory {
    int64_t prediction_id;
    char detail[96];
    double budget_bytes, highest_bytes;
    int n_stages;
    bool shown[TY_N_MEM];
};

/* The best plan whose memory is known by stage; infeasible ones where there is no other. */
static ty_status choose_plan(const struct report *report, const struct study *study,
                             struct memory *memory)
{
    struct store_rows *rows;
    ty_status status =
        store_ask(report->store,
                  "SELECT id, gpus, tp, pp, budget_bytes FROM prediction WHERE study_id = ?1"
                  " AND detailed AND EXISTS (SELECT 1 FROM memory WHERE prediction_id = id)"
                  " ORDER BY feasible DESC, tokens_per_s_per_gpu DESC, id LIMIT 1",
                  study->id, &rows, report->error);
    if (status != TY_OK)
        return status;
    if (store_next(rows)) {
        memory->prediction_id = store_integer(rows, 0);
        memory->budget_bytes = store_number(rows, 4);
        text_format(memory->detail, sizeof memory->detail, "%.0f GPUs, TP %.0f, PP %.0f",
                    store_number(rows, 1), store_number(rows, 2), store_number(rows, 3));
    }
    return store_done(rows, report->error);
}

static ty_status write_memory_data(const struct report *report, FILE *data, struct memory *memory)
{
    struct store_rows *rows;
    ty_status status = store_ask(report->store,
                                 "SELECT stage" MEM_SUMS " FROM memory WHERE prediction_id = ?1"
                                 " GROUP BY stage ORDER BY stage",
                                 memory->prediction_id, &rows, report->error);
    if (status != TY_OK)
        return status;
    fputs("# stage", data);
    for (int part = 0; part < TY_N_MEM; part++)
        fprintf(data, "\t%s_bytes", ty_mem_name((enum ty_mem)part));
    fputc('\n', data);
    while (store_next(rows)) {
        double total_bytes = 0;
        plot_value(data, store_number(rows, 0), '\t');
        for (int part = 0; part < TY_N_MEM; part++) {
            double bytes = store_number(rows, 1 + part);
            bytes = bytes > 0 ? bytes : 0.0;
            memory->shown[part] |= bytes > 0;
            total_bytes += bytes;
            plot_value(data, bytes, part + 1 < TY_N_MEM ? '\t' : '\n');
        }
        memory->highest_bytes = fmax(memory->highest_bytes, total_bytes);
        memory->n_stages++;
    }
    return store_done(rows, report->error);
}

/* Tick label: the stage, under it the total while there is room. */
static const char *stage_label(int n_stages)
{
    if (n_stages > 4 * MAX_BARS)
        return "";
    return n_stages > MAX_BARS ? ":xticlabels(1)"
                               : ":xtic(sprintf(\"%d\\n%.1f GiB\", $1, "
                                 "(sum[k=2:10] column(k))/2.0**30))";
}

ty_status plot_memory(struct report *report, const struct study *study, struct plot *plot)
{
    struct memory memory = {0};
    ty_status status = choose_plan(report, study, &memory);
    if (status != TY_OK)
        return status;
    if (!memory.prediction_id) {
        plot->reason = "No prediction of this study has its memory by stage.";
        return TY_OK;
    }
    FILE *file;
    status = report_create(report, study, plot->name, ".tsv", &file);
    if (status != TY_OK)
        return status;
    status = write_memory_data(report, file, &memory);
    ty_status closed = report_close(report, file);
    FILE *gp;
    if (status == TY_OK)
        status = closed;
    if (status == TY_OK)
        status = plot_begin(report, study, plot, memory.detail, &gp);
    if (status != TY_OK)
        return status;
    char data[96];
    text_format(data, sizeof data, "%s%s.tsv", study->prefix, plot->name);
    double budget_gib = memory.budget_bytes * 0x1p-30;
    double top_gib = fmax(memory.highest_bytes * 0x1p-30, budget_gib); /* budget may be NAN */
    fprintf(gp,
            "set xlabel 'pipeline stage%s\nset ylabel 'memory of one GPU, GiB'\n"
            "set yrange [0:%g]\nset bmargin %d\n",
            memory.n_stages > MAX_BARS ? "'" : " and its total' offset 0,-1", 1.08 * top_gib,
            memory.n_stages > MAX_BARS ? 4 : 5);
    write_stack(gp, data,
                &(struct stack){.segment = memory_segment,
                                .shown = memory.shown,
                                .n = TY_N_MEM,
                                .first_column = 2,
                                .scale = "2.0**30",
                                .least = 0.04 * top_gib,
                                .figure = memory.n_stages > MAX_BARS ? "" : "%.1f",
                                .labels = stage_label(memory.n_stages),
                                .n_bars = memory.n_stages});
    if (budget_gib > 0)
        fprintf(gp, ", \\\n  %g with lines lw 2 dt 2 lc rgb '#222222' title 'usable: %.1f'",
                budget_gib, budget_gib);
    fputc('\n', gp);
    return plot_end(report, study, plot, gp);
}

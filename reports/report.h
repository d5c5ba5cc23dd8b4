/* SPDX-License-Identifier: MIT
 *
 * Inside of the report: one folder, for each study its plots and a section of index.html. Names
 * from users never become code: in scripts they are single-quoted gnuplot strings without markup
 * (plot_quote), in pages escaped text (html_text), in queries bound parameters.
 */
#ifndef REPORTS_REPORT_H
#define REPORTS_REPORT_H

#include "reports/store.h"

#include <stdio.h>

struct report {
    ty_store *store;
    const char *folder;
    bool no_gnuplot; /* it was tried and is not there */
    uint32_t n_plots;
    struct ty_error *error;
};

/* What a study is about, and so which plots it has. */
enum study_kind { STUDY_PLANS, STUDY_SPLIT, STUDY_POOL };

/* What the plots and the page need to know about a study before they ask for rows. */
struct study {
    int64_t id;
    enum study_kind kind;
    char prefix[32]; /* of its file names: "" when the database holds one study */
    char about[160]; /* "llama3-70b on dgx-h100" */
    double n_predictions, n_feasible, n_counts; /* n_counts: GPU counts with a feasible plan */
};

enum plot_state { PLOT_SKIPPED, PLOT_DRAWN, PLOT_FAILED, PLOT_NO_GNUPLOT };

struct plot {
    const char *name;     /* stem of its files */
    const char *title;    /* plain words */
    const char *about;    /* one sentence: how to read it */
    enum study_kind kind; /* of the studies that it is drawn of */
    enum plot_state state;
    const char *reason; /* PLOT_SKIPPED: a sentence; NULL: not worth a word */
};

#define REPORT_N_PLOTS 14

/* ---- report.c ---- */
/* folder/PREFIXname.extension, to write. */
ty_status report_create(const struct report *report, const struct study *study, const char *name,
                        const char *extension, FILE **out);
/* Closes; TY_ERR_IO when anything was not written. */
ty_status report_close(const struct report *report, FILE *file);
/* "folder/PREFIXname.extension"; returns out. */
const char *report_path(const struct report *report, const struct study *study, const char *name,
                        const char *extension, char out[1024]);

/* ---- plot.c ---- */
struct plot_unit {
    double size;      /* of one unit, in the base unit of the data */
    const char *word; /* "million " */
};
struct plot_unit plot_unit_of(double largest);
/* Starts PREFIXname.gp: encoding, style, SVG output, the title and under it "about, detail". */
ty_status plot_begin(const struct report *report, const struct study *study,
                     const struct plot *plot, const char *detail, FILE **script);
/* Ends the script with the PNG output, runs gnuplot, sets the state. */
ty_status plot_end(struct report *report, const struct study *study, struct plot *plot,
                   FILE *script);
/* 'text' as one gnuplot string: no control characters, no substitution, UTF-8 only. */
void plot_quote(FILE *script, const char *text);
/* A number for a data file. */
void plot_value(FILE *data, double value, char end);
/* Writes PREFIXname.tsv: the numbers of each query under the heading ("gpus\ttokens_per_s"), a
 * block each, which gnuplot calls `index`. A query takes the study as ?1; second may be NULL. */
ty_status plot_table(const struct report *report, const struct study *study,
                     const struct plot *plot, const char *heading, const char *first,
                     const char *second);

/* ---- the plots: write data and script, draw, set plot->state ---- */
ty_status plot_scaling(struct report *report, const struct study *study, struct plot *plot);
ty_status plot_breakdown(struct report *report, const struct study *study, struct plot *plot);
ty_status plot_memory(struct report *report, const struct study *study, struct plot *plot);
ty_status plot_grid(struct report *report, const struct study *study, struct plot *plot);
ty_status plot_pareto(struct report *report, const struct study *study, struct plot *plot);
ty_status plot_size(struct report *report, const struct study *study, struct plot *plot);
ty_status plot_knee(struct report *report, const struct study *study, struct plot *plot);
ty_status plot_settings(struct report *report, const struct study *study, struct plot *plot);
ty_status plot_shares(struct report *report, const struct study *study, struct plot *plot);
ty_status plot_curves(struct report *report, const struct study *study, struct plot *plot);
ty_status plot_held(struct report *report, const struct study *study, struct plot *plot);
ty_status plot_waiting(struct report *report, const struct study *study, struct plot *plot);
ty_status plot_completion(struct report *report, const struct study *study, struct plot *plot);
ty_status plot_policies(struct report *report, const struct study *study, struct plot *plot);

/* ---- html.c: pieces of a page; html_study.c: the section of a study ---- */
void html_begin(FILE *page);
void html_end(FILE *page);
void html_text(FILE *page, const char *text);
/* "1,234,567", "12.3 GiB", "1.234 s", "45.6 %": a cell; "-" when not finite. */
enum html_unit { HTML_COUNT, HTML_BYTES, HTML_SECONDS, HTML_PERCENT, HTML_NUMBER };
void html_quantity(FILE *page, double value, enum html_unit unit);
ty_status html_svg(const struct report *report, const struct study *study, const char *name,
                   FILE *page);
ty_status html_study(const struct report *report, const struct study *study,
                     const struct plot plots[REPORT_N_PLOTS], FILE *page);

#endif

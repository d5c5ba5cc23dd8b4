/* SPDX-License-Identifier: MIT
 *
 * What all plots share: the look, the quoting of user text, and running gnuplot. A script names
 * only files beside it, so that the folder may be moved and a plot redrawn with `gnuplot NAME.gp`.
 */
#include "reports/report.h"
#include "models/spec/json_write.h"
#include "sim/error.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_SUCH_PROGRAM 127 /* exit status of a shell, and of our child, when exec fails */

/* Grey axes left and below, light grid behind, legend outside. noenhanced: text is only text. */
static const char style[] =
    "set encoding utf8\n"
    "set datafile separator \"\\t\"\n"
    "set datafile missing \"nan\"\n"
    "set border 3 lc rgb '#888888' lw 1\n"
    "set tics nomirror out scale 0.6 textcolor rgb '#444444'\n"
    "set grid ytics back lt 1 lc rgb '#e4e4e4' lw 1\n"
    "set tmargin at screen 0.84\n"
    "set key outside right top Left reverse samplen 1.4 spacing 1.25 textcolor rgb '#333333'\n"
    "set xlabel textcolor rgb '#333333'\n"
    "set ylabel textcolor rgb '#333333'\n"
    "set cblabel textcolor rgb '#333333'\n"
    "set style line 1 lc rgb '#0072b2' lw 2.5 pt 7 ps 0.9\n"
    "set style line 2 lc rgb '#999999' lw 1.5 dt 2\n"
    "set style line 3 lc rgb '#d55e00' lw 2.5 pt 7 ps 0.9\n"
    "set style fill solid 1.0 border rgb '#ffffff'\n";

struct plot_unit plot_unit_of(double largest)
{
    if (largest >= 1e7)
        return (struct plot_unit){1e6, "million "};
    if (largest >= 1e4)
        return (struct plot_unit){1e3, "thousand "};
    return (struct plot_unit){1.0, ""};
}

void plot_value(FILE *data, double value, char end)
{
    char number[JSON_NUMBER_BYTES];
    fprintf(data, "%s%c", isfinite(value) ? json_number_text(value, number) : "nan", end);
}

/* In single quotes gnuplot substitutes nothing; a quote is doubled. source: gnuplot 5.4 manual,
 * "Quote marks" and "Substitution" */
void plot_quote(FILE *script, const char *text)
{
    fputc('\'', script);
    while (*text) {
        size_t n = utf8_bytes(text);
        if (n == 0)
            fputc('?', script);
        else if ((unsigned char)*text < 0x20 || *text == 0x7F)
            fputc(' ', script);
        else if (*text == '\'')
            fputs("''", script);
        else
            fwrite(text, 1, n, script);
        text += n ? n : 1;
    }
    fputc('\'', script);
}

/* The numbers of one query under their heading. */
static ty_status write_block(const struct report *report, const struct study *study,
                             const char *heading, const char *sql, FILE *data)
{
    struct store_rows *rows;
    int n_columns = 1;
    for (const char *c = heading; *c; c++)
        n_columns += *c == '\t';
    const ty_status status = store_ask(report->store, sql, study->id, &rows, report->error);
    if (status != TY_OK)
        return status;
    fprintf(data, "# %s\n", heading);
    while (store_next(rows))
        for (int i = 0; i < n_columns; i++)
            plot_value(data, store_number(rows, i), i + 1 < n_columns ? '\t' : '\n');
    return store_done(rows, report->error);
}

ty_status plot_table(const struct report *report, const struct study *study,
                     const struct plot *plot, const char *heading, const char *first,
                     const char *second)
{
    FILE *data;
    ty_status status = report_create(report, study, plot->name, ".tsv", &data);
    if (status != TY_OK)
        return status;
    status = write_block(report, study, heading, first, data);
    if (status == TY_OK && second) {
        fputs("\n\n", data); /* two blank lines part the blocks */
        status = write_block(report, study, heading, second, data);
    }
    const ty_status closed = report_close(report, data);
    return status == TY_OK ? closed : status;
}

ty_status plot_begin(const struct report *report, const struct study *study,
                     const struct plot *plot, const char *detail, FILE **script)
{
    ty_status status = report_create(report, study, plot->name, ".gp", script);
    if (status != TY_OK)
        return status;
    FILE *gp = *script;
    fprintf(gp, "# Drawn by trainyard; again: gnuplot %s%s.gp\n%s", study->prefix, plot->name,
            style);
    fprintf(gp,
            "set terminal svg size 960,540 dynamic noenhanced font 'sans-serif,14'"
            " background rgb '#ffffff'\n"
            "set output '%s%s.svg'\n",
            study->prefix, plot->name);
    char line[320];
    text_format(line, sizeof line, "%s%s%s", study->about, detail[0] ? ", " : "", detail);
    fputs("set label 1 ", gp);
    plot_quote(gp, plot->title);
    fputs(" at graph 0, screen 0.955 left font 'sans-serif:Bold,16' textcolor rgb '#222222'\n"
          "set label 2 ",
          gp);
    plot_quote(gp, line);
    fputs(" noenhanced at graph 0, screen 0.905 left textcolor rgb '#666666'\n", gp);
    return TY_OK;
}

/* Runs gnuplot on one script in the report's folder; returns its exit status. Between fork and
 * exec the child calls only what is safe in a process that has threads. */
static int run_gnuplot(const struct report *report, char *script)
{
    char program[] = "gnuplot", defaults[] = "-d"; /* -d: no start-up files of the user */
    char *const arguments[] = {program, defaults, script, NULL};
    pid_t child = fork();
    if (child < 0)
        return NO_SUCH_PROGRAM;
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        if (null < 0 || chdir(report->folder) != 0)
            _exit(1);
        for (int fd = 0; fd < 3; fd++)
            dup2(null, fd);
        execvp(program, arguments);
        _exit(NO_SUCH_PROGRAM);
    }
    int how = 0;
    while (waitpid(child, &how, 0) < 0)
        if (errno != EINTR)
            return 1; /* the caller's process reaps its own way: the files will tell */
    return WIFEXITED(how) ? WEXITSTATUS(how) : 1;
}

static bool has_content(const struct report *report, const struct study *study,
                        const struct plot *plot, const char *extension)
{
    char path[1024];
    struct stat info;
    report_path(report, study, plot->name, extension, path);
    return stat(path, &info) == 0 && info.st_size > 0;
}

ty_status plot_end(struct report *report, const struct study *study, struct plot *plot,
                   FILE *script)
{
    fprintf(script,
            "if (strstrt(GPVAL_TERMINALS, 'pngcairo')) "
            "set terminal pngcairo size 1920,1080 noenhanced font 'sans-serif,12' fontscale 1.9 "
            "linewidth 2 pointscale 2 background rgb '#ffffff'; "
            "else set terminal png size 1920,1080 noenhanced linewidth 2\n"
            "set output '%s%s.png'\nreplot\nunset output\n",
            study->prefix, plot->name);
    ty_status status = report_close(report, script);
    if (status != TY_OK)
        return status;
    char path[1024];
    unlink(report_path(report, study, plot->name, ".svg", path)); /* of an earlier report */
    unlink(report_path(report, study, plot->name, ".png", path));
    plot->state = PLOT_NO_GNUPLOT;
    if (report->no_gnuplot)
        return TY_OK;
    char name[96];
    text_format(name, sizeof name, "%s%s.gp", study->prefix, plot->name);
    int exit_status = run_gnuplot(report, name);
    report->no_gnuplot = exit_status == NO_SUCH_PROGRAM;
    if (has_content(report, study, plot, ".svg") && has_content(report, study, plot, ".png"))
        plot->state = PLOT_DRAWN;
    else if (!report->no_gnuplot)
        plot->state = PLOT_FAILED;
    return TY_OK;
}

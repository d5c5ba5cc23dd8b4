/* SPDX-License-Identifier: MIT
 *
 * What the files of the command-line tool share: the two tables (commands, options), the parsed
 * command line, loading of inputs, text output. A command is `int cmd_NAME(struct cli_args *)`
 * and returns the exit status. Results go to standard output, everything else to standard error.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "include/trainyard_launch.h"
#include "include/trainyard_records.h"
#include "include/trainyard_storage.h"
#include "include/trainyard_tools.h"
#include <stdio.h>

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_BAD_INPUT = 2, CLI_INFEASIBLE = 3, CLI_NO_DEVICE = 4 };

/* ---- the command line, parsed ------------------------------------------------------------- */

#define CLI_MAX_SETTINGS 256
#define CLI_MAX_WORDS    256

/* One field given by the user: `--tp 8` and `--set plan.tp=8` are the same setting. */
struct cli_setting {
    enum ty_kind kind;
    const char *path, *text;
    const char *origin; /* the argument as typed, for messages */
};

struct cli_args {
    const struct cli_command *command;
    const char *model, *cluster, *profile, *stack, *site, *plan, *flops, *rung, *db, *out, *runs,
        *gpu, *scenario, *trace, *max_time, *max_memory, *records, *step_time, *tokens_per_s,
        *shard, *framework, *from, *arguments;
    uint64_t max_events;
    bool json, quiet, all, overall, tight, exhaustive, measured, cv, extrapolate, keep_plan, help,
        man, resume;
    uint32_t top, jobs, worst;
    struct { /* of the command pool */
        const char *trace, *format, *queue, *queues, *nodes, *gpus, *policy, *placement, *restart,
            *read_rate, *storage_rate, *checkpoint, *mtbf, *repair, *explain, *at, *curves;
        bool lossy;
    } pool;
    struct { /* prices, objectives, limits, failures */
        const char *price, *objective, *pareto, *tokens, *deadline, *budget, *headroom, *min_mfu,
            *mtbf, *repair, *restart, *save, *phases, *confidence, *detect, *spares, *shape,
            *preempt, *slow_node, *variation;
    } goal;
    struct { /* of the command explain */
        const char *measured, *log, *profile;
        uint32_t profile_steps;
    } explain;
    struct { /* of calibrate measure */
        const char *device, *blas, *folder;
        uint32_t ranks;
        bool resume;
    } measure;
    struct { /* of the command split */
        const char *jobs, *objective, *cache, *storage;
        uint32_t gpus, unit, cores;
    } split;
    struct { /* of the command monitor */
        const char *map, *tolerance, *print;
    } monitor;
    struct { /* of the command comm */
        const char *op, *sizes, *compare, *table, *algorithm;
        uint32_t ranks;
    } comm;
    uint64_t seed;
    uint32_t n_words, n_settings;
    const char *words[CLI_MAX_WORDS]; /* what is not an option: `show model NAME` */
    struct cli_setting settings[CLI_MAX_SETTINGS];
    char paths[CLI_MAX_SETTINGS][64]; /* storage of paths cut out of PATH=VALUE, of made values */
    int argc;
    char **argv;
};

/* ---- tables ------------------------------------------------------------------------------- */

enum cli_command_bit {
    CLI_PREDICT = 1,
    CLI_SWEEP = 2,
    CLI_REPORT = 4,
    CLI_SHOW = 8,
    CLI_LIST = 16,
    CLI_HELP = 32,
    CLI_VERSION = 64,
    CLI_VALIDATE = 128,
    CLI_CALIBRATE = 256,
    CLI_DETECT = 512,
    CLI_POOL = 1024,
    CLI_WHATIF = 2048,
    CLI_COMM = 4096,
    CLI_EXPLAIN = 8192,
    CLI_SIZE = 16384,
    CLI_DB = 32768,
    CLI_SPLIT = 65536,
    CLI_MONITOR = 131072,
    CLI_EXPORT = 262144,
    CLI_ANY = 524287,
    CLI_TAKES_PLAN = CLI_PREDICT | CLI_EXPLAIN | CLI_SWEEP | CLI_SHOW | CLI_WHATIF | CLI_SIZE |
                     CLI_CALIBRATE | CLI_MONITOR | CLI_EXPORT
};

struct cli_command {
    const char *name, *args, *help;
    enum cli_command_bit bit;
    uint32_t max_words;
    int (*run)(struct cli_args *args);
    const char *details; /* paragraphs of the manual page, parted by newlines */
};

/* CLI_FIELD: a field of TY_KIND_STORAGE under a name of its own (args.c). */
enum cli_option_type { CLI_SWITCH, CLI_TEXT, CLI_U32, CLI_U64, CLI_SET, CLI_FIELD };

struct cli_option {
    const char *name;
    char letter; /* 0: none */
    enum cli_option_type type;
    size_t offset;     /* into struct cli_args */
    const char *value; /* name and unit of the value; NULL for a switch */
    uint32_t commands; /* bits of enum cli_command_bit */
    const char *help;
};

extern const struct cli_command cli_commands[]; /* ended by name NULL */
extern const struct cli_option cli_options[];   /* ended by name NULL */

const struct cli_command *cli_command_find(const char *name);

/* Flag of a plan field ("moe_imbalance" -> "moe-imbalance"). returns out */
const char *cli_flag_name(const struct ty_field *field, char *out, size_t bytes);
/* True for a field whose values are auto, off, on: its flag may stand alone. */
bool cli_field_is_switch(const struct ty_field *field);

/* Parses argv[2..] for args->command. returns TY_OK or TY_ERR_INPUT. */
ty_status cli_parse(struct cli_args *args, struct ty_error *error);

/* The known word nearest to `word` by edit distance; best is "" when none is near. */
struct cli_guess {
    const char *word;
    char best[64];
    size_t distance;
};
void cli_guess_offer(struct cli_guess *guess, const char *candidate);

/* ---- messages ----------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) ty_status
cli_refuse(struct ty_error *error, const char *where, const char *format, ...);
/* Prints the error and returns its exit status. */
int cli_fail(const struct ty_error *error);
__attribute__((format(printf, 1, 2))) void cli_warn(const char *format, ...);

/* ---- inputs ------------------------------------------------------------------------------- */

/* Model, cluster, profile and plan as the command line gives them, --set applied. */
struct cli_inputs {
    struct ty_model model;
    struct ty_cluster cluster;
    struct ty_profile profile;
    struct ty_profile_tables tables; /* of the profile */
    struct ty_plan plan;
    struct ty_space space;         /* sweep only: the knobs given as lists */
    struct ty_framework framework; /* of --framework: the profile points to it */
    struct ty_options options;     /* its price points to the one below */
    struct ty_price price;
    struct ty_failures failures;
    struct ty_storage storage; /* options.storage points here where there is an input or a save */
    struct ty_goal goal;       /* points to the two above: inputs must stay where they are */
};

ty_status cli_load_model(const struct cli_args *args, const char *name, struct ty_model *out,
                         struct ty_error *error);
ty_status cli_load_cluster(const struct cli_args *args, const char *name, struct ty_cluster *out,
                           struct ty_error *error);
ty_status cli_load_gpu(const struct cli_args *args, const char *name, struct ty_gpu *out,
                       struct ty_error *error);
ty_status cli_load_profile(const struct cli_args *args, const char *name,
                           const struct ty_cluster *cluster, struct ty_profile *out,
                           struct ty_error *error);
/* Plan file, then flags in the order given. */
ty_status cli_load_plan(const struct cli_args *args, struct ty_plan *out, struct ty_error *error);
/* Price list and --set price.*; leaves options.price NULL when neither is given. */
ty_status cli_load_price(const struct cli_args *args, struct cli_inputs *out,
                         struct ty_error *error);
/* Tiers of the cluster, input and checkpoint of the plan file, with --set; either may be NULL. */
ty_status cli_load_tiers(const struct cli_args *args, const char *cluster, const char *plan,
                         struct ty_storage *out, struct ty_error *error);
/* Storage of cluster and plan file, flags and --set; leaves options.storage NULL without input and
 * checkpoints. After the goal: the best interval depends on failures. */
ty_status cli_load_storage(const struct cli_args *args, struct cli_inputs *out,
                           struct ty_error *error);
/* Objectives, limits and failures; after the price. */
ty_status cli_load_goal(const struct cli_args *args, struct cli_inputs *out,
                        struct ty_error *error);
/* "90", "90 s", "30 min", "12 h", "60d", "8 weeks": seconds, from 0. */
ty_status cli_time_parse(const char *text, const char *where, double *out, struct ty_error *error);
/* "15T", "300B", "1e12", "4Mtok": tokens, above 0. */
ty_status cli_tokens_parse(const char *text, const char *where, double *out,
                           struct ty_error *error);
/* All of the above, and the options; `lists`: knobs may be lists and fill `space`. */
ty_status cli_load(const struct cli_args *args, bool lists, struct cli_inputs *out,
                   struct ty_error *error);
/* Inputs start zeroed, may be loaded again, and are freed even after a failure. */
void cli_inputs_free(struct cli_inputs *inputs);
/* The knobs given as lists, one a line: "tp 1,2,4". */
void cli_space_write(FILE *file, const struct ty_space *space);
/* Names every given input of a kind that the command did not read. used: bits 1 << ty_kind */
void cli_warn_unused(const struct cli_args *args, uint32_t used);

/* Best tokens/s of a job on unit_gpus, 2 unit_gpus, ... GPUs, 0 where it has no plan. */
struct cli_curve {
    const struct ty_cluster *cluster;
    uint32_t unit_gpus, n_units;
    double *tokens_per_s;  /* [n_units + 1] */
    struct ty_plan *plans; /* likewise; may be NULL */
};
ty_status cli_search_curve(const struct cli_args *args, const struct ty_split_entry *entry,
                           const struct cli_curve *curve, struct ty_error *error);

/* "64..1024", "64..1024*2", "1,2,4,8": values in the order given. step: what a plain range counts
 * in; it starts at the first multiple. */
ty_status cli_values_parse(const char *text, uint32_t step, const char *where,
                           struct ty_values *out, struct ty_error *error);
/* "even,balanced,Et*7|(t*9|)*2,t*7L" into the layouts of a space. */
bool cli_is_layout_list(const char *text);
ty_status cli_layouts_parse(const char *text, const char *where, struct ty_space *out,
                            struct ty_error *error);
/* ---- text output -------------------------------------------------------------------------- */

/* "13.5 s", "120 ms", "14 us". */
const char *cli_time_text(double seconds, char *out, size_t bytes);
/* 1234567 -> "1,234,567" (rounded). */
const char *cli_count_text(double value, char *out, size_t bytes);
/* "61.3 GiB" */
const char *cli_bytes_text(double value, char *out, size_t bytes);
/* Prints a text of the library and frees it; NULL is its lack of memory. returns CLI_OK, CLI_FAILED
 * (said). */
int cli_print(char *text);
/* Prints text as a JSON string, quotes included. */
void cli_json_string(FILE *file, const char *text);
/* Value of a field as text: number with unit, name, list of names; "" when it is the default. */
const char *cli_field_text(const struct ty_field *field, const void *value, char *out,
                           size_t bytes);
/* "fits", "tight", "does not fit" */
const char *cli_fit_text(enum ty_fit fit);
/* The layout in one line: "tp 8 pp 4 vpp 2 dp 16 mbs 1 gbs 512 seq 8192 bf16". */
const char *cli_plan_text(const struct ty_plan *plan, char *out, size_t bytes);

/* The command line as typed, for the record; arguments with blanks are not quoted. Free it; NULL:
 * out of memory. */
char *cli_command_line(const struct cli_args *args);

/* After an infeasible plan, by a search over what the user left open; may take seconds. */
void cli_print_suggestion(const struct cli_inputs *inputs);

/* Layout, speed and memory, or why there is no feasible plan; returns false then. */
/* What the full rung found; nothing at other rungs. */
void cli_print_fabric(const struct ty_prediction *prediction);
/* Input pipeline, checkpoints, and the run with its failures; nothing where none was asked for. */
void cli_print_storage(const struct ty_prediction *prediction, const struct cli_inputs *inputs);
/* The run, where tokens or failures were given; false: they were not, or error says why. */
bool cli_forecast(const struct ty_prediction *prediction, const struct cli_inputs *inputs,
                  struct ty_forecast *out, struct ty_error *error);
bool cli_print_headline(const struct ty_prediction *prediction, const struct cli_inputs *inputs);
void cli_print_prediction(const struct ty_prediction *prediction, const struct cli_inputs *inputs);

typedef int cli_answer_fn(const struct cli_args *args, struct cli_inputs *inputs,
                          ty_predictor *predictor, struct ty_error *error);
/* Loads the inputs, makes a predictor and gives both to `answer`; returns its exit status. */
int cli_with_predictor(struct cli_args *args, cli_answer_fn *answer);
/* With --trace, writes what was simulated, also after a limit. returns status, or the failure. */
int cli_write_trace(const struct cli_args *args, const ty_predictor *predictor, bool simulated,
                    int status);

/* Rate and time left on standard error: a bar on a terminal, else a line every half minute. */
struct cli_progress {
    bool shown, bar, begun;
    uint64_t first; /* done when it began */
    double start_s, last_s;
};
void cli_progress_start(struct cli_progress *progress, bool quiet);
void cli_progress_show(struct cli_progress *progress, uint64_t done, uint64_t total);
void cli_progress_end(struct cli_progress *progress);

/* ---- commands ----------------------------------------------------------------------------- */

int cmd_predict(struct cli_args *args);
int cmd_explain(struct cli_args *args);
int cmd_monitor(struct cli_args *args);
int cmd_sweep(struct cli_args *args);
int cmd_report(struct cli_args *args);
int cmd_validate(struct cli_args *args);
int cmd_calibrate(struct cli_args *args);
int cli_calibrate_measure(struct cli_args *args);
/* Runs trainyard-measure; CLI_NO_DEVICE when it was not built. */
int cli_measure_cuda(struct cli_args *args, double budget_s);
/* trainyard-measure, beside this program or along PATH. bytes >= 64. returns false: nowhere */
bool cli_find_measure(char *out, size_t bytes);
/* Looks along PATH, starts nothing. */
bool cli_program_found(const char *name);
int cli_calibrate_fit(struct cli_args *args);
int cli_calibrate_show(struct cli_args *args);
int cli_calibrate_runs(struct cli_args *args);
int cmd_pool(struct cli_args *args);
int cmd_comm(struct cli_args *args);
int cmd_detect(struct cli_args *args);
int cmd_whatif(struct cli_args *args);
int cmd_size(struct cli_args *args);
int cmd_db(struct cli_args *args);
int cmd_export(struct cli_args *args);
int cmd_split(struct cli_args *args);
int cmd_show(struct cli_args *args);
int cli_show_run(const struct cli_args *args, const char *id, struct ty_error *error);
int cmd_list(struct cli_args *args);
int cmd_help(struct cli_args *args);
int cmd_version(struct cli_args *args);

/* Help of one command as text; of all when NULL. */
void cli_print_help(const struct cli_command *command);

#endif

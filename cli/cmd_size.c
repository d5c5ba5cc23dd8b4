/* SPDX-License-Identifier: MIT
 * `trainyard size`: the smallest machine of each kind that trains a job in time. */
#include "cli/study.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MACHINES 16
#define SHOWN_NOTES  16

struct machine {
    struct cli_args args; /* the command line with this machine alone */
    char cluster[64], gpu[64], price[512];
    struct cli_inputs inputs;
    struct cli_study study;
    struct ty_error *error; /* of the command */
};

struct sizing {
    struct ty_job job;
    uint32_t n, best; /* best == n: none */
    struct machine *machine;
    struct ty_size size[MAX_MACHINES];
    struct ty_size_result result[MAX_MACHINES];
    struct ty_error error;
};

/* ---- machines ----------------------------------------------------------------------------- */

/* The first built-in cluster of a GPU. */
static const char *cluster_of(const char *gpu)
{
    const char *name;
    for (size_t i = 0; (name = ty_builtin_name(TY_KIND_CLUSTER, i)); i++) {
        struct ty_cluster cluster;
        if (ty_cluster_load(name, &cluster, NULL) == TY_OK && strcmp(cluster.gpu.name, gpu) == 0)
            return name;
    }
    return NULL;
}

static bool take_name(const char **list, char out[64])
{
    const size_t length = strcspn(*list, ",");
    if (length == 0 || length >= 64)
        return false;
    snprintf(out, 64, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    return true;
}

static ty_status add_machine(struct sizing *s, const struct cli_args *args, const char *cluster,
                             const char *gpu)
{
    if (s->n == MAX_MACHINES)
        return cli_refuse(&s->error, "size", "compares at most %d machines", MAX_MACHINES);
    const char *own = cluster ? cluster : cluster_of(gpu);
    if (!own)
        return cli_refuse(&s->error, "--gpu",
                          "\"%s\" is in no built-in cluster; give --cluster too", gpu);
    struct machine *machine = &s->machine[s->n++];
    machine->args = *args;
    snprintf(machine->cluster, sizeof machine->cluster, "%s", own);
    machine->args.cluster = machine->cluster;
    if (!cluster || !gpu)
        return TY_OK;
    snprintf(machine->gpu, sizeof machine->gpu, "%s", gpu);
    if (machine->args.n_settings == CLI_MAX_SETTINGS)
        return cli_refuse(&s->error, "--gpu", "too many settings");
    machine->args.settings[machine->args.n_settings++] =
        (struct cli_setting){TY_KIND_CLUSTER, "gpu", machine->gpu, "--gpu"};
    return TY_OK;
}

/* --cluster C,D or --gpu A,B; both: each cluster with each GPU. */
static ty_status list_machines(struct sizing *s, const struct cli_args *args)
{
    const char *clusters = args->cluster ? args->cluster : "";
    if (!args->cluster && !args->gpu)
        return cli_refuse(&s->error, "--cluster", "not given, nor --gpu");
    ty_status status = TY_OK;
    do {
        char cluster[64], gpu[64];
        const char *gpus = args->gpu ? args->gpu : "";
        if (args->cluster && !take_name(&clusters, cluster))
            return cli_refuse(&s->error, "--cluster", "\"%s\" is no list of names", args->cluster);
        do {
            if (args->gpu && !take_name(&gpus, gpu))
                return cli_refuse(&s->error, "--gpu", "\"%s\" is no list of names", args->gpu);
            status = add_machine(s, args, args->cluster ? cluster : NULL, args->gpu ? gpu : NULL);
        } while (status == TY_OK && *gpus);
    } while (status == TY_OK && *clusters);
    return status;
}

/* One list for all machines, or one for each: A,B. */
static ty_status share_prices(struct sizing *s, const char *lists)
{
    if (!lists || !strchr(lists, ','))
        return TY_OK;
    for (uint32_t i = 0; i < s->n; i++) {
        const size_t length = strcspn(lists, ",");
        struct machine *machine = &s->machine[i];
        if (length == 0 || length >= sizeof machine->price)
            return cli_refuse(&s->error, "--price", "names fewer files than there are machines");
        snprintf(machine->price, sizeof machine->price, "%.*s", (int)length, lists);
        machine->args.goal.price = machine->price;
        lists += length + (lists[length] == ',');
    }
    return *lists ? cli_refuse(&s->error, "--price", "names more files than there are machines")
                  : TY_OK;
}

/* ---- job ---------------------------------------------------------------------------------- */

static ty_status load_job(struct sizing *s, const struct cli_args *args)
{
    struct ty_error *error = &s->error;
    if (args->goal.phases && args->goal.tokens)
        return cli_refuse(error, "--tokens", "the phases of --phases have their own");
    if (args->goal.phases) {
        const ty_status status = ty_job_load(args->goal.phases, &s->job, error);
        if (status == TY_ERR_IO)
            error->code = TY_ERR_INPUT;
        return status == TY_ERR_IO ? TY_ERR_INPUT : status;
    }
    if (!args->goal.tokens)
        return cli_refuse(error, "--tokens", "not given, nor --phases");
    s->job.n_phases = 1;
    return cli_tokens_parse(args->goal.tokens, "--tokens", &s->job.phase[0].tokens, error);
}

/* A point into the study of its machine. */
static bool store_point(void *user, const struct ty_size_result *point)
{
    struct machine *machine = user;
    return ty_store_add_size(machine->study.store, machine->study.id, point, machine->error) ==
           TY_OK;
}

static ty_status size_machine(struct sizing *s, uint32_t i, const struct cli_args *args,
                              double confidence)
{
    struct machine *machine = &s->machine[i];
    struct cli_inputs *inputs = &machine->inputs;
    ty_status status = cli_load(&machine->args, true, inputs, &s->error);
    if (status == TY_OK)
        status = cli_study_open(&machine->args, inputs, "", &machine->study, &s->error);
    if (status != TY_OK)
        return status;
    inputs->options.effects = false;
    machine->error = &s->error;
    s->size[i] = (struct ty_size){.model = &inputs->model,
                                  .cluster = &inputs->cluster,
                                  .profile = &inputs->profile,
                                  .space = inputs->space,
                                  .options = inputs->options,
                                  .n_threads = args->jobs,
                                  .allow_tight = args->tight,
                                  .job = &s->job,
                                  .price = inputs->options.price,
                                  .failures = inputs->goal.failures,
                                  .deadline_s = inputs->goal.deadline_s,
                                  .budget = inputs->goal.budget,
                                  .confidence = confidence,
                                  .point = args->db ? store_point : NULL,
                                  .user = machine};
    struct ty_error why = {0};
    status = ty_size_run(&s->size[i], &s->result[i], &why);
    if (status != TY_OK && s->error.code == TY_OK)
        s->error = why;
    cli_study_close(&machine->study);
    return status;
}

/* Least money where there are prices, else fewest GPUs; ties: the order given. */
static uint32_t best_machine(const struct sizing *s)
{
    uint32_t best = s->n;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct ty_size_result *result = &s->result[i];
        if (!result->feasible)
            continue;
        const struct ty_size_result *other = &s->result[best < s->n ? best : i];
        if (best == s->n ||
            (isnan(result->money[TY_P50]) ? result->gpus < other->gpus
                                          : result->money[TY_P50] < other->money[TY_P50]))
            best = i;
    }
    return best;
}

/* ---- text --------------------------------------------------------------------------------- */

static void print_row(const struct sizing *s, uint32_t i)
{
    const struct ty_size_result *r = &s->result[i];
    const struct ty_cluster *cluster = s->size[i].cluster;
    printf("%-18.18s %-16.16s ", cluster->name, cluster->gpu.name);
    if (!r->feasible) {
        printf("no count of GPUs does, of %u tried\n", r->n_tried);
        return;
    }
    char layout[160];
    printf("%6u %6u %7.2f %7.2f %7.2f ", r->gpus, r->spares, r->time_s[TY_P10] / 86400.0,
           r->time_s[TY_P50] / 86400.0, r->time_s[TY_P90] / 86400.0);
    if (isfinite(r->money[TY_P50]))
        printf("%12.4g ", r->money[TY_P50]);
    printf("%8.4g ", r->energy_j / 3.6e9);
    if (isfinite(r->p_meet_deadline))
        printf("%5.0f %% ", 100.0 * r->p_meet_deadline);
    printf("  %s\n", cli_plan_text(&r->phase[0].plan, layout, sizeof layout));
}

static void print_phases(const struct sizing *s, const struct ty_size_result *r)
{
    char layout[160], tokens[40], each[40];
    if (r->n_phases < 2)
        return;
    printf("\nphases\n");
    for (uint32_t i = 0; i < r->n_phases; i++)
        printf("  %s tokens, %.2f days at %s tokens/s: %s\n",
               cli_count_text(s->job.phase[i].tokens, tokens, sizeof tokens),
               r->phase_s[i] / 86400.0, cli_count_text(r->phase[i].tokens_per_s, each, sizeof each),
               cli_plan_text(&r->phase[i].plan, layout, sizeof layout));
}

static void print_assumptions(const struct sizing *s)
{
    struct ty_note note[SHOWN_NOTES];
    const uint32_t n =
        ty_size_assumptions(&s->size[s->best], &s->result[s->best], note, SHOWN_NOTES);
    printf("\nassumed\n");
    for (uint32_t i = 0; i < n; i++)
        printf("  %-14s %-16s %s\n", note[i].field, note[i].value, note[i].reason);
}

static void print_text(const struct sizing *s)
{
    const struct ty_size *size = &s->size[0];
    printf("%s, %u phase%s\n\n", size->model->name, s->job.n_phases,
           s->job.n_phases == 1 ? "" : "s");
    printf("%-18s %-16s %6s %6s %7s %7s %7s ", "cluster", "GPU", "GPUs", "spares", "days p10",
           "p50", "p90");
    if (size->price)
        printf("%12.12s ", *size->price->currency ? size->price->currency : "money");
    printf("%8s ", "MWh");
    if (!isnan(size->deadline_s))
        printf("%7s ", "in time");
    printf("  plan\n");
    for (uint32_t i = 0; i < s->n; i++)
        print_row(s, i);
    if (s->best == s->n)
        return;
    const struct ty_size_result *best = &s->result[s->best];
    if (s->n > 1)
        printf("\ntake %s: %s\n", s->size[s->best].cluster->name,
               isnan(best->money[TY_P50]) ? "fewest GPUs" : "least money");
    if (best->goodput.stretch_ratio > 1.0)
        printf("\na step takes %.2f %% longer, for its slowest node\n",
               100.0 * (best->goodput.stretch_ratio - 1.0));
    if (isfinite(best->goodput.mtbf_s))
        printf(
            "\na failure every %.1f h; a checkpoint every %.0f s; %.1f %% of the time is useful\n",
            best->goodput.mtbf_s / 3600.0, best->goodput.interval_s,
            100.0 * best->goodput.useful_ratio);
    print_phases(s, best);
    print_assumptions(s);
}

/* ---- command ------------------------------------------------------------------------------ */

static int print_answer(const struct sizing *s, bool json)
{
    if (json) {
        const int printed = cli_print(ty_size_json(s->size, s->result, s->n, s->best));
        if (printed != CLI_OK)
            return printed;
    } else {
        print_text(s);
    }
    return s->best < s->n ? CLI_OK : CLI_INFEASIBLE;
}

static int run(struct sizing *s, struct cli_args *args)
{
    double confidence = (double)NAN;
    ty_status status = load_job(s, args);
    if (status == TY_OK)
        status = list_machines(s, args);
    if (status == TY_OK)
        status = share_prices(s, args->goal.price);
    if (status == TY_OK && args->goal.confidence &&
        ty_quantity_parse(args->goal.confidence, TY_UNIT_RATIO, &confidence, &s->error) != TY_OK)
        status = cli_refuse(&s->error, "--confidence", "\"%s\" is not a ratio such as 90%%",
                            args->goal.confidence);
    if (status == TY_OK && args->goal.confidence && !args->goal.deadline && !args->goal.budget)
        status =
            cli_refuse(&s->error, "--confidence", "has no effect without --deadline or --budget");
    for (uint32_t i = 0; status == TY_OK && i < s->n; i++)
        status = size_machine(s, i, args, confidence);
    if (status != TY_OK)
        return cli_fail(&s->error);
    cli_warn_unused(args, UINT32_MAX);
    s->best = best_machine(s);
    return print_answer(s, args->json);
}

int cmd_size(struct cli_args *args)
{
    struct sizing *s = calloc(1, sizeof *s);
    struct machine *machine = calloc(MAX_MACHINES, sizeof *machine);
    int status = CLI_FAILED;
    if (s && machine) {
        s->machine = machine;
        status = run(s, args);
    } else {
        cli_warn("out of memory");
    }
    free(machine);
    free(s);
    return status;
}

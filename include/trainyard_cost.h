/* SPDX-License-Identifier: MIT
 *
 * trainyard_cost.h: what a step, a token and a run cost in money, energy and carbon, and what a
 * search is to look for. Part of the core library; conventions as in trainyard.h. docs/sizing.md
 * shows the use. Prices are the user's: none is built in.
 */
#ifndef TRAINYARD_COST_H
#define TRAINYARD_COST_H

#include "trainyard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- prices and power --------------------------------------------------------------------- */

/* What is paid for when a job uses a part of it: 64 of the 72 GPUs of a domain. */
enum ty_billing { TY_BILLING_AUTO, TY_BILLING_DOMAIN, TY_BILLING_NODE, TY_BILLING_GPU };

/* A price list, with its date; TY_KIND_PRICE, docs/formats.md "Price". Either a rent per GPU-hour,
 * or what the machines cost to buy. */
struct ty_price {
    char name[48], source[160];
    char date[16]; /* of the prices, YYYY-MM-DD */
    char currency[16];
    double gpu_hour; /* rent; default: from the capital costs below */
    /* capital, money each */
    double gpu, node, nic, switch_port, optic;
    double ports_per_nic, optics_per_nic; /* default: of two levels of switches, 1 + 2/o and
                                             2 + 2/o with the oversubscription o */
    double years;                         /* amortisation */
    double utilisation;                   /* share of these years that is sold; default 1 */
    double kwh;                           /* electricity per kWh; default 0: in the rent */
    double pue;            /* power of the site over that of the machines; default 1 */
    double co2_kg_per_kwh; /* default: unknown */
    double node_w;         /* of a node beside its GPUs; default 0 */
    /* power of a GPU computing; communicating or waiting; without work: over its TDP */
    double busy_ratio, wait_ratio, idle_ratio; /* default 0.95, 0.5, 0.15 */
    int billing;                               /* enum ty_billing; default: whole domains */
};

/* Cost of a plan with a known step time (defined in trainyard.h as a part of its answers):
 *
 *   paid        GPUs, rounded up to what is billed; the others of it idle
 *   P_busy = min(busy TDP, limit)   P_wait = min(wait TDP, limit)   P_idle = idle TDP
 *   energy      PUE [n (P_wait T + (P_busy - P_wait) busy_s) + (paid - n) P_idle T
 *               + nodes P_node T]
 *   gpu_hour    rent, or (gpu + (node + nics (nic + ports port + optics optic)) / GPUs of a node)
 *               / (years 8766 h utilisation)
 *   money       paid gpu_hour T + kwh energy
 *
 * busy_s: of a step, the mean over GPUs of the time that kernels compute. For one plan all costs
 * rise with T. source: shares of TDP, handbook 4.6.
 *
 * cluster, plan   as given to ty_predictor_create, and resolved
 * price           NULL: no money, power as by default
 * returns         TY_OK, TY_ERR_RANGE (a price list that gives neither rent nor capital is legal:
 *                 money_* are NAN); cost O(1) */
TY_API TY_MUST_CHECK ty_status ty_cost(const struct ty_cluster *cluster,
                                       const struct ty_price *price, const struct ty_plan *plan,
                                       double step_time_s, double busy_s, struct ty_outlay *out,
                                       struct ty_error *error);

/* GPUs paid for when n_gpus are used; >= n_gpus. price NULL: billed by whole domains. Cost O(1). */
TY_API uint32_t ty_paid_gpus(const struct ty_cluster *cluster, const struct ty_price *price,
                             uint32_t n_gpus);

/* ---- failures ----------------------------------------------------------------------------- */

#define TY_DEFAULT_SAVE_S    30.0
#define TY_DEFAULT_RESTART_S 300.0   /* source: handbook 7.6, UT-7.7 */
#define TY_DEFAULT_REPAIR_S  86400.0 /* source: handbook 7.7, UT-7.9 */

/* Failures of a long job (handbook 7.6); a NAN takes the default. */
struct ty_failures {
    double node_mtbf_s;       /* mean time between failures of one node; NAN: no failures */
    double save_s;            /* training stands still for a checkpoint; default 30 s */
    double restart_s;         /* detect, reschedule, load, warm up; default 300 s */
    double repair_s;          /* until a node is back; default 24 h */
    double interval_s;        /* work between checkpoints; default: the best */
    double spare_probability; /* that the spares suffice; default 0.99 */
    /* 0: none of it */
    double job_mtbf_s;   /* failures that no node causes: software, network, operators */
    double preemption_s; /* mean time between two preemptions of the job */
    double detect_s;     /* until a failure is noticed, before the restart */
    /* of the time between failures; 1 or 0: exponential. A search takes the mean alone. */
    double weibull_shape;
    double spares_held; /* nodes ready; too few stop the job until a repair. 0: enough */
    /* A step waits for its slowest node: slowest (1 + v e_n), e_n the mean of the largest of n
     * normal numbers. */
    double slowest_ratio;  /* lasting: a step on the slowest node over one on the others; 0: 1 */
    double step_variation; /* v: of a node's time of a step, deviation over mean; 0: none */
};
/* Of a job on n_nodes. */
struct ty_goodput {
    double mtbf_s;        /* of the job; INFINITY without failures */
    double interval_s;    /* between checkpoints */
    double useful_ratio;  /* share of the time that advances the job; 1 without failures */
    uint32_t spares;      /* nodes to hold ready */
    double stretch_ratio; /* a step with its slowest node over one without, >= 1; in the useful
                             ratio already */
};
/* 1 / M = nodes / node MTBF + 1 / job MTBF + 1 / preemption. Exact for exponential failures; with a
 * Weibull shape the mean of simulated runs, seed fixed. The share of time in which the spares held
 * suffice is a factor of the useful ratio, slow nodes a divisor. Cost: 1 us; with a Weibull shape
 * 0.3 ms, with a variation of steps 0.1 ms. returns TY_OK, TY_ERR_RANGE, TY_ERR_NOMEM. Source:
 * handbook 7.6 to 7.8. */
TY_API TY_MUST_CHECK ty_status ty_goodput(const struct ty_failures *failures, double n_nodes,
                                          struct ty_goodput *out, struct ty_error *error);

/* A run of so many tokens, after failures: struct ty_size_result has the equations. */
enum ty_quantile { TY_P10, TY_P50, TY_P90, TY_N_QUANTILES };
struct ty_forecast {
    struct ty_goodput goodput;
    double tokens_per_s;           /* that advance the job */
    double time_s[TY_N_QUANTILES]; /* NAN without tokens */
};
/* Of a simulated prediction; its checkpoints take the place of failures->save_s where it has them.
 * failures NULL: none; tokens NAN: no time. Cost: that of ty_goodput.
 * returns TY_OK, TY_ERR_RANGE, TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_forecast_of(const struct ty_prediction *prediction,
                                              const struct ty_failures *failures,
                                              uint32_t gpus_per_node, double tokens,
                                              struct ty_forecast *out, struct ty_error *error);

/* ---- what a search looks for -------------------------------------------------------------- */

/* Each rises or falls with the step time alone for one plan, so a bound of the step time bounds it:
 * a search by any of them is exact. Money, energy and time count the useful tokens only, where
 * failures are given. */
#define TY_OBJECTIVE_LIST(X)                                                                       \
    X(AUTO, "auto")                                                                                \
    X(TOKENS_PER_S_PER_GPU, "tokens_per_s_per_gpu") /* the default */                              \
    X(TOKENS_PER_S, "tokens_per_s")                                                                \
    X(COST_PER_TOKEN, "cost_per_token")                                                            \
    X(ENERGY_PER_TOKEN, "energy_per_token")                                                        \
    X(TIME_TO_TOKENS, "time_to_tokens")                                                            \
    X(GPUS, "gpus") /* those paid for; ties: faster */
enum ty_objective {
#define X(id, name) TY_OBJECTIVE_##id,
    TY_OBJECTIVE_LIST(X)
#undef X
        TY_N_OBJECTIVES
};
/* "tokens_per_s_per_gpu", ... */
TY_API const char *ty_objective_name(enum ty_objective objective);

#define TY_MAX_OBJECTIVES 3

/* Goal of a search: one objective ranks; two or three ask for the Pareto set. */
struct ty_goal {
    uint32_t n_objectives; /* 0: tokens/s/GPU */
    enum ty_objective objective[TY_MAX_OBJECTIVES];
    const struct ty_price *price;       /* NULL: none; cost_per_token needs one */
    const struct ty_failures *failures; /* NULL: none */
    double tokens;                      /* to train on; time_to_tokens and limits need it */
    /* what a plan must keep; NAN: no limit */
    double deadline_s, budget; /* of the run */
    double min_headroom_bytes; /* memory left on the fullest GPU */
    double min_mfu;
};
/* No objective, no price, no limit. */
TY_API void ty_goal_init(struct ty_goal *goal);

/* Figure of a plan under an objective, in its own unit (tokens/s, money/token, J/token, s, GPUs).
 * NAN where the goal lacks what it needs. */
TY_API double ty_objective_value(enum ty_objective objective, const struct ty_goal *goal,
                                 const struct ty_score *score);

/* ---- the size of a machine ---------------------------------------------------------------- */

#define TY_MAX_PHASES 16

/* A stretch of a run; 0 takes what the fixed plan says. */
struct ty_phase {
    double tokens;
    uint32_t seq, gbs;
};
struct ty_job {
    char name[48];
    uint32_t n_phases;
    struct ty_phase phase[TY_MAX_PHASES];
    double downtime_s; /* planned, in which the machine is paid for and does not train */
};

struct ty_size_result;
/* The run on one count. return false to stop. */
typedef bool ty_size_fn(void *user, const struct ty_size_result *point);

/* Which machine: the smallest count of these GPUs on which the job fits and, where a deadline or a
 * budget is given, keeps them. */
struct ty_size {
    const struct ty_model *model;
    const struct ty_cluster *cluster;
    const struct ty_profile *profile;
    struct ty_space space; /* as of a search; n_gpus, or that of the fixed plan: counts to try,
                              none: whole nodes up to 4,096 GPUs, then steps of 8 nodes up to
                              32,768 */
    struct ty_options options;
    uint32_t n_threads;
    bool allow_tight;
    const struct ty_job *job;
    const struct ty_price *price;       /* NULL: none */
    const struct ty_failures *failures; /* NULL: none */
    double deadline_s, budget;          /* NAN: none */
    double confidence;                  /* probability with which they are kept; NAN: 0.5 */
    /* Speed and cost against the number of GPUs: called after the answer is found, with the best
     * plan of every count of space.n_gpus, without a list of 1/4, 1/2, 3/4, 1, 3/2, 2 and 4 times
     * the answer in whole nodes, whether it keeps the limits or not. NULL: not asked for. */
    ty_size_fn *point;
    void *user;
};

/* The run on one count of GPUs.
 *
 *   T = sum of phases tokens / (tokens/s g) + downtime          g: useful share of the time
 *   ln T is taken as normal: s^2 = (half_80 / 1.2816)^2 + v^2
 *   v^2 = T / M (R^2 + R tau + tau^2 / 3) / T^2                 M, R, tau: handbook 7.6
 *
 * v: each of T / M failures costs R and what was done since the last of the checkpoints tau apart.
 * Money is that of the time, with the spare nodes, idle, and of the electricity. */
struct ty_size_result {
    bool feasible;                    /* it fits and keeps the limits: the rest holds */
    bool fits;                        /* of a point: every phase has a plan, the rest holds */
    uint32_t gpus, gpus_paid, spares; /* spares: nodes */
    double half_80; /* of the step time; NAN: nothing is known of its error, s has v alone */
    struct ty_goodput goodput;
    double time_s[TY_N_QUANTILES], money[TY_N_QUANTILES]; /* money: NAN without prices */
    double energy_j, co2_kg;
    double p_meet_deadline, p_meet_budget; /* NAN: none given */
    uint32_t n_phases;
    struct ty_score phase[TY_MAX_PHASES]; /* the best plan of each */
    double phase_s[TY_MAX_PHASES];        /* useful or not, without downtime */
    uint32_t n_tried;                     /* counts of GPUs, this one included */
};
/* A search of each count in ascending order, ended by the first that does. Not feasible is TY_OK.
 * Cost: a search for each count and phase. returns TY_OK, TY_ERR_RANGE, TY_ERR_NOMEM, TY_ERR_LIMIT,
 * TY_ERR_CANCELLED (by size->point). */
TY_API TY_MUST_CHECK ty_status ty_size_run(const struct ty_size *size, struct ty_size_result *out,
                                           struct ty_error *error);
/* What the answer takes for granted beside the notes of a prediction: defaults of failures, prices,
 * errors. returns their number, at most max. */
TY_API uint32_t ty_size_assumptions(const struct ty_size *size, const struct ty_size_result *result,
                                    struct ty_note *out, uint32_t max);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT
 *
 * Money, energy and carbon of a step. A GPU draws one power while kernels compute and another while
 * it communicates or waits, so energy is linear in the step time T for a plan of given work:
 *
 *   E = PUE [n (P_wait T + (P_busy - P_wait) busy) + (paid - n) P_idle T + nodes P_node T]
 *
 * P_busy >= P_wait >= 0 is required, so that E, and money with it, rise with T.
 */
#include "models/cost.h"
#include "models/fields.h"
#include "models/setting.h"
#include "sim/error.h"

#include <math.h>

/* Shares of TDP. source: handbook 4.6 (compute 0.9 to 1.0, communication 0.5, idle 0.1 to 0.2) */
#define BUSY_RATIO     0.95
#define WAIT_RATIO     0.5
#define IDLE_RATIO     0.15
#define HOURS_PER_YEAR 8766.0 /* 365.25 days */
#define J_PER_KWH      3.6e6

static void set_missing(double *value, double to)
{
    if (isnan(*value))
        *value = to;
}

static void fill_defaults(struct ty_price *price, const struct ty_cluster *cluster)
{
    double *const zero[] = {&price->gpu,   &price->node, &price->nic,   &price->switch_port,
                            &price->optic, &price->kwh,  &price->node_w};
    for (size_t i = 0; i < sizeof zero / sizeof *zero; i++)
        set_missing(zero[i], 0.0);
    set_missing(&price->ports_per_nic, 1.0 + 2.0 / cluster->oversubscription);
    set_missing(&price->optics_per_nic, 2.0 + 2.0 / cluster->oversubscription);
    set_missing(&price->utilisation, 1.0);
    set_missing(&price->pue, 1.0);
    set_missing(&price->busy_ratio, BUSY_RATIO);
    set_missing(&price->wait_ratio, fmin(WAIT_RATIO, price->busy_ratio));
    set_missing(&price->idle_ratio, IDLE_RATIO);
    if (price->billing == TY_BILLING_AUTO)
        price->billing = TY_BILLING_DOMAIN;
}

/* Money of one GPU with its share of node and network. */
static double capital(const struct ty_price *price, const struct ty_cluster *cluster)
{
    const double nic = price->nic + price->ports_per_nic * price->switch_port +
                       price->optics_per_nic * price->optic;
    return price->gpu + (price->node + cluster->nics_per_node * nic) / cluster->gpus_per_node;
}

static ty_status price_gpu_hour(struct cost_model *model, struct ty_error *error)
{
    const struct ty_price *price = &model->price;
    const double all = capital(price, model->cluster);
    model->gpu_hour = price->gpu_hour;
    if (!isnan(price->gpu_hour) && all > 0.0)
        return error_set(error, TY_ERR_RANGE, "price.gpu_hour",
                         "is a rent, and capital costs are given too; give one of them");
    if (!isnan(price->gpu_hour) || all == 0.0)
        return TY_OK;
    if (isnan(price->years))
        return error_set(error, TY_ERR_RANGE, "price.capital.years",
                         "is missing: capital costs need years of amortisation");
    model->gpu_hour = all / (price->years * HOURS_PER_YEAR * price->utilisation);
    return TY_OK;
}

ty_status cost_model_init(const struct ty_cluster *cluster, const struct ty_price *price,
                          struct cost_model *out, struct ty_error *error)
{
    *out = (struct cost_model){.asked = price, .cluster = cluster, .gpu_hour = (double)NAN};
    if (price) {
        const ty_status status = fields_check(TY_KIND_PRICE, price, error);
        if (status != TY_OK)
            return status;
        out->price = *price;
    } else {
        ty_init(TY_KIND_PRICE, &out->price);
    }
    fill_defaults(&out->price, cluster);
    if (out->price.wait_ratio > out->price.busy_ratio)
        return error_set(error, TY_ERR_RANGE, "price.power.wait",
                         "is %.4g, more than power.busy (%.4g)", out->price.wait_ratio,
                         out->price.busy_ratio);
    const double tdp_w = cluster->gpu.tdp_w, limit_w = cluster->power_limit_w;
    out->busy_w = fmin(out->price.busy_ratio * tdp_w, limit_w);
    out->wait_w = fmin(out->price.wait_ratio * tdp_w, limit_w);
    out->idle_w = out->price.idle_ratio * tdp_w;
    return price ? price_gpu_hour(out, error) : TY_OK;
}

static uint32_t round_up(uint32_t n, uint32_t unit)
{
    const uint64_t whole = ((uint64_t)n + unit - 1) / unit * unit;
    return whole > UINT32_MAX ? n : (uint32_t)whole;
}

uint32_t cost_paid_gpus(const struct cost_model *model, uint32_t n_gpus)
{
    const struct ty_cluster *cluster = model->cluster;
    const uint32_t node = cluster->gpus_per_node, domain = cluster->scaleup_domain;
    switch (model->price.billing) {
    case TY_BILLING_GPU:
        return n_gpus;
    case TY_BILLING_NODE:
        return round_up(n_gpus, node);
    default:
        return round_up(n_gpus, domain > node ? domain : node);
    }
}

void cost_unknown(struct ty_outlay *out)
{
    const double unknown = (double)NAN;
    *out = (struct ty_outlay){.busy_s = unknown,
                              .power_w = unknown,
                              .money_per_gpu_hour = unknown,
                              .energy_j = unknown,
                              .money = unknown,
                              .co2_kg = unknown,
                              .energy_j_per_token = unknown,
                              .money_per_token = unknown};
}

void cost_of(const struct cost_model *model, const struct ty_plan *plan, double step_time_s,
             double busy_s, struct ty_outlay *out)
{
    const struct ty_price *price = &model->price;
    const uint32_t n_gpus = plan->n_gpus, paid = cost_paid_gpus(model, n_gpus);
    const double nodes = ceil((double)paid / model->cluster->gpus_per_node);
    const double resting_w =
        n_gpus * model->wait_w + (paid - n_gpus) * model->idle_w + nodes * price->node_w;
    const double energy_j = price->pue * (resting_w * step_time_s +
                                          n_gpus * ((model->busy_w - model->wait_w) * busy_s));
    const double money =
        paid * (model->gpu_hour / 3600.0) * step_time_s + price->kwh * (energy_j / J_PER_KWH);
    const double tokens = (double)plan->gbs * plan->seq;
    *out = (struct ty_outlay){.price = model->asked,
                              .gpus_paid = paid,
                              .busy_s = busy_s,
                              .power_w = energy_j / step_time_s,
                              .money_per_gpu_hour = model->gpu_hour,
                              .energy_j = energy_j,
                              .money = money,
                              .co2_kg = price->co2_kg_per_kwh * (energy_j / J_PER_KWH),
                              .energy_j_per_token = energy_j / tokens,
                              .money_per_token = money / tokens};
}

/* ---- interface ---------------------------------------------------------------------------- */

ty_status ty_cost(const struct ty_cluster *cluster, const struct ty_price *price,
                  const struct ty_plan *plan, double step_time_s, double busy_s,
                  struct ty_outlay *out, struct ty_error *error)
{
    struct ty_cluster resolved;
    struct cost_model model;
    if (!(step_time_s > 0.0) || !(busy_s >= 0.0 && busy_s <= step_time_s * (1.0 + 1e-9)))
        return error_set(error, TY_ERR_RANGE, "step time", "is not positive, or less than busy_s");
    ty_status status = cluster_resolve(cluster, &resolved, NULL, error);
    if (status == TY_OK)
        status = cost_model_init(&resolved, price, &model, error);
    if (status == TY_OK)
        cost_of(&model, plan, step_time_s, busy_s, out);
    return status;
}

uint32_t ty_paid_gpus(const struct ty_cluster *cluster, const struct ty_price *price,
                      uint32_t n_gpus)
{
    struct ty_cluster resolved;
    struct cost_model model;
    if (cluster_resolve(cluster, &resolved, NULL, NULL) != TY_OK ||
        cost_model_init(&resolved, price, &model, NULL) != TY_OK)
        return n_gpus;
    return cost_paid_gpus(&model, n_gpus);
}

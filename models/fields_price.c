/* SPDX-License-Identifier: MIT
 *
 * The field table of price lists (trainyard_cost.h), the paths those of a price file.
 */
#include "include/trainyard_cost.h"
#include "models/fields_rows.h"

static const char *const billing_names[] = {"auto", "domain", "node", "gpu", NULL};

#define MONEY(m, P, help) DOUBLE(ty_price, m, P, NONE, 0, 1e12, help)
static const struct ty_field price_fields[] = {
    TEXT(ty_price, name, "name", "name of the list"),
    TEXT(ty_price, source, "source", "where the prices come from"),
    TEXT(ty_price, date, "date", "day of the prices, YYYY-MM-DD; must be given"),
    TEXT(ty_price, currency, "currency", "of all money here, such as USD; must be given"),
    MONEY(gpu_hour, "gpu_hour", "rent of one GPU for an hour; default: from the capital costs"),
    MONEY(gpu, "capital.gpu", "of one GPU; default 0"),
    MONEY(node, "capital.node", "of a node without GPUs and NICs; default 0"),
    MONEY(nic, "capital.nic", "of one NIC; default 0"),
    MONEY(switch_port, "capital.switch_port", "of one port of a switch; default 0"),
    MONEY(optic, "capital.optic", "of one optical transceiver; default 0"),
    DOUBLE(ty_price, ports_per_nic, "capital.ports_per_nic", RATIO, 0, 100,
           "switch ports per NIC; default 1 + 2 / oversubscription: two levels of switches"),
    DOUBLE(ty_price, optics_per_nic, "capital.optics_per_nic", RATIO, 0, 100,
           "transceivers per NIC; default 2 + 2 / oversubscription"),
    DOUBLE(ty_price, years, "capital.years", NONE, 0.01, 100,
           "years of amortisation; must be given with capital costs"),
    DOUBLE(ty_price, utilisation, "capital.utilisation", RATIO, 0.001, 1,
           "share of these years in which jobs pay; default 1"),
    MONEY(kwh, "kwh", "electricity per kWh; default 0: in the rent"),
    DOUBLE(ty_price, pue, "pue", RATIO, 1, 10,
           "power of the site over that of the machines; default 1"),
    DOUBLE(ty_price, co2_kg_per_kwh, "co2_kg_per_kwh", NONE, 0, 100,
           "kg of CO2 per kWh; default: unknown"),
    DOUBLE(ty_price, node_w, "power.node", W, 0, 1e6, "of a node beside its GPUs; default 0 W"),
    DOUBLE(ty_price, busy_ratio, "power.busy", RATIO, 0, 2,
           "of a computing GPU over its TDP, the power limit at most; default 0.95"),
    DOUBLE(ty_price, wait_ratio, "power.wait", RATIO, 0, 2,
           "the same, communicating or waiting for others; default 0.5"),
    DOUBLE(ty_price, idle_ratio, "power.idle", RATIO, 0, 2,
           "of a GPU without work over its TDP; default 0.15"),
    ENUM(ty_price, billing, "billing", billing_names,
         "what is paid for as a whole; default domain: nodes, or scale-up domains where larger"),
};

const struct ty_field *fields_price(size_t *n)
{
    *n = sizeof price_fields / sizeof price_fields[0];
    return price_fields;
}

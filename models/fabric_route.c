/* SPDX-License-Identifier: MIT
 *
 * Routes through a fabric: which links a message crosses, with how many bytes each.
 *
 *   one domain      port of the sender, port of the receiver; a mesh: the link of the pair too
 *   two nodes       [to the GPU whose NIC it is] NIC, leaf, spine, core and down again
 *
 * A GPU whose NIC has failed uses the next one of its node, over the scale-up links (PXN); with
 * rails a message to another rail changes to it before it leaves the node. ecmp splits a flow over
 * its queue pairs and hashes each (handbook 6.5); static takes uplinks by destination.
 */
#include "models/fabric.h"

#include <math.h>

/* The finaliser of MurmurHash3, of three words. source: Appleby, public domain */
static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCDu;
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53u;
    return value ^ value >> 33;
}

static bool works(const struct fabric *fabric, enum fabric_kind kind, uint32_t index)
{
    return fabric->capacity_bytes_per_s[fabric->first[kind] + 2 * index] > 0.0;
}

void fabric_add(const struct fabric *fabric, enum fabric_kind kind, uint32_t index,
                uint32_t direction, double bytes, struct fabric_path *path)
{
    const uint32_t link = fabric->first[kind] + 2 * index + direction;
    if (!(bytes > 0.0) || !isfinite(fabric->capacity_bytes_per_s[link]))
        return;
    if (!(fabric->capacity_bytes_per_s[link] > 0.0)) {
        path->cut = true;
        return;
    }
    for (uint32_t i = 0; i < path->n; i++)
        if (path->use[i].link == link) {
            path->use[i].bytes_per_work += bytes;
            return;
        }
    if (path->n < FABRIC_MAX_USES)
        path->use[path->n++] = (struct fluid_use){link, bytes};
}

/* ---- places -------------------------------------------------------------------------------- */

uint32_t fabric_home_port(const struct fabric *fabric, uint32_t gpu)
{
    return gpu / fabric->gpus * fabric->n_ports + gpu % fabric->gpus / fabric->sharers;
}

uint32_t fabric_port(const struct fabric *fabric, uint32_t gpu)
{
    const uint32_t node = gpu / fabric->gpus, own = gpu % fabric->gpus / fabric->sharers;
    for (uint32_t i = 0; i < fabric->n_ports; i++) {
        const uint32_t port = node * fabric->n_ports + (own + i) % fabric->n_ports;
        if (works(fabric, FABRIC_NIC, port * fabric->n_planes))
            return port;
    }
    return UINT32_MAX;
}

uint32_t fabric_leaf(const struct fabric *fabric, uint32_t port)
{
    const uint32_t block = port / fabric->n_ports / fabric->cluster.nodes_per_leaf;
    return fabric->cluster.rails == TY_ON ? block * fabric->n_ports + port % fabric->n_ports
                                          : block;
}

static uint32_t pod_of(const struct fabric *fabric, uint32_t leaf)
{
    return fabric->n_pods > 1 ? leaf / fabric->cluster.leaves_per_pod : 0;
}

/* The GPU a port belongs to. */
static uint32_t owner_of(const struct fabric *fabric, uint32_t port)
{
    return port / fabric->n_ports * fabric->gpus + port % fabric->n_ports * fabric->sharers;
}

static bool owns(const struct fabric *fabric, uint32_t port, uint32_t gpu)
{
    return port % fabric->n_ports == gpu % fabric->gpus / fabric->sharers;
}

/* The port a message leaves by: with rails, the one on the receiver's rail. */
static uint32_t leaving_port(const struct fabric *fabric, uint32_t from, uint32_t to)
{
    const uint32_t own = fabric_port(fabric, from), other = fabric_port(fabric, to);
    if (fabric->cluster.rails != TY_ON || own == UINT32_MAX || other == UINT32_MAX)
        return own;
    const uint32_t same_rail = own - own % fabric->n_ports + other % fabric->n_ports;
    return works(fabric, FABRIC_NIC, same_rail * fabric->n_planes) ? same_rail : own;
}

const char *ty_level_name(enum ty_fabric_level level)
{
    static const char *const names[TY_N_LEVELS] = {"none", "domain", "leaf", "spine", "core"};
    return (unsigned)level < TY_N_LEVELS ? names[level] : "";
}

enum ty_fabric_level fabric_level(const struct fabric *fabric, uint32_t a, uint32_t b)
{
    if (a == b)
        return TY_LEVEL_NONE;
    if (a / fabric->domain == b / fabric->domain)
        return TY_LEVEL_DOMAIN;
    const uint32_t port = leaving_port(fabric, a, b), other = fabric_port(fabric, b);
    if (port == UINT32_MAX || other == UINT32_MAX)
        return TY_LEVEL_CORE;
    const uint32_t leaf = fabric_leaf(fabric, port), other_leaf = fabric_leaf(fabric, other);
    if (leaf == other_leaf)
        return TY_LEVEL_LEAF;
    return pod_of(fabric, leaf) == pod_of(fabric, other_leaf) ? TY_LEVEL_SPINE : TY_LEVEL_CORE;
}

/* ---- inside a node ------------------------------------------------------------------------- */

static void add_pcie(const struct fabric *fabric, uint32_t from, uint32_t to, double bytes,
                     struct fabric_path *path)
{
    const uint32_t per_switch = fabric->cluster.gpus_per_pcie_switch;
    if (fabric->n_pcie == 0)
        return;
    const uint32_t a = from / fabric->gpus * fabric->n_pcie + from % fabric->gpus / per_switch;
    const uint32_t b = to / fabric->gpus * fabric->n_pcie + to % fabric->gpus / per_switch;
    if (a == b)
        return;
    fabric_add(fabric, FABRIC_PCIE, a, 0, bytes, path);
    fabric_add(fabric, FABRIC_PCIE, b, 1, bytes, path);
}

static void add_scaleup(const struct fabric *fabric, uint32_t from, uint32_t to, double bytes,
                        struct fabric_path *path)
{
    if (from == to)
        return;
    fabric_add(fabric, FABRIC_PORT, from, 0, bytes, path);
    fabric_add(fabric, FABRIC_PORT, to, 1, bytes, path);
    if (fabric->cluster.scaleup == TY_SCALEUP_MESH && from / fabric->domain == to / fabric->domain)
        fabric_add(fabric, FABRIC_PAIR, from * fabric->domain + to % fabric->domain, 0, bytes,
                   path);
    if (fabric->cluster.scaleup == TY_SCALEUP_PCIE)
        add_pcie(fabric, from, to, bytes, path);
}

/* Between a GPU and a NIC of its node. */
static void add_nic_side(const struct fabric *fabric, uint32_t gpu, uint32_t port,
                         uint32_t direction, double bytes, struct fabric_path *path)
{
    const uint32_t owner = owner_of(fabric, port);
    if (fabric->n_pcie > 0 && fabric->cluster.scaleup == TY_SCALEUP_PCIE)
        fabric_add(fabric, FABRIC_PORT, gpu, direction, bytes, path);
    if (owns(fabric, port, gpu)) {
        add_pcie(fabric, direction ? owner : gpu, direction ? gpu : owner, bytes, path);
        return;
    }
    add_scaleup(fabric, direction ? owner : gpu, direction ? gpu : owner, bytes, path);
}

/* ---- network ------------------------------------------------------------------------------- */

/* One path of a flow: a plane and an uplink of each switch. */
struct choice {
    uint32_t plane, uplink, pod_uplink;
};

static struct choice choose(const struct fabric *fabric, uint32_t to_port, uint64_t key,
                            uint32_t pair)
{
    uint64_t value = to_port;
    if (fabric->cluster.routing == TY_ROUTING_ECMP)
        value = mix(mix(fabric->seed ^ 0x9E3779B97F4A7C15u) + mix(key) + pair);
    const uint64_t second = fabric->cluster.routing == TY_ROUTING_ECMP ? mix(value) : value;
    return (struct choice){(uint32_t)(value % fabric->n_planes),
                           (uint32_t)(value / fabric->n_planes % fabric->n_paths),
                           (uint32_t)(second % fabric->n_pod_paths)};
}

/* Uplink `wanted` of the switch, or the next one that works. */
static uint32_t live(const struct fabric *fabric, enum fabric_kind kind, uint32_t first, uint32_t n,
                     uint32_t wanted)
{
    for (uint32_t i = 0; i < n; i++)
        if (works(fabric, kind, first + (wanted + i) % n))
            return first + (wanted + i) % n;
    return first + wanted;
}

static void add_climb(const struct fabric *fabric, uint32_t leaf, const struct choice *choice,
                      uint32_t direction, bool core, double bytes, struct fabric_path *path)
{
    const uint32_t up = (leaf * fabric->n_planes + choice->plane) * fabric->n_paths;
    fabric_add(fabric, FABRIC_LEAF, live(fabric, FABRIC_LEAF, up, fabric->n_paths, choice->uplink),
               direction, bytes, path);
    if (!core)
        return;
    const uint32_t top =
        (pod_of(fabric, leaf) * fabric->n_planes + choice->plane) * fabric->n_pod_paths;
    fabric_add(fabric, FABRIC_POD,
               live(fabric, FABRIC_POD, top, fabric->n_pod_paths, choice->pod_uplink), direction,
               bytes, path);
}

void fabric_network(const struct fabric *fabric, uint32_t from, uint32_t to, uint64_t key,
                    uint32_t direction, bool across, double bytes, struct fabric_path *path)
{
    const uint32_t out = leaving_port(fabric, from, to), in = fabric_port(fabric, to);
    if (out == UINT32_MAX || in == UINT32_MAX) {
        path->cut = true;
        return;
    }
    const uint32_t port = direction ? in : out;
    const bool core =
        across && fabric->n_pods > 1 && fabric_level(fabric, from, to) == TY_LEVEL_CORE;
    const bool ecmp = fabric->cluster.routing == TY_ROUTING_ECMP;
    const uint32_t n_pairs = ecmp && fabric->cluster.queue_pairs ? fabric->cluster.queue_pairs : 1;
    add_nic_side(fabric, direction ? to : from, port, direction, bytes, path);
    for (uint32_t pair = 0; pair < n_pairs; pair++) {
        const struct choice choice = choose(fabric, in, key, pair);
        fabric_add(fabric, FABRIC_NIC, port * fabric->n_planes + choice.plane, direction,
                   bytes / n_pairs, path);
        if (across)
            add_climb(fabric, fabric_leaf(fabric, port), &choice, direction, core, bytes / n_pairs,
                      path);
    }
}

void fabric_message(const struct fabric *fabric, uint32_t from, uint32_t to, uint64_t key,
                    double bytes, struct fabric_path *path)
{
    const enum ty_fabric_level level = fabric_level(fabric, from, to);
    if (level == TY_LEVEL_NONE)
        return;
    if (level == TY_LEVEL_DOMAIN) {
        add_scaleup(fabric, from, to, bytes, path);
        return;
    }
    for (uint32_t direction = 0; direction < 2; direction++)
        fabric_network(fabric, from, to, key, direction, level > TY_LEVEL_LEAF, bytes, path);
}

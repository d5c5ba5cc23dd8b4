/* SPDX-License-Identifier: MIT
 *
 * Inventories in JSON, told apart by their keys: `scontrol show nodes --json` and `sinfo --json` of
 * both generations, `kubectl get nodes -o json`, `lldpctl -f json` (and json0).
 */
#include "calibrate/detect.h"
#include "calibrate/micro.h"
#include "sim/error.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ------------------------------------------------------------------------------- */

/* A number, as itself, as text, or as {"set": true, "number": 8} of newer Slurm; also the largest
 * of {"minimum": .., "maximum": ..}. NAN otherwise. */
static double number_at(const struct json_at *object, const char *key)
{
    struct json_at at, set;
    bool is_set;
    if (!json_find(object, key, &at))
        return (double)NAN;
    if (json_type_of(&at) != JSON_OBJECT)
        return micro_json_number(object, key);
    if (json_find(&at, "set", &set) && json_get_bool(&set, &is_set, NULL) == TY_OK && !is_set)
        return (double)NAN;
    const double number = micro_json_number(&at, "number");
    return isnan(number) ? micro_json_number(&at, "maximum") : number;
}

/* A text, or the texts of an array joined by commas; "" otherwise. */
static void join_texts(const struct json_at *object, const char *key, char *out, size_t bytes)
{
    struct json_at at, item = {0};
    const char *text;
    *out = '\0';
    if (!json_find(object, key, &at))
        return;
    if (json_type_of(&at) == JSON_TEXT && json_get_text(&at, &text, NULL) == TY_OK)
        text_format(out, bytes, "%s", text);
    while (json_type_of(&at) == JSON_ARRAY && json_next(&at, &item))
        if (json_type_of(&item) == JSON_TEXT && json_get_text(&item, &text, NULL) == TY_OK)
            text_append(out, bytes, "%s%s", *out ? "," : "", text);
}

/* ---- Slurm -------------------------------------------------------------------------------- */

#define FIELD_BYTES 512u

/* 22.05: texts and plain numbers; 23.02 and later: state and features are arrays, numbers may be
 * objects. */
static void read_node(const struct json_at *node, struct detect *detect)
{
    char gres[FIELD_BYTES], features[FIELD_BYTES], state[FIELD_BYTES], flags[FIELD_BYTES];
    join_texts(node, "gres", gres, sizeof gres);
    join_texts(node, "features", features, sizeof features);
    join_texts(node, "state", state, sizeof state);
    join_texts(node, "state_flags", flags, sizeof flags);
    text_append(state, sizeof state, "+%s", flags);
    const struct slurm_node values = {.gres = gres,
                                      .features = features,
                                      .state = state,
                                      .memory_mib = number_at(node, "real_memory"),
                                      .sockets = number_at(node, "sockets"),
                                      .cores = number_at(node, "cores")};
    const char *name = micro_json_text(node, "name");
    slurm_machine(detect, *name ? name : micro_json_text(node, "hostname"), &values);
}

/* sinfo of 23.02 and later groups nodes that look alike: {"node": {"state": [..]}, "nodes":
 * {"nodes": ["a", "b"]}, "gres": {"total": ".."}, "memory": {"minimum": .., "maximum": ..}}. */
static void read_sinfo_group(const struct json_at *group, struct detect *detect)
{
    char gres[FIELD_BYTES] = "", features[FIELD_BYTES] = "", state[FIELD_BYTES] = "";
    struct json_at at, names, name = {0};
    if (json_find(group, "gres", &at))
        join_texts(&at, "total", gres, sizeof gres);
    if (json_find(group, "features", &at))
        join_texts(&at, "total", features, sizeof features);
    if (json_find(group, "node", &at))
        join_texts(&at, "state", state, sizeof state);
    const struct slurm_node values = {.gres = gres,
                                      .features = features,
                                      .state = state,
                                      .memory_mib = number_at(group, "memory"),
                                      .sockets = number_at(group, "sockets"),
                                      .cores = number_at(group, "cores")};
    const char *text;
    if (!json_find(group, "nodes", &at) || !json_find(&at, "nodes", &names))
        return;
    while (json_next(&names, &name))
        if (json_type_of(&name) == JSON_TEXT && json_get_text(&name, &text, NULL) == TY_OK)
            slurm_machine(detect, text, &values);
}

static ty_status slurm_json(const struct json_at *top, struct detect *detect,
                            struct ty_error *error)
{
    struct json_at list, item = {0};
    const bool groups = json_find(top, "sinfo", &list);
    if (!groups && !json_find(top, "nodes", &list))
        return json_missing(top, "nodes", error);
    while (json_next(&list, &item)) {
        if (groups)
            read_sinfo_group(&item, detect);
        else
            read_node(&item, detect);
    }
    return TY_OK;
}

/* ---- Kubernetes --------------------------------------------------------------------------- */

/* "2113929216Ki", "192G", "8": a quantity of Kubernetes. NAN when it is none. */
static double quantity(const char *text)
{
    static const char units[] = "KMGTP";
    double value;
    const size_t digits = strspn(text, "0123456789.");
    if (digits == 0 || number_parse(text, digits, &value) != digits)
        return (double)NAN;
    const char *unit = text[digits] ? strchr(units, toupper((unsigned char)text[digits])) : NULL;
    if (!unit)
        return text[digits] == '\0' ? value : (double)NAN;
    return value * pow(text[digits + 1] == 'i' ? 1024.0 : 1000.0, (double)(unit - units + 1));
}

/* Why no job can be placed on a node; a taint of its own is how GPU nodes keep others away. */
static const char *unusable(const struct json_at *spec, const struct json_at *status)
{
    struct json_at at, item = {0};
    bool cordoned;
    if (spec->node && json_find(spec, "unschedulable", &at) &&
        json_get_bool(&at, &cordoned, NULL) == TY_OK && cordoned)
        return "cordoned";
    while (spec->node && json_find(spec, "taints", &at) && json_next(&at, &item))
        if (strncmp(micro_json_text(&item, "key"), "node.kubernetes.io/", 19) == 0)
            return "tainted by the node controller";
    item = (struct json_at){0};
    while (status->node && json_find(status, "conditions", &at) && json_next(&at, &item))
        if (strcmp(micro_json_text(&item, "type"), "Ready") == 0)
            return strcmp(micro_json_text(&item, "status"), "True") == 0 ? NULL : "not ready";
    return "not ready";
}

struct labels {
    const char *product, *memory, *count, *replicas, *clique;
};

static void read_labels(const struct json_at *labels, struct labels *out)
{
    const struct {
        const char *key, **value;
    } rows[] = {{"nvidia.com/gpu.product", &out->product},
                {"amd.com/gpu.product-name", &out->product},
                {"beta.amd.com/gpu.product-name", &out->product},
                {"nvidia.com/gpu.memory", &out->memory},
                {"nvidia.com/gpu.count", &out->count},
                {"nvidia.com/gpu.replicas", &out->replicas},
                {"nvidia.com/gpu.clique", &out->clique}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *text = micro_json_text(labels, rows[i].key);
        if (*text)
            *rows[i].value = text;
    }
}

/* GPUs of a node: the label where there is one, else what pods can ask for, which time slicing
 * multiplies. */
static double gpu_count(const struct json_at *capacity, const struct labels *labels)
{
    const double replicas = fmax(1.0, quantity(labels->replicas));
    double n = quantity(labels->count);
    if (!isnan(n) || !capacity->node)
        return n;
    n = quantity(micro_json_text(capacity, "nvidia.com/gpu")) / replicas;
    return isnan(n) ? quantity(micro_json_text(capacity, "amd.com/gpu")) : n;
}

static void read_kubernetes_node(const struct json_at *node, struct detect *detect)
{
    struct json_at metadata = {0}, spec = {0}, status = {0}, capacity = {0}, at;
    struct labels labels = {"", "", "", "", ""};
    if (!json_find(node, "metadata", &metadata))
        return;
    if (json_find(&metadata, "labels", &at))
        read_labels(&at, &labels);
    if (!json_find(node, "spec", &spec))
        spec.node = NULL;
    if (!json_find(node, "status", &status))
        status.node = NULL;
    if (!status.node || !json_find(&status, "capacity", &capacity))
        capacity.node = NULL;
    struct machine *m = detect_machine(detect, micro_json_text(&metadata, "name"));
    const double n = gpu_count(&capacity, &labels);
    m->fact[MACHINE_GPUS] = isnan(n) ? 0.0 : n;
    if (capacity.node)
        m->fact[MACHINE_HOST_MEMORY] = quantity(micro_json_text(&capacity, "memory"));
    m->unusable = unusable(&spec, &status);
    if (*labels.product) {
        m->gpu = detect_copy(detect, labels.product, 96);
        m->gpus = gpus_by_name(labels.product, quantity(labels.memory) * 1048576.0);
        if (gpu_is_slice(labels.product))
            m->unusable = "MIG slices";
    }
    if (*labels.clique && strcmp(labels.clique, ".") != 0)
        m->clique = detect_copy(detect, labels.clique, 128);
}

static ty_status kubernetes(const struct json_at *top, struct detect *detect,
                            struct ty_error *error)
{
    struct json_at items, item = {0};
    if (strcmp(micro_json_text(top, "kind"), "Node") == 0)
        read_kubernetes_node(top, detect);
    else if (!json_find(top, "items", &items))
        return json_missing(top, "items", error);
    else
        while (json_next(&items, &item))
            if (strcmp(micro_json_text(&item, "kind"), "Node") == 0 ||
                strcmp(micro_json_text(top, "kind"), "NodeList") == 0)
                read_kubernetes_node(&item, detect);
    return TY_OK;
}

/* ---- LLDP --------------------------------------------------------------------------------- */

#define NEIGHBOURS_MAX 1024u

struct neighbour {
    char interface[64], chassis[128];
    double bytes_per_s; /* 0: not said */
};

struct neighbours {
    uint32_t n;
    struct neighbour at[NEIGHBOURS_MAX];
};

/* The value of a key; of an array (json0 wraps every value in one) its first item. hop: storage,
 * since a json_at points to its parent. NULL when there is none. */
static const struct json_at *inside(const struct json_at *object, const char *key,
                                    struct json_at hop[2])
{
    if (!object || !json_find(object, key, &hop[0]))
        return NULL;
    if (json_type_of(&hop[0]) != JSON_ARRAY)
        return &hop[0];
    hop[1] = (struct json_at){0};
    return json_next(&hop[0], &hop[1]) ? &hop[1] : NULL;
}

/* "leaf1", or [{"value": "leaf1"}]. */
static const char *text_inside(const struct json_at *object, const char *key)
{
    struct json_at hop[2];
    const struct json_at *at = inside(object, key, hop);
    const char *text = "";
    if (!at)
        return "";
    if (json_type_of(at) == JSON_TEXT)
        return json_get_text(at, &text, NULL) == TY_OK ? text : "";
    return micro_json_text(at, "value");
}

/* {"leaf1": {"id": ..}}, or {"id": .., "name": ..}, or the identity alone. */
static void name_chassis(const struct json_at *chassis, char *out, size_t bytes)
{
    struct json_at member = {0}, hop[2];
    const char *name = text_inside(chassis, "name");
    if (!*name)
        name = micro_json_text(inside(chassis, "id", hop) ? inside(chassis, "id", hop) : chassis,
                               "value");
    if (!*name && json_next(chassis, &member))
        name = json_key(&member);
    text_format(out, bytes, "%s", name);
}

/* Rate of an 802.3 type, "400GBASE-DR4", "10GigBaseX", "1000BaseTFD", bytes/s; 0 for none. */
static double type_bytes_per_s(const char *text)
{
    const size_t digits = strspn(text, "0123456789.");
    double value;
    if (digits == 0 || number_parse(text, digits, &value) != digits)
        return 0.0;
    const char unit = (char)toupper((unsigned char)text[digits]);
    return unit == 'G' ? value * 1e9 / 8.0 : unit == 'B' ? value * 1e6 / 8.0 : 0.0;
}

static void read_neighbour(const struct json_at *interface, const char *name,
                           struct neighbours *all)
{
    struct json_at hop[2], negotiation_hop[2];
    const struct json_at *chassis = inside(interface, "chassis", hop);
    struct neighbour *to = &all->at[all->n];
    for (uint32_t i = 0; i < all->n; i++)
        if (strcmp(all->at[i].interface, name) == 0)
            return; /* a second neighbour on the same cable speaks through a bridge */
    if (!chassis || all->n == NEIGHBOURS_MAX)
        return;
    text_format(to->interface, sizeof to->interface, "%s", name);
    name_chassis(chassis, to->chassis, sizeof to->chassis);
    to->bytes_per_s = type_bytes_per_s(text_inside(
        inside(inside(interface, "port", hop), "auto-negotiation", negotiation_hop), "current"));
    all->n++;
}

/* An interface, {"eth0": {..}} or {"name": "eth0", ..}. */
static void read_interfaces(const struct json_at *at, struct neighbours *all)
{
    struct json_at member = {0}, chassis;
    if (json_find(at, "chassis", &chassis)) {
        read_neighbour(at, micro_json_text(at, "name"), all);
        return;
    }
    while (json_type_of(at) == JSON_OBJECT && json_next(at, &member))
        read_neighbour(&member, json_key(&member), all);
}

static void add_neighbours(const struct neighbours *all, struct detect *detect)
{
    double fastest = 0.0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->n; i++)
        fastest = fmax(fastest, all->at[i].bytes_per_s);
    for (uint32_t i = 0; i < all->n; i++) {
        if (all->at[i].bytes_per_s < fastest)
            continue;
        n++;
        detect_link(detect, LINK_LLDP, all->at[i].chassis, detect->paths[detect->file]);
    }
    detect_add(detect, "network.nics_per_node", n, TY_TRUST_RULE, 0);
    detect_add(detect, "network.fabric", TY_FABRIC_ROCE, TY_TRUST_HINT, 0);
    if (fastest > 0.0)
        detect_add(detect, "network.nic", fastest, TY_TRUST_READ, 0);
}

static ty_status lldp_neighbours(const struct json_at *top, struct detect *detect,
                                 struct ty_error *error)
{
    struct json_at hop[2], interface, item = {0};
    const struct json_at *lldp = inside(top, "lldp", hop);
    if (!lldp || !json_find(lldp, "interface", &interface))
        return error_set(error, TY_ERR_INPUT, top->origin, "is LLDP output without a neighbour");
    struct neighbours *all = calloc(1, sizeof *all);
    if (!all)
        return error_set(error, TY_ERR_NOMEM, top->origin, "no memory to read it");
    if (json_type_of(&interface) == JSON_OBJECT)
        read_interfaces(&interface, all);
    while (json_type_of(&interface) == JSON_ARRAY && json_next(&interface, &item))
        read_interfaces(&item, all);
    ty_status status = TY_OK;
    if (all->n)
        add_neighbours(all, detect);
    else
        status = error_set(error, TY_ERR_INPUT, top->origin, "is LLDP output without a neighbour");
    free(all);
    return status;
}

/* ---- which -------------------------------------------------------------------------------- */

static ty_status dispatch(const struct json_at *top, struct detect *detect, struct ty_error *error)
{
    struct json_at at;
    if (json_find(top, "lldp", &at))
        return lldp_neighbours(top, detect, error);
    if (json_find(top, "sinfo", &at) || json_find(top, "nodes", &at))
        return slurm_json(top, detect, error);
    if (json_find(top, "items", &at) || strcmp(micro_json_text(top, "kind"), "Node") == 0)
        return kubernetes(top, detect, error);
    return error_set(error, TY_ERR_INPUT, top->origin,
                     "is JSON that names no machines: neither Slurm nodes, Kubernetes nodes nor "
                     "LLDP neighbours");
}

ty_status detect_read_json(struct import_file *file, struct detect *detect, struct ty_error *error)
{
    struct json_document document = {0};
    ty_status status = json_parse(file->text, file->bytes, file->path, &document, error);
    if (status == TY_OK)
        status = dispatch(&document.top, detect, error);
    json_free(&document);
    return status;
}

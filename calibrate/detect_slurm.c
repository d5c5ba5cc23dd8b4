/* SPDX-License-Identifier: MIT
 *
 * Slurm's text: `scontrol show node` (one or many lines a node, also NodeName lines of slurm.conf),
 * `sinfo` with a header, topology.conf and `scontrol show topology`, topology.yaml.
 * Cores are sockets times cores of a socket, whatever threads Slurm counts as CPUs; "MB" are MiB; a
 * node that sinfo prints once per partition is one node.
 */
#include "calibrate/detect.h"
#include "calibrate/micro.h"
#include "sim/error.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- shared with JSON --------------------------------------------------------------------- */

uint32_t slurm_gres(const char *gres, char *type, size_t bytes)
{
    *type = '\0';
    for (const char *at = gres; *at;) {
        const size_t length = strcspn(at, ",(");
        if (strncmp(at, "gpu", 3) == 0 && (at[3] == ':' || length == 3)) {
            const char *last = at + 3; /* the colon before the number */
            for (const char *c = at + 3; c < at + length; c++)
                last = *c == ':' ? c : last;
            const size_t digits = length > 4 ? strspn(last + 1, "0123456789") : 0;
            const bool counted = digits > 0 && last + 1 + digits == at + length && digits < 6;
            const char *end = counted ? last : at + length;
            if (end > at + 4)
                text_format(type, bytes, "%.*s", (int)((end - at - 4) & 0xff), at + 4);
            return counted ? (uint32_t)strtoul(last + 1, NULL, 10) : 1;
        }
        at += length;
        if (*at == '(')
            at += strcspn(at, ")");
        at += strcspn(at, ",");
        at += *at == ',';
    }
    return 0;
}

const char *slurm_unusable(const char *state)
{
    static const char *const beginnings[] = {
        "down",      "drain", "drng",  "fail",       "maint",    "futur", "unk",
        "boot_fail", "inval", "error", "no_respond", "not_resp", NULL};
    for (const char *at = state; *at;) {
        const size_t length = strcspn(at, "+, ");
        for (const char *const *bad = beginnings; *bad; bad++)
            if (strncasecmp(at, *bad, strlen(*bad)) == 0)
                return *bad;
        if (length > 0 && at[length - 1] == '*')
            return "no_respond";
        at += length;
        at += *at != '\0';
    }
    return NULL;
}

/* "ib400" and "roce400" among the features: Gb/s per NIC. */
static void read_features(const char *features, struct machine *machine)
{
    static const struct {
        const char *name;
        enum ty_fabric fabric;
    } kinds[] = {{"ib", TY_FABRIC_INFINIBAND}, {"roce", TY_FABRIC_ROCE}};
    for (const char *at = features; *at; at += strcspn(at, ","), at += *at == ',')
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            const size_t length = strlen(kinds[i].name);
            const char *digits = at + length;
            const size_t n = strncmp(at, kinds[i].name, length) == 0 ? strcspn(digits, ",") : 0;
            if (n < 2 || n > 4 || strspn(digits, "0123456789") < n)
                continue;
            machine->fact[MACHINE_NIC_HINT] = strtod(digits, NULL) * 1e9 / 8.0;
            machine->fact[MACHINE_FABRIC_HINT] = kinds[i].fabric;
        }
}

void slurm_machine(struct detect *detect, const char *name, const struct slurm_node *node)
{
    char type[96];
    const uint32_t n_gpus = slurm_gres(node->gres ? node->gres : "", type, sizeof type);
    struct machine *m = detect_machine(detect, name);
    if (node->gres)
        m->fact[MACHINE_GPUS] = n_gpus;
    m->fact[MACHINE_HOST_MEMORY] = node->memory_mib * 1048576.0;
    m->fact[MACHINE_CORES] = node->sockets * node->cores;
    m->unusable = slurm_unusable(node->state);
    if (*type) {
        m->gpu = detect_copy(detect, type, sizeof type);
        m->gpus = gpus_by_name(type, (double)NAN);
        if (gpu_is_slice(type))
            m->unusable = "MIG slices";
    }
    read_features(node->features, m);
}

/* ---- KEY=VALUE ---------------------------------------------------------------------------- */

/* The value of KEY in a text of "KEY=VALUE" parted by blanks, up to the next blank; "" without. */
static void value_of(const char *text, const char *key, char *out, size_t bytes)
{
    const size_t length = strlen(key);
    *out = '\0';
    for (const char *at = text; *at; at += strcspn(at, " \t"), at += strspn(at, " \t"))
        if (strncasecmp(at, key, length) == 0 && at[length] == '=') {
            micro_copy_word(at + length + 1, " \t", out, bytes);
            return;
        }
}

static double number_of(const char *text, const char *key)
{
    char word[32];
    double value;
    value_of(text, key, word, sizeof word);
    return micro_number(word, &value) && value > 0.0 ? value : (double)NAN;
}

struct named_node {
    struct detect *detect;
    const struct slurm_node *node;
};

static bool add_named(void *user, const char *name)
{
    const struct named_node *named = user;
    slurm_machine(named->detect, name, named->node);
    return !named->detect->too_many;
}

static ty_status refuse_list(const char *path, uint32_t line, struct ty_error *error)
{
    char where[sizeof error->where];
    text_format(where, sizeof where, "%s:%u", path, line);
    return error_set(error, TY_ERR_INPUT, where, "holds a broken or endless list of hosts");
}

#define FIELD_BYTES 512u

/* The fields of one node, whose lines are collected into one text. */
static ty_status add_node(struct detect *detect, const char *text, uint32_t line,
                          struct ty_error *error)
{
    char names[8192], gres[FIELD_BYTES], features[FIELD_BYTES], state[FIELD_BYTES];
    value_of(text, "NodeName", names, sizeof names);
    value_of(text, "Gres", gres, sizeof gres);
    value_of(text, "AvailableFeatures", features, sizeof features);
    value_of(text, "State", state, sizeof state);
    const struct slurm_node node = {.gres = gres,
                                    .features = features,
                                    .state = state,
                                    .memory_mib = number_of(text, "RealMemory"),
                                    .sockets = number_of(text, "Sockets"),
                                    .cores = number_of(text, "CoresPerSocket")};
    struct named_node named = {detect, &node};
    return hostlist_each(names, add_named, &named)
               ? TY_OK
               : refuse_list(detect->paths[detect->file], line, error);
}

ty_status detect_read_scontrol(struct import_file *file, struct detect *detect,
                               struct ty_error *error)
{
    struct micro_lines lines = {.at = file->text};
    static const char key[] = "NodeName=";
    char node[16384] = "";
    uint32_t first = 0;
    ty_status status = TY_OK;
    for (char *line; status == TY_OK && (line = micro_next_line(&lines));) {
        line += strspn(line, " \t");
        if (*line == '#')
            continue;
        const bool begins = strncmp(line, key, sizeof key - 1) == 0;
        if (begins && *node)
            status = add_node(detect, node, first, error);
        if (begins) {
            *node = '\0';
            first = lines.line;
        }
        if (first && (begins || *node))
            text_append(node, sizeof node, "%s ", line);
        if (!*line && *node) { /* a node ends at a blank line */
            status = status == TY_OK ? add_node(detect, node, first, error) : status;
            *node = '\0';
        }
    }
    if (status == TY_OK && *node)
        status = add_node(detect, node, first, error);
    return status;
}

/* ---- sinfo -------------------------------------------------------------------------------- */

#define COLUMNS_MAX 64u

enum column {
    SINFO_NODELIST,
    SINFO_MEMORY,
    SINFO_GRES,
    SINFO_FEATURES,
    SINFO_STATE,
    SINFO_SOCKETS,
    SINFO_CORES,
    SINFO_SCT,
    N_SINFO_COLUMNS
};

/* Cuts at bars where the header has one, else at blanks. */
static uint32_t cut_row(char *line, bool bars, char *cell[COLUMNS_MAX])
{
    if (!bars) {
        const uint32_t n = micro_words(line, false, cell, COLUMNS_MAX);
        return n < COLUMNS_MAX ? n : COLUMNS_MAX;
    }
    uint32_t n = 0;
    for (char *at = line; n < COLUMNS_MAX;) {
        cell[n++] = at;
        at += strcspn(at, "|");
        if (!*at)
            break;
        *at++ = '\0';
    }
    return n;
}

static void find_columns(char *cell[], uint32_t n, int column[N_SINFO_COLUMNS])
{
    static const char *const names[N_SINFO_COLUMNS] = {"NODELIST", "MEMORY",  "GRES",  "AVAIL_FE",
                                                       "STATE",    "SOCKETS", "CORES", "S:C:T"};
    for (int i = 0; i < N_SINFO_COLUMNS; i++) {
        column[i] = -1;
        for (uint32_t j = 0; j < n; j++)
            if (column[i] < 0 && strncmp(cell[j], names[i], strlen(names[i])) == 0)
                column[i] = (int)j;
    }
}

static const char *cell_of(char *cell[], const int column[], enum column which)
{
    return column[which] < 0 ? "" : cell[column[which]];
}

static double positive(const char *word)
{
    double value;
    return micro_number(word, &value) && value > 0.0 ? value : (double)NAN;
}

static ty_status read_sinfo_row(struct detect *detect, char *cell[], const int column[],
                                uint32_t line, struct ty_error *error)
{
    const char *sct = cell_of(cell, column, SINFO_SCT);
    struct slurm_node node = {.gres =
                                  column[SINFO_GRES] < 0 ? NULL : cell_of(cell, column, SINFO_GRES),
                              .features = cell_of(cell, column, SINFO_FEATURES),
                              .state = cell_of(cell, column, SINFO_STATE),
                              .memory_mib = positive(cell_of(cell, column, SINFO_MEMORY)),
                              .sockets = positive(cell_of(cell, column, SINFO_SOCKETS)),
                              .cores = positive(cell_of(cell, column, SINFO_CORES))};
    if (isdigit((unsigned char)*sct)) { /* "2:48:2" */
        char *colon;
        node.sockets = strtod(sct, &colon);
        node.cores = *colon == ':' ? strtod(colon + 1, NULL) : (double)NAN;
    }
    struct named_node named = {detect, &node};
    return hostlist_each(cell_of(cell, column, SINFO_NODELIST), add_named, &named)
               ? TY_OK
               : refuse_list(detect->paths[detect->file], line, error);
}

ty_status detect_read_sinfo(struct import_file *file, struct detect *detect, struct ty_error *error)
{
    struct micro_lines lines = {.at = file->text};
    char *cell[COLUMNS_MAX];
    int column[N_SINFO_COLUMNS];
    bool bars = false;
    uint32_t n = 0;
    ty_status status = TY_OK;
    for (char *line; status == TY_OK && (line = micro_next_line(&lines));) {
        if (n == 0 && strstr(line, "NODELIST")) {
            bars = strchr(line, '|') != NULL;
            n = cut_row(line, bars, cell);
            find_columns(cell, n, column);
        } else if (n > 0 && *line) {
            const uint32_t has = cut_row(line, bars, cell);
            char where[sizeof error->where];
            text_format(where, sizeof where, "%s:%u", file->path, lines.line);
            status = has >= n ? read_sinfo_row(detect, cell, column, lines.line, error)
                              : error_set(error, TY_ERR_INPUT, where,
                                          "has %u cells, the header has %u", has, n);
        }
    }
    return status;
}

/* ---- topology ----------------------------------------------------------------------------- */

struct leaf {
    struct detect *detect;
    enum link_kind kind;
    char name[128];
};

static bool add_leaf_machine(void *user, const char *machine)
{
    const struct leaf *leaf = user;
    detect_link(leaf->detect, leaf->kind, leaf->name, machine);
    return !leaf->detect->too_many;
}

/* topology.conf: "SwitchName=leaf1 Nodes=..", "BlockName=b1 Nodes=..". A switch over switches is
 * no leaf, though scontrol prints its nodes too. */
ty_status detect_read_switches(struct import_file *file, struct detect *detect,
                               struct ty_error *error)
{
    struct micro_lines lines = {.at = file->text};
    for (char *line; (line = micro_next_line(&lines));) {
        struct leaf leaf = {.detect = detect, .kind = LINK_TREE};
        char below[16];
        line[strcspn(line, "#")] = '\0';
        line += strspn(line, " \t");
        value_of(line, "SwitchName", leaf.name, sizeof leaf.name);
        if (!*leaf.name) {
            value_of(line, "BlockName", leaf.name, sizeof leaf.name);
            leaf.kind = LINK_BLOCK;
        }
        value_of(line, "Switches", below, sizeof below);
        char *nodes = strstr(line, "Nodes=");
        if (!*leaf.name || *below || !nodes)
            continue;
        nodes += 6;
        nodes[strcspn(nodes, " \t")] = '\0';
        if (!hostlist_each(nodes, add_leaf_machine, &leaf))
            return refuse_list(file->path, lines.line, error);
    }
    return TY_OK;
}

/* "key: value" of a line of YAML, "- " before it skipped; quotes go. */
static bool yaml_pair(char *line, char **key, char **value)
{
    line += strspn(line, " \t");
    if (*line == '-')
        line += 1 + strspn(line + 1, " \t");
    char *colon = strchr(line, ':');
    if (!colon)
        return false;
    *colon = '\0';
    *key = line;
    *value = colon + 1 + strspn(colon + 1, " \t\"'");
    (*value)[strcspn(*value, "\"'#")] = '\0';
    for (size_t n = strlen(*value); n > 0 && strchr(" \t", (*value)[n - 1]); n--)
        (*value)[n - 1] = '\0';
    return true;
}

/* topology.yaml: a list of topologies; the first with cluster_default: true counts, without one the
 * first. Each is a tree (switches with nodes or children) or blocks. */
ty_status detect_read_yaml(struct import_file *file, struct detect *detect, struct ty_error *error)
{
    struct micro_lines lines = {.at = file->text};
    struct leaf leaf = {.detect = detect};
    const size_t base = detect->n_links;
    size_t current = base, first_end = SIZE_MAX, n_topologies = 0; /* places in the links */
    bool is_default = false;
    for (char *line, *key, *value; (line = micro_next_line(&lines));) {
        if (line[strspn(line, " \t")] == '#' || !yaml_pair(line, &key, &value))
            continue;
        if (strcmp(key, "topology") == 0) {
            if (is_default)
                break;
            first_end = ++n_topologies == 2 ? detect->n_links : first_end;
            current = detect->n_links;
        } else if (strcmp(key, "cluster_default") == 0) {
            is_default = strcmp(value, "true") == 0;
        } else if (strcmp(key, "switch") == 0 || strcmp(key, "block") == 0) {
            leaf.kind = *key == 's' ? LINK_TREE : LINK_BLOCK;
            text_format(leaf.name, sizeof leaf.name, "%s", value);
        } else if (strcmp(key, "nodes") == 0 && *leaf.name &&
                   !hostlist_each(value, add_leaf_machine, &leaf)) {
            return refuse_list(file->path, lines.line, error);
        }
    }
    if (is_default && current > base) {
        memmove(detect->links + base, detect->links + current,
                (detect->n_links - current) * sizeof *detect->links);
        detect->n_links -= current - base;
    } else if (!is_default && first_end < detect->n_links) {
        detect->n_links = first_end;
    }
    return TY_OK;
}

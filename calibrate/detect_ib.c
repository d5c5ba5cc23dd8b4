/* SPDX-License-Identifier: MIT
 *
 * ibnetdiscover: the blocks of switches, each port a line
 *   [1]  "H-0002c90300001000"[1](2c90300001001)  # "host mlx5_0" lid 10 4xNDR
 * A switch with hosts is a leaf. Oversubscription of a leaf = rate of its ports to hosts over that
 * of its ports to switches; the worst leaf counts. Ports of switches that aggregate (SHARP) look
 * like hosts and are none.
 */
#include "calibrate/detect.h"
#include "calibrate/micro.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Data rate of four lanes, Gb/s. source: InfiniBand Trade Association, roadmap */
static double width_speed_bytes_per_s(const char *word)
{
    static const struct {
        const char *name;
        double gb_per_s; /* of one lane */
    } speeds[] = {{"SDR", 2.0},  {"DDR", 4.0},  {"QDR", 8.0},   {"FDR10", 10.0}, {"FDR", 13.64},
                  {"EDR", 25.0}, {"HDR", 50.0}, {"NDR", 100.0}, {"XDR", 200.0}};
    const size_t digits = strspn(word, "0123456789");
    double lanes;
    if (digits == 0 || digits > 2 || word[digits] != 'x' ||
        number_parse(word, digits, &lanes) != digits)
        return (double)NAN;
    for (size_t i = 0; i < sizeof speeds / sizeof speeds[0]; i++)
        if (strcmp(word + digits + 1, speeds[i].name) == 0)
            return lanes * speeds[i].gb_per_s * 1e9 / 8.0;
    return (double)NAN;
}

struct port {
    const char *host; /* copy */
    double bytes_per_s;
};

struct fabric {
    struct detect *detect;
    char leaf[64]; /* switch being read; "" outside */
    double down, up, worst;
    uint32_t worst_line, line, n_leaves;
    struct port *ports; /* to hosts */
    size_t n_ports, held;
};

static void end_switch(struct fabric *f)
{
    if (f->down > 0.0) {
        f->n_leaves++;
        const double ratio = f->up > 0.0 ? fmax(1.0, f->down / f->up) : 0.0;
        if (ratio > f->worst) {
            f->worst = ratio;
            f->worst_line = f->line;
        }
    }
    *f->leaf = '\0';
    f->down = f->up = 0.0;
}

/* The text between the first pair of quotes behind `at`; returns what follows it, NULL without. */
static char *quoted(char *at, char *out, size_t bytes)
{
    char *open = strchr(at, '"');
    char *close = open ? strchr(open + 1, '"') : NULL;
    if (!close)
        return NULL;
    text_format(out, bytes, "%.*s", (int)((close - open - 1) & 0xfff), open + 1);
    return close + 1;
}

static void add_port(struct fabric *f, const char *description, double bytes_per_s)
{
    char host[128];
    void *ports = f->ports;
    if (strstr(description, "Aggregation"))
        return;
    f->down += bytes_per_s;
    micro_copy_word(description, " /", host, sizeof host);
    if (!*host || f->n_ports >= MACHINES_MAX)
        return;
    if (!array_grow(&f->detect->arena.allocator, &ports, &f->held, f->n_ports + 1,
                    sizeof *f->ports)) {
        f->detect->out_of_memory = true;
        return;
    }
    f->ports = ports;
    f->ports[f->n_ports++] = (struct port){detect_copy(f->detect, host, sizeof host), bytes_per_s};
    detect_link(f->detect, LINK_IB, f->leaf, host);
}

static void read_port(struct fabric *f, char *line)
{
    char peer[64], description[128];
    char *at = quoted(line, peer, sizeof peer);
    char *hash = at ? strchr(at, '#') : NULL;
    const char *behind = hash ? quoted(hash, description, sizeof description) : NULL;
    if (!behind)
        return;
    const char *rate = strrchr(behind, ' ');
    const double bytes_per_s = rate ? width_speed_bytes_per_s(rate + 1) : (double)NAN;
    if (!(bytes_per_s > 0.0))
        return;
    if (*peer == 'S')
        f->up += bytes_per_s;
    else if (*peer == 'H')
        add_port(f, description, bytes_per_s);
}

static int by_host(const void *a, const void *b)
{
    const struct port *x = a, *y = b;
    return strcmp(x->host, y->host);
}

/* One machine per host, with its NICs of the fastest rate. */
static void add_hosts(struct fabric *f)
{
    if (f->n_ports)
        qsort(f->ports, f->n_ports, sizeof *f->ports, by_host);
    for (size_t i = 0, end; i < f->n_ports; i = end) {
        double fastest = 0.0, n = 0.0;
        for (end = i; end < f->n_ports && strcmp(f->ports[end].host, f->ports[i].host) == 0; end++)
            fastest = fmax(fastest, f->ports[end].bytes_per_s);
        for (size_t j = i; j < end; j++)
            n += f->ports[j].bytes_per_s >= fastest;
        struct machine *m = detect_machine(f->detect, f->ports[i].host);
        m->fact[MACHINE_NICS] = n;
        m->fact[MACHINE_NIC] = fastest;
    }
}

ty_status detect_read_ibnetdiscover(struct import_file *file, struct detect *detect,
                                    struct ty_error *error)
{
    struct fabric f = {.detect = detect};
    struct micro_lines lines = {.at = file->text};
    for (char *line; (line = micro_next_line(&lines));) {
        if (strncmp(line, "Switch", 6) == 0) {
            end_switch(&f);
            quoted(line, f.leaf, sizeof f.leaf);
            f.line = lines.line;
        } else if (*line == '[' && *f.leaf) {
            read_port(&f, line);
        } else if (*line != '[' && *line != '#') {
            end_switch(&f);
        }
    }
    end_switch(&f);
    ty_status status = TY_OK;
    if (f.n_ports == 0)
        status = error_set(error, TY_ERR_INPUT, file->path, "has no switch with a host");
    else {
        add_hosts(&f);
        detect_add(detect, "network.fabric", TY_FABRIC_INFINIBAND, TY_TRUST_READ, 0);
        if (f.worst > 0.0)
            detect_add(detect, "network.oversubscription", f.worst, TY_TRUST_READ, f.worst_line);
        else if (f.n_leaves == 1)
            detect_add(detect, "network.oversubscription", 1.0, TY_TRUST_RULE, 0);
    }
    array_free(&detect->arena.allocator, f.ports, f.held, sizeof *f.ports);
    return status;
}

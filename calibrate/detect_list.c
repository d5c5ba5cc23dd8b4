/* SPDX-License-Identifier: MIT
 * What readers leave: growing lists of findings, machines, links and remarks; lists of hosts. */
#include "calibrate/detect.h"
#include "sim/error.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void detect_init(struct detect *detect, const char *const *paths)
{
    *detect = (struct detect){.paths = paths};
    arena_init(&detect->arena, NULL);
}

static void give_back(struct detect *detect, void *array, size_t held, size_t size)
{
    array_free(&detect->arena.allocator, array, held, size);
}

void detect_free(struct detect *d)
{
    give_back(d, d->findings, d->findings_held, sizeof *d->findings);
    give_back(d, d->machines, d->machines_held, sizeof *d->machines);
    give_back(d, d->links, d->links_held, sizeof *d->links);
    give_back(d, d->remarks, d->remarks_held, sizeof *d->remarks);
    arena_destroy(&d->arena);
}

const char *detect_copy(struct detect *detect, const char *text, size_t bytes)
{
    size_t length = strlen(text);
    if (length >= bytes)
        length = bytes - 1;
    char *copy = arena_get(&detect->arena, length + 1, 1);
    if (!copy) {
        detect->out_of_memory = true;
        return "";
    }
    memcpy(copy, text, length);
    return copy;
}

const char *detect_place(struct detect *detect, uint32_t line)
{
    char place[320];
    const char *path = detect->paths[detect->file];
    if (line)
        text_format(place, sizeof place, "%s:%u", path, line);
    else
        text_format(place, sizeof place, "%s", path);
    return detect_copy(detect, place, sizeof place);
}

/* Makes room for one more element; false when there is no memory. */
static bool grow(struct detect *detect, void **array, size_t *held, size_t n, size_t size)
{
    const bool grown = array_grow(&detect->arena.allocator, array, held, n + 1, size);
    detect->out_of_memory |= !grown;
    return grown;
}

void detect_put(struct detect *d, const struct finding *finding)
{
    void *array = d->findings;
    if (!grow(d, &array, &d->findings_held, d->n_findings, sizeof *d->findings))
        return;
    d->findings = array;
    d->findings[d->n_findings++] = *finding;
}

void detect_add(struct detect *detect, const char *path, double value, enum ty_trust trust,
                uint32_t line)
{
    if (!(value >= 0.0) || !isfinite(value))
        return;
    detect_put(detect, &(struct finding){.path = path,
                                         .text = "",
                                         .value = value,
                                         .place = detect_place(detect, line),
                                         .trust = trust});
}

void detect_add_gpu(struct detect *detect, const char *name, double memory_bytes, uint32_t line)
{
    detect->gpus = gpus_by_name(name, memory_bytes);
    detect_put(detect, &(struct finding){.path = "gpu",
                                         .text = detect_copy(detect, name, 96),
                                         .place = detect_place(detect, line),
                                         .trust = TY_TRUST_READ,
                                         .gpus = detect->gpus});
}

struct machine *detect_machine(struct detect *d, const char *name)
{
    struct machine *machine = &d->spare;
    void *array = d->machines;
    d->too_many |= d->n_machines >= MACHINES_MAX;
    if (!d->too_many && grow(d, &array, &d->machines_held, d->n_machines, sizeof *d->machines)) {
        d->machines = array;
        machine = &d->machines[d->n_machines++];
    }
    *machine = (struct machine){.name = detect_copy(d, name, 128), .file = d->file};
    for (int i = 0; i < N_MACHINE_FACTS; i++)
        machine->fact[i] = (double)NAN;
    return machine;
}

void detect_link(struct detect *d, enum link_kind kind, const char *leaf, const char *machine)
{
    void *array = d->links;
    d->too_many |= d->n_links >= MACHINES_MAX;
    if (d->too_many || !grow(d, &array, &d->links_held, d->n_links, sizeof *d->links))
        return;
    d->links = array;
    d->links[d->n_links++] = (struct link){.leaf = detect_copy(d, leaf, 128),
                                           .machine = detect_copy(d, machine, 256),
                                           .kind = kind,
                                           .file = d->file};
}

void detect_remark(struct detect *d, enum ty_remark kind, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    void *array = d->remarks;
    if (!grow(d, &array, &d->remarks_held, d->n_remarks, sizeof *d->remarks))
        return;
    d->remarks = array;
    d->remarks[d->n_remarks++] = (struct remark){kind, detect_copy(d, text, sizeof text), 0};
}

/* ---- lists of hosts ----------------------------------------------------------------------- */

struct hosts {
    host_fn *fn;
    void *user;
};

#define HOST_BYTES 256u

/* Appends every expansion of the `bytes` of `at` to out[0 .. used) and hands each name over. */
static bool expand(struct hosts *hosts, const char *at, size_t bytes, char *out, size_t used);

/* "001-004,007" of one pair of brackets, then what follows them. */
static bool expand_ranges(struct hosts *hosts, const char *ranges, const char *rest, size_t n_rest,
                          char *out, size_t used)
{
    for (const char *at = ranges; *at != ']'; at += *at == ',') {
        const size_t digits = strspn(at, "0123456789");
        if (digits == 0 || digits > 9 || used + digits >= HOST_BYTES)
            return false;
        const unsigned long first = strtoul(at, NULL, 10);
        unsigned long last = first;
        at += digits;
        if (*at == '-') {
            const size_t more = strspn(at + 1, "0123456789");
            if (more == 0 || more > 9)
                return false;
            last = strtoul(at + 1, NULL, 10);
            at += 1 + more;
        }
        if ((*at != ',' && *at != ']') || last < first || last - first >= MACHINES_MAX)
            return false;
        for (unsigned long i = first; i <= last; i++) {
            char number[16];
            text_format(number, sizeof number, "%0*lu", (int)digits, i);
            const size_t length = strlen(number);
            if (used + length >= HOST_BYTES)
                return false;
            memcpy(out + used, number, length);
            if (!expand(hosts, rest, n_rest, out, used + length))
                return false;
        }
    }
    return true;
}

static bool expand(struct hosts *hosts, const char *at, size_t bytes, char *out, size_t used)
{
    const char *open = memchr(at, '[', bytes);
    const size_t plain = open ? (size_t)(open - at) : bytes;
    if (used + plain >= HOST_BYTES)
        return false;
    memcpy(out + used, at, plain);
    used += plain;
    if (open) {
        const char *close = memchr(open, ']', bytes - plain);
        return close && expand_ranges(hosts, open + 1, close + 1, bytes - (size_t)(close + 1 - at),
                                      out, used);
    }
    out[used] = '\0';
    return used == 0 || hosts->fn(hosts->user, out);
}

bool hostlist_each(const char *list, host_fn *fn, void *user)
{
    struct hosts hosts = {.fn = fn, .user = user};
    char name[HOST_BYTES];
    while (*list) {
        size_t bytes = 0;
        for (bool inside = false; list[bytes] && (inside || list[bytes] != ','); bytes++)
            inside = list[bytes] == '[' || (inside && list[bytes] != ']');
        if (bytes > 1024 || !expand(&hosts, list, bytes, name, 0))
            return false;
        list += bytes;
        list += *list == ',';
    }
    return true;
}

/* ---- numbers ------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

double detect_mode(const double *value, size_t n, size_t *n_other)
{
    double best = (double)NAN;
    size_t most = 0;
    *n_other = 0;
    double *sorted = n ? malloc(n * sizeof *sorted) : NULL;
    if (!sorted)
        return best;
    memcpy(sorted, value, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    for (size_t i = 0, from = 0; i < n; i++) {
        if (sorted[i] > sorted[from])
            from = i;
        if (i - from + 1 > most) {
            most = i - from + 1;
            best = sorted[i];
        }
    }
    for (size_t i = 0; i < n; i++)
        *n_other += fabs(sorted[i] - best) > 0.02 * fabs(best);
    free(sorted);
    return best;
}

/* GT/s times lanes, less the line code: 8b/10b up to PCIe 2 (5 GT/s), 128b/130b beyond. */
double pcie_bytes_per_s(const char *speed, const char *width)
{
    double gt_per_s, lanes;
    const size_t digits = strspn(speed, "0123456789.");
    if (digits == 0 || number_parse(speed, digits, &gt_per_s) != digits)
        return (double)NAN;
    width += *width == 'x';
    const size_t n = strspn(width, "0123456789");
    if (n == 0 || n > 3 || number_parse(width, n, &lanes) != n)
        return (double)NAN;
    if (!(gt_per_s >= 1.0) || !(gt_per_s <= 1024.0) || !(lanes >= 1.0) || !(lanes <= 32.0))
        return (double)NAN;
    return gt_per_s * 1e9 / 8.0 * lanes * (gt_per_s <= 5.0 ? 0.8 : 128.0 / 130.0);
}

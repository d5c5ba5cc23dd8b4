/* SPDX-License-Identifier: MIT
 *
 * nvidia-smi: -q -x (XML) and --query-gpu=... --format=csv. Clocks and PCIe links are those that a
 * busy GPU reaches (max_clocks, max_link_gen): an idle one lowers both. The power limit is the one
 * in force (current_power_limit), not the largest that could be set.
 */
#include "calibrate/detect.h"
#include "calibrate/detect_xml.h"
#include "calibrate/micro.h"
#include "sim/error.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GPUS_MAX    256u
#define COLUMNS_MAX 128u

/* One GPU; NAN: not said. */
struct device {
    char name[96];
    double memory_bytes, power_w, generation, lanes;
    uint32_t line;
    bool mig;
};

struct smi {
    struct detect *detect;
    uint32_t n;
    struct device device[GPUS_MAX];
    bool too_many, fabric; /* fabric manager has joined the GPUs */
};

static struct device *add_device(struct smi *smi, uint32_t line)
{
    if (smi->n == GPUS_MAX) {
        smi->too_many = true;
        smi->n--;
    }
    struct device *device = &smi->device[smi->n++];
    *device = (struct device){.memory_bytes = (double)NAN,
                              .power_w = (double)NAN,
                              .generation = (double)NAN,
                              .lanes = (double)NAN,
                              .line = line};
    return device;
}

/* The number a text begins with: "700.00 W", "16x"; NAN for "N/A", "[Not Supported]". */
static double leading_number(const char *text)
{
    double value;
    const size_t digits = strspn(text, "0123456789.");
    return digits && number_parse(text, digits, &value) == digits ? value : (double)NAN;
}

/* "143771 MiB" */
static double mib_bytes(const char *text)
{
    const double value = leading_number(text);
    return strstr(text, "MiB") || isdigit((unsigned char)*text) ? value * 1048576.0 : (double)NAN;
}

/* GT/s of a PCIe generation: 2.5, 5, 8, 16, 32, 64. */
static double link_bytes_per_s(double generation, double lanes)
{
    static const char *const gt_per_s[] = {"2.5", "5", "8", "16", "32", "64"};
    char width[8];
    if (!(generation >= 1.0 && generation <= 6.0) || !(lanes >= 1.0 && lanes <= 32.0))
        return (double)NAN;
    text_format(width, sizeof width, "%.0f", lanes);
    return pcie_bytes_per_s(gt_per_s[(int)generation - 1], width);
}

/* ---- what the devices of a machine give --------------------------------------------------- */

/* Index of the GPU whose name most others share. */
static uint32_t usual_device(const struct smi *smi)
{
    uint32_t best = 0, most = 0;
    for (uint32_t i = 0; i < smi->n; i++) {
        uint32_t same = 0;
        for (uint32_t j = 0; j < smi->n; j++)
            same += strcmp(smi->device[i].name, smi->device[j].name) == 0;
        if (same > most) {
            best = i;
            most = same;
        }
    }
    return best;
}

static void add_devices(struct smi *smi)
{
    struct detect *d = smi->detect;
    const struct device *usual = &smi->device[usual_device(smi)];
    double power_w = INFINITY;
    uint32_t n = 0, n_mig = 0;
    for (uint32_t i = 0; i < smi->n; i++) {
        const struct device *device = &smi->device[i];
        if (strcmp(device->name, usual->name) != 0)
            continue;
        n++;
        n_mig += device->mig;
        power_w = device->power_w < power_w ? device->power_w : power_w;
    }
    if (n < smi->n)
        detect_remark(d, TY_REMARK_CONTRADICTION,
                      "%s: %u of %u GPUs are no %s; a cluster file holds one kind",
                      d->paths[d->file], smi->n - n, smi->n, usual->name);
    if (n_mig)
        detect_remark(d, TY_REMARK_CONTRADICTION,
                      "%s: %u of %u GPUs are in MIG mode: their jobs get slices, not whole GPUs",
                      d->paths[d->file], n_mig, n);
    detect_add_gpu(d, usual->name, usual->memory_bytes, usual->line);
    detect_add(d, "gpus_per_node", n, TY_TRUST_READ, usual->line);
    detect_add(d, "gpu.memory.size", usual->memory_bytes, TY_TRUST_READ, usual->line);
    detect_add(d, "power_limit", power_w, TY_TRUST_READ, usual->line);
    detect_add(d, "gpu.pcie", link_bytes_per_s(usual->generation, usual->lanes), TY_TRUST_READ,
               usual->line);
    if (smi->fabric)
        detect_add(d, "scaleup.kind", TY_SCALEUP_SWITCH, TY_TRUST_READ, usual->line);
}

static ty_status finish(struct smi *smi, const char *path, ty_status status, struct ty_error *error)
{
    if (status == TY_OK && smi->too_many)
        status = error_set(error, TY_ERR_INPUT, path, "lists more than %u GPUs", GPUS_MAX);
    else if (status == TY_OK && smi->n == 0)
        status = error_set(error, TY_ERR_INPUT, path, "is nvidia-smi output without a GPU");
    if (status == TY_OK)
        add_devices(smi);
    free(smi);
    return status;
}

static struct smi *start(struct detect *detect, const char *path, struct ty_error *error)
{
    struct smi *smi = calloc(1, sizeof *smi);
    if (smi)
        smi->detect = detect;
    else
        error_set(error, TY_ERR_NOMEM, path, "no memory to read it");
    return smi;
}

/* ---- XML ---------------------------------------------------------------------------------- */

static void on_open(void *user, const struct xml_element *element)
{
    struct smi *smi = user;
    if (strcmp(element->name, "gpu") == 0 && element->depth == 1)
        add_device(smi, element->line);
}

/* Names are unique within a GPU where it matters, except "total", which several memories have:
 * fb_memory_usage comes first. */
static void on_close(void *user, const struct xml_element *element)
{
    struct smi *smi = user;
    struct device *device = smi->n ? &smi->device[smi->n - 1] : NULL;
    const char *name = element->name, *text = element->text;
    if (!device || element->depth < 2)
        return;
    if (strcmp(name, "product_name") == 0)
        text_format(device->name, sizeof device->name, "%s", text);
    else if (strcmp(name, "current_mig") == 0)
        device->mig = strcmp(text, "Enabled") == 0;
    else if (strcmp(name, "max_link_gen") == 0)
        device->generation = leading_number(text);
    else if (strcmp(name, "max_link_width") == 0)
        device->lanes = leading_number(text);
    else if (strcmp(name, "total") == 0 && isnan(device->memory_bytes))
        device->memory_bytes = mib_bytes(text);
    else if ((strcmp(name, "current_power_limit") == 0 || strcmp(name, "power_limit") == 0) &&
             isnan(device->power_w))
        device->power_w = leading_number(text);
    else if (strcmp(name, "state") == 0 && strcmp(text, "Completed") == 0)
        smi->fabric = true;
}

ty_status detect_read_smi_xml(struct import_file *file, struct detect *detect,
                              struct ty_error *error)
{
    struct smi *smi = start(detect, file->path, error);
    if (!smi)
        return TY_ERR_NOMEM;
    const struct xml_handler handler = {.open = on_open, .close = on_close, .user = smi};
    const ty_status status = xml_read(file, &handler, error);
    return finish(smi, file->path, status, error);
}

/* ---- CSV ---------------------------------------------------------------------------------- */

/* Cuts at commas, blanks around them dropped. returns the number of cells. */
static uint32_t cut(char *line, char *cell[COLUMNS_MAX])
{
    uint32_t n = 0;
    for (char *at = line; n < COLUMNS_MAX;) {
        char *comma = strchr(at, ',');
        char *end = comma ? comma : at + strlen(at);
        at += strspn(at, " \"");
        while (end > at && strchr(" \"", end[-1]))
            end--;
        cell[n++] = at;
        *end = '\0';
        if (!comma)
            break;
        at = comma + 1;
    }
    return n;
}

/* "memory.total [MiB]" is the column memory.total. */
static bool is_column(const char *header, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(header, name, length) == 0 && (header[length] == '\0' || header[length] == ' ');
}

static void read_cell(struct device *device, const char *header, const char *cell)
{
    if (is_column(header, "name") || is_column(header, "gpu_name"))
        text_format(device->name, sizeof device->name, "%s", cell);
    else if (is_column(header, "memory.total"))
        device->memory_bytes = mib_bytes(cell);
    else if (is_column(header, "power.limit"))
        device->power_w = leading_number(cell);
    else if (is_column(header, "pcie.link.gen.max"))
        device->generation = leading_number(cell);
    else if (is_column(header, "pcie.link.width.max"))
        device->lanes = leading_number(cell);
    else if (is_column(header, "mig.mode.current"))
        device->mig = strcmp(cell, "Enabled") == 0;
}

ty_status detect_read_smi_csv(struct import_file *file, struct detect *detect,
                              struct ty_error *error)
{
    struct smi *smi = start(detect, file->path, error);
    if (!smi)
        return TY_ERR_NOMEM;
    struct micro_lines lines = {.at = file->text};
    char *header[COLUMNS_MAX], *cell[COLUMNS_MAX], *line = micro_next_line(&lines);
    const uint32_t n = line ? cut(line, header) : 0;
    ty_status status = TY_OK;
    while (status == TY_OK && !smi->too_many && (line = micro_next_line(&lines))) {
        if (!*line)
            continue;
        const uint32_t has = cut(line, cell);
        if (has != n) {
            char where[sizeof error->where];
            text_format(where, sizeof where, "%s:%u", file->path, lines.line);
            status =
                error_set(error, TY_ERR_INPUT, where, "has %u cells, the header has %u", has, n);
            break;
        }
        struct device *device = add_device(smi, lines.line);
        for (uint32_t i = 0; i < n; i++)
            read_cell(device, header[i], cell[i]);
    }
    if (status == TY_OK && smi->n && !*smi->device[0].name)
        status = error_set(error, TY_ERR_INPUT, file->path,
                           "has no column \"name\"; query it with name,memory.total,power.limit");
    return finish(smi, file->path, status, error);
}

/* SPDX-License-Identifier: MIT
 *
 * Tables of how the devices of one machine are joined: `nvidia-smi topo -m` and `rocm-smi
 * --showtopo` (with --showproductname and --showmeminfo vram in the same output).
 *
 * topo -m: NV18 is a bond of 18 NVLinks. More links to all peers together than one GPU has can only
 * be a switch. NICs that hang on a GPU's PCIe switch (PIX, PXB) carry training traffic; where some
 * do, the others are for storage and management.
 * rocm-smi: the table of link types counts; weight 15 is one xGMI hop. The table of hops says 1
 * over xGMI whatever the wiring, so it is not read.
 */
#include "calibrate/detect.h"
#include "calibrate/micro.h"
#include "sim/error.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 256u
#define GPU_LINKS   18u /* most NVLinks of one GPU up to Blackwell; source: handbook 6.1 */

enum join { JOIN_FAR, JOIN_NEAR, JOIN_NVLINK };

struct matrix {
    uint32_t n, n_gpus; /* columns; the GPUs come first */
    char name[DEVICES_MAX][24];
    bool has_row[DEVICES_MAX];
    uint8_t join[DEVICES_MAX][DEVICES_MAX], links[DEVICES_MAX][DEVICES_MAX];
    uint32_t line;
};

/* "GPU0" -> true; "GPU" of "GPU NUMA ID" is no device. */
static bool is_numbered(const char *word, const char *prefix)
{
    const size_t length = strlen(prefix);
    return strncmp(word, prefix, length) == 0 && isdigit((unsigned char)word[length]);
}

static bool is_nic(const char *word)
{
    return is_numbered(word, "NIC") || strncmp(word, "mlx", 3) == 0 ||
           strncmp(word, "bnxt", 4) == 0 || strncmp(word, "rdma", 4) == 0;
}

/* Terminals draw the header underlined: the escape sequences go. */
static void drop_escapes(char *line)
{
    char *to = line;
    for (const char *from = line; *from;) {
        if (*from == '\033') {
            from += strcspn(from, "mK");
            from += *from != '\0';
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

static void read_header(struct matrix *m, char *word[], uint32_t n_words)
{
    for (uint32_t i = 0; i < n_words && m->n < DEVICES_MAX; i++) {
        const bool gpu = is_numbered(word[i], "GPU");
        if (!gpu && !is_nic(word[i]))
            break; /* "CPU Affinity" */
        m->n_gpus += gpu;
        text_format(m->name[m->n++], sizeof m->name[0], "%s", word[i]);
    }
}

static void read_cell(struct matrix *m, uint32_t row, uint32_t column, const char *word)
{
    if (strncmp(word, "NV", 2) == 0 && isdigit((unsigned char)word[2])) {
        const unsigned long links = strtoul(word + 2, NULL, 10);
        m->links[row][column] = (uint8_t)(links < 64 ? links : 64);
        m->join[row][column] = JOIN_NVLINK;
    } else if (strcmp(word, "PIX") == 0 || strcmp(word, "PXB") == 0) {
        m->join[row][column] = JOIN_NEAR;
    }
}

static ty_status read_matrix(struct import_file *file, struct matrix *m, struct ty_error *error)
{
    struct micro_lines lines = {.at = file->text};
    char *word[DEVICES_MAX + 16];
    for (char *line; (line = micro_next_line(&lines));) {
        drop_escapes(line);
        uint32_t n_words = micro_words(line, false, word, DEVICES_MAX + 16);
        n_words = n_words < DEVICES_MAX + 16 ? n_words : DEVICES_MAX + 16;
        if (n_words == 0)
            continue;
        if (m->n == 0 && is_numbered(word[0], "GPU")) {
            read_header(m, word, n_words);
            m->line = lines.line;
            continue;
        }
        uint32_t row = 0;
        while (row < m->n && strcmp(word[0], m->name[row]) != 0)
            row++;
        if (row >= m->n_gpus)
            continue;
        if (n_words <= m->n) {
            char where[sizeof error->where];
            text_format(where, sizeof where, "%s:%u", file->path, lines.line);
            return error_set(error, TY_ERR_INPUT, where, "the row of %s has %u of %u entries",
                             m->name[row], n_words - 1, m->n);
        }
        for (uint32_t i = 0; i < m->n; i++)
            read_cell(m, row, i, word[1 + i]);
        m->has_row[row] = true;
    }
    for (uint32_t i = 0; i < m->n_gpus; i++)
        if (!m->has_row[i])
            return error_set(error, TY_ERR_INPUT, file->path, "the row of %s is missing",
                             m->name[i]);
    return m->n_gpus ? TY_OK : error_set(error, TY_ERR_INPUT, file->path, "names no GPU");
}

/* GPUs that NVLinks join with GPU `from`. */
static uint32_t joined(const struct matrix *m, uint32_t from)
{
    uint32_t queue[DEVICES_MAX] = {from}, n = 1;
    bool seen[DEVICES_MAX] = {false};
    seen[from] = true;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t b = 0; b < m->n_gpus; b++)
            if (!seen[b] && m->links[queue[i]][b]) {
                seen[b] = true;
                queue[n++] = b;
            }
    return n;
}

static void add_links(const struct matrix *m, struct detect *detect)
{
    uint32_t sum_max = 0, bond_max = 0, domain = 0;
    for (uint32_t a = 0; a < m->n_gpus; a++) {
        uint32_t sum = 0;
        for (uint32_t b = 0; b < m->n_gpus; b++) {
            sum += m->links[a][b];
            bond_max = m->links[a][b] > bond_max ? m->links[a][b] : bond_max;
        }
        sum_max = sum > sum_max ? sum : sum_max;
        const uint32_t n = joined(m, a);
        domain = n > domain ? n : domain;
    }
    if (sum_max == 0) {
        detect_add(detect, "scaleup.kind", TY_SCALEUP_PCIE, TY_TRUST_READ, m->line);
        return;
    }
    const bool through_switch = sum_max > GPU_LINKS;
    detect_add(detect, "scaleup.kind", through_switch ? TY_SCALEUP_SWITCH : TY_SCALEUP_MESH,
               TY_TRUST_READ, m->line);
    detect_add(detect, "scaleup.links", through_switch ? bond_max : sum_max, TY_TRUST_READ,
               m->line);
    detect_add(detect, "scaleup.domain", domain, TY_TRUST_RULE, m->line);
}

static void add_nics(const struct matrix *m, struct detect *detect)
{
    const uint32_t n_nics = m->n - m->n_gpus;
    uint32_t n_near = 0;
    char others[256] = "";
    for (uint32_t nic = m->n_gpus; nic < m->n; nic++) {
        bool near = false;
        for (uint32_t gpu = 0; gpu < m->n_gpus; gpu++)
            near |= m->join[gpu][nic] == JOIN_NEAR;
        n_near += near;
        if (!near)
            text_append(others, sizeof others, "%s%s", *others ? ", " : "", m->name[nic]);
    }
    if (n_nics == 0)
        return;
    if (n_near && n_near < n_nics)
        detect_remark(detect, TY_REMARK_NOTE,
                      "%s: %s hang on no GPU's PCIe switch: taken as NICs for storage or "
                      "management",
                      detect->paths[detect->file], others);
    detect_add(detect, "network.nics_per_node", n_near ? n_near : n_nics,
               n_near ? TY_TRUST_READ : TY_TRUST_RULE, m->line);
}

ty_status detect_read_topology_matrix(struct import_file *file, struct detect *detect,
                                      struct ty_error *error)
{
    struct matrix *m = calloc(1, sizeof *m);
    if (!m)
        return error_set(error, TY_ERR_NOMEM, file->path, "no memory to read it");
    const ty_status status = read_matrix(file, m, error);
    if (status == TY_OK) {
        detect->gpus = gpus_of_vendor(TY_VENDOR_NVIDIA);
        detect_add(detect, "gpus_per_node", m->n_gpus, TY_TRUST_READ, m->line);
        add_links(m, detect);
        add_nics(m, detect);
    }
    free(m);
    return status;
}

/* ---- rocm-smi ----------------------------------------------------------------------------- */

#define XGMI_HOP_WEIGHT 15.0 /* ROCm/rocm-systems#7372 */

struct rocm {
    enum { ROCM_OTHER, ROCM_WEIGHT, ROCM_TYPE } section;
    uint32_t n_gpus, n_names, n_xgmi, n_pcie, n_far, n_rows, line, name_line;
    char name[96];
    double vram_bytes;
};

static void read_rocm_row(struct rocm *r, char *word[], uint32_t n, uint32_t line)
{
    if (r->section == ROCM_TYPE && n > 1 && is_numbered(word[1], "GPU")) {
        r->n_gpus = n;
        r->line = line;
        return;
    }
    double weight;
    for (uint32_t i = 1; i < n; i++) {
        r->n_xgmi += r->section == ROCM_TYPE && strcmp(word[i], "XGMI") == 0;
        r->n_pcie += r->section == ROCM_TYPE && strcmp(word[i], "PCIE") == 0;
        if (r->section == ROCM_WEIGHT && micro_number(word[i], &weight))
            r->n_far += weight > XGMI_HOP_WEIGHT;
    }
    r->n_rows += r->section == ROCM_TYPE;
}

static void read_rocm_line(struct rocm *r, char *line, uint32_t number)
{
    static const char *const names[] = {"Card Series:", "Card series:", "Card Model:"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = micro_after(line, names[i]);
        if (value && !*r->name) {
            text_format(r->name, sizeof r->name, "%s", value);
            r->name_line = number;
        }
        r->n_names += value != NULL && i < 2;
    }
    const char *vram = micro_after(line, "VRAM Total Memory (B):");
    double bytes;
    if (vram && micro_number(vram, &bytes))
        r->vram_bytes = bytes;
    if (strstr(line, "===")) {
        r->section = strstr(line, "Weight between")      ? ROCM_WEIGHT
                     : strstr(line, "Link Type between") ? ROCM_TYPE
                                                         : ROCM_OTHER;
        return;
    }
    char *word[DEVICES_MAX];
    const uint32_t n = micro_words(line, false, word, DEVICES_MAX);
    if (n > 0 && n <= DEVICES_MAX && is_numbered(word[0], "GPU"))
        read_rocm_row(r, word, n, number);
}

static void add_rocm(const struct rocm *r, struct detect *detect)
{
    if (*r->name)
        detect_add_gpu(detect, r->name, r->vram_bytes, r->name_line);
    else
        detect->gpus = gpus_of_vendor(TY_VENDOR_AMD);
    detect_add(detect, "gpus_per_node", r->n_gpus ? r->n_gpus : r->n_names, TY_TRUST_READ,
               r->n_gpus ? r->line : r->name_line);
    detect_add(detect, "gpu.memory.size", r->vram_bytes, TY_TRUST_READ, 0);
    if (r->n_gpus == 0)
        return;
    const uint32_t pairs = r->n_gpus * (r->n_gpus - 1);
    detect_add(detect, "scaleup.kind", r->n_xgmi ? TY_SCALEUP_MESH : TY_SCALEUP_PCIE, TY_TRUST_READ,
               r->line);
    if (r->n_xgmi == pairs)
        detect_add(detect, "scaleup.domain", r->n_gpus, TY_TRUST_READ, r->line);
    else if (r->n_xgmi)
        detect_remark(detect, TY_REMARK_NOTE,
                      "%s: xGMI joins %u of %u pairs of GPUs; a full mesh is assumed",
                      detect->paths[detect->file], r->n_xgmi / 2, pairs / 2);
    if (r->n_xgmi == pairs && r->n_far)
        detect_remark(detect, TY_REMARK_NOTE,
                      "%s: %u of %u pairs of GPUs are more than one xGMI hop apart (weight over "
                      "15); a full mesh is assumed",
                      detect->paths[detect->file], r->n_far / 2, pairs / 2);
}

ty_status detect_read_rocm(struct import_file *file, struct detect *detect, struct ty_error *error)
{
    struct rocm r = {.vram_bytes = (double)NAN};
    struct micro_lines lines = {.at = file->text};
    for (char *line; (line = micro_next_line(&lines));)
        read_rocm_line(&r, line, lines.line);
    if (r.n_gpus == 0 && r.n_names == 0)
        return error_set(error, TY_ERR_INPUT, file->path,
                         "has neither the link types (--showtopo) nor the names "
                         "(--showproductname) of GPUs");
    if (r.n_gpus && r.n_rows != r.n_gpus)
        return error_set(error, TY_ERR_INPUT, file->path,
                         "the table of link types has %u of %u rows", r.n_rows, r.n_gpus);
    add_rocm(&r, detect);
    return TY_OK;
}

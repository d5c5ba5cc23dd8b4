/* SPDX-License-Identifier: MIT
 * The table of formats, told apart by their beginning, and the sources of a detection: files,
 * folders that are copies of /sys and /proc, this machine. */
#include "calibrate/detect.h"
#include "calibrate/detect_xml.h"
#include "sim/error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- formats ------------------------------------------------------------------------------ */

#define SNIFF_BYTES 4096

/* The first SNIFF_BYTES; a line of interest stands near the top of every format. */
struct beginning {
    char text[SNIFF_BYTES + 1];
    char root[64]; /* element of XML */
};

static bool has(const struct beginning *b, const char *text)
{
    return strstr(b->text, text) != NULL;
}

static bool is_nccl(const struct beginning *b)
{
    return strcmp(b->root, "system") == 0;
}

static bool is_hwloc(const struct beginning *b)
{
    return strcmp(b->root, "topology") == 0;
}

static bool is_smi_xml(const struct beginning *b)
{
    return strcmp(b->root, "nvidia_smi_log") == 0;
}

static bool is_json(const struct beginning *b)
{
    return b->text[strspn(b->text, " \t\r\n")] == '{';
}

static bool is_rocm(const struct beginning *b)
{
    return has(b, "ROCm System Management Interface");
}

static bool is_ibnetdiscover(const struct beginning *b)
{
    return has(b, "switchguid=") || has(b, "caguid=") || has(b, "# Topology file: generated");
}

static bool is_scontrol(const struct beginning *b)
{
    return has(b, "NodeName=");
}

static bool is_switches(const struct beginning *b)
{
    return has(b, "SwitchName=") || has(b, "BlockName=");
}

static bool is_sinfo(const struct beginning *b)
{
    return has(b, "NODELIST") && !has(b, "NODELIST(REASON)") && (has(b, "STATE") || has(b, "GRES"));
}

static bool is_yaml(const struct beginning *b)
{
    return has(b, "topology:") && (has(b, "tree:") || has(b, "block:") || has(b, "switches:"));
}

static bool is_matrix(const struct beginning *b)
{
    return has(b, "GPU0") && has(b, " X ");
}

static bool is_smi_csv(const struct beginning *b)
{
    const char *line = b->text + strspn(b->text, " \t\r\n");
    const size_t length = strcspn(line, "\n");
    const char *comma = memchr(line, ',', length);
    return comma && has(b, "name") &&
           (has(b, "memory.total") || has(b, "uuid") || has(b, "pci.bus_id") ||
            has(b, "power.limit"));
}

static const struct {
    bool (*is)(const struct beginning *beginning);
    detect_reader *read;
} formats[] = {
    {is_nccl, detect_read_nccl},
    {is_hwloc, detect_read_hwloc},
    {is_smi_xml, detect_read_smi_xml},
    {is_json, detect_read_json},
    {is_rocm, detect_read_rocm},
    {is_ibnetdiscover, detect_read_ibnetdiscover},
    {is_scontrol, detect_read_scontrol},
    {is_switches, detect_read_switches},
    {is_sinfo, detect_read_sinfo},
    {is_yaml, detect_read_yaml},
    {is_matrix, detect_read_topology_matrix},
    {is_smi_csv, detect_read_smi_csv},
};

/* Findings and remarks that know no GPU of their own are about the file's. */
static void stamp_gpus(struct detect *detect, size_t from, size_t remarks_from)
{
    for (size_t i = remarks_from; i < detect->n_remarks; i++)
        detect->remarks[i].gpus = detect->gpus;
    for (size_t i = from; i < detect->n_findings; i++)
        if (!detect->findings[i].gpus)
            detect->findings[i].gpus = detect->gpus;
}

ty_status detect_read_text(struct import_file *file, struct detect *detect, struct ty_error *error)
{
    struct beginning *b = malloc(sizeof *b);
    if (!b)
        return error_set(error, TY_ERR_NOMEM, file->path, "no memory to read it");
    text_format(b->text, sizeof b->text, "%.*s", SNIFF_BYTES, file->text);
    xml_root(file, b->root, sizeof b->root);
    detect_reader *read = NULL;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0] && !read; i++)
        read = formats[i].is(b) ? formats[i].read : NULL;
    free(b);
    if (file->text[strspn(file->text, " \t\r\n")] == '\0')
        return error_set(error, TY_ERR_INPUT, file->path, "is empty");
    if (!read)
        return error_set(error, TY_ERR_INPUT, file->path,
                         "is in no format that detect reads (docs/detect.md lists them)");
    const size_t before = detect->n_findings + detect->n_machines + detect->n_links;
    const size_t from = detect->n_findings, remarks_from = detect->n_remarks;
    detect->gpus = 0;
    const ty_status status = read(file, detect, error);
    if (status != TY_OK)
        return status;
    stamp_gpus(detect, from, remarks_from);
    if (detect->out_of_memory)
        return error_set(error, TY_ERR_NOMEM, file->path, "no memory to read it");
    if (detect->too_many)
        return error_set(error, TY_ERR_LIMIT, file->path, "names more than %u machines",
                         MACHINES_MAX);
    if (detect->n_findings + detect->n_machines + detect->n_links == before)
        return error_set(error, TY_ERR_INPUT, file->path, "says nothing about a cluster");
    return TY_OK;
}

/* ---- sources ------------------------------------------------------------------------------ */

static ty_status read_source(struct detect *detect, const char *path, struct ty_error *error)
{
    struct stat at;
    if (stat(path, &at) == 0 && S_ISDIR(at.st_mode)) {
        const size_t from = detect->n_findings, remarks_from = detect->n_remarks;
        detect->gpus = 0;
        const ty_status status = detect_read_tree(path, detect, error);
        stamp_gpus(detect, from, remarks_from);
        return status;
    }
    struct import_file file = {.path = path};
    ty_status status = import_read_file(&file, error);
    if (status == TY_OK)
        status = detect_read_text(&file, detect, error);
    free(file.text);
    return status;
}

/* Output of a command, read where it exists and succeeds. */
static void read_command(struct detect *detect, const char *command)
{
    enum { OUTPUT_MAX = 16 << 20 };
    struct import_file file = {.path = command, .text = malloc(OUTPUT_MAX + 1)};
    FILE *pipe = file.text ? popen(command, "r") : NULL;
    if (pipe) {
        file.bytes = fread(file.text, 1, OUTPUT_MAX, pipe);
        file.text[file.bytes] = '\0';
        struct ty_error error = {0};
        if (pclose(pipe) == 0 && memchr(file.text, '\0', file.bytes) == NULL &&
            detect_read_text(&file, detect, &error) != TY_OK)
            detect_remark(detect, TY_REMARK_NOTE, "%s: %s", error.where, error.text);
    }
    free(file.text);
}

static ty_status read_machine(struct detect *detect, struct ty_error *error)
{
    const ty_status status = read_source(detect, detect->paths[0], error);
    for (detect->file = 1; status == TY_OK && detect->file < 3; detect->file++) {
        char command[64];
        text_format(command, sizeof command, "%s 2>/dev/null", detect->paths[detect->file]);
        read_command(detect, command);
    }
    return status;
}

ty_status ty_detect(const char *const *paths, uint32_t n, const char *gpu, struct ty_detection *out,
                    struct ty_error *error)
{
    static const char *const here[] = {"/", "nvidia-smi -q -x", "nvidia-smi topo -m"};
    struct detect detect;
    struct ty_detection result = {0};
    detect_init(&detect, n ? paths : here);
    ty_status status = n ? TY_OK : read_machine(&detect, error);
    for (; status == TY_OK && n && detect.file < n; detect.file++)
        status = read_source(&detect, paths[detect.file], error);
    if (status == TY_OK)
        status = detect_merge(&detect, gpu, &result, error);
    detect_free(&detect);
    if (status == TY_OK)
        *out = result;
    else
        ty_detection_free(&result);
    return status;
}

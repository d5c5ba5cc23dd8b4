/* SPDX-License-Identifier: MIT
 *
 * Rules from what sources call a GPU to the built-in ones. A name is cut into words; it means every
 * built-in GPU whose key word it has and whose form (SXM, PCIe, NVL) and memory it does not
 * contradict: "a100" leaves four, "NVIDIA A100-SXM4-40GB" one.
 */
#include "calibrate/detect.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX  24u
#define WORD_BYTES 24u

/* First of its key comes the one that is meant when nothing more is said. memory_gib 0: names give
 * other figures beside it (GH200's is that of the CPU). form 0: there is one. */
static const struct {
    const char *name, *key;
    char form; /* 's'xm or OAM, 'p'cie, 'n'vl */
    uint16_t memory_gib, sm;
    enum ty_vendor vendor;
} rules[] = {
    {"h100-sxm", "h100", 's', 80, 90, TY_VENDOR_NVIDIA},
    {"h100-sxm-96gb", "h100", 's', 96, 90, TY_VENDOR_NVIDIA},
    {"h100-pcie", "h100", 'p', 80, 90, TY_VENDOR_NVIDIA},
    {"h100-nvl", "h100", 'n', 94, 90, TY_VENDOR_NVIDIA},
    {"h200-sxm", "h200", 's', 141, 90, TY_VENDOR_NVIDIA},
    {"h200-nvl", "h200", 'n', 141, 90, TY_VENDOR_NVIDIA},
    {"h800-sxm", "h800", 's', 80, 90, TY_VENDOR_NVIDIA},
    {"h20", "h20", 0, 96, 90, TY_VENDOR_NVIDIA},
    {"gh200", "gh200", 0, 0, 90, TY_VENDOR_NVIDIA},
    {"a100-sxm-80gb", "a100", 's', 80, 80, TY_VENDOR_NVIDIA},
    {"a100-sxm-40gb", "a100", 's', 40, 80, TY_VENDOR_NVIDIA},
    {"a100-pcie-80gb", "a100", 'p', 80, 80, TY_VENDOR_NVIDIA},
    {"a100-pcie-40gb", "a100", 'p', 40, 80, TY_VENDOR_NVIDIA},
    {"v100-sxm-32gb", "v100", 's', 32, 70, TY_VENDOR_NVIDIA},
    {"v100-pcie-32gb", "v100", 'p', 32, 70, TY_VENDOR_NVIDIA},
    {"b200-sxm", "b200", 's', 180, 100, TY_VENDOR_NVIDIA},
    {"gb200", "gb200", 0, 186, 100, TY_VENDOR_NVIDIA},
    {"b300-sxm", "b300", 's', 270, 103, TY_VENDOR_NVIDIA},
    {"gb300", "gb300", 0, 278, 103, TY_VENDOR_NVIDIA},
    {"l40s", "l40s", 0, 46, 89, TY_VENDOR_NVIDIA},
    {"l4", "l4", 0, 24, 89, TY_VENDOR_NVIDIA},
    {"rtx-4090", "4090", 0, 24, 89, TY_VENDOR_NVIDIA},
    {"rtx-3090", "3090", 0, 24, 86, TY_VENDOR_NVIDIA},
    {"mi300x", "mi300x", 0, 192, 0, TY_VENDOR_AMD},
    {"mi325x", "mi325x", 0, 256, 0, TY_VENDOR_AMD},
    {"mi350x", "mi350x", 0, 288, 0, TY_VENDOR_AMD},
    {"mi355x", "mi355x", 0, 288, 0, TY_VENDOR_AMD},
    {"mi250x", "mi250x", 0, 128, 0, TY_VENDOR_AMD},
    {"gaudi2", "gaudi2", 0, 96, 0, TY_VENDOR_OTHER},
    {"gaudi3", "gaudi3", 0, 128, 0, TY_VENDOR_OTHER},
    {"ascend-910b", "910b", 0, 64, 0, TY_VENDOR_OTHER},
    {"ascend-910c", "910c", 0, 128, 0, TY_VENDOR_OTHER},
};
#define N_RULES (sizeof rules / sizeof rules[0])
_Static_assert(N_RULES < 63, "one bit each, and GPU_UNKNOWN");

/* Device IDs as the PCI ID repository lists them (pci-ids.ucw.cz). */
static const struct {
    uint32_t vendor, device;
    const char *name;
} devices[] = {
    {0x10de, 0x20b0, "a100-sxm-40gb"},
    {0x10de, 0x20b2, "a100-sxm-80gb"},
    {0x10de, 0x20f1, "a100-pcie-40gb"},
    {0x10de, 0x20b5, "a100-pcie-80gb"},
    {0x10de, 0x1db5, "v100-sxm-32gb"},
    {0x10de, 0x1db8, "v100-sxm-32gb"},
    {0x10de, 0x1db6, "v100-pcie-32gb"},
    {0x10de, 0x2330, "h100-sxm"},
    {0x10de, 0x2331, "h100-pcie"},
    {0x10de, 0x2321, "h100-nvl"},
    {0x10de, 0x2335, "h200-sxm"},
    {0x10de, 0x2324, "h800-sxm"},
    {0x10de, 0x2329, "h20"},
    {0x10de, 0x2342, "gh200"},
    {0x10de, 0x2901, "b200-sxm"},
    {0x10de, 0x2941, "gb200"},
    {0x10de, 0x3182, "b300-sxm"},
    {0x10de, 0x31c2, "gb300"},
    {0x10de, 0x26b9, "l40s"},
    {0x10de, 0x27b8, "l4"},
    {0x10de, 0x2684, "rtx-4090"},
    {0x10de, 0x2204, "rtx-3090"},
    {0x1002, 0x74a1, "mi300x"},
    {0x1002, 0x74a5, "mi325x"},
    {0x1002, 0x75a0, "mi350x"},
    {0x1002, 0x75a3, "mi355x"},
    {0x1002, 0x7408, "mi250x"},
};

/* ---- words -------------------------------------------------------------------------------- */

struct words {
    char at[WORDS_MAX][WORD_BYTES];
    uint32_t n;
};

/* Runs of letters and digits, in small letters. */
static void cut(const char *name, struct words *out)
{
    out->n = 0;
    while (*name && out->n < WORDS_MAX) {
        uint32_t length = 0;
        while (isalnum((unsigned char)*name)) {
            if (length + 1 < WORD_BYTES)
                out->at[out->n][length++] = (char)tolower((unsigned char)*name);
            name++;
        }
        out->at[out->n][length] = '\0';
        out->n += length > 0;
        name += *name != '\0';
    }
}

static bool has(const struct words *words, const char *word)
{
    for (uint32_t i = 0; i < words->n; i++)
        if (strcmp(words->at[i], word) == 0)
            return true;
    return false;
}

static char form_of(const struct words *words)
{
    if (has(words, "pcie"))
        return 'p';
    if (has(words, "nvl"))
        return 'n';
    for (uint32_t i = 0; i < words->n; i++)
        if (strncmp(words->at[i], "sxm", 3) == 0)
            return 's';
    return has(words, "hbm3") || has(words, "oam") ? 's' : 0;
}

/* "80gb", "80g": GiB; 0 without such a word. */
static double memory_of(const struct words *words)
{
    for (uint32_t i = 0; i < words->n; i++) {
        const char *word = words->at[i];
        const size_t digits = strspn(word, "0123456789");
        if (digits >= 2 && digits <= 3 &&
            (strcmp(word + digits, "gb") == 0 || strcmp(word + digits, "g") == 0))
            return strtod(word, NULL);
    }
    return 0.0;
}

/* Other GPUs with the same number: "RTX 3090 Ti", "RTX 4090 D", "RTX 4090 Laptop". */
static bool is_variant(const struct words *words)
{
    return has(words, "ti") || has(words, "d") || has(words, "laptop") || has(words, "super");
}

bool gpu_is_slice(const char *name)
{
    struct words words;
    cut(name, &words);
    for (uint32_t i = 0; i < words.n; i++) {
        const char *word = words.at[i];
        if (strcmp(word, "mig") == 0 ||
            (word[0] >= '1' && word[0] <= '7' && word[1] == 'g' && word[2] == '\0'))
            return true;
    }
    return false;
}

/* ---- sets --------------------------------------------------------------------------------- */

static gpu_set with_memory(gpu_set set, double gib)
{
    gpu_set fit = 0;
    for (size_t i = 0; i < N_RULES; i++)
        if (set >> i & 1 && (rules[i].memory_gib == 0 ||
                             fabs(gib - rules[i].memory_gib) <= 0.1 * rules[i].memory_gib))
            fit |= (gpu_set)1 << i;
    return fit ? fit : set;
}

gpu_set gpus_by_name(const char *name, double memory_bytes)
{
    struct words words;
    cut(name, &words);
    const char form = form_of(&words);
    gpu_set set = 0;
    for (size_t i = 0; i < N_RULES && !is_variant(&words); i++)
        if (has(&words, rules[i].key) && (!form || !rules[i].form || form == rules[i].form))
            set |= (gpu_set)1 << i;
    if (!set)
        return GPU_UNKNOWN;
    const double named_gib = memory_of(&words);
    if (memory_bytes > 0.0)
        return with_memory(set, memory_bytes / 1073741824.0);
    return named_gib > 0.0 ? with_memory(set, named_gib) : set;
}

gpu_set gpus_built_in(const char *name)
{
    for (size_t i = 0; i < N_RULES; i++)
        if (strcmp(name, rules[i].name) == 0)
            return (gpu_set)1 << i;
    return 0;
}

gpu_set gpus_by_pci(uint32_t vendor, uint32_t device)
{
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
        if (devices[i].vendor == vendor && devices[i].device == device)
            return gpus_built_in(devices[i].name);
    return 0;
}

gpu_set gpus_by_sm(uint32_t sm)
{
    gpu_set set = 0;
    for (size_t i = 0; i < N_RULES; i++)
        if (sm > 0 && rules[i].sm == sm)
            set |= (gpu_set)1 << i;
    return set;
}

gpu_set gpus_of_vendor(enum ty_vendor vendor)
{
    gpu_set set = 0;
    for (size_t i = 0; i < N_RULES; i++)
        if (rules[i].vendor == vendor)
            set |= (gpu_set)1 << i;
    return set;
}

const char *gpu_name(gpu_set set, uint32_t index)
{
    for (size_t i = 0; i < N_RULES; i++)
        if (set >> i & 1 && index-- == 0)
            return rules[i].name;
    return NULL;
}

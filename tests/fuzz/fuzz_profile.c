/* SPDX-License-Identifier: MIT
 * Any bytes as records and as a profile: what a fit gives reads back as a profile, and tables that
 * are read are used without a time that is not finite. The first byte chooses which. */
#include "include/trainyard_records.h"
#include "include/trainyard_tools.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char path[64];

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void write_bytes(const void *bytes, size_t n)
{
    if (!*path)
        snprintf(path, sizeof path, "/tmp/fuzz-profile-%ld", (long)getpid());
    FILE *file = fopen(path, "wb");
    require(file && fwrite(bytes, 1, n, file) == n && fclose(file) == 0);
}

static void check_profile(const struct ty_cluster *cluster)
{
    struct ty_profile_tables tables;
    struct ty_error error;
    if (ty_profile_tables_load(path, cluster, &tables, &error) != TY_OK)
        return;
    for (uint32_t i = 0; i < tables.measured.n_gemms; i++)
        require(tables.measured.gemms[i].time_s > 0.0 && isfinite(tables.measured.gemms[i].time_s));
    for (uint32_t i = 1; i < tables.measured.n_memory; i++)
        require(tables.measured.memory_bytes[i] > tables.measured.memory_bytes[i - 1]);
    ty_profile_tables_free(&tables);
}

static void check_records(const struct ty_cluster *cluster)
{
    const char *const paths[] = {path};
    struct ty_calibration fit;
    struct ty_profile profile;
    struct ty_error error;
    if (ty_calibration_fit(paths, 1, cluster, &fit, &error) != TY_OK)
        return;
    for (uint32_t i = 0; i < fit.n_constants; i++)
        require(isfinite(fit.constants[i].value));
    char *text = ty_calibration_json(&fit, "fuzz");
    require(text != NULL);
    require(ty_spec_parse(TY_KIND_PROFILE, text, strlen(text), "fuzz", &profile, &error) == TY_OK);
    write_bytes(text, strlen(text));
    struct ty_profile_tables tables;
    require(ty_profile_tables_load(path, &fit.cluster, &tables, &error) == TY_OK);
    require(tables.measured.n_gemms == fit.measured.n_gemms &&
            tables.measured.n_memory == fit.measured.n_memory &&
            tables.collectives.n == fit.collectives.n);
    ty_profile_tables_free(&tables);
    ty_text_free(text);
    ty_calibration_free(&fit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct ty_cluster cluster;
    if (bytes == 0)
        return 0;
    require(ty_cluster_load("dgx-h100", &cluster, NULL) == TY_OK);
    write_bytes(data + 1, bytes - 1);
    if (data[0] & 1)
        check_profile(&cluster);
    else
        check_records(&cluster);
    return 0;
}

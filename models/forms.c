/* SPDX-License-Identifier: MIT
 * The forms of kernels and collectives as a library of their own: no plan, no tables. */
#include "models/comm.h"
#include "models/measured.h"
#include "sim/arena.h"
#include "sim/error.h"

#include <string.h>

struct ty_forms {
    struct setting setting; /* cluster and profile only */
};

ty_status ty_forms_create(const struct ty_cluster *cluster, const struct ty_profile *profile,
                          ty_forms **out, struct ty_error *error)
{
    const struct ty_allocator source = allocator_or_default(NULL);
    ty_forms *forms = source.alloc(source.user, sizeof *forms);
    if (!forms)
        return error_set(error, TY_ERR_NOMEM, "forms", "out of memory");
    memset(forms, 0, sizeof *forms);
    struct setting *setting = &forms->setting;
    ty_status status = cluster_resolve(cluster, &setting->cluster, NULL, error);
    if (status == TY_OK)
        status = profile_resolve(profile, &setting->cluster, &setting->profile, NULL, error);
    setting->profile.measured = NULL;
    setting->profile.collectives = NULL;
    if (status == TY_OK)
        *out = forms;
    else
        ty_forms_destroy(forms);
    return status;
}

void ty_forms_destroy(ty_forms *forms)
{
    const struct ty_allocator source = allocator_or_default(NULL);
    if (forms)
        source.release(source.user, forms, sizeof *forms);
}

const struct ty_cluster *ty_forms_cluster(const ty_forms *forms)
{
    return &forms->setting.cluster;
}

struct ty_profile *ty_forms_profile(ty_forms *forms)
{
    return &forms->setting.profile;
}

double ty_forms_gemm_s(const ty_forms *forms, const struct ty_measured_gemm *gemm)
{
    struct kernel kernel;
    measured_gemm_kernel(gemm, &kernel);
    return kernel_form_s(&forms->setting, &kernel);
}

double ty_forms_attention_s(const ty_forms *forms, const struct ty_measured_attention *attention)
{
    struct kernel kernel;
    measured_attention_kernel(attention, &kernel);
    return kernel_form_s(&forms->setting, &kernel);
}

double ty_forms_memory_s(const ty_forms *forms, double bytes)
{
    struct kernel kernel;
    kernel_bytes(&kernel, "", bytes);
    return kernel_form_s(&forms->setting, &kernel);
}

double ty_measured_gemm_flop(const struct ty_measured_gemm *gemm)
{
    struct kernel kernel;
    measured_gemm_kernel(gemm, &kernel);
    return kernel.flop_hw;
}

double ty_measured_attention_flop(const struct ty_measured_attention *attention)
{
    struct kernel kernel;
    measured_attention_kernel(attention, &kernel);
    return kernel.flop_hw;
}

double ty_gpu_peak(const struct ty_gpu *gpu, enum ty_precision precision)
{
    return gpu_peak_flop_per_s(gpu, precision);
}

bool ty_forms_group(const ty_forms *forms, uint32_t ranks, uint32_t ranks_per_domain,
                    struct ty_group *out)
{
    const struct ty_cluster *cluster = &forms->setting.cluster;
    struct group_shape shape;
    if (!comm_shape(cluster, ranks, ranks_per_domain, &shape))
        return false;
    *out = (struct ty_group){.size = ranks,
                             .stride = 1,
                             .ranks_per_domain = shape.ranks_per_domain,
                             .n_domains = shape.n_domains};
    text_format(out->link, sizeof out->link, "%s", link_name(cluster, shape.link));
    return true;
}

double ty_forms_collective_s(const ty_forms *forms, enum ty_collective_op op,
                             const struct ty_group *group, double size_bytes)
{
    struct collective collective = {.op = (enum collective_op)op, .payload_bytes = size_bytes};
    if (!comm_shape(&forms->setting.cluster, group->size, group->ranks_per_domain,
                    &collective.shape))
        return 0.0;
    return collective_time_s(&forms->setting, &collective);
}

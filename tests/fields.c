/* SPDX-License-Identifier: MIT
 * Field tables: every row lies inside its struct, rows do not overlap, names are sound, defaults
 * are what the header promises, and a struct is checked against its table. */
#include "include/trainyard_cost.h"
#include "models/fields.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

static const struct {
    enum ty_kind kind;
    const char *name;
    size_t bytes;
} kinds[] = {
    {TY_KIND_GPU, "gpu", sizeof(struct ty_gpu)},
    {TY_KIND_CLUSTER, "cluster", sizeof(struct ty_cluster)},
    {TY_KIND_MODEL, "model", sizeof(struct ty_model)},
    {TY_KIND_PLAN, "plan", sizeof(struct ty_plan)},
    {TY_KIND_PROFILE, "profile", sizeof(struct ty_profile)},
    {TY_KIND_PRICE, "price", sizeof(struct ty_price)},
};

static size_t size_of(const struct ty_field *field)
{
    switch (field->type) {
    case TY_FIELD_DOUBLE:
        return sizeof(double);
    case TY_FIELD_U64:
        return sizeof(uint64_t);
    case TY_FIELD_BOOL:
        return sizeof(bool);
    case TY_FIELD_TEXT:
        return field->size;
    default:
        return sizeof(uint32_t);
    }
}

/* First row that is wrong, or NULL. */
static const char *unsound(const struct ty_field *fields, size_t n, size_t bytes)
{
    for (size_t i = 0; i < n; i++) {
        const struct ty_field *a = &fields[i];
        bool named = a->type == TY_FIELD_ENUM || a->type == TY_FIELD_FLAGS;
        if (a->size != size_of(a) || a->offset + a->size > bytes || !a->help || !a->help[0])
            return a->path;
        if (named != (a->names != NULL))
            return a->path;
        if ((a->type == TY_FIELD_DOUBLE || a->type == TY_FIELD_U32) && !(a->min < a->max))
            return a->path;
        for (size_t j = i + 1; j < n; j++) {
            const struct ty_field *b = &fields[j];
            bool apart = a->offset + a->size <= b->offset || b->offset + b->size <= a->offset;
            if (!apart || strcmp(a->path, b->path) == 0)
                return b->path;
        }
    }
    return NULL;
}

static void test_tables(void)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t n;
        const struct ty_field *fields = ty_fields(kinds[k].kind, &n);
        const char *bad = unsound(fields, n, kinds[k].bytes);
        ok(n > 10 && !bad, "%s: %zu rows, %s", kinds[k].name, n, bad ? bad : "all sound");
    }
    size_t n;
    const struct ty_field *fields = ty_layer_fields(&n);
    const char *bad = unsound(fields, n, sizeof(struct ty_layer_kind));
    ok(n > 20 && !bad, "layer kind: %zu rows, %s", n, bad ? bad : "all sound");
}

/* Every double member has a row: a struct of NANs set by hand and one of ty_init agree. */
static void test_init(void)
{
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    ok(isnan(plan.moe_imbalance) && plan.tp == 0 && plan.order[0] == '\0' && plan.overlap == 0,
       "plan starts at its markers");
    struct ty_profile profile;
    ty_init(TY_KIND_PROFILE, &profile);
    const double *constants = &profile.gemm_ratio_16;
    size_t n_nan = 0, n = (size_t)(&profile.optimizer_ratio - constants) + 1;
    for (size_t i = 0; i < n; i++)
        n_nan += isnan(constants[i]) != 0;
    ok(n_nan == n, "all %zu constants of a profile start unknown (%zu)", n, n_nan);
    ok(isnan(profile.runtime_bytes) && isnan(profile.usable_ratio), "so do its memory figures");
    struct ty_cluster cluster;
    ty_init(TY_KIND_CLUSTER, &cluster);
    ok(isnan(cluster.gpu.mem_bytes) && isnan(cluster.nic_bytes_per_s) && cluster.gpu.sms == 0,
       "a cluster starts with an unknown GPU inside");
}

static ty_status check_gpu(double mem_bytes, char where[160])
{
    struct ty_gpu gpu;
    fixture_h100(&gpu);
    gpu.mem_bytes = mem_bytes;
    struct ty_error error = {0};
    ty_status status = fields_check(TY_KIND_GPU, &gpu, &error);
    snprintf(where, 160, "%s", error.where);
    return status;
}

static void test_check(void)
{
    char where[160];
    ok(check_gpu(80e9, where) == TY_OK, "a GPU passes");
    ok(check_gpu((double)NAN, where) == TY_OK, "NAN is the default marker");
    const double bad[] = {-1.0, 0.0, (double)INFINITY, -(double)INFINITY, 1e300};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ok(check_gpu(bad[i], where) == TY_ERR_RANGE, "%g bytes of memory are refused", bad[i]);
        same_text(where, "memory.size", "and the field is named");
    }
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    plan.sharding = 17;
    ok(fields_check(TY_KIND_PLAN, &plan, NULL) == TY_ERR_RANGE, "an enum out of its names");
    plan.sharding = TY_SHARDING_HSDP;
    plan.grad_dtype = TY_FP8_PRECISION;
    ok(fields_check(TY_KIND_PLAN, &plan, NULL) == TY_ERR_RANGE, "a gap among the names");
    plan.grad_dtype = TY_FP32_PRECISION;
    ok(fields_check(TY_KIND_PLAN, &plan, NULL) == TY_OK, "the plan passes without them");
    memset(plan.order, 'x', sizeof plan.order);
    ok(fields_check(TY_KIND_PLAN, &plan, NULL) == TY_ERR_RANGE, "a text without an end");
}

int main(void)
{
    test_tables();
    test_init();
    test_check();
    return tap_done();
}

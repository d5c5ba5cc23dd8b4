/* SPDX-License-Identifier: MIT
 * Caches against the shared golden cases: every hit of the textbook sequence, hits per epoch of
 * shuffled epochs exactly, Zipf traces within 0.1 % (last-bit pow), closed forms, and UT-7.4.
 *   cache [FILE]     FILE: cache-cases.json; its generator and policies are described in the file.
 * The expected totals come from an own simulator checked against libCacheSim (see the file). */
#include "models/cache.h"
#include "tests/tap.h"

#include <cjson/cJSON.h>

/* Names in the file and ours. */
static const char *const NAMES[][2] = {{"lru", "lru"},         {"fifo", "fifo"},
                                       {"lfu_incache", "lfu"}, {"lfu_perfect", "lfu-perfect"},
                                       {"minio", "no-evict"},  {"minio_noevict", "no-evict"},
                                       {"belady", "belady"},   {"belady_bypass", "belady-bypass"},
                                       {"clock", "clock"}};

static const struct cache_policy *policy_named(const char *name)
{
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (strcmp(NAMES[i][0], name) == 0)
            return cache_policy_of(NAMES[i][1]);
    return NULL;
}

static double number(const cJSON *object, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static const char *text(const cJSON *object, const char *key)
{
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return value ? value : "";
}

static cJSON *read_json(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    const size_t capacity = 1 << 20;
    char *bytes = malloc(capacity);
    const size_t n = bytes ? fread(bytes, 1, capacity, file) : 0;
    fclose(file);
    cJSON *json = cJSON_ParseWithLength(bytes, n);
    free(bytes);
    return json;
}

/* ---- textbook ------------------------------------------------------------------------------ */

static void textbook(const cJSON *book)
{
    const cJSON *sequence = cJSON_GetObjectItemCaseSensitive(book, "sequence"), *item, *result;
    uint32_t requests[32], n = 0;
    cJSON_ArrayForEach(item, sequence)
    {
        if (n < 32)
            requests[n++] = (uint32_t)cJSON_GetNumberValue(item);
    }
    cJSON_ArrayForEach(result, cJSON_GetObjectItemCaseSensitive(book, "results"))
    {
        const char *name = text(result, "policy");
        const uint32_t capacity = (uint32_t)number(result, "capacity");
        const struct cache_run run = {policy_named(name), 6, capacity, requests, n};
        bool hit[32] = {0}, same = run.policy != NULL;
        uint64_t n_hits = 0;
        same = same && cache_replay(&run, NULL, hit, &n_hits) == TY_OK;
        uint32_t i = 0;
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(result, "hit_flags"))
        {
            same = same && i < n && hit[i] == (cJSON_GetNumberValue(item) != 0.0);
            i++;
        }
        ok(same && i == n && (double)(n - n_hits) == number(result, "misses"),
           "textbook sequence, %s, %u places: every hit", name, capacity);
    }
}

/* ---- traces -------------------------------------------------------------------------------- */

struct trace {
    uint32_t n_items, n_requests, part; /* part: requests of an epoch, or half of the trace */
    uint32_t *requests;
    double *p; /* [n_items] for Zipf, else NULL */
};

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static void fill_epochs(struct trace *trace, uint64_t seed)
{
    const uint32_t n = trace->n_items;
    trace->part = n;
    for (uint32_t start = 0; start < trace->n_requests; start += n) {
        uint32_t *p = trace->requests + start;
        for (uint32_t i = 0; i < n; i++)
            p[i] = i;
        for (uint32_t i = n - 1; i > 0; i--) {
            const uint32_t j = (uint32_t)(splitmix64(&seed) % (i + 1)), kept = p[i];
            p[i] = p[j];
            p[j] = kept;
        }
    }
}

static void fill_zipf(struct trace *trace, double alpha, uint64_t seed)
{
    const uint32_t n = trace->n_items;
    trace->part = trace->n_requests / 2;
    double *cdf = malloc(n * sizeof *cdf), sum = 0.0;
    trace->p = malloc(n * sizeof *trace->p);
    for (uint32_t i = 0; i < n; i++)
        cdf[i] = sum += pow(i + 1.0, -alpha);
    for (uint32_t i = 0; i < n; i++)
        trace->p[i] = pow(i + 1.0, -alpha) / sum;
    for (uint32_t r = 0; r < trace->n_requests; r++) {
        const double u = (double)(splitmix64(&seed) >> 11) * 0x1p-53 * sum;
        uint32_t low = 0, high = n - 1;
        while (low < high) {
            const uint32_t middle = (low + high) / 2;
            if (cdf[middle] > u)
                high = middle;
            else
                low = middle + 1;
        }
        trace->requests[r] = low;
    }
    free(cdf);
}

static uint64_t count(const bool *hit, uint32_t from, uint32_t to)
{
    uint64_t n = 0;
    for (uint32_t i = from; i < to; i++)
        n += hit[i];
    return n;
}

/* Hits of every epoch, exactly. */
static void check_epochs(const struct trace *trace, const cJSON *policy, const bool *hit,
                         const char *what)
{
    const cJSON *expected;
    uint32_t epoch = 0, n_wrong = 0;
    cJSON_ArrayForEach(expected, cJSON_GetObjectItemCaseSensitive(policy, "hits_per_epoch"))
    {
        const uint32_t start = epoch++ * trace->part;
        n_wrong += (double)count(hit, start, start + trace->part) != cJSON_GetNumberValue(expected);
    }
    ok(n_wrong == 0 && epoch == trace->n_requests / trace->part, "%s: hits of %u epochs", what,
       epoch);
}

static void check_policy(const struct trace *trace, const cJSON *policy, uint32_t capacity,
                         const char *label)
{
    char what[160];
    snprintf(what, sizeof what, "%s, %s", label, policy->string);
    const struct cache_run run = {policy_named(policy->string), trace->n_items, capacity,
                                  trace->requests, trace->n_requests};
    bool *hit = calloc(trace->n_requests, sizeof *hit);
    uint64_t n_hits = 0;
    if (!run.policy || cache_replay(&run, NULL, hit, &n_hits) != TY_OK) {
        ok(false, "%s: replay", what);
    } else if (trace->p) {
        near((double)n_hits, number(policy, "hits"), 1e-3, what);
        near((double)count(hit, trace->part, trace->n_requests), number(policy, "hits_second_half"),
             1e-3, what);
    } else {
        ok((double)n_hits == number(policy, "hits"), "%s: total hits", what);
        check_epochs(trace, policy, hit, what);
    }
    free(hit);
}

/* Half a unit of the last printed digit. */
static void check_forms(const struct trace *trace, const cJSON *form, uint32_t capacity,
                        const char *label)
{
    char what[160];
    if (!trace->p) {
        const double c = (double)capacity / trace->n_items;
        snprintf(what, sizeof what, "%s: closed form of LRU", label);
        within(cache_lru_hit_ratio(c), number(form, "lru"), 5.1e-7, what);
        return;
    }
    double stay, top = 0.0;
    snprintf(what, sizeof what, "%s: Che, LRU", label);
    within(cache_che_lru_hit_ratio(trace->p, trace->n_items, capacity, &stay),
           number(form, "lru_che"), 5.1e-7, what);
    within(stay, number(form, "lru_che_T"), 5.1e-4, what);
    snprintf(what, sizeof what, "%s: Che, FIFO", label);
    within(cache_che_fifo_hit_ratio(trace->p, trace->n_items, capacity), number(form, "fifo_che"),
           5.1e-7, what);
    for (uint32_t i = 0; i < capacity; i++)
        top += trace->p[i];
    within(top, number(form, "lfu_perfect_top_c"), 5.1e-7, "the generator's probabilities");
}

static void check_case(const cJSON *kase)
{
    const bool zipf = strcmp(text(kase, "kind"), "zipf_irm") == 0;
    struct trace trace = {.n_items = (uint32_t)number(kase, "n_items")};
    trace.n_requests = zipf ? (uint32_t)number(kase, "requests")
                            : trace.n_items * (uint32_t)number(kase, "epochs");
    trace.requests = malloc(trace.n_requests * sizeof *trace.requests);
    const uint64_t seed = (uint64_t)number(kase, "seed");
    const uint32_t capacity = (uint32_t)number(kase, "capacity");
    if (zipf)
        fill_zipf(&trace, number(kase, "alpha"), seed);
    else
        fill_epochs(&trace, seed);
    char label[96];
    snprintf(label, sizeof label, "%s %u of %u", zipf ? "zipf" : "epochs", capacity, trace.n_items);
    const cJSON *item, *form = cJSON_GetObjectItemCaseSensitive(kase, "closed_form");
    uint32_t i = 0;
    bool same = true;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(kase, "first_requests")) same =
        same && trace.requests[i++] == (uint32_t)cJSON_GetNumberValue(item);
    ok(same && i == 8, "%s: the generator is that of the file", label);
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(kase, "policies"))
        check_policy(&trace, item, capacity, label);
    if (form)
        check_forms(&trace, form, capacity, label);
    free(trace.requests);
    free(trace.p);
}

/* ---- without the file ------------------------------------------------------------------------ */

/* UT-7.4, to its printed digits. */
static void closed_forms(void)
{
    const double table[][2] = {
        {0.1, 0.0052}, {0.35, 0.0700}, {0.5, 0.1534}, {0.8, 0.4781}, {0.9, 0.6697}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        within(cache_lru_hit_ratio(table[i][0]), table[i][1], 5.1e-5, "UT-7.4: LRU, shuffled");
    ok(cache_lru_hit_ratio(0.0) == 0.0 && cache_lru_hit_ratio(1.0) == 1.0, "LRU at both ends");
    ok(cache_pinned_hit_ratio(0.3) == 0.3 && cache_pinned_hit_ratio(2.0) == 1.0, "pinned");
    ok(cache_scan_hit_ratio(0.99) == 0.0 && cache_scan_hit_ratio(1.0) == 1.0, "repeated scan");
}

/* LRU replayed: N = 20000 as in UT-7.4, 6 epochs after the first, within 0.003 of the form. */
static void lru_replayed(void)
{
    struct trace trace = {.n_items = 20000, .n_requests = 7 * 20000};
    trace.requests = malloc(trace.n_requests * sizeof *trace.requests);
    fill_epochs(&trace, 99);
    for (int percent = 10; percent <= 90; percent += 10) {
        const struct cache_run run = {cache_policy_of("lru"), trace.n_items,
                                      200 * (uint32_t)percent, trace.requests, trace.n_requests};
        uint64_t n_hits = 0;
        ok(cache_replay(&run, NULL, NULL, &n_hits) == TY_OK, "LRU replay");
        within((double)n_hits / (6.0 * trace.n_items), cache_lru_hit_ratio(percent / 100.0), 0.003,
               "LRU: closed form against the replay");
    }
    free(trace.requests);
}

/* Policies without a closed form are replayed: FIFO in 8 epochs lies near the steady ratios of the
 * shared cases (0.1917 at 0.5, 0.5699 at 0.75), one epoch of 4,000 items within 0.02. */
static void shuffled(void)
{
    double ratio = 0.0;
    ok(cache_shuffled_hit_ratio(cache_policy_of("fifo"), 0.5, NULL, &ratio) == TY_OK, "replayed");
    within(ratio, 0.1917, 0.02, "FIFO, half of the items");
    ok(cache_shuffled_hit_ratio(cache_policy_of("fifo"), 0.75, NULL, &ratio) == TY_OK, "replayed");
    within(ratio, 0.5699, 0.02, "FIFO, three quarters of the items");
    ok(cache_shuffled_hit_ratio(cache_policy_of("lru"), 0.5, NULL, &ratio) == TY_OK &&
           ratio == cache_lru_hit_ratio(0.5),
       "LRU takes the closed form");
    ok(cache_shuffled_hit_ratio(cache_policy_of("lru"), (double)NAN, NULL, &ratio) == TY_ERR_RANGE,
       "NAN is refused");
}

static bool test_bypass_is_best(const uint32_t *requests, uint32_t n)
{
    uint64_t best = 0, hits = 0;
    bool good = true;
    struct cache_run run = {cache_policy_of("belady-bypass"), 64, 16, requests, n};
    good = good && cache_replay(&run, NULL, NULL, &best) == TY_OK;
    for (size_t i = 0; (run.policy = cache_policy_at(i)) != NULL; i++)
        good = good && cache_replay(&run, NULL, NULL, &hits) == TY_OK && hits <= best;
    return good;
}

static void properties(void)
{
    uint32_t requests[4096], scan[400];
    uint64_t seed = 5, hits = 1;
    bool best = true, none = true, all = true;
    for (int trial = 0; trial < 20; trial++) {
        for (uint32_t i = 0; i < 4096; i++)
            requests[i] = (uint32_t)(splitmix64(&seed) % 64 * (splitmix64(&seed) % 64) / 64);
        best = best && test_bypass_is_best(requests, 4096);
    }
    ok(best, "no policy beats Belady with bypass, 20 random traces");
    for (uint32_t i = 0; i < 400; i++)
        scan[i] = i % 100;
    for (size_t i = 0; cache_policy_at(i); i++) {
        struct cache_run run = {cache_policy_at(i), 100, 0, scan, 400};
        none = none && cache_replay(&run, NULL, NULL, &hits) == TY_OK && hits == 0;
        run.capacity = 100;
        all = all && cache_replay(&run, NULL, NULL, &hits) == TY_OK && hits == 300;
    }
    ok(none, "no room: no hit, every policy");
    ok(all, "room for all: only the first epoch misses, every policy");
    struct cache_run run = {cache_policy_of("lru"), 100, 99, scan, 400};
    ok(cache_replay(&run, NULL, NULL, &hits) == TY_OK && hits == 0, "LRU on a scan never hits");
    run.n_items = 99;
    ok(cache_replay(&run, NULL, NULL, &hits) == TY_ERR_RANGE, "an item that does not exist");
    ok(cache_policy_of("mru") == NULL, "no such policy");
}

int main(int argc, char **argv)
{
    closed_forms();
    lru_replayed();
    shuffled();
    properties();
    cJSON *json = read_json(argc > 1 ? argv[1] : shared_path("data/cache-cases.json"));
    if (!json) {
        skip("golden cache cases", "data/cache-cases.json of the shared material is absent");
        return tap_done();
    }
    textbook(cJSON_GetObjectItemCaseSensitive(json, "textbook"));
    const cJSON *kase;
    cJSON_ArrayForEach(kase, cJSON_GetObjectItemCaseSensitive(json, "cases")) check_case(kase);
    cJSON_Delete(json);
    return tap_done();
}

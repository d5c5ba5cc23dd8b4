/* SPDX-License-Identifier: MIT
 * A cluster divided among jobs. References: handbook UT-9.2, sums by hand, and brute force over all
 * divisions of small cases. */
#include "include/trainyard_split.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

enum { N_CASES = 200, MAX_UNITS = 16 };

static uint64_t state;
static double draw(void) /* [0, 1), splitmix64 */
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static struct ty_split pool_of(const struct ty_split_job *jobs, uint32_t n_jobs, uint32_t n_units,
                               int objective)
{
    struct ty_split split;
    ty_split_init(&split);
    split.jobs = jobs;
    split.n_jobs = n_jobs;
    split.n_units = n_units;
    split.objective = objective;
    return split;
}

/* ---- handbook ----------------------------------------------------------------------------- */

static void handbook(void)
{
    double a[17] = {0}, b[17] = {0};
    for (int g = 1; g <= 16; g++) {
        a[g] = g / (1 + 0.02 * (g - 1));
        b[g] = 2 * g / (1 + 0.10 * (g - 1));
    }
    struct ty_split_job jobs[2];
    ty_split_job_init(&jobs[0]);
    ty_split_job_init(&jobs[1]);
    jobs[0].tokens_per_s = a;
    jobs[1].tokens_per_s = b;
    struct ty_split split = pool_of(jobs, 2, 16, TY_SPLIT_THROUGHPUT);
    struct ty_split_result out;
    jobs[0].weight = a[8]; /* equal shares of 8: weight / e = 1, the plain sum */
    jobs[1].weight = b[8];
    ok(ty_split_run(&split, &out, NULL) == TY_OK && out.share[0].units == 9 &&
           out.share[1].units == 7,
       "UT-9.2 sum: 9 and 7");
    within(out.value, 16.5086, 5e-5, "UT-9.2 sum: 16.5086");
    ok(out.bound == out.value, "and it is proven");
    jobs[0].weight = a[16] / a[8]; /* normalised by the 16-GPU value */
    jobs[1].weight = b[16] / b[8];
    split.objective = TY_SPLIT_MAX_MIN;
    ok(ty_split_run(&split, &out, NULL) == TY_OK && out.share[0].units == 9, "UT-9.2 max-min: 9");
    within(out.value, 0.63039, 5e-6, "UT-9.2 max-min: 0.63039");
}

/* ---- brute force over units --------------------------------------------------------------- */

struct small {
    double curve[3][MAX_UNITS + 1];
    struct ty_split_job job[3];
    uint32_t n_units;
};

/* Three jobs with random, not always concave curves that some counts lack. */
static void fill(struct small *s)
{
    s->n_units = 3 + (uint32_t)(8 * draw());
    for (int j = 0; j < 3; j++) {
        struct ty_split_job *job = &s->job[j];
        ty_split_job_init(job);
        for (uint32_t k = 1; k <= s->n_units; k++)
            s->curve[j][k] = draw() < 0.2 ? 0.0 : pow(k, 0.3 + draw()) * (0.8 + 0.4 * draw());
        s->curve[j][1] = 1.0;
        job->tokens_per_s = s->curve[j];
        job->weight = 0.5 + draw();
        job->tokens = 100 * (1 + draw());
        job->min_units = draw() < 0.5 ? 1 : 0;
        job->max_units = draw() < 0.3 ? 1 + (uint32_t)(s->n_units * draw()) : 0;
        if (draw() < 0.3)
            job->deadline_s = 60 + 200 * draw();
    }
}

/* The same by hand: the best line between two sizes, through nothing at 0. */
static double equal_share(const struct small *s, int j)
{
    const uint32_t most = s->job[j].max_units ? s->job[j].max_units : s->n_units;
    const double share = s->n_units / 3.0;
    double best = 0.0;
    for (uint32_t a = 0; a <= most && a <= s->n_units; a++)
        for (uint32_t b = a; b <= most && b <= s->n_units; b++) {
            const double x = a ? s->curve[j][a] : 0.0, y = b ? s->curve[j][b] : 0.0;
            if (a <= share)
                best = fmax(best, x);
            if (a <= share && b >= share && b > a)
                best = fmax(best, x + (y - x) * (share - a) / (b - a));
        }
    return best;
}

static bool legal(const struct small *s, const uint32_t *k)
{
    for (int j = 0; j < 3; j++) {
        const struct ty_split_job *job = &s->job[j];
        const double speed = k[j] ? s->curve[j][k[j]] : 0.0;
        if (k[j] < job->min_units || (job->max_units && k[j] > job->max_units) ||
            (k[j] && speed == 0.0))
            return false;
        if (!isnan(job->deadline_s) && !(speed * job->deadline_s >= job->tokens))
            return false;
    }
    return k[0] + k[1] + k[2] <= s->n_units;
}

static double value_of(const struct small *s, const uint32_t *k, const double *e, int objective)
{
    double sum = 0.0, least = INFINITY, end_s = 0.0;
    for (int j = 0; j < 3; j++) {
        const double speed = k[j] ? s->curve[j][k[j]] : 0.0;
        sum += s->job[j].weight * speed / e[j];
        least = fmin(least, speed / (s->job[j].weight * e[j]));
        end_s = fmax(end_s, s->job[j].tokens / speed);
    }
    return objective == TY_SPLIT_THROUGHPUT ? sum : objective == TY_SPLIT_MAX_MIN ? least : -end_s;
}

static bool agrees(const struct small *s, int objective)
{
    double e[3], best = -INFINITY;
    uint32_t k[3];
    for (int j = 0; j < 3; j++)
        e[j] = equal_share(s, j);
    for (k[0] = 0; k[0] <= s->n_units; k[0]++)
        for (k[1] = 0; k[1] <= s->n_units; k[1]++)
            for (k[2] = 0; k[2] <= s->n_units; k[2]++)
                if (legal(s, k))
                    best = fmax(best, value_of(s, k, e, objective));
    const struct ty_split split = pool_of(s->job, 3, s->n_units, objective);
    struct ty_split_result out;
    const ty_status status = ty_split_run(&split, &out, NULL);
    if (status == TY_ERR_INFEASIBLE)
        return isinf(best) || best == 0.0; /* max-min: somebody gets nothing */
    if (status != TY_OK)
        return false;
    for (int j = 0; j < 3; j++)
        k[j] = out.share[j].units;
    const double value = objective == TY_SPLIT_FINISH ? -out.value : out.value;
    return fabs(value - best) <= 1e-9 * fabs(best) && legal(s, k) &&
           fabs(value_of(s, k, e, objective) - best) <= 1e-9 * fabs(best);
}

static void against_brute_force(void)
{
    for (int objective = 0; objective < TY_N_SPLIT_OBJECTIVES; objective++) {
        int wrong = 0;
        state = 17;
        for (int i = 0; i < N_CASES; i++) {
            struct small s = {0};
            fill(&s);
            wrong += !agrees(&s, objective);
        }
        ok(wrong == 0, "%s: the best of all divisions in %d random cases (%d differ)",
           ty_split_objective_name(objective), N_CASES, wrong);
    }
}

/* ---- cores, cache, storage ---------------------------------------------------------------- */

struct pair {
    double curve[2][7];
    struct ty_split_job job[2];
    struct ty_split split;
};

static void fill_pair(struct pair *p, int objective)
{
    for (int j = 0; j < 2; j++) {
        ty_split_job_init(&p->job[j]);
        p->curve[j][0] = 0.0;
        for (int k = 1; k <= 6; k++)
            p->curve[j][k] = p->curve[j][k - 1] + draw();
        p->job[j].tokens_per_s = p->curve[j];
        p->job[j].cpu_s = draw();
        p->job[j].read_bytes = draw();
        p->job[j].data_bytes = 1 + draw();
        p->job[j].tokens = 1 + draw();
        p->job[j].weight = 0.5 + draw();
    }
    p->split = pool_of(p->job, 2, 6, objective);
    p->split.cores = 2 * draw();
    p->split.cache_bytes = 2 * draw();
    p->split.read_bytes_per_s = draw();
}

/* At a level z each runs at z s_j: z is the least of what units, cores and storage allow. */
static double level_by_grid(const struct pair *p, const double *s)
{
    enum { GRID = 400 };
    double best = 0.0;
    for (int k = 1; k < 6; k++)
        for (int i = 0; i <= GRID; i++) {
            const double cache[2] = {p->split.cache_bytes * i / GRID,
                                     p->split.cache_bytes * (GRID - i) / GRID};
            double z = fmin(p->curve[0][k] / s[0], p->curve[1][6 - k] / s[1]), cores = 0, rate = 0;
            for (int j = 0; j < 2; j++) {
                const double hit = fmin(1.0, cache[j] / p->job[j].data_bytes);
                cores += s[j] * p->job[j].cpu_s;
                rate += s[j] * p->job[j].read_bytes * (1.0 - hit);
            }
            z = fmin(z, fmin(p->split.cores / cores, p->split.read_bytes_per_s / rate));
            best = fmax(best, z);
        }
    return best;
}

/* No resource is given twice, nobody runs faster than his share allows. */
static bool adds_up(const struct pair *p, const struct ty_split_result *out)
{
    double cores = 0, cache = 0, rate = 0;
    bool good = true;
    for (int j = 0; j < 2; j++) {
        const struct ty_split_share *share = &out->share[j];
        const double hit = fmin(1.0, share->cache_bytes / p->job[j].data_bytes);
        cores += share->tokens_per_s * p->job[j].cpu_s;
        rate += share->tokens_per_s * p->job[j].read_bytes * (1.0 - hit);
        cache += share->cache_bytes;
        good = good && share->tokens_per_s <= p->curve[j][share->units] * (1 + 1e-9);
    }
    return good && out->share[0].units + out->share[1].units <= 6 &&
           cores <= p->split.cores * (1 + 1e-9) && cache <= p->split.cache_bytes * (1 + 1e-9) &&
           rate <= p->split.read_bytes_per_s * (1 + 1e-9);
}

static void level_of_all_resources(int objective)
{
    int wrong = 0, beaten = 0, unsound = 0;
    state = 23;
    for (int i = 0; i < N_CASES; i++) {
        struct pair p;
        struct ty_split_result out;
        fill_pair(&p, objective);
        if (ty_split_run(&p.split, &out, NULL) != TY_OK) {
            wrong++;
            continue;
        }
        double s[2];
        for (int j = 0; j < 2; j++)
            s[j] = objective == TY_SPLIT_FINISH ? p.job[j].tokens
                                                : p.job[j].weight * out.share[j].equal_tokens_per_s;
        const double grid = level_by_grid(&p, s);
        const double level = objective == TY_SPLIT_FINISH ? 1.0 / out.value : out.value;
        beaten += grid > level * (1 + 1e-9);
        wrong += grid < level * (1 - 0.02); /* the grid is coarse in the cache */
        unsound += !adds_up(&p, &out);
    }
    ok(beaten == 0, "%s with cores, cache, storage: no division of a grid is better (%d)",
       ty_split_objective_name(objective), beaten);
    ok(wrong == 0, "... and the grid comes within 2 %% (%d)", wrong);
    ok(unsound == 0, "... and shares add up (%d)", unsound);
}

/* Best gain x in 0 <= x <= most, cpu x <= P, q x <= B: one of the corners. */
static double best_corner(const struct pair *p, const double *gain, const double *most)
{
    const double row[4][3] = {
        {1, 0, most[0]},
        {0, 1, most[1]},
        {p->job[0].cpu_s, p->job[1].cpu_s, p->split.cores},
        {p->job[0].read_bytes, p->job[1].read_bytes, p->split.read_bytes_per_s}};
    const double axis[2][3] = {{1, 0, 0}, {0, 1, 0}};
    double best = 0.0;
    for (int a = 0; a < 6; a++)
        for (int b = 0; b < a; b++) {
            const double *m = a < 4 ? row[a] : axis[a - 4], *n = b < 4 ? row[b] : axis[b - 4];
            const double det = m[0] * n[1] - m[1] * n[0];
            const double x = (m[2] * n[1] - m[1] * n[2]) / det,
                         y = (m[0] * n[2] - m[2] * n[0]) / det;
            bool inside = x >= -1e-12 && y >= -1e-12;
            for (int r = 0; r < 4; r++)
                inside = inside && row[r][0] * x + row[r][1] * y <= row[r][2] * (1 + 1e-12);
            if (inside)
                best = fmax(best, gain[0] * x + gain[1] * y);
        }
    return best;
}

static void throughput_of_all_resources(void)
{
    int inexact = 0, above = 0, outside = 0, unproven = 0;
    double gap = 0.0;
    state = 29;
    for (int i = 0; i < N_CASES; i++) {
        struct pair p;
        struct ty_split_result out;
        fill_pair(&p, TY_SPLIT_THROUGHPUT);
        p.job[0].data_bytes = p.job[1].data_bytes = 0.0; /* no cache: a linear programme */
        if (ty_split_run(&p.split, &out, NULL) != TY_OK) {
            inexact++;
            continue;
        }
        double gain[2], best = 0.0, most[2];
        for (int j = 0; j < 2; j++) {
            gain[j] = p.job[j].weight / out.share[j].equal_tokens_per_s;
            most[j] = p.curve[j][out.share[j].units];
        }
        const double here = best_corner(&p, gain, most);
        for (int k = 0; k <= 6; k++) {
            const double speeds[2] = {p.curve[0][k], p.curve[1][6 - k]};
            best = fmax(best, best_corner(&p, gain, speeds));
        }
        inexact += fabs(out.value - here) > 1e-9 * here;
        above += out.value > best * (1 + 1e-9);
        outside += best > out.bound * (1 + 1e-9);
        unproven += out.value < best * (1 - 1e-9);
        gap = fmax(gap, 1 - out.value / best);
    }
    ok(inexact == 0, "throughput: cores and storage divided as the linear programme (%d)", inexact);
    ok(above == 0 && outside == 0, "the optimum over units too lies between value and bound");
    ok(gap < 0.15, "and is missed in %d of %d by %.1f %% at most", unproven, N_CASES, 100 * gap);
}

/* One job of two reads much; the cache goes where a byte saves most. By hand: data sets of 10 and
 * 20 bytes, 1 and 4 bytes a token, both at 1 token/s: a cached byte saves 0.1 and 0.2 bytes/s. */
static void cache_by_hand(void)
{
    const double one[] = {0, 1, 1};
    struct ty_split_job jobs[2];
    for (int j = 0; j < 2; j++) {
        ty_split_job_init(&jobs[j]);
        jobs[j].tokens_per_s = one;
        jobs[j].read_bytes = j ? 4 : 1;
        jobs[j].data_bytes = j ? 20 : 10;
    }
    struct ty_split split = pool_of(jobs, 2, 2, TY_SPLIT_THROUGHPUT);
    struct ty_split_result out;
    split.cache_bytes = 25;
    ok(ty_split_run(&split, &out, NULL) == TY_OK, "two readers");
    near(out.share[1].cache_bytes, 20, 1e-12, "20 bytes to the reader of 4 bytes a token");
    near(out.share[0].cache_bytes, 5, 1e-12, "the other 5 to the second");
    near(out.share[0].read_bytes_per_s, 0.5, 1e-12, "which reads half from storage");
    split.read_bytes_per_s = 0.25;
    ok(ty_split_run(&split, &out, NULL) == TY_OK && out.share[0].limit == TY_SPLIT_STORAGE,
       "with too little bandwidth storage limits");
    near(out.share[0].tokens_per_s, 0.5, 1e-9, "and halves its speed");
    near(out.share[0].gain[TY_SPLIT_STORAGE], 0.5, 1e-9, "1 GB/s more brings it back");
    const double convex[] = {0, 0.1, 1}; /* by its chord: half cached, half of the hits */
    jobs[0].hit = convex;
    jobs[0].n_hits = 3;
    split.read_bytes_per_s = INFINITY;
    ok(ty_split_run(&split, &out, NULL) == TY_OK, "a convex hit curve");
    near(out.share[0].read_bytes_per_s, 0.5, 1e-12, "counts by its concave hull");
}

/* ---- stages ------------------------------------------------------------------------------- */

/* Earliest end over all orders of preparation and all divisions. */
static double best_end(const struct small *s, double cores)
{
    static const int order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    double best = INFINITY;
    for (int o = 0; o < 6; o++)
        for (uint32_t a = 1; a <= s->n_units; a++)
            for (uint32_t b = 1; a + b < s->n_units; b++) {
                const uint32_t k[3] = {a, b, s->n_units - a - b};
                double from_s = 0.0, end_s = 0.0;
                for (int i = 0; i < 3; i++) {
                    const int j = order[o][i];
                    from_s += s->job[j].prepare_cpu_s / cores;
                    double speed = 0.0;
                    for (uint32_t g = 1; g <= k[j]; g++)
                        speed = fmax(speed, s->curve[j][g]);
                    end_s = fmax(end_s, (s->job[j].prepare_cpu_s > 0 ? from_s : 0) +
                                            s->job[j].tokens / speed);
                }
                best = fmin(best, end_s);
            }
    return best;
}

static void shifted_stages(void)
{
    int wrong = 0, slower = 0;
    state = 31;
    for (int i = 0; i < N_CASES; i++) {
        struct small s = {0};
        struct ty_split_result out;
        fill(&s);
        for (int j = 0; j < 3; j++) {
            s.job[j].min_units = s.job[j].max_units = 0;
            s.job[j].deadline_s = NAN;
            s.job[j].prepare_cpu_s = draw() < 0.2 ? 0 : 200 * draw();
        }
        struct ty_split split = pool_of(s.job, 3, s.n_units, TY_SPLIT_FINISH);
        split.cores = 4;
        if (ty_split_run(&split, &out, NULL) != TY_OK) {
            wrong++;
            continue;
        }
        const double want = best_end(&s, 4);
        wrong += fabs(out.value - want) > 1e-9 * want;
        slower += out.in_row_s < out.value * (1 - 1e-12);
        for (int j = 0; j < 3; j++)
            wrong += out.share[j].finish_s > want * (1 + 1e-9);
    }
    ok(wrong == 0, "preparations in the best of all orders in %d random cases (%d differ)", N_CASES,
       wrong);
    ok(slower == 0, "never later than all preparing first");
}

/* Two equal jobs, 4 units, X = k, 40 tokens, 10 core-seconds to prepare on 1 core. By hand: one
 * starts at 10, the other at 20; with 1 and 3 units they end at 50 and 33, with 2 and 2 at 30 and
 * 40. All preparing first: both at 20, end at 40. Loaders of 1/20 core-second a token need
 * (2 + 2) / 20 = 0.2 cores, so preparations get 0.8. */
static void stages_by_hand(void)
{
    const double linear[] = {0, 1, 2, 3, 4};
    struct ty_split_job jobs[2];
    for (int j = 0; j < 2; j++) {
        ty_split_job_init(&jobs[j]);
        jobs[j].tokens_per_s = linear;
        jobs[j].tokens = 40;
        jobs[j].prepare_cpu_s = 10;
    }
    struct ty_split split = pool_of(jobs, 2, 4, TY_SPLIT_FINISH);
    struct ty_split_result out;
    split.cores = 1;
    ok(ty_split_run(&split, &out, NULL) == TY_OK, "two jobs that prepare");
    near(out.value, 40, 1e-9, "end at 40 s");
    near(out.in_row_s, 40, 1e-9, "as when both prepare first");
    near(out.share[0].start_s + out.share[1].start_s, 30, 1e-9, "training starts at 10 and 20 s");
    jobs[1].prepare_cpu_s = 30; /* A at 10 with 1 unit: 50. B at 40 with 3 units: 53.3 */
    ok(ty_split_run(&split, &out, NULL) == TY_OK, "one prepares longer");
    near(out.value, 40 + 40.0 / 3, 1e-9, "ends at 53.3 s");
    near(out.in_row_s, 60, 1e-9, "all preparing first: 60 s");
    near(out.equal, 80, 1e-9, "on half of everything: 2 x 30 + 40 / 2 s");
}

/* ---- gains, refusals ---------------------------------------------------------------------- */

static void gains_by_hand(void)
{
    const double a[] = {0, 10, 18, 24}, b[] = {0, 5, 0, 9};
    struct ty_split_job jobs[2];
    ty_split_job_init(&jobs[0]);
    ty_split_job_init(&jobs[1]);
    jobs[0].tokens_per_s = a;
    jobs[1].tokens_per_s = b;
    jobs[1].min_units = 1;
    struct ty_split split = pool_of(jobs, 2, 3, TY_SPLIT_THROUGHPUT);
    struct ty_split_result out;
    ok(ty_split_run(&split, &out, NULL) == TY_OK && out.share[0].units == 2, "2 and 1 units");
    near(out.share[0].equal_tokens_per_s, 14, 1e-12, "1.5 units are half way from 10 to 18");
    near(out.share[1].equal_tokens_per_s, 6, 1e-12, "or a quarter of the way from 5 to 9");
    near(out.share[0].gain[TY_SPLIT_GPUS], 6, 1e-12, "a third unit brings 6");
    ok(out.share[1].gain[TY_SPLIT_GPUS] == 0 && out.share[1].next_units == 3,
       "a second brings the other nothing, two more do");
    jobs[0].cpu_s = 1;
    split.cores = 12;
    ok(ty_split_run(&split, &out, NULL) == TY_OK && out.share[0].limit == TY_SPLIT_CORES,
       "too few cores");
    near(out.share[0].tokens_per_s, 12, 1e-9, "12 tokens/s on 12 cores");
    near(out.share[0].gain[TY_SPLIT_CORES], 1, 1e-6, "one core more, one token more");
    ok(out.share[0].gain[TY_SPLIT_GPUS] == 0, "and more GPUs bring nothing");
}

static void refused(struct ty_split_job *job, ty_status want, const char *word)
{
    struct ty_split split = pool_of(job, 1, 2, TY_SPLIT_THROUGHPUT);
    struct ty_split_result out;
    struct ty_error error = {0};
    const ty_status status = ty_split_run(&split, &out, &error);
    ok(status == want && (strstr(error.text, word) || strstr(error.where, word)),
       "refused: %s (%s: %s)", word, error.where, error.text);
}

static void refusals(void)
{
    const double curve[] = {0, 1, 2}, none[] = {0, 0, 0}, bad[] = {0, NAN, 1},
                 falling[] = {0, 1, 0};
    const struct ty_split_job good = {
        .tokens_per_s = curve, .weight = 1, .tokens = (double)NAN, .deadline_s = (double)NAN};
    struct ty_split_job job = good;
    job.weight = 0;
    refused(&job, TY_ERR_RANGE, "weight");
    job = good;
    job.deadline_s = 5;
    refused(&job, TY_ERR_RANGE, "tokens");
    job.tokens = 100;
    refused(&job, TY_ERR_INFEASIBLE, "deadlines");
    job = good;
    job.tokens_per_s = bad;
    refused(&job, TY_ERR_RANGE, "tokens_per_s");
    job.tokens_per_s = none;
    refused(&job, TY_ERR_INFEASIBLE, "no size");
    job = good;
    job.prepare_cpu_s = 1;
    refused(&job, TY_ERR_RANGE, "prepare");
    job = good;
    job.hit = falling;
    job.n_hits = 3;
    refused(&job, TY_ERR_RANGE, "hit");
    job = good;
    job.min_units = 3;
    refused(&job, TY_ERR_INFEASIBLE, "jobs[0]");
}

/* ---- curve -------------------------------------------------------------------------------- */

static void curve_of_search(void)
{
    static struct ty_search search;
    static struct ty_model model;
    static struct ty_cluster cluster;
    static struct ty_profile profile;
    fixture_llama3_8b(&model);
    fixture_dgx_h100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    search = (struct ty_search){.model = &model, .cluster = &cluster, .profile = &profile};
    ty_init(TY_KIND_PLAN, &search.space.fixed);
    search.space.fixed.gbs = 64;
    search.space.fixed.seq = 4096;
    search.space.tp = (struct ty_values){.n = 2, .value = {1, 2}};
    search.space.pp = search.space.vpp = (struct ty_values){.n = 1, .value = {1}};
    double curve[5];
    struct ty_plan plans[5];
    ok(ty_split_curve(&search, 8, 4, curve, plans, NULL) == TY_OK, "a curve by search");
    for (uint32_t k = 1; k <= 4; k++) {
        struct ty_search one = search;
        struct ty_search_result result = {0};
        one.space.n_gpus = (struct ty_values){.n = 1, .value = {8 * k}};
        one.exhaustive = true;
        const bool found = ty_search_run(&one, &result, NULL) == TY_OK;
        near(curve[k], found ? result.best[0].tokens_per_s : 0.0, 1e-12,
             "the best plan of a count");
        ty_search_free(&result);
    }
    search.space.n_gpus = (struct ty_values){.n = 1, .value = {16}};
    ok(ty_split_curve(&search, 8, 4, curve, NULL, NULL) == TY_OK && curve[1] == 0 && curve[2] > 0,
       "only the counts listed");
}

int main(void)
{
    handbook();
    against_brute_force();
    level_of_all_resources(TY_SPLIT_MAX_MIN);
    level_of_all_resources(TY_SPLIT_FINISH);
    throughput_of_all_resources();
    cache_by_hand();
    shifted_stages();
    stages_by_hand();
    gains_by_hand();
    refusals();
    curve_of_search();
    return tap_done();
}

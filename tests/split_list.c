/* SPDX-License-Identifier: MIT
 * The file of jobs for split: what it says, and that no damage to it gets by unreported. */
#include "include/trainyard_tools.h"
#include "tests/tap.h"

static const char text[] =
    "{\"_by\": \"hand\", \"jobs\": ["
    "{\"name\": \"a\", \"model\": \"llama3-8b\","
    " \"plan\": {\"gbs\": \"4Mtok\", \"seq\": 8192, \"tp\": [1, 2], \"recompute\": [\"none\", "
    "\"full\"]},"
    " \"weight\": 2, \"min_gpus\": 0, \"max_gpus\": 64, \"tokens\": \"1Ttok\", \"deadline_days\": "
    "2},"
    "{\"curve\": {\"16\": 190, \"8\": 100}, \"prepare_core_hours\": 3, \"tokens\": 5e9,"
    " \"input\": {\"sample_bytes\": \"150 kB\", \"worker_time\": \"12 ms\", \"sample_tokens\": 256,"
    " \"data_bytes\": \"2 TB\", \"cache\": \"lru\"}}]}";

static void values(void)
{
    struct ty_split_list list = {0};
    struct ty_error error = {0};
    ok(ty_split_list_parse(text, sizeof text - 1, "jobs", &list, &error) == TY_OK && list.n == 2,
       "two jobs %s", error.text);
    if (list.n != 2)
        return;
    const struct ty_split_entry *a = &list.entry[0], *b = &list.entry[1];
    ok(strcmp(a->model, "llama3-8b") == 0 && a->weight == 2 && a->may_wait && a->max_gpus == 64,
       "names and numbers");
    ok(a->tokens == 1e12 && a->deadline_s == 172800.0, "tokens and days");
    ok(a->space.fixed.seq == 8192 && a->space.fixed.gbs == 512,
       "a batch of 4 Mtok of 8192 is 512 sequences"); /* 488.28, to a power of two within 5 % */
    ok(a->space.tp.n == 2 && a->space.tp.value[1] == 2 && a->space.recompute.n == 2 &&
           a->space.recompute.value[1] == TY_RECOMPUTE_FULL,
       "lists are limits");
    ok(strcmp(b->name, "job 2") == 0 && b->n_points == 2 && b->point_gpus[0] == 16 &&
           b->point_tokens_per_s[1] == 100,
       "a measured curve");
    ok(b->sample_bytes == 150e3 && b->sample_cpu_s == 0.012 && b->sample_tokens == 256 &&
           b->data_bytes == 2e12 && b->prepare_cpu_s == 10800,
       "input in base units");
    /* UT-7.4: LRU with half of the data cached hits 0.1534 */
    ok(b->n_hits == 65, "a hit curve");
    within(b->hit[32], 0.1534, 5e-5, "UT-7.4: LRU at one half");
    ty_split_list_free(&list);
}

/* Either it is still a list, or the refusal says where and what. */
static bool survives(const char *damaged, size_t bytes)
{
    struct ty_split_list list = {0};
    struct ty_error error = {0};
    const ty_status status = ty_split_list_parse(damaged, bytes, "jobs", &list, &error);
    ty_split_list_free(&list);
    return status == TY_OK || (status == TY_ERR_INPUT && error.where[0] && error.text[0]);
}

static void damage(void)
{
    static const char marks[] = "\"0]}-e:";
    char damaged[sizeof text];
    int cut = 0, changed = 0;
    for (size_t n = 0; n + 1 < sizeof text - 1; n++)
        cut += !survives(text, n);
    for (size_t i = 0; i < sizeof text - 1; i++)
        for (size_t k = 0; k < sizeof marks - 1; k++) {
            memcpy(damaged, text, sizeof text);
            damaged[i] = marks[k];
            changed += !survives(damaged, sizeof text - 1);
        }
    ok(cut == 0, "cut anywhere: refused with a place and a reason (%d are not)", cut);
    ok(changed == 0, "one byte changed: the same (%d are not)", changed);
}

int main(void)
{
    values();
    damage();
    return tap_done();
}

/* SPDX-License-Identifier: MIT
 * Flow cases with known finish times, through the engine: every flow of every case within 1e-9.
 *   fluid_cases [FILE]     FILE: form "trainyard-fluid-cases/1"; its semantics are in the file.
 * The expected times come from an exact rational solver, checked against SimGrid (see the file). */
#include "sim/engine.h"
#include "tests/tap.h"

#include <cjson/cJSON.h>

enum { MAX_HOPS = 256 };

static double number(const cJSON *object, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static const char *text(const cJSON *object, const char *key)
{
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return value ? value : "";
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    size_t n = 0, capacity = 1 << 16;
    char *bytes = malloc(capacity);
    while (bytes && (n += fread(bytes + n, 1, capacity - n - 1, file)) == capacity - 1)
        bytes = realloc(bytes, capacity *= 2);
    fclose(file);
    if (bytes)
        bytes[n] = '\0';
    return bytes;
}

static uint32_t link_index(const cJSON *links, const char *name)
{
    uint32_t index = 0;
    const cJSON *link;
    cJSON_ArrayForEach(link, links)
    {
        if (strcmp(text(link, "name"), name) == 0)
            return index;
        index++;
    }
    return UINT32_MAX;
}

static bool add_links(struct engine *engine, const cJSON *links)
{
    const cJSON *link;
    uint32_t id;
    cJSON_ArrayForEach(link, links)
    {
        bool shared = strcmp(text(link, "sharing"), "fatpipe") != 0;
        if (engine_add_link(engine, number(link, "capacity_Bps"), shared, &id) != TY_OK)
            return false;
    }
    return true;
}

static bool add_flow(struct engine *engine, const cJSON *links, const cJSON *flow)
{
    const cJSON *route = cJSON_GetObjectItemCaseSensitive(flow, "route"), *hop;
    struct fluid_use uses[MAX_HOPS];
    uint32_t n = 0, id;
    double cap = number(flow, "rate_cap_Bps");
    struct engine_task task = {.class_ = ENGINE_COMM,
                               .work = number(flow, "bytes"),
                               .cap_work_per_s = isnan(cap) ? (double)INFINITY : cap,
                               .device = {ENGINE_NONE, ENGINE_NONE}};
    cJSON_ArrayForEach(hop, route)
    {
        uint32_t link = link_index(links, hop->valuestring);
        if (n == MAX_HOPS || link == UINT32_MAX)
            return false;
        task.latency_s += number(cJSON_GetArrayItem(links, (int)link), "latency_s");
        uses[n++] = (struct fluid_use){link, 1};
    }
    if (engine_add_route(engine, uses, n, &task.route) != TY_OK ||
        engine_add_stream(engine, &task.stream) != TY_OK ||
        engine_add_task(engine, &task, &id) != TY_OK)
        return false;
    engine_set_release_s(engine, id, number(flow, "start_s"));
    return true;
}

static void check_case(struct engine *engine, const cJSON *one)
{
    const cJSON *links = cJSON_GetObjectItemCaseSensitive(one, "links");
    const cJSON *flows = cJSON_GetObjectItemCaseSensitive(one, "flows"), *flow;
    engine_reset(engine);
    bool good = add_links(engine, links);
    cJSON_ArrayForEach(flow, flows) good = good && add_flow(engine, links, flow);
    good = good && engine_run(engine, NULL, NULL) == TY_OK;
    double worst_ratio = 0;
    uint32_t id = 0;
    cJSON_ArrayForEach(flow, flows)
    {
        double want_s = number(flow, "finish_exact_s"), got_s = good ? engine_end_s(engine, id) : 0;
        double ratio = got_s == want_s ? 0 : fabs(got_s - want_s) / want_s;
        if (!(ratio <= 1e-9))
            printf("#   flow %s: got %.12g s, want %.12g s\n", text(flow, "id"), got_s, want_s);
        worst_ratio = ratio <= worst_ratio ? worst_ratio : ratio;
        id++;
    }
    ok(good && id > 0 && worst_ratio <= 1e-9, "%s: %u flows, worst %.1e", text(one, "name"), id,
       worst_ratio);
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : shared_path("data/fluid-cases.json");
    char *bytes = read_file(path);
    if (!bytes && argc == 1) {
        skip("fluid cases", "no shared/data/fluid-cases.json");
        return tap_done();
    }
    cJSON *file = bytes ? cJSON_Parse(bytes) : NULL;
    const cJSON *cases = cJSON_GetObjectItemCaseSensitive(file, "cases"), *one;
    ok(cJSON_GetArraySize(cases) > 0, "%s has cases", path);
    struct engine *engine;
    if (engine_create(NULL, &engine) != TY_OK)
        abort();
    cJSON_ArrayForEach(one, cases) check_case(engine, one);
    engine_destroy(engine);
    cJSON_Delete(file);
    free(bytes);
    return tap_done();
}

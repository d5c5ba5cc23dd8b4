/* SPDX-License-Identifier: MIT
 *
 * Pipeline layouts as text, in the form of Megatron-Core's --pipeline-model-parallel-layout:
 *
 *   E embedding   t layer   m MTP module   L loss   | next chunk   x*n repeats   (...) a group
 *
 * "Et*3|(tt|)*29,m|L" is DeepSeek-V3 on 32 chunks. Commas and spaces mean nothing. Chunks are in
 * the order a micro-batch passes them. source: NVIDIA/Megatron-LM
 * docs/user-guide/features/pipeline_parallel_layout.md
 */
#include "models/layout.h"
#include "sim/error.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FLAT = 8192, MAX_DEPTH = 8 };

/* The text without groups and repetitions, as far as it has been read. */
struct flat {
    const char *text, *at;
    char item[MAX_FLAT];
    uint32_t n;
    struct ty_error *error;
};

static bool fail(struct flat *flat, const char *what)
{
    error_set(flat->error, TY_ERR_INPUT, "layout", "\"%.80s\", character %u: %s", flat->text,
              (unsigned)(flat->at - flat->text) + 1, what);
    return false;
}

static char next_char(struct flat *flat)
{
    while (*flat->at == ',' || *flat->at == ' ')
        flat->at++;
    return *flat->at;
}

/* Repeats what was read since `from` as often as a "*n" that follows says. */
static bool repeat(struct flat *flat, uint32_t from)
{
    const uint32_t n = flat->n - from;
    uint32_t times = 0;
    if (next_char(flat) != '*')
        return true;
    flat->at++;
    for (; *flat->at >= '0' && *flat->at <= '9'; flat->at++)
        times = times < MAX_FLAT ? 10 * times + (uint32_t)(*flat->at - '0') : times;
    if (times == 0)
        return fail(flat, "* needs a number from 1 on after it");
    if ((uint64_t)n * times > MAX_FLAT - from)
        return fail(flat, "that is more than 8192 parts");
    for (uint32_t i = 1; i < times; i++)
        memcpy(flat->item + from + (size_t)i * n, flat->item + from, n);
    flat->n = from + n * times;
    return true;
}

static bool read_items(struct flat *flat, uint32_t depth)
{
    for (char c = next_char(flat); c != '\0' && c != ')'; c = next_char(flat)) {
        const uint32_t from = flat->n;
        if (c == '(' && depth == MAX_DEPTH)
            return fail(flat, "too many groups in groups");
        if (c != '(' && !strchr("EtmL|", c))
            return fail(flat, "legal are E, t, m, L, |, (, ), * and a number");
        if (flat->n == MAX_FLAT)
            return fail(flat, "that is more than 8192 parts");
        flat->at++;
        if (c != '(') {
            flat->item[flat->n++] = c;
        } else {
            if (!read_items(flat, depth + 1))
                return false;
            if (*flat->at != ')')
                return fail(flat, "a ( is not closed");
            flat->at++;
        }
        if (!repeat(flat, from))
            return false;
    }
    return true;
}

static bool flatten(const char *text, struct flat *flat, struct ty_error *error)
{
    flat->text = flat->at = text;
    flat->n = 0;
    flat->error = error;
    if (!read_items(flat, 0))
        return false;
    return *flat->at == '\0' || fail(flat, "a ) without a (");
}

/* Adds a part to a chunk. The order within one: E, layers, MTP modules, L. */
static bool take(struct flat *flat, char c, struct layout_chunk *chunk)
{
    const bool ended = chunk->loss || (c == 't' && chunk->n_mtp);
    if (c == 'E' && (chunk->embedding || chunk->n_layers || chunk->n_mtp || chunk->loss))
        return fail(flat, "E comes first in its chunk");
    if (c != 'E' && ended)
        return fail(flat, "within a chunk the order is E, t, m, L");
    chunk->embedding |= c == 'E';
    chunk->loss |= c == 'L';
    chunk->n_layers += c == 't';
    chunk->n_mtp += c == 'm';
    return true;
}

bool layout_parse(const char *text, struct layout_chunk *chunks, uint32_t max, uint32_t *n,
                  struct ty_error *error)
{
    struct flat flat;
    struct layout_chunk chunk = {0};
    uint32_t n_chunks = 0;
    if (!flatten(text, &flat, error))
        return false;
    for (uint32_t i = 0; i <= flat.n; i++) {
        if (i < flat.n && flat.item[i] != '|') {
            if (!take(&flat, flat.item[i], &chunk))
                return false;
            continue;
        }
        if (chunks && n_chunks == max)
            return fail(&flat, "more chunks than a plan can have");
        if (chunks)
            chunks[n_chunks] = chunk;
        n_chunks++;
        chunk = (struct layout_chunk){0};
    }
    *n = n_chunks;
    return true;
}

/* ---- back to text --------------------------------------------------------------------------- */

static bool equal(const struct layout_chunk *a, const struct layout_chunk *b)
{
    return a->n_layers == b->n_layers && a->n_mtp == b->n_mtp && a->embedding == b->embedding &&
           a->loss == b->loss;
}

static void put_run(char *text, size_t bytes, char c, uint32_t n)
{
    if (n > 2)
        text_append(text, bytes, "%c*%u", c, n);
    for (uint32_t i = 0; n <= 2 && i < n; i++)
        text_append(text, bytes, "%c", c);
}

static void put_chunk(char *text, size_t bytes, const struct layout_chunk *chunk)
{
    put_run(text, bytes, 'E', chunk->embedding);
    put_run(text, bytes, 't', chunk->n_layers);
    put_run(text, bytes, 'm', chunk->n_mtp);
    put_run(text, bytes, 'L', chunk->loss);
}

bool layout_print(const struct layout_chunk *chunks, uint32_t n, char *text, size_t bytes)
{
    text[0] = '\0';
    for (uint32_t i = 0; i < n;) {
        uint32_t run = 1; /* equal chunks, the last of all apart: no | follows it */
        while (i + run + 1 < n && equal(&chunks[i], &chunks[i + run]))
            run++;
        const bool last = i + 1 == n;
        text_append(text, bytes, run > 1 ? "(" : "");
        put_chunk(text, bytes, &chunks[i]);
        text_append(text, bytes, last ? "" : "|");
        if (run > 1)
            text_append(text, bytes, i + run < n ? ")*%u," : ")*%u", run);
        i += run;
    }
    return strlen(text) + 1 < bytes;
}

ty_status ty_layout_shorten(const char *layout, char *out, size_t bytes, struct ty_error *error)
{
    enum { MAX_CHUNKS = 4096 };
    struct layout_chunk *chunks = calloc(MAX_CHUNKS, sizeof *chunks);
    char *shortest = malloc(bytes + 1);
    uint32_t n = 0;
    ty_status status = TY_OK;
    if (!chunks || !shortest)
        status = error_set(error, TY_ERR_NOMEM, "layout", "out of memory");
    else if (!layout_parse(layout, chunks, MAX_CHUNKS, &n, error))
        status = TY_ERR_INPUT;
    else if (!layout_print(chunks, n, shortest, bytes + 1))
        status =
            error_set(error, TY_ERR_LIMIT, "layout", "needs more than %zu characters", bytes - 1);
    if (status == TY_OK)
        memcpy(memset(out, 0, bytes), shortest, strlen(shortest));
    free(chunks);
    free(shortest);
    return status;
}

/* SPDX-License-Identifier: MIT
 * Any bytes as a trace of the PyTorch profiler: refused with a message, or a step whose parts are
 * its time. */
#include "calibrate/timeline.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct spans spans = {0};
    struct ty_timeline t;
    struct ty_error error = {.code = TY_OK};
    FILE *file = bytes ? fmemopen((void *)(uintptr_t)data, bytes, "rb") : NULL;
    if (!file)
        return 0;
    if (timeline_read_events(file, "fuzz", &spans, &error) != TY_OK) {
        require(error.code == TY_ERR_INPUT && *error.text);
    } else if (spans_timeline(&spans, 0, &t, "fuzz", &error) == TY_OK) {
        double sum_s = t.idle_s;
        for (uint32_t i = 0; i < TY_N_ACTIVITIES; i++)
            sum_s += t.alone_s[i];
        require(fabs(sum_s - t.step_s) <= 1e-6 * fabs(t.step_s));
    }
    spans_free(&spans);
    fclose(file);
    return 0;
}

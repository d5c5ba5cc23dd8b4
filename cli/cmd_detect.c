/* SPDX-License-Identifier: MIT
 * `trainyard detect`: a cluster file from dumps, or from the machine it runs on. */
#include "cli/cli.h"
#include <errno.h>
#include <string.h>

static void print_remarks(const struct ty_detection *detection, enum ty_remark kind,
                          const char *title)
{
    bool first = true;
    for (uint32_t i = 0; i < detection->n_remarks; i++) {
        if (detection->remarks[i].kind != (int)kind)
            continue;
        if (first)
            printf("\n%s\n", title);
        first = false;
        printf("  %s\n", detection->remarks[i].text);
    }
}

static void print_detection(const struct ty_detection *detection)
{
    printf("%-26s %-24s %-8s %s\n", "field", "value", "trust", "from");
    for (uint32_t i = 0; i < detection->n_found; i++) {
        const struct ty_found *found = &detection->found[i];
        if (found->chosen)
            printf("%-26s %-24s %-8s %s\n", found->field, found->value,
                   ty_trust_name((enum ty_trust)found->trust), found->place);
    }
    if (detection->complete)
        printf("\nGPU: %s\n", detection->cluster.gpu.name);
    print_remarks(detection, TY_REMARK_CONTRADICTION, "Contradictions");
    print_remarks(detection, TY_REMARK_NOTE, "Notes");
    print_remarks(detection, TY_REMARK_GAP, "Missing, and where to get it");
}

static int write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        cli_warn("%s: %s", path, strerror(errno));
        return CLI_FAILED;
    }
    const bool failed = fputs(text, file) < 0;
    if (fclose(file) == 0 && !failed)
        return CLI_OK;
    cli_warn("%s could not be written", path);
    return CLI_FAILED;
}

int cmd_detect(struct cli_args *args)
{
    struct ty_error error = {0};
    struct ty_detection detection;
    if (ty_detect(args->words, args->n_words, args->gpu, &detection, &error) != TY_OK)
        return cli_fail(&error);
    int status = detection.complete ? CLI_OK : CLI_BAD_INPUT;
    if (args->json)
        fputs(detection.json, stdout);
    else
        print_detection(&detection);
    if (!detection.complete)
        cli_warn("the GPU is not known, so this is no cluster file yet; give --gpu NAME");
    else if (args->out)
        status = write_file(args->out, detection.json);
    ty_detection_free(&detection);
    return status;
}

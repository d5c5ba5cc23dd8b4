/* SPDX-License-Identifier: MIT
 * The trainyard program: finds the command, parses its options, runs it. */
#include "cli/cli.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static int unknown_command(const char *word)
{
    struct cli_guess guess = {.word = word};
    for (const struct cli_command *command = cli_commands; command->name; command++)
        cli_guess_offer(&guess, command->name);
    if (*guess.best)
        cli_warn("unknown command \"%s\"; did you mean %s?", word, guess.best);
    else
        cli_warn("unknown command \"%s\"; \"trainyard help\" lists the commands", word);
    return CLI_BAD_INPUT;
}

static int run_command(struct cli_args *args)
{
    struct ty_error error = {0};
    if (cli_parse(args, &error) != TY_OK)
        return cli_fail(&error);
    if (args->help) {
        cli_print_help(args->command);
        return CLI_OK;
    }
    return args->command->run(args);
}

/* What was printed must have reached its reader: a full disk or a closed pipe is a failure. */
static int close_output(int status)
{
    bool failed = ferror(stdout) != 0;
    failed |= fclose(stdout) != 0;
    if (!failed)
        return status;
    cli_warn("standard output could not be written");
    return CLI_FAILED;
}

int main(int argc, char **argv)
{
    /* A closed pipe is reported by the write that meets it, not by death. */
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2) {
        fputs("usage: trainyard COMMAND [OPTIONS]; \"trainyard help\" lists the commands\n",
              stderr);
        return CLI_BAD_INPUT;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        word = "help";
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        word = "version";
    const struct cli_command *command = cli_command_find(word);
    if (!command)
        return unknown_command(word);
    struct cli_args *args = calloc(1, sizeof *args);
    if (!args) {
        cli_warn("out of memory");
        return CLI_FAILED;
    }
    args->command = command;
    args->argc = argc;
    args->argv = argv;
    int status = run_command(args);
    free(args);
    return close_output(status);
}

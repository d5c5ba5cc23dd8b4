/* SPDX-License-Identifier: MIT
 * Help and manual pages, both from the command table, the option table and the fields of a plan:
 * a list of lines {flag, value, help} is made once and printed in either form. */
#include "cli/cli.h"
#include <ctype.h>
#include <string.h>

#define MAN_DATE "November 30, 2026"

/* "none|selective|full", "LIST", "N": what a plan flag takes. returns out */
static const char *field_value_text(const struct ty_field *field, char *out, size_t bytes)
{
    *out = '\0';
    if (cli_field_is_switch(field)) {
        snprintf(out, bytes, "[on|off]");
    } else if (field->type == TY_FIELD_ENUM) {
        for (const char *const *name = field->names; *name; name++) {
            size_t used = strlen(out);
            if (**name && strcmp(*name, "auto") != 0)
                snprintf(out + used, bytes - used, "%s%s", used ? "|" : "", *name);
        }
    } else if (field->type == TY_FIELD_FLAGS) {
        snprintf(out, bytes, "LIST");
    } else if (field->type == TY_FIELD_TEXT) {
        snprintf(out, bytes, "TEXT");
    } else {
        snprintf(out, bytes, "%s", field->type == TY_FIELD_DOUBLE ? "X" : "N");
    }
    return out;
}

typedef void line_fn(const char *flag, char letter, const char *value, const char *help);

static void each_option(const struct cli_command *command, line_fn *fn)
{
    for (const struct cli_option *option = cli_options; option->name; option++)
        if (option->commands & command->bit)
            fn(option->name, option->letter, option->value, option->help);
}

static void each_plan_flag(line_fn *fn)
{
    size_t n = 0;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    for (size_t i = 0; i < n; i++) {
        char flag[64], value[160];
        fn(cli_flag_name(&fields[i], flag, sizeof flag), 0,
           field_value_text(&fields[i], value, sizeof value), fields[i].help);
    }
}

/* ---- text --------------------------------------------------------------------------------- */

static void print_option(const char *flag, char letter, const char *value, const char *help)
{
    char left[240];
    char shortcut[8] = "    ";
    if (letter)
        snprintf(shortcut, sizeof shortcut, "-%c, ", letter);
    snprintf(left, sizeof left, "%s--%s%s%s", shortcut, flag, value ? " " : "", value ? value : "");
    if (strlen(left) > 30)
        printf("  %s\n  %-30s  %s\n", left, "", help);
    else
        printf("  %-30s  %s\n", left, help);
}

/* Paragraphs parted by newlines, wrapped at 88 columns. */
static void print_wrapped(const char *text)
{
    size_t column = 0;
    while (*text) {
        size_t length = strcspn(text, " \n");
        if (column && column + 1 + length > 88) {
            putchar('\n');
            column = 0;
        }
        column += (size_t)printf("%s%.*s", column ? " " : "", (int)length, text);
        text += length;
        if (*text == '\n') {
            putchar('\n');
            column = 0;
        }
        text += *text != '\0';
    }
    putchar('\n');
}

void cli_print_help(const struct cli_command *command)
{
    printf("usage: trainyard %s %s\n\n", command->name, command->args);
    print_wrapped(command->details);
    printf("\noptions\n");
    each_option(command, print_option);
    if (command->bit & CLI_TAKES_PLAN) {
        printf("\nplan flags (a plan left open takes the defaults of its stack)\n");
        each_plan_flag(print_option);
    }
}

static void print_overview(void)
{
    printf("trainyard predicts how fast a large model trains on a GPU cluster, what limits it and "
           "what to change.\n\nusage: trainyard COMMAND [OPTIONS]\n\n");
    for (const struct cli_command *command = cli_commands; command->name; command++)
        printf("  %-9s  %s\n", command->name, command->help);
    printf("\n\"trainyard help COMMAND\" prints its options. Exit status: 0 ok, 1 failed, "
           "2 bad input,\n3 no feasible plan, 4 no device to measure.\n");
}

/* ---- manual pages (mdoc) ------------------------------------------------------------------ */

/* Text as mdoc: no macro may start a line, a sentence starts one. */
static void man_text(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '\n')
            fputs("\n.Pp\n", stdout);
        else if (text[0] == '.' && text[1] == ' ')
            fputs((text++, ".\n"), stdout);
        else
            putchar(*text);
    }
    putchar('\n');
}

static void man_option(const char *flag, char letter, const char *value, const char *help)
{
    fputs(".It ", stdout);
    if (letter)
        printf("Fl %c , ", letter);
    printf("Fl \\-%s", flag);
    if (value)
        printf(" Ar \"%s\"", value);
    putchar('\n');
    man_text(help);
}

static void man_command(const struct cli_command *command)
{
    printf(".Dd " MAN_DATE "\n.Dt TRAINYARD-");
    for (const char *c = command->name; *c; c++)
        putchar(toupper((unsigned char)*c));
    printf(" 1\n.Os\n.Sh NAME\n.Nm trainyard-%s\n.Nd %s\n", command->name, command->help);
    printf(".Sh SYNOPSIS\n.Nm trainyard\n.Cm %s\n", command->name);
    if (*command->args)
        printf(".Ar \"%s\"\n", command->args);
    printf(".Sh DESCRIPTION\n");
    man_text(command->details);
    printf(".Pp\nOptions:\n.Bl -tag -width Ds\n");
    each_option(command, man_option);
    printf(".El\n");
    if (command->bit & CLI_TAKES_PLAN) {
        printf(".Pp\nPlan flags; a plan left open takes the defaults of its stack:\n"
               ".Bl -tag -width Ds\n");
        each_plan_flag(man_option);
        printf(".El\n");
    }
    printf(".Sh EXIT STATUS\n0 on success, 1 when the operation failed, 2 on bad input, 3 when no "
           "plan is feasible.\n.Sh SEE ALSO\n.Xr trainyard 1\n");
}

int cmd_help(struct cli_args *args)
{
    if (args->n_words == 0) {
        if (args->man) {
            cli_warn("help --man needs a command; the main page is man/trainyard.1");
            return CLI_BAD_INPUT;
        }
        print_overview();
        return CLI_OK;
    }
    const struct cli_command *command = cli_command_find(args->words[0]);
    if (!command) {
        cli_warn("unknown command \"%s\"; \"trainyard help\" lists the commands", args->words[0]);
        return CLI_BAD_INPUT;
    }
    (args->man ? man_command : cli_print_help)(command);
    return CLI_OK;
}

/* common/options.c - command-line options, parsed strictly. */
#include "common/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEFT = 20 }; /* columns of the options' names in the usage */

static const option *find_rest(const option *options, int count)
{
    for (int i = 0; i < count; i++)
        if (options[i].kind == OPTION_REST)
            return &options[i];
    return NULL;
}

/* A newline shows as \n. */
static void show_text(FILE *file, const char *text)
{
    fputs(" (default ", file);
    for (; *text != '\0'; text++)
        fputs(*text == '\n' ? "\\n" : (char[]){*text, '\0'}, file);
    fputc(')', file);
}

static void show_usage(FILE *file, const char *program, const char *purpose, const option *options, int count)
{
    const option *rest = find_rest(options, count);
    fprintf(file, "usage: %s [options]%s%s\n%s\n\n", program, rest ? " " : "", rest ? rest->name : "", purpose);
    for (int i = 0; i < count; i++) {
        const option *o = &options[i];
        char left[64];
        snprintf(left, sizeof left, "%s %s", o->name, o->value != NULL ? o->value : "");
        if (strlen(left) > LEFT)
            fprintf(file, "  %s\n  %-*s %s", left, LEFT, "", o->help);
        else
            fprintf(file, "  %-*s %s", LEFT, left, o->help);
        if (o->kind == OPTION_WHOLE)
            fprintf(file, " (default %lld)", (long long)*(int64_t *)o->target);
        else if (o->kind == OPTION_NUMBER)
            fprintf(file, " (default %g)", *(double *)o->target);
        else if ((o->kind == OPTION_TEXT || o->kind == OPTION_CHOICE) && *(const char **)o->target != NULL)
            show_text(file, *(const char **)o->target);
        fputc('\n', file);
    }
    fprintf(file, "  %-*s %s\n", LEFT, "--help", "show this help and exit");
}

/* Is `text` one of the choices "a|b|c"? */
static bool is_choice(const char *choices, const char *text)
{
    for (const char *choice = choices; *choice != '\0'; choice += strspn(choice, "|")) {
        const size_t length = strcspn(choice, "|");
        if (strlen(text) == length && strncmp(text, choice, length) == 0)
            return true;
        choice += length;
    }
    return false;
}

/* All of `text` must be a number within the option's bounds. */
static bool set_value(const option *o, const char *text)
{
    char *end = NULL;
    errno = 0;
    if (isspace((unsigned char)text[0]))
        return false; /* strtoll and strtod would skip it */
    switch (o->kind) {
    case OPTION_TEXT:
        *(const char **)o->target = text;
        return text[0] != '\0';
    case OPTION_CHOICE:
        *(const char **)o->target = text;
        return is_choice(o->value, text);
    case OPTION_WHOLE: {
        long long number = strtoll(text, &end, 10);
        if (end == text || *end != '\0' || errno != 0 || (double)number < o->lowest || (double)number > o->highest)
            return false;
        *(int64_t *)o->target = number;
        return true;
    }
    case OPTION_NUMBER: {
        double number = strtod(text, &end);
        if (end == text || *end != '\0' || errno != 0 || !(number >= o->lowest && number <= o->highest))
            return false;
        *(double *)o->target = number;
        return true;
    }
    case OPTION_FLAG:
        *(bool *)o->target = true;
        return true;
    case OPTION_REST:
        break;
    }
    return false;
}

/* "a, b or c" */
static void print_choices(const char *choices)
{
    for (const char *choice = choices; *choice != '\0';) {
        const size_t length = strcspn(choice, "|");
        const char *next = choice + length + strspn(choice + length, "|");
        fprintf(stderr, "%.*s%s", (int)length, choice, *next == '\0' ? "" : strchr(next, '|') == NULL ? " or " : ", ");
        choice = next;
    }
}

/* Prints what the option needs. */
static void complain(const char *program, const option *o, const char *text)
{
    fprintf(stderr, "%s: %s needs ", program, o->name);
    if (o->kind == OPTION_TEXT)
        fputs("a value", stderr);
    else if (o->kind == OPTION_CHOICE)
        print_choices(o->value);
    else if (o->highest < 1e15)
        fprintf(stderr, "a %snumber from %.15g to %.15g", o->kind == OPTION_WHOLE ? "whole " : "", o->lowest,
                o->highest);
    else
        fprintf(stderr, "a %snumber of at least %g", o->kind == OPTION_WHOLE ? "whole " : "", o->lowest);
    if (text != NULL)
        fprintf(stderr, ", not \"%s\"", text);
    fputc('\n', stderr);
}

static const option *find(const option *options, int count, const char *name, size_t length)
{
    for (int i = 0; i < count; i++) {
        if (strlen(options[i].name) == length && strncmp(options[i].name, name, length) == 0)
            return &options[i];
    }
    return NULL;
}

/* Reads the option at argv[*i] with its value ("--epochs 3" or "--epochs=3"). False, with a message, if it is wrong. */
static bool read_option(const char *program, const option *options, int count, int argc, char **argv, int *i)
{
    const char *argument = argv[*i], *equals = strchr(argument, '=');
    size_t length = equals != NULL ? (size_t)(equals - argument) : strlen(argument);
    const option *o = find(options, count, argument, length);
    if (o == NULL) {
        fprintf(stderr, "%s: there is no option \"%.*s\"\n", program, (int)length, argument);
        return false;
    }
    if (o->kind == OPTION_FLAG) {
        if (equals != NULL) {
            fprintf(stderr, "%s: %s takes no value\n", program, o->name);
            return false;
        }
        return set_value(o, "");
    }
    const char *text = equals != NULL ? equals + 1 : *i + 1 < argc ? argv[++*i] : NULL;
    if (text != NULL && set_value(o, text))
        return true;
    complain(program, o, text);
    return false;
}

int options_parse(const char *program, const char *purpose, const option *options, int count, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            show_usage(stdout, program, purpose, options, count);
            return options_finish(program, 0);
        }
    }
    const option *rest = find_rest(options, count);
    for (int i = 1; i < argc; i++) {
        if (rest != NULL && argv[i][0] != '-') {
            option_rest *found = rest->target;
            found->items = argv + 1; /* they move to the front */
            found->items[found->count++] = argv[i];
            continue;
        }
        if (!read_option(program, options, count, argc, argv, &i)) {
            show_usage(stderr, program, purpose, options, count);
            return 2;
        }
    }
    return OPTIONS_GO_ON;
}

int options_finish(const char *program, int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "%s: the results could not be written to the standard output\n", program);
    return 1;
}

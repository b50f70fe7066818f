/* cli/main.c - the program `koine`: a table of subcommands. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/layout.h"
#include "base/utf8.h"
#include "cli/cli.h"

static const kn_command *const commands[] = {&kn_command_devices, &kn_command_smi,       &kn_command_memory,
                                             &kn_command_doctor,  &kn_command_operators, &kn_command_tune,
                                             &kn_command_scale,   &kn_command_warm};
#define NUM_COMMANDS (sizeof commands / sizeof commands[0])

int kn_report_error(void)
{
    fprintf(stderr, "koine: %s\n", kn_error_message());
    return KN_EXIT_FAILED;
}

static void show_usage(FILE *file, const char *usage)
{
    kn_text text = {0};
    kn_append_usage(&text, usage, kn_page_of(fileno(file)).width);
    char *wrapped = kn_text_finish(&text);
    fputs(wrapped ? wrapped : usage, file);
    kn_free(wrapped);
}

void kn_print_line(const char *format, va_list arguments)
{
    char line[1024];
    vsnprintf(line, sizeof line, format, arguments);
    kn_make_printable(line, sizeof line, false);
    fprintf(stderr, "%s\n", line);
}

int kn_usage_error(const char *usage, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    kn_print_line(format, arguments);
    va_end(arguments);
    if (usage)
        show_usage(stderr, usage);
    return KN_EXIT_USAGE;
}

int kn_print_text(kn_text *text)
{
    char *whole = kn_text_finish(text);
    if (!whole)
        return kn_report_error();
    bool written = fputs(whole, stdout) >= 0 && fflush(stdout) == 0;
    kn_free(whole);
    return written ? KN_EXIT_DONE : KN_EXIT_FAILED;
}

static void print_commands(FILE *file)
{
    kn_text text = {0};
    kn_text_append(&text, "usage: koine COMMAND [OPTION...]\n\nCommands:\n");
    for (size_t i = 0; i < NUM_COMMANDS; i++)
        kn_text_format(&text, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    kn_text_append(&text, "\n  koine COMMAND --help   print a command's usage\n"
                          "  koine --version        print the library's version\n");
    char *usage = kn_text_finish(&text);
    show_usage(file, usage ? usage : "usage: koine COMMAND [OPTION...]\n");
    kn_free(usage);
}

static int wrong_usage(const kn_command *command, const char *what, const char *argument)
{
    return kn_usage_error(command->usage, "koine %s: %s `%s`", command->name, what, argument);
}

static const kn_option *find_option(const kn_option *options, int num_options, const char *argument, size_t length)
{
    for (int i = 0; i < num_options; i++)
        if (strlen(options[i].name) == length && strncmp(options[i].name, argument, length) == 0)
            return &options[i];
    return NULL;
}

int kn_parse_options(const kn_command *command, int argc, char **argv, const kn_option *options, int num_options,
                     const char **positional, int most)
{
    int given = 0;
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];
        if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
            show_usage(stdout, command->usage);
            return KN_EXIT_DONE;
        }
        if (argument[0] != '-') {
            if (given == most)
                return wrong_usage(command, "unexpected argument", argument);
            positional[given++] = argument;
            continue;
        }
        size_t length = strcspn(argument, "="); /* --device=cpu and --device cpu */
        const kn_option *option = find_option(options, num_options, argument, length);
        if (!option || (option->flag && argument[length] == '='))
            return wrong_usage(command, "unknown option", argument);
        if (option->flag)
            *option->flag = true;
        else if (argument[length] == '=')
            *option->value = argument + length + 1;
        else if (i + 1 < argc)
            *option->value = argv[++i];
        else
            return wrong_usage(command, "missing value after", argument);
    }
    return -1;
}

/* A full disk or a closed pipe must not look like success. */
static int flush_results(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    perror("koine: cannot write the results");
    return status == KN_EXIT_DONE ? KN_EXIT_FAILED : status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_commands(stderr);
        return KN_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_commands(stdout);
        return flush_results(KN_EXIT_DONE);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("koine %s\n", kn_version());
        return flush_results(KN_EXIT_DONE);
    }
    if (strcmp(argv[1], "--trial") == 0) /* by the library */
        return kn_run_trial(argc - 2, argv + 2);
    if (strcmp(argv[1], "--compile") == 0)
        return kn_run_compile(argc - 2, argv + 2);
    for (size_t i = 0; i < NUM_COMMANDS; i++)
        if (strcmp(argv[1], commands[i]->name) == 0)
            return flush_results(commands[i]->run(argc - 1, argv + 1));
    kn_usage_error(NULL, "koine: unknown command `%s`", argv[1]);
    print_commands(stderr);
    return KN_EXIT_USAGE;
}

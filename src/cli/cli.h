/* cli/cli.h - shared by the subcommands of `koine`. Results are printed to stdout, everything else to stderr. */
#pragma once

#include <koine/koine.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

enum { KN_EXIT_DONE = 0, KN_EXIT_FAILED = 1, KN_EXIT_USAGE = 2 };

typedef struct kn_command {
    const char *name;
    const char *summary;               /* a line of `koine --help` */
    const char *usage;                 /* what `koine NAME --help` prints */
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand's name; returns the exit status */
} kn_command;

extern const kn_command kn_command_devices;
extern const kn_command kn_command_doctor;
extern const kn_command kn_command_memory;
extern const kn_command kn_command_operators;
extern const kn_command kn_command_scale;
extern const kn_command kn_command_smi;
extern const kn_command kn_command_tune;
extern const kn_command kn_command_warm;

/* cli/trial.c: the arguments after --trial. */
int kn_run_trial(int argc, char **argv);

/* cli/compile.c: the arguments after --compile. */
int kn_run_compile(int argc, char **argv);

/* One option: `name` with its dashes. A flag sets *flag; an option with a value sets *value. */
typedef struct kn_option {
    const char *name;
    bool *flag;
    const char **value;
} kn_option;

/* Parses the options and at most `most` positional arguments; those that are not given stay as they are. Returns -1 to
 * continue, else the exit status: after --help (usage on stdout) or wrong usage (the reason and the usage on
 * stderr). */
int kn_parse_options(const kn_command *command, int argc, char **argv, const kn_option *options, int num_options,
                     const char **positional, int most);

/* Prints a line on stderr, with unprintable characters escaped. */
void kn_print_line(const char *format, va_list arguments) KN_PRINTF(1, 0);

/* Prints a line such as "koine tune: ..." that way, then `usage`, wrapped for the terminal, unless it is NULL. Returns
 * KN_EXIT_USAGE. */
int kn_usage_error(const char *usage, const char *format, ...) KN_PRINTF(2, 3);

/* Prints this thread's last error on stderr; returns KN_EXIT_FAILED. */
int kn_report_error(void);

/* Prints the text on stdout, flushes and frees it. Returns KN_EXIT_DONE, or KN_EXIT_FAILED if memory is short (reported
 * here) or writing fails (reported by main). */
int kn_print_text(kn_text *text);

/* common/options.h - command-line options of the examples: a table, parsed strictly, and the usage text generated from
 * it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum option_kind {
    OPTION_TEXT,
    OPTION_CHOICE,
    OPTION_WHOLE,
    OPTION_NUMBER,
    OPTION_FLAG,
    OPTION_REST
} option_kind;

/* The target of an OPTION_REST: the arguments that do not begin with a dash. `name` is theirs: "IMAGE..." */
typedef struct option_rest {
    char **items;
    int count;
} option_rest;

typedef struct option {
    const char *name;  /* "--epochs" */
    const char *value; /* the value's name in the usage: "N"; the choices: "f32|f16"; NULL for a flag */
    option_kind kind;
    void *target;           /* const char * of TEXT and CHOICE, int64_t, double, bool, option_rest; holds the default */
    double lowest, highest; /* of WHOLE and NUMBER, inclusive */
    const char *help;
} option;

/* If options_parse returns this, main continues; any other value is the exit status. */
#define OPTIONS_GO_ON (-1)

/* Returns OPTIONS_GO_ON, 0 after --help (on stdout), or 2 after wrong usage, with a message and the usage on stderr.
 * Values are given as "--epochs 3" or "--epochs=3". */
int options_parse(const char *program, const char *purpose, const option *options, int count, int argc, char **argv);

/* For the end of main: `status`, or 1 with a message if the output could not be written (a full disk). */
int options_finish(const char *program, int status);

#define OPTION_COUNT(options) ((int)(sizeof(options) / sizeof(options)[0]))

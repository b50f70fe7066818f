/* common/options.h - command-line options of the examples: a table of them, parsed strictly, and the usage made from
 * it. */
#ifndef EXAMPLES_COMMON_OPTIONS_H
#define EXAMPLES_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum option_kind { OPTION_TEXT, OPTION_WHOLE, OPTION_NUMBER, OPTION_FLAG } option_kind;

typedef struct option {
    const char *name;  /* "--epochs" */
    const char *value; /* what the usage calls its value: "N"; NULL for a flag */
    option_kind kind;
    void *target;           /* const char *, int64_t, double, bool; holds the default */
    double lowest, highest; /* of WHOLE and NUMBER, inclusive */
    const char *help;
} option;

/* main goes on when options_parse returns this; any other value is its exit status. */
#define OPTIONS_GO_ON (-1)

/* OPTIONS_GO_ON; or 0 after --help, on stdout; or 2 after wrong usage, with a sentence and the usage on stderr. Values
 * are given as "--epochs 3" or "--epochs=3". */
int options_parse(const char *program, const char *purpose, const option *options, int count, int argc, char **argv);

/* For the end of main: `status`, or 1 with a sentence when what was printed could not all be written (a full disk). */
int options_finish(const char *program, int status);

#define OPTION_COUNT(options) ((int)(sizeof(options) / sizeof(options)[0]))

#endif

/* support/golden.h - files made by tests/golden/make_golden.py: cases with inputs, outputs, gradients and
 * parameters. */
#pragma once

#include <koine/koine.h>

typedef struct golden_case {
    const kn_tensor_file *file;
    const char *name;
    const char *text; /* "op=conv2d stride=2 ..." */
} golden_case;

/* tests/golden/NAME.safetensors; NULL with a message on stderr. Freed with kn_tensor_file_free. */
kn_tensor_file *golden_open(const char *name);

/* A copy of the list of words under a metadata key, freed with free(); words are NUL-terminated, an empty word ends the
 * list. */
char *golden_words(const kn_tensor_file *file, const char *key);
#define GOLDEN_NEXT(word) ((word) + strlen(word) + 1)

golden_case golden_case_of(const kn_tensor_file *file, const char *name);

/* Parameters of the case, by key. */
bool golden_text(const golden_case *c, const char *key, char *buffer, size_t size); /* false when absent */
double golden_number(const golden_case *c, const char *key, double absent);
int64_t golden_whole(const golden_case *c, const char *key, int64_t absent);
int golden_list(const golden_case *c, const char *key, int64_t *values,
                int capacity); /* "1,2" or "3"; returns the count */

/* The host tensor NAME/role, borrowed; NULL when absent. */
kn_tensor *golden_tensor(const golden_case *c, const char *role, int number);

/* The same on the current device; floating ones as `dtype`. */
kn_tensor *golden_on_device(kn_tensor *host, kn_dtype dtype);

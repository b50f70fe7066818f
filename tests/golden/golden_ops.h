/* golden/golden_ops.h - how each operation named in the golden files is called. */
#pragma once

#include "support/golden.h"

#define GOLDEN_MAX_INPUTS 10

#define GOLDEN_MORE 4

/* The case's expression on its inputs; sets `more` to further results, if the case has any. NULL with an error. */
kn_tensor *golden_apply(const golden_case *c, kn_tensor *const *x, kn_tensor *more[GOLDEN_MORE]);

/* Is it a function that composes operators and is none itself? */
typedef kn_tensor *(*golden_composed)(const golden_case *c, kn_tensor *const *x, kn_tensor *more[GOLDEN_MORE]);
bool golden_is_composed(const char *op, golden_composed *function);

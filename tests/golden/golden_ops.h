/* golden/golden_ops.h - how each operation named in the golden files is called. */
#pragma once

#include "support/golden.h"

#define GOLDEN_MAX_INPUTS 5

/* The case's expression on its inputs; sets *second to a second result, if the case has one. NULL with an error. */
kn_tensor *golden_apply(const golden_case *c, kn_tensor *const *x, kn_tensor **second);

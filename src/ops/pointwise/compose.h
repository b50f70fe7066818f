/* ops/pointwise/compose.h - evaluates an expression of the elementwise engine with recorded public operations, one
 * after the other, for gradients of gradients. */
#pragma once

#include <koine/tensor.h>

/* The value of a letter in an expression: a tensor or a number. */
typedef struct kn_composed {
    kn_tensor *tensor; /* NULL: the number */
    double number;
} kn_composed;

/* Evaluates `text`, C without assignments, with operands named by the characters of `letters`. Functions are exp, sqrt
 * and the like. A result that no tensor affects has the first operand's shape. Owned like a public operation's result;
 * NULL with an error. */
kn_tensor *kn_compose(const char *text, const char *letters, const kn_composed *operands);

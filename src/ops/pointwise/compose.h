/* ops/pointwise/compose.h - an expression of the elementwise engine carried out by public operations, one after the other,
 * which record themselves: how derivatives are computed whose own derivatives are wanted. */
#ifndef KN_OPS_POINTWISE_COMPOSE_H
#define KN_OPS_POINTWISE_COMPOSE_H

#include <koine/tensor.h>

/* What the letters of an expression stand for: a tensor, or a number. */
typedef struct kn_composed {
    kn_tensor *tensor; /* NULL: the number */
    double number;
} kn_composed;

/* The value of `text`, C without assignments, of the operands named by the characters of `letters`. Functions are exp, sqrt
 * and the like. Owned as a public operation's result; NULL with an error. */
kn_tensor *kn_compose(const char *text, const char *letters, const kn_composed *operands);

#endif

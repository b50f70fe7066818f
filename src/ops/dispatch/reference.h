/* ops/dispatch/reference.h - shared by the plain C references: element access on contiguous host tensors, floating ones
 * in f64, all others in i64. */
#pragma once

#include <math.h>

#include "autograd/op.h"

static inline double kn_reference_get(const kn_tensor *t, int64_t i)
{
    const char *base = t->storage->host;
    return t->dtype == KN_F64 ? ((const double *)base)[t->offset + i] : (double)((const int64_t *)base)[t->offset + i];
}

static inline void kn_reference_set(kn_tensor *t, int64_t i, double value)
{
    char *base = t->storage->host;
    if (t->dtype == KN_F64)
        ((double *)base)[t->offset + i] = value;
    else
        ((int64_t *)base)[t->offset + i] = (int64_t)value;
}

/* The elements of a floating tensor, for references with long sums. */
static inline double *kn_reference_values(const kn_tensor *t) { return (double *)t->storage->host + t->offset; }

/* The element of input `x`, broadcast to `y`, that element `i` of output `y` reads. */
static inline int64_t kn_reference_index(const kn_tensor *x, const kn_tensor *y, int64_t i)
{
    int64_t index = 0, step = 1;
    for (int d = y->ndim - 1; d >= 0; d--) {
        const int own = d - (y->ndim - x->ndim);
        if (own >= 0) {
            index += x->shape[own] == 1 ? 0 : i % y->shape[d] * step;
            step *= x->shape[own];
        }
        i /= y->shape[d];
    }
    return index;
}

/* jit_inputs.h - inputs of the tests of kn_jit. */
#pragma once

#include "support/check.h"

/* start, start + step, ... on the current device. */
static inline kn_tensor *numbers(kn_dtype dtype, int ndim, const int64_t *shape, double start, double step)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++)
        count *= shape[d];
    kn_tensor *values =
        kn_arange(start, start + step * ((double)count - 0.5), step, .dtype = KN_F64, .device = kn_device_host());
    return kn_reshape(kn_to(kn_to_dtype(values, dtype), kn_device_current()), ndim, shape);
}

/* The same values, apart from the graph, as a leaf that gets a gradient. */
static inline kn_tensor *leaf(kn_tensor *x)
{
    CHECK_OK(kn_set_requires_grad(x = kn_detach(x), true));
    return x;
}

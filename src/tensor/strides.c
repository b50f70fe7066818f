/* tensor/strides.c - see strides.h. */
#include "tensor/strides.h"

#include <koine/dtype.h>

void kn_strides_contiguous(int64_t *strides, int ndim, const int64_t *shape)
{
    int64_t step = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        strides[i] = step;
        step *= shape[i] > 1 ? shape[i] : 1;
    }
}

int64_t kn_strides_extent(int ndim, const int64_t *shape, const int64_t *strides)
{
    int64_t last = 0;
    bool counts = true;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 0)
            return 0;
        const int64_t steps = shape[d] - 1;
        counts = counts && (steps == 0 || strides[d] <= (INT64_MAX - 1 - last) / steps);
        last += counts ? steps * strides[d] : 0;
    }
    return counts ? last + 1 : -1;
}

/* The dimension with the smallest stride among those not `done`, of more than one element; -1: none is left. */
static int smallest(int ndim, const int64_t *shape, const int64_t *strides, const bool *done)
{
    int found = -1;
    for (int d = ndim - 1; d >= 0; d--)
        if (!done[d] && shape[d] > 1 && (found < 0 || strides[d] < strides[found]))
            found = d;
    return found;
}

bool kn_strides_may_overlap(int ndim, const int64_t *shape, const int64_t *strides)
{
    bool done[KN_MAX_DIMS] = {false};
    int64_t reach = 0;
    if (kn_strides_extent(ndim, shape, strides) == 0)
        return false;
    for (int d = smallest(ndim, shape, strides, done); d >= 0; d = smallest(ndim, shape, strides, done)) {
        if (strides[d] <= reach)
            return true;
        reach += (shape[d] - 1) * strides[d];
        done[d] = true;
    }
    return false;
}

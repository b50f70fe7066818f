/* loops/layout.c - see layout.h. */
#include "loops/layout.h"

#include <stdlib.h>

static void swap_dims(kn_layout *layout, int a, int b)
{
    const int64_t size = layout->shape[a];
    layout->shape[a] = layout->shape[b];
    layout->shape[b] = size;
    for (int i = 0; i < layout->lanes; i++) {
        const int64_t stride = layout->strides[i][a];
        layout->strides[i][a] = layout->strides[i][b];
        layout->strides[i][b] = stride;
    }
}

void kn_layout_sort(kn_layout *layout)
{
    const int64_t *steps = layout->strides[0];
    for (int d = 1; d < layout->ndim; d++)
        for (int k = d; k > 0 && llabs(steps[k]) > llabs(steps[k - 1]); k--)
            swap_dims(layout, k, k - 1);
}

void kn_layout_collapse(kn_layout *layout)
{
    int kept = 0;

    for (int d = 0; d < layout->ndim; d++) {
        bool join = kept > 0;
        if (layout->shape[d] == 1)
            continue;
        for (int i = 0; i < layout->lanes && join; i++)
            join = layout->strides[i][kept - 1] == layout->strides[i][d] * layout->shape[d];
        if (join)
            layout->shape[kept - 1] *= layout->shape[d];
        else
            layout->shape[kept++] = layout->shape[d];
        for (int i = 0; i < layout->lanes; i++)
            layout->strides[i][kept - 1] = layout->strides[i][d];
    }
    if (kept == 0) { /* one element */
        layout->shape[kept++] = 1;
        for (int i = 0; i < layout->lanes; i++)
            layout->strides[i][0] = 1;
    }
    layout->ndim = kept;
}

int64_t kn_layout_count(const kn_layout *layout)
{
    int64_t count = 1;
    for (int d = 0; d < layout->ndim; d++)
        count *= layout->shape[d];
    return count;
}

bool kn_layout_is_flat(const kn_layout *layout)
{
    if (layout->ndim != 1)
        return false;
    for (int i = 0; i < layout->lanes; i++)
        if (layout->strides[i][0] != 0 && layout->strides[i][0] != 1)
            return false;
    return layout->strides[0][0] == 1;
}

bool kn_layout_begins_contiguous(const kn_layout *layout)
{
    const int last = layout->ndim - 1;
    const int64_t *strides = layout->strides[0];
    bool is_contiguous = strides[last] == 1;
    for (int d = last; d > 0; d--)
        is_contiguous = is_contiguous && strides[d - 1] == strides[d] * layout->shape[d];
    return is_contiguous;
}

bool kn_layout_has_steps(const kn_layout *layout)
{
    for (int n = 0; n < layout->lanes; n++)
        if (layout->strides[n][layout->ndim - 1] > 1)
            return true;
    return false;
}

/* tensor/strides.h - where the elements of a strided layout lie. Sizes and strides are 0 or more. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Row-major, without gaps. */
void kn_strides_contiguous(int64_t *strides, int ndim, const int64_t *shape);

/* The number of elements that the layout spans in memory; 0 if it is empty, -1 on overflow. */
int64_t kn_strides_extent(int ndim, const int64_t *shape, const int64_t *strides);

/* May elements share memory? False only if each stride exceeds the extent of all dimensions with smaller strides, so
 * true is occasionally a false alarm. */
bool kn_strides_may_overlap(int ndim, const int64_t *shape, const int64_t *strides);

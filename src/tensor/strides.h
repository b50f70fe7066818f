/* tensor/strides.h - where the elements of a strided layout lie. Sizes and strides are 0 or more. */
#ifndef KN_TENSOR_STRIDES_H
#define KN_TENSOR_STRIDES_H

#include <stdbool.h>
#include <stdint.h>

/* Row-major, without gaps. */
void kn_strides_contiguous(int64_t *strides, int ndim, const int64_t *shape);

/* Elements from the first to the last in memory; 0 where there are none, -1 where they are too many to count. */
int64_t kn_strides_extent(int ndim, const int64_t *shape, const int64_t *strides);

/* May several elements lie in one place? No, if each stride exceeds what the dimensions of smaller strides reach; else,
 * though seldom without need, yes. */
bool kn_strides_may_overlap(int ndim, const int64_t *shape, const int64_t *strides);

#endif

/* loops/layout.h - operands with any strides over one shape, in as few dimensions as can be. */
#ifndef KN_LOOPS_LAYOUT_H
#define KN_LOOPS_LAYOUT_H

#include <koine/dtype.h>

#define KN_LAYOUT_LANES 9

/* A lane is what operands that lie alike share. */
typedef struct kn_layout {
    int ndim; /* at least 1 after kn_layout_collapse */
    int lanes;
    int64_t shape[KN_MAX_DIMS];
    int64_t strides[KN_LAYOUT_LANES][KN_MAX_DIMS]; /* elements; 0 where broadcast */
} kn_layout;

/* Drops dimensions of size 1 and joins neighbours that every lane walks as one. There must be an element. */
void kn_layout_collapse(kn_layout *layout);

int64_t kn_layout_count(const kn_layout *layout);

/* One dimension, along which each lane has stride 1 or 0? */
bool kn_layout_is_flat(const kn_layout *layout);

#endif

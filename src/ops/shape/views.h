/* ops/shape/views.h - what the ops that only look at their input in another way share. */
#ifndef KN_OPS_SHAPE_VIEWS_H
#define KN_OPS_SHAPE_VIEWS_H

#include "autograd/op.h"

/* Where a view lies in its input's storage, and how it was asked for (for backward). */
typedef struct kn_view_params {
    int ndim;
    int64_t shape[KN_MAX_DIMS];
    int64_t strides[KN_MAX_DIMS];
    int64_t offset;        /* elements from the storage's start */
    int dim;               /* narrow, select: along which dimension */
    int64_t start;         /* narrow, select: from where */
    int dims[KN_MAX_DIMS]; /* permute: output dimension i is input dimension dims[i] */
} kn_view_params;

/* The view of all of `x`, to be changed into the one wanted. */
kn_view_params kn_view_of(const kn_tensor *x);

/* Shape rule and forward of every view op. */
kn_status kn_view_shape(kn_call *call);
kn_status kn_view_forward(kn_call *call);

/* `dim` counted from the front, or -1 with an error; `ndim` dimensions, negative ones count from the end. */
int kn_wrap_dim(const char *function, int dim, int ndim);

/* Is `shape` reachable from x without a copy? Fills `strides` if so. Same number of elements. */
bool kn_reshape_strides(const kn_tensor *x, int ndim, const int64_t *shape, int64_t strides[KN_MAX_DIMS]);

#endif

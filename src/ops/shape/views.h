/* ops/shape/views.h - what the ops that only look at their input in another way share. */
#ifndef KN_OPS_SHAPE_VIEWS_H
#define KN_OPS_SHAPE_VIEWS_H

#include "ops/dispatch/invoke.h"

/* Where a view lies in its input's storage, and how it was asked for (for backward): the record of every view op, which
 * its `enter` makes of what the caller said. */
typedef struct kn_view_params {
    int ndim;
    int64_t shape[KN_MAX_DIMS];
    int64_t strides[KN_MAX_DIMS];
    int64_t offset;        /* elements from the storage's start */
    int dim;               /* narrow, select: along which dimension */
    int64_t start;         /* narrow, select: from where */
    int dims[KN_MAX_DIMS]; /* permute: output dimension i is input dimension dims[i] */
} kn_view_params;

/* The view of all of input 0, to be changed into the one wanted. */
kn_view_params *kn_view_enter(kn_entry *entry);

/* Shape rule and forward of every view op. */
kn_status kn_view_shape(kn_call *call);
kn_status kn_view_forward(kn_call *call);

/* `dim` counted from the front, or -1 with an error; `ndim` dimensions, negative ones count from the end. */
int kn_wrap_dim(const char *function, int dim, int ndim);

/* A list of a public function as a parameter. Too long a one keeps its count and is refused when it is checked; one that
 * is NULL is an error that names it. */
bool kn_ints_of(kn_ints *list, const char *function, const char *name, int count, const int64_t *values);

/* Is `shape` reachable from x without a copy? Fills `strides` if so. Same number of elements. */
bool kn_reshape_strides(const kn_tensor *x, int ndim, const int64_t *shape, int64_t strides[KN_MAX_DIMS]);

#endif

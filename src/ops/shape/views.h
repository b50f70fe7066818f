/* ops/shape/views.h - shared by the view ops. */
#pragma once

#include "ops/dispatch/invoke.h"

/* A view's layout in its input's storage, and its parameters (for backward): the record of every view op, set up by its
 * `enter`. */
typedef struct kn_view_params {
    int ndim;
    int64_t shape[KN_MAX_DIMS];
    int64_t strides[KN_MAX_DIMS];
    int64_t offset;        /* in elements, from the start of the storage */
    int dim;               /* narrow, select, slice, unfold: the dimension; diagonal: the first one */
    int other;             /* diagonal: the second */
    int64_t start, step;   /* narrow, select, slice: the start; slice, unfold: the step; diagonal: the offset */
    int64_t length;        /* narrow, select, slice: how many of the dimension */
    int dims[KN_MAX_DIMS]; /* permute: output dimension i is input dimension dims[i] */
} kn_view_params;

/* A view of all of input 0, to be modified by the caller. */
kn_view_params *kn_view_enter(kn_entry *entry);

/* Shape rule and forward of every view op. */
kn_status kn_view_shape(kn_call *call);
kn_status kn_view_forward(kn_call *call);

kn_status kn_view_give(kn_grad_call *grad, kn_tensor *result); /* as the gradient of input 0 */
void kn_view_drop(kn_view_params *view, int dim);              /* without that dimension */

/* kn_op.part of views that have all elements of their input in the same order. */
kn_status kn_view_reshaped_part(kn_tensor **part, kn_tensor *whole, const void *params);

#define KN_VIEW_FIELDS(op_name, enter_, backward_)                                                                     \
    .name = op_name, .inputs = {"x"}, .enter = enter_, .record_size = sizeof(kn_view_params), .is_view = true,         \
    .shape = kn_view_shape, .forward = kn_view_forward, .backward = backward_, .backward_recorded = backward_
#define KN_VIEW_OP(op_name, params_, enter_, backward_)                                                                \
    {                                                                                                                  \
        KN_VIEW_FIELDS(op_name, enter_, backward_), .params = params_                                                  \
    }

/* The ops that views of a part, and as_strided, have for a gradient. */
extern const kn_op kn_narrow_backward_op, kn_as_strided_backward_op, kn_diagonal_backward_op;

/* Converts a public function's list to a parameter. One that is too long keeps its count and is refused later by the
 * checks; a NULL list is an error that names it. */
bool kn_ints_of(kn_ints *list, const char *function, const char *name, int count, const int64_t *values);

/* Can x be reshaped to `shape`, of the same number of elements, without a copy? Sets `strides` if so. */
bool kn_reshape_strides(const kn_tensor *x, int ndim, const int64_t *shape, int64_t strides[KN_MAX_DIMS]);

/* The part of `whole` that kn_diagonal_backward_op writes; an owned reference. */
kn_status kn_diagonal_of_whole(kn_tensor **part, kn_tensor *whole, const kn_diagonal_backward_args *args);

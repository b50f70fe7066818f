/* autograd/view.h - views and changes in place: what a change of one tensor means for those that share its memory.
 *
 * A view knows its base: the tensor, itself no view, that the first view in the row was taken of. The history of the
 * values lies with the base. An op that changes a view in place becomes the node of the base, with a slice that tells
 * which part it changed. Views notice by the storage's version that something was changed since their node was made,
 * and get a new one when it is next asked for: as_strided of the base as it then is.
 *
 * A view holds a reference to its base, and nothing that a base leads to holds a view: there are no cycles. */
#ifndef KN_AUTOGRAD_VIEW_H
#define KN_AUTOGRAD_VIEW_H

#include "autograd/op.h"

/* How a view was made: those that are not ordinary cannot take part in the record once their memory was changed. */
typedef enum kn_view_kind {
    KN_VIEW_ORDINARY,
    KN_VIEW_WITHOUT_GRAD, /* while gradients were disabled */
    KN_VIEW_OF_MANY       /* one of several results of one op */
} kn_view_kind;

/* Where a tensor lies in its storage. */
typedef struct kn_geometry {
    int ndim;
    int64_t shape[KN_MAX_DIMS];
    int64_t strides[KN_MAX_DIMS];
    int64_t offset;
} kn_geometry;

/* A view, as a part of its base. */
typedef struct kn_slice {
    kn_geometry base, view;
} kn_slice;

/* `view` shares memory with `of`, whose base becomes its own. Nothing is noted of views that take no gradient, and of
 * those that a backward pass makes for itself. */
kn_status kn_view_track(kn_tensor *view, kn_tensor *of, kn_view_kind kind);

/* For the engine: whether this thread's views are noted; returns the previous setting. */
bool kn_view_set_tracking(bool enabled);

/* Borrowed; NULL: no view. */
kn_tensor *kn_view_base(const kn_tensor *tensor);

/* Was the memory changed since the view's node was made, under a base that requires gradients? Then the node is of no
 * use any more. False for what is no view. */
bool kn_view_is_outdated(const kn_tensor *tensor);

/* Gives an outdated view its new node. */
kn_status kn_view_regenerate(kn_tensor *view);

/* Would a change in place of `tensor` be one of values that require gradients? */
bool kn_change_wants_record(const kn_tensor *tensor);

/* May a recorded op change `tensor` in place? */
kn_status kn_change_check(const kn_tensor *tensor);

void kn_slice_of(kn_slice *slice, const kn_tensor *base, const kn_tensor *view);

/* The memory that base and view span together. */
typedef struct kn_span_of_slice {
    int64_t start, elements; /* from the start of the storage */
} kn_span_of_slice;
kn_span_of_slice kn_slice_span(const kn_slice *slice);

/* Memory laid out as the slice's base, and the slice's view of it; owned references. Uninitialised, but zero where the view
 * reaches beyond the base. */
kn_status kn_slice_new(const kn_slice *slice, kn_dtype dtype, kn_device *device, kn_tensor **whole, kn_tensor **part);

/* The op of a renewed view: input 0 is the base, the params are a kn_slice. The ops layer registers it when the library
 * is loaded. */
void kn_view_set_op(const kn_op *as_strided);

#endif

/* autograd/view.h - views and changes in place: what changing one tensor means for those that share its memory.
 *
 * A view knows its base: the tensor, not itself a view, at the root of its chain of views. The base holds the history
 * of the values. An op that changes a view in place becomes the node of the base, with a slice that describes the part
 * it changed. A view sees by the storage's version that something changed since its node was made, and gets a new node
 * on next use: as_strided of the current base.
 *
 * A view holds a reference to its base, and nothing reachable from a base holds a view: there are no cycles. */
#pragma once

#include "autograd/op.h"

/* How a view was made: only ordinary ones can still be recorded after their memory was changed. */
typedef enum kn_view_kind {
    KN_VIEW_ORDINARY,
    KN_VIEW_WITHOUT_GRAD, /* while gradients were disabled */
    KN_VIEW_OF_MANY       /* one of several views made by one op */
} kn_view_kind;

/* Where a tensor lies in its storage. */
typedef struct kn_geometry {
    int ndim;
    int64_t shape[KN_MAX_DIMS];
    int64_t strides[KN_MAX_DIMS];
    int64_t offset;
} kn_geometry;

/* A view, as a part of its base. */
typedef struct kn_base_slice {
    kn_geometry base, view;
} kn_base_slice;

/* `view` shares memory with `of` and takes over its base. Views without gradients, and those made within a backward
 * pass, are not tracked. */
kn_status kn_view_track(kn_tensor *view, kn_tensor *of, kn_view_kind kind);

/* For the engine: whether this thread's views are tracked; returns the previous setting. */
bool kn_view_set_tracking(bool enabled);

/* Borrowed; NULL: not a view. */
kn_tensor *kn_view_base(const kn_tensor *tensor);

/* Was the memory changed since the view's node was made, under a base that requires gradients? The node is then stale.
 * False for a tensor that is not a view. */
bool kn_view_is_outdated(const kn_tensor *tensor);

/* Gives an outdated view its new node. */
kn_status kn_view_regenerate(kn_tensor *view);

/* Must a change in place of `tensor` be recorded, because the base or a view requires gradients? */
bool kn_change_wants_record(const kn_tensor *tensor);

/* May a recorded op change `tensor` in place? */
kn_status kn_change_check(const kn_tensor *tensor);

void kn_slice_of(kn_base_slice *slice, const kn_tensor *base, const kn_tensor *view);

/* The memory that base and view span together. */
typedef struct kn_span_of_slice {
    int64_t start, elements; /* from the start of the storage */
} kn_span_of_slice;
kn_span_of_slice kn_slice_span(const kn_base_slice *slice);

/* Memory laid out as the slice's base, and the slice's view of it; owned references. Uninitialised, but zero where the
 * view reaches beyond the base. */
kn_status kn_slice_new(const kn_base_slice *slice, kn_dtype dtype, kn_device *device, kn_tensor **whole,
                       kn_tensor **part);

/* The op of a regenerated view: input 0 is the base, the params are a kn_base_slice. The ops layer registers it when
 * the library is loaded. */
void kn_view_set_op(const kn_op *as_strided);

/* autograd/whole.c - see whole.h. */
#include "autograd/whole.h"

#include <string.h>

#include "base/memory.h"

/* A range of the whole's dimension; without an owner it is written, else reserved for that view. */
typedef struct piece {
    int64_t start, end;
    const kn_node *owner;
} piece;

struct kn_whole {
    kn_tensor *tensor;
    int output; /* of the node whose gradient this is */
    int dim;    /* that all pieces are ranges of */
    bool used;  /* a part has arrived */
    piece *pieces;
    int count, capacity;
};

/* --- pieces ------------------------------------------------------------------------------------------------------- */

static kn_range range_of(const kn_node *view)
{
    const kn_input_spec *x = &view->input[0];
    kn_range range = {.dim = 0, .end = x->ndim > 0 ? x->shape[0] : 1, .is_all = true};
    if (view->op->range)
        view->op->range(&range, view->params);
    return range;
}

/* The first piece that is not apart from the range; NULL: none. */
static piece *find(const kn_whole *whole, kn_range range)
{
    const bool same = range.is_all || range.dim == whole->dim;
    for (int i = 0; i < whole->count; i++)
        if (!same || range.is_all || (whole->pieces[i].start < range.end && range.start < whole->pieces[i].end))
            return &whole->pieces[i];
    return NULL;
}

static piece *owned(kn_whole *whole, const kn_node *owner)
{
    for (int i = 0; i < whole->count; i++)
        if (whole->pieces[i].owner == owner)
            return &whole->pieces[i];
    return NULL;
}

static void forget(kn_whole *whole, piece *p) { *p = whole->pieces[--whole->count]; }

/* Pieces that touch become one: those of a loop over time are. */
static kn_status add(kn_whole *whole, kn_range range, const kn_node *owner)
{
    if (whole->count == 0)
        whole->dim = range.dim;
    for (int i = 0; i < whole->count && !owner; i++) {
        piece *p = &whole->pieces[i];
        if (p->owner || (p->end != range.start && p->start != range.end))
            continue;
        range.start = range.start < p->start ? range.start : p->start;
        range.end = range.end > p->end ? range.end : p->end;
        forget(whole, p);
        i = -1;
    }
    KN_TRY(KN_GROW(whole->pieces, whole->count, whole->capacity));
    whole->pieces[whole->count++] = (piece){range.start, range.end, owner};
    return KN_OK;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

void kn_whole_drop(kn_node *node)
{
    if (!node->whole)
        return;
    kn_release(node->whole->tensor);
    kn_free(node->whole->pieces);
    kn_free(node->whole);
    node->whole = NULL;
}

static bool is_recorded_view(const kn_node *node)
{
    return node->op && node->op->part && !node->slice && !node->released && node->needs[0] &&
           node->edges[0].node->mark != KN_MARK_OFF_PATH;
}

/* The incomplete gradient of the view's input, made if there is none, in its own place if it has one; NULL if the input
 * is an output of a node that already makes another one. */
static kn_status whole_of(kn_whole **whole, kn_queue *q, const kn_node *view, bool with_place)
{
    const kn_input_spec *x = &view->input[0];
    kn_node *node = view->edges[0].node;
    const int output = view->edges[0].output;
    kn_tensor *place = NULL;
    *whole = node->whole && node->whole->output == output ? node->whole : NULL;
    if (node->whole)
        return KN_OK;
    if (with_place)
        KN_TRY(kn_whole_place(&place, q, node, output));
    if (!place)
        KN_TRY(kn_tensor_new(&place, x->dtype, x->ndim, x->shape, x->device));
    kn_status status = kn_queue_push(q, node); /* which frees it, if no part arrives */
    node->whole = status == KN_OK ? kn_calloc(1, sizeof *node->whole) : NULL;
    if (!node->whole) {
        kn_release(place);
        return status == KN_OK ? KN_ERR_MEMORY : status;
    }
    node->whole->tensor = place;
    node->whole->output = output;
    *whole = node->whole;
    return KN_OK;
}

kn_status kn_whole_place(kn_tensor **place, kn_queue *q, kn_node *node, int output)
{
    kn_whole *whole;
    *place = NULL;
    if (!is_recorded_view(node) || node->hooks || node->whole || node->gradients[output])
        return KN_OK;
    const kn_edge *edge = &node->edges[0];
    const kn_range range = range_of(node);
    if (range.has_holes || edge->node->gradients[edge->output])
        return KN_OK;
    KN_TRY(whole_of(&whole, q, node, true));
    if (!whole || find(whole, range))
        return KN_OK;
    KN_TRY(node->op->part(place, whole->tensor, node->params));
    const kn_status status = *place ? add(whole, range, node) : KN_OK;
    if (status != KN_OK) {
        kn_release(*place);
        *place = NULL;
    }
    return status;
}

/* --- arrival ------------------------------------------------------------------------------------------------------ */

bool kn_gradient_is_ours(const kn_tensor *gradient)
{
    return atomic_load(&gradient->references) == 1 && atomic_load(&gradient->storage->references) == 1 &&
           kn_is_contiguous(gradient);
}

static bool is_same_view(const kn_tensor *a, const kn_tensor *b)
{
    if (a->storage != b->storage || a->offset != b->offset || a->ndim != b->ndim)
        return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d] || (a->strides[d] != b->strides[d] && a->shape[d] > 1))
            return false;
    return true;
}

/* Writes or adds the view's gradient to its part of the tensor. */
static kn_status put(const kn_node *view, kn_tensor *tensor, bool add_to)
{
    kn_tensor *part, *gradient = view->gradients[0];
    KN_TRY(view->op->part(&part, tensor, view->params));
    kn_status status = KN_OK;
    if (kn_numel(part) > 0 && !is_same_view(part, gradient))
        status = add_to ? kn_tensor_accumulate(part, gradient) : kn_tensor_copy(part, gradient);
    kn_release(part);
    return status;
}

/* Is the view's gradient where it was to be written? */
static kn_status is_in_place(bool *is, const kn_node *view, const kn_whole *whole)
{
    kn_tensor *part;
    KN_TRY(view->op->part(&part, whole->tensor, view->params));
    *is = is_same_view(part, view->gradients[0]);
    kn_release(part);
    return KN_OK;
}

static kn_status put_into(bool *taken, kn_whole *whole, const kn_node *view)
{
    const kn_range range = range_of(view);
    const piece *other = find(whole, range);
    const bool is_within =
        other && !other->owner && range.dim == whole->dim && other->start <= range.start && range.end <= other->end;
    if (range.has_holes || (other && !is_within))
        return KN_OK;
    KN_TRY(put(view, whole->tensor, other));
    if (!other && range.start < range.end)
        KN_TRY(add(whole, range, NULL));
    whole->used = *taken = true;
    return KN_OK;
}

kn_status kn_whole_put(bool *taken, kn_queue *q, kn_node *view, bool may_place)
{
    *taken = false;
    if (!is_recorded_view(view))
        return KN_OK;
    kn_node *node = view->edges[0].node;
    const int output = view->edges[0].output;
    kn_whole *whole = node->whole && node->whole->output == output ? node->whole : NULL;
    piece *own = whole ? owned(whole, view) : NULL;
    if (own) {
        bool in_place;
        KN_TRY(is_in_place(&in_place, view, whole));
        forget(whole, own);
        if (in_place)
            return put_into(taken, whole, view);
    }
    if (!view->op->range) /* a view of all: backward copies nothing */
        return KN_OK;
    kn_tensor *complete = node->gradients[output];
    if (complete) {
        *taken = kn_gradient_is_ours(complete);
        return *taken ? put(view, complete, true) : KN_OK;
    }
    KN_TRY(whole_of(&whole, q, view, may_place));
    return whole ? put_into(taken, whole, view) : KN_OK;
}

/* --- completion --------------------------------------------------------------------------------------------------- */

static kn_status zero(kn_tensor *tensor, int dim, int64_t start, int64_t end)
{
    kn_tensor *part;
    int64_t shape[KN_MAX_DIMS];
    if (start >= end)
        return KN_OK;
    memcpy(shape, tensor->shape, sizeof shape);
    if (tensor->ndim > 0)
        shape[dim] = end - start;
    const int64_t offset = tensor->ndim > 0 ? start * tensor->strides[dim] : 0;
    KN_TRY(kn_tensor_view(&part, tensor, tensor->ndim, shape, tensor->strides, tensor->offset + offset));
    const kn_status status = kn_tensor_fill(part, 0);
    kn_release(part);
    return status;
}

/* Zeroes what no part has written. */
static kn_status fill_gaps(kn_whole *whole)
{
    const kn_tensor *t = whole->tensor;
    const int64_t size = t->ndim > 0 ? t->shape[whole->dim] : 1;
    for (int64_t at = 0; at < size;) {
        int64_t end = size, after = size; /* of the gap, and of the piece behind it */
        for (int i = 0; i < whole->count; i++) {
            const piece *p = &whole->pieces[i];
            if (!p->owner && p->start >= at && p->start < end) {
                end = p->start;
                after = p->end;
            }
        }
        KN_TRY(zero(whole->tensor, whole->dim, at, end));
        at = after;
    }
    return KN_OK;
}

kn_status kn_whole_finish(kn_node *node)
{
    kn_whole *whole = node->whole;
    if (whole && whole->used) {
        kn_tensor **gradient = &node->gradients[whole->output];
        KN_TRY(fill_gaps(whole));
        if (*gradient)
            KN_TRY(kn_tensor_accumulate(whole->tensor, *gradient));
        kn_release(*gradient);
        *gradient = kn_retain(whole->tensor);
    }
    kn_whole_drop(node);
    return KN_OK;
}

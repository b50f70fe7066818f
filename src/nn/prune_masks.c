/* nn/prune_masks.c - which elements or channels are pruned. */
#include <koine/index.h>
#include <koine/pointwise.h>
#include <koine/random.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <koine/sort.h>
#include <math.h>

#include "base/error.h"
#include "nn/prune.h"
#include "tensor/tensor.h"

/* How many of `size` elements. */
static kn_status number_of(int64_t *number, const kn_prune_how *how, int64_t size)
{
    const kn_scalar amount = how->amount;
    if (amount.is_whole) {
        *number = amount.whole;
        if (amount.whole < 0 || amount.whole > size)
            return kn_fail(KN_ERR_ARGUMENT, "%s: amount must be from 0 to the %lld that are not pruned, not %lld",
                           how->function, (long long)size, (long long)amount.whole);
        return KN_OK;
    }
    if (!(amount.real >= 0 && amount.real <= 1))
        return kn_fail(KN_ERR_ARGUMENT, "%s: amount must be a part from 0.0 to 1.0 or a number, not %g", how->function,
                       amount.real);
    *number = (int64_t)rint(amount.real * (double)size); /* half to even, as Python rounds */
    return KN_OK;
}

/* The indices of the `count` least elements, or of random ones, of a vector. */
static kn_tensor *choose(kn_tensor *vector, int64_t count, const kn_prune_how *how)
{
    kn_tensor *indices = NULL;
    if (how->is_random)
        vector = kn_rand_like(vector, .generator = how->generator);
    return kn_topk(vector, count, &indices, .largest = false) ? indices : NULL;
}

/* Indices of a vector's elements that are not 0; NULL with an error. */
static kn_tensor *places(kn_tensor *vector)
{
    kn_tensor *found = kn_nonzero(vector);
    return found ? kn_reshape(found, 1, (const int64_t[]){found->shape[0]}) : NULL;
}

/* `vector` with zeros at `count` of the places that are not 0 now, chosen by `importance`. */
static kn_tensor *prune_vector(kn_tensor *vector, kn_tensor *importance, const kn_prune_how *how)
{
    int64_t count = 0;
    kn_tensor *left = places(vector);
    if (!left || number_of(&count, how, left->shape[0]) != KN_OK)
        return kn_error_make_sticky();
    if (count == 0)
        return kn_clone(vector);
    kn_tensor *chosen = choose(kn_index_select(importance, 0, left), count, how);
    return chosen ? kn_index_fill(vector, 0, kn_index_select(left, 0, chosen), 0) : NULL;
}

static kn_tensor *flat(kn_tensor *t) { return kn_reshape(t, 1, (const int64_t[]){kn_numel(t)}); }

static kn_tensor *prune_elements(kn_prune_state state, const kn_prune_how *how)
{
    kn_tensor *mask = prune_vector(flat(state.mask), kn_abs(flat(state.importance)), how);
    return mask ? kn_reshape(mask, state.mask->ndim, state.mask->shape) : NULL;
}

/* Channels whose mask is 0 everywhere are pruned already. */
static kn_tensor *prune_channels(kn_prune_state state, const kn_prune_how *how)
{
    const int ndim = state.mask->ndim, dim = how->dim < 0 ? how->dim + ndim : how->dim;
    int others[KN_MAX_DIMS], count = 0;
    int64_t shape[KN_MAX_DIMS];
    for (int d = 0; d < ndim; d++) {
        shape[d] = d == dim ? state.mask->shape[d] : 1;
        if (d != dim)
            others[count++] = d;
    }
    kn_tensor *alive = kn_amax(state.mask, others, count, false);
    kn_tensor *norms = alive ? kn_norm_dims(state.importance, how->n, others, count, false) : NULL;
    kn_tensor *left = norms ? prune_vector(alive, norms, how) : NULL;
    return left ? kn_mul(state.mask, kn_reshape(left, ndim, shape)) : NULL;
}

static kn_status check_channels(const kn_tensor *t, const kn_prune_how *how)
{
    if (t->ndim < 2)
        return kn_fail(KN_ERR_ARGUMENT, "%s: structured pruning takes a tensor of two dimensions or more, not %d",
                       how->function, t->ndim);
    if (how->dim < -t->ndim || how->dim >= t->ndim)
        return kn_fail(KN_ERR_ARGUMENT, "%s: dim must be from %d to %d, not %d", how->function, -t->ndim, t->ndim - 1,
                       how->dim);
    return KN_OK;
}

kn_tensor *kn_prune_new_mask(kn_prune_state state, const kn_prune_how *how)
{
    if (!how->is_structured)
        return prune_elements(state, how);
    return check_channels(state.mask, how) == KN_OK ? prune_channels(state, how) : kn_error_make_sticky();
}

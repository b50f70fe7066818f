/* tensor/batched.h - tensors that stand for each sample of a batch, which vmap (koine/vmap.h) gives to functions.
 *
 * Such a tensor has the dtype, device and shape of one sample. `whole` has all of them, along a dimension 0 before
 * those of a sample; inside another vmap it stands for a batch itself, of a lower level. The tensor has no memory of
 * its own: what asks for that gets KN_ERR_BATCHED. Operators look for such inputs when they are called
 * (ops/vmap/dispatch.h). */
#pragma once

#include <koine/vmap.h>

#include "base/error.h"
#include "tensor/tensor.h"

/* 0: it stands for itself. */
static inline int kn_batch_level(const kn_tensor *tensor) { return tensor ? tensor->batch_level : 0; }

/* The highest of their levels; NULL tensors have 0. */
int kn_batch_level_of(kn_tensor *const *tensors, int count);

/* How many samples that vmap of the calling thread has. */
int64_t kn_vmap_size(int level);

/* An owned tensor that stands for the samples of `whole`. */
kn_status kn_batched_new(kn_tensor **tensor, kn_tensor *whole, int level);

/* For public functions: a tensor of that level around `whole`, which a public function has returned to an open scope;
 * NULL for NULL. */
kn_tensor *kn_batched(kn_tensor *whole, int level);

/* Returns such a tensor, of the level of `like`, from a public function of one that stands for a batch; `made`, an
 * expression, is evaluated in a scope. */
#define KN_RETURN_BATCHED(like, made)                                                                                  \
    do {                                                                                                               \
        const int depth_ = kn_scope_begin();                                                                           \
        return depth_ ? kn_scope_return(depth_, kn_batched(made, (like)->batch_level)) : kn_error_make_sticky();       \
    } while (0)

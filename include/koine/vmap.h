/* koine/vmap.h - functions of one sample, applied to all samples of a batch at once: torch.vmap.
 *
 *     int level = kn_vmap_begin(64);
 *     kn_tensor *x = kn_vmap_in(batch, 0);          // stands for each batch[i], of shape [features]
 *     kn_tensor *y = function_of_one_sample(x, w);  // any operators; w is the same for all samples
 *     kn_tensor *results = kn_vmap_out(y, 0);       // the 64 results, along a new dimension 0
 *     kn_vmap_end(level);
 *
 * A tensor of kn_vmap_in has the shape, dtype and device of one sample. Operators, modules and functions composed of
 * them take it as any other tensor, and compute all samples with one call of the operator; those that cannot call it
 * once for each sample. Results that depend on it stand for a batch, too. Other tensors are the same for each sample.
 *
 * What needs a sample's values is KN_ERR_BATCHED: kn_item, kn_read, kn_data, kn_backward, files, and changing a tensor
 * in place that is the same for all samples by values that are not. kn_autograd_grad works, with gradients of each
 * sample, for inputs that stand for a batch: those of kn_vmap_in and kn_vmap_expand. Random operators draw other
 * numbers for each sample where an input stands for a batch, and the same for all otherwise.
 *
 * Calls may be nested, up to KN_MAX_DIMS levels; each takes one of the KN_MAX_DIMS dimensions that tensors may have.
 * Levels belong to the calling thread. Tensors are owned as results of operators are, and are released before
 * kn_vmap_end or after it; what stands for a batch must not be used after it otherwise. */
#ifndef KOINE_VMAP_H
#define KOINE_VMAP_H

#include <koine/common.h>
#include <koine/status.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* Begins a vmap over batch_size samples, at least 1. Returns its level, 1 for the outermost; 0 with an error. */
KN_API int kn_vmap_begin(int64_t batch_size);

/* The level of the innermost vmap that the thread is in; 0: none. */
KN_API int kn_vmap_level(void);

/* The vmap in which the tensor stands for a batch, the innermost of several; 0: none. */
KN_API int kn_vmap_level_of(const kn_tensor *tensor);

/* Ends that vmap and those inside it. */
KN_API void kn_vmap_end(int level);

/* A tensor that stands for each of the slices of `tensor` along `dim`, of the innermost vmap's size. */
KN_API kn_tensor *kn_vmap_in(kn_tensor *tensor, int dim);

/* The batch that `tensor` stands for in the innermost vmap, along a new dimension `dim`. A tensor that is the same for
 * all samples is expanded: a view. */
KN_API kn_tensor *kn_vmap_out(kn_tensor *tensor, int dim);

/* A tensor that stands for a batch in every vmap that the thread is in, a view of `tensor`, so that gradients with
 * respect to it are those of each sample. */
KN_API kn_tensor *kn_vmap_expand(kn_tensor *tensor);

KN_END_DECLS

#endif

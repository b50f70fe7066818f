/* ops/vmap/rules.h - how operators compute whole batches: the rules, and what they have in common. */
#pragma once

#include "ops/vmap/dispatch.h"

/* --- for rules ---------------------------------------------------------------------------------------------------- */

/* Not for these arguments: the operator is called for each sample. */
#define KN_VMAP_DECLINE KN_ERR_BATCHED

/* The dimensions that a sample of input i has. */
int kn_vmap_sample_dims(const kn_vmap_call *call, int i);

/* A view with a new dimension 0 of that size. NULL with an error. */
kn_tensor *kn_vmap_repeat(kn_tensor *x, int64_t size);

/* Input i as a whole batch, expanded if it is the same for all samples. NULL with an error. */
kn_tensor *kn_vmap_batch(const kn_vmap_call *call, int i);

/* Input i for broadcasting with samples of `dims` dimensions: the batch with dimensions of size 1 after the first. */
kn_tensor *kn_vmap_aligned(const kn_vmap_call *call, int i, int dims);

/* Is one of the inputs from `first` on a batch? */
bool kn_vmap_any_batched(const kn_vmap_call *call, int first);

/* Calls the operator on as many inputs, for the call's outputs. */
kn_status kn_vmap_apply(kn_vmap_call *call, kn_tensor *const *inputs, const void *params);

/* A copy of the parameters, and its field of a name; NULL where the operator has none. */
typedef struct kn_vmap_params {
    _Alignas(max_align_t) unsigned char bytes[KN_ENTRY_SPACE];
} kn_vmap_params;
void kn_vmap_copy_params(kn_vmap_params *copy, const kn_vmap_call *call);
void *kn_vmap_field(const kn_vmap_call *call, kn_vmap_params *params, const char *name);

/* x [B, N, ...] as [B * N, ...], and back. */
kn_tensor *kn_vmap_merged(kn_tensor *x);
kn_tensor *kn_vmap_unmerged(kn_tensor *x, int64_t batch_size);

/* x [B, N, C, ...] as [N, B * C, ...], and back. */
kn_tensor *kn_vmap_as_channels(kn_tensor *x);
kn_tensor *kn_vmap_from_channels(kn_tensor *x, int64_t batch_size);

/* --- rules -------------------------------------------------------------------------------------------------------- */

/* general.c */
kn_status kn_vmap_pointwise(kn_vmap_call *call); /* broadcast; each element of the result from those at its place */
kn_status kn_vmap_leading(kn_vmap_call *call);   /* takes any further dimensions before its own */
kn_status kn_vmap_along(kn_vmap_call *call);     /* along dimensions that parameters name; operands of one shape */
kn_status kn_vmap_reduced(kn_vmap_call *call);   /* the same, where no dimensions mean all */
kn_status kn_vmap_indexed(kn_vmap_call *call);   /* along a dimension, by an index that all samples share */
kn_status kn_vmap_images(kn_vmap_call *call);    /* [N, C, ...], or in some operators [C, ...] */
kn_status kn_vmap_layer_of_images(kn_vmap_call *call); /* the same of the first input; others are weights */

/* shapes.c */
kn_status kn_vmap_reshape(kn_vmap_call *call);
kn_status kn_vmap_expand_rule(kn_vmap_call *call);
kn_status kn_vmap_as_strided(kn_vmap_call *call);
kn_status kn_vmap_permute(kn_vmap_call *call);
kn_status kn_vmap_t(kn_vmap_call *call);
kn_status kn_vmap_roll(kn_vmap_call *call);
kn_status kn_vmap_whole_extreme(kn_vmap_call *call); /* max and min of all elements */
kn_status kn_vmap_index(kn_vmap_call *call);
kn_status kn_vmap_embedding(kn_vmap_call *call);

/* products.c */
kn_status kn_vmap_matmul(kn_vmap_call *call); /* matmul, mm, bmm, mv, dot, vdot */
kn_status kn_vmap_outer(kn_vmap_call *call);
kn_status kn_vmap_add_product(kn_vmap_call *call); /* addmm, addmv, addr, baddbmm */
kn_status kn_vmap_linear(kn_vmap_call *call);
kn_status kn_vmap_conv(kn_vmap_call *call);

/* layers.c */
kn_status kn_vmap_row_norm(kn_vmap_call *call); /* layer_norm, rms_norm */
kn_status kn_vmap_batch_norm(kn_vmap_call *call);
kn_status kn_vmap_group_norm(kn_vmap_call *call);
kn_status kn_vmap_prelu(kn_vmap_call *call);
kn_status kn_vmap_element_loss(kn_vmap_call *call);
kn_status kn_vmap_class_loss(kn_vmap_call *call);

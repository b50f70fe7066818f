/* ops/index/embedding.h - shared by embedding and embedding_bag. */
#pragma once

#include "autograd/op.h"
#include "ops/index/index.h"

/* The weight is a matrix, and the indices have a dtype of indices. */
kn_status kn_embedding_check(const kn_tensor *weight, const kn_tensor *indices);

/* *padding_idx = the row counted from the front; -1 for KN_NO_PADDING_IDX. */
kn_status kn_embedding_padding(int64_t *padding_idx, int64_t given, const kn_tensor *weight);

/* Scales the rows of these indices, in the weight itself, to at most max_norm; 0: does not. */
kn_status kn_embedding_renorm(kn_tensor *weight, kn_tensor *indices, double max_norm, double norm_type);

/* The map of a gather of the rows of these indices: [indices, columns]. */
kn_status kn_embedding_map(kn_index_map *map, const kn_tensor *weight, const kn_tensor *indices);

/* koine/nn/sparse.h - embeddings: tables whose rows are looked up. Constructors as in koine/module.h. */
#ifndef KOINE_NN_SPARSE_H
#define KOINE_NN_SPARSE_H

#include <koine/common.h>
#include <koine/embedding.h>
#include <koine/module.h>

KN_BEGIN_DECLS

/* torch.nn.Embedding: the rows of a `weight` [num_embeddings, embedding_dim], which is initialised from N(0, 1), at the
 * indices given. The other parameters are those of kn_embedding; the row of padding_idx starts as 0. */
typedef struct kn_nn_embedding_params {
    int64_t num_embeddings, embedding_dim;
    int64_t padding_idx;        /* default KN_NO_PADDING_IDX */
    double max_norm, norm_type; /* default 0 (none) and 2 */
    bool scale_grad_by_freq;    /* default false */
} kn_nn_embedding_params;
#define KN_NN_EMBEDDING_DEFAULTS .padding_idx = KN_NO_PADDING_IDX, .norm_type = 2
KN_API kn_nn_embedding_params kn_nn_embedding_params_init(void);
KN_API kn_module *kn_nn_embedding_with(const kn_nn_embedding_params *params);
#define kn_nn_embedding(...)                                                                                           \
    KN_CALL(kn_nn_embedding_with(&(kn_nn_embedding_params){KN_NN_EMBEDDING_DEFAULTS, __VA_ARGS__}))

/* torch.nn.EmbeddingBag: applied to the indices, and optionally offsets and per_sample_weights (kn_forward_many), as of
 * kn_embedding_bag. */
typedef struct kn_nn_embedding_bag_params {
    int64_t num_embeddings, embedding_dim;
    double max_norm, norm_type; /* default 0 (none) and 2 */
    bool scale_grad_by_freq;    /* default false */
    kn_embedding_bag_mode mode; /* default mean */
    bool include_last_offset;   /* default false */
    int64_t padding_idx;        /* default KN_NO_PADDING_IDX */
} kn_nn_embedding_bag_params;
#define KN_NN_EMBEDDING_BAG_DEFAULTS .norm_type = 2, .mode = KN_BAG_MEAN, .padding_idx = KN_NO_PADDING_IDX
KN_API kn_nn_embedding_bag_params kn_nn_embedding_bag_params_init(void);
KN_API kn_module *kn_nn_embedding_bag_with(const kn_nn_embedding_bag_params *params);
#define kn_nn_embedding_bag(...)                                                                                       \
    KN_CALL(kn_nn_embedding_bag_with(&(kn_nn_embedding_bag_params){KN_NN_EMBEDDING_BAG_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif

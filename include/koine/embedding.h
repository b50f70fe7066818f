/* koine/embedding.h - rows of a table by index, and sums of them. Tensor expressions (koine/tensor.h).
 *
 * The table, `weight`, is [rows, columns]; indices are int64 or int32 of any shape, and one out of range is reported
 * when the device is next synchronised or read. */
#ifndef KOINE_EMBEDDING_H
#define KOINE_EMBEDDING_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

#define KN_NO_PADDING_IDX INT64_MIN

/* The rows of the indices: the shape of `input`, and the columns. torch.nn.functional.embedding. */
typedef struct kn_embedding_params {
    int64_t padding_idx; /* this row gets no gradient; negative: from the end; default KN_NO_PADDING_IDX: none */
    double max_norm; /* rows with a larger norm are scaled to it, in `weight` itself, before; default 0: they are not */
    double norm_type;        /* p of that norm; default 2 */
    bool scale_grad_by_freq; /* divide gradients by how often the index occurs; default false */
} kn_embedding_params;
#define KN_EMBEDDING_DEFAULTS .padding_idx = KN_NO_PADDING_IDX, .norm_type = 2
KN_API kn_embedding_params kn_embedding_params_init(void);
KN_API kn_tensor *kn_embedding_with(kn_tensor *input, kn_tensor *weight, const kn_embedding_params *params);
#define kn_embedding(input, weight, ...)                                                                               \
    KN_CALL(kn_embedding_with(input, weight, &(kn_embedding_params){KN_EMBEDDING_DEFAULTS, __VA_ARGS__}))

typedef enum kn_embedding_bag_mode { KN_BAG_SUM, KN_BAG_MEAN, KN_BAG_MAX } kn_embedding_bag_mode;

/* The sum, mean or maximum of the rows of each bag: [bags, columns]; 0 for an empty bag. Equal maxima share
 * the gradient; in PyTorch the first has it. torch.nn.functional.embedding_bag. */
typedef struct kn_embedding_bag_params {
    kn_tensor *offsets;            /* where each bag starts in `input`, a vector; NULL: the rows of `input` are bags */
    kn_tensor *per_sample_weights; /* factors, of the shape of `input`, with the mode sum; default NULL: 1 */
    kn_embedding_bag_mode mode;    /* default mean */
    int64_t padding_idx;           /* this index is left out; negative: from the end; default none */
    double max_norm, norm_type;    /* as above */
    bool scale_grad_by_freq;       /* as above */
    bool include_last_offset;      /* the last offset is the end of the last bag; default false */
} kn_embedding_bag_params;
#define KN_EMBEDDING_BAG_DEFAULTS .mode = KN_BAG_MEAN, .padding_idx = KN_NO_PADDING_IDX, .norm_type = 2
KN_API kn_embedding_bag_params kn_embedding_bag_params_init(void);
KN_API kn_tensor *kn_embedding_bag_with(kn_tensor *input, kn_tensor *weight, const kn_embedding_bag_params *params);
#define kn_embedding_bag(input, weight, ...)                                                                           \
    KN_CALL(kn_embedding_bag_with(input, weight, &(kn_embedding_bag_params){KN_EMBEDDING_BAG_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif

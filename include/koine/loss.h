/* koine/loss.h - losses. Floating inputs, other dtypes of targets where they are named. Tensor expressions
 * (koine/tensor.h); modules are in koine/nn/loss.h.
 *
 * A loss of elements or rows is reduced to its mean, by default, or its sum, or not at all. Functions whose only option
 * is the reduction take it as an argument. */
#ifndef KOINE_LOSS_H
#define KOINE_LOSS_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

typedef enum kn_reduction {
    KN_REDUCTION_MEAN = 0, /* the mean of no elements is NaN */
    KN_REDUCTION_SUM,
    KN_REDUCTION_NONE,
    KN_REDUCTION_BATCHMEAN /* kn_kl_div only: the sum divided by the size of dimension 0 */
} kn_reduction;

/* --- of classes --------------------------------------------------------------------------------------------------- */

typedef struct kn_cross_entropy_params {
    kn_tensor *weight;      /* [C], default NULL: 1; the mean is then the weighted mean */
    int64_t ignore_index;   /* default -100 */
    double label_smoothing; /* default 0 */
    kn_reduction reduction; /* default mean */
} kn_cross_entropy_params;
#define KN_CROSS_ENTROPY_DEFAULTS .ignore_index = -100
KN_API kn_cross_entropy_params kn_cross_entropy_params_init(void);

/* cross_entropy: -log softmax(input)[target]; nll_loss: -input[target]. input: logits (nll_loss: log-probabilities) [N,
 * C] or [N, C, d...]. target: class indices [N] or [N, d...], int64 (or int32, uint8); cross_entropy also takes
 * probabilities of the input's shape and dtype. A class outside 0 .. C - 1 is reported when the device is next
 * synchronised or read. */
KN_API kn_tensor *kn_cross_entropy_with(kn_tensor *input, kn_tensor *target, const kn_cross_entropy_params *params);
KN_API kn_tensor *kn_nll_loss_with(kn_tensor *input, kn_tensor *target, const kn_cross_entropy_params *params);
#define kn_cross_entropy(input, target, ...)                                                                           \
    KN_CALL(kn_cross_entropy_with(input, target, &(kn_cross_entropy_params){KN_CROSS_ENTROPY_DEFAULTS, __VA_ARGS__}))
#define kn_nll_loss(input, target, ...)                                                                                \
    KN_CALL(kn_nll_loss_with(input, target, &(kn_cross_entropy_params){KN_CROSS_ENTROPY_DEFAULTS, __VA_ARGS__}))

typedef struct kn_linear_cross_entropy_params {
    kn_tensor *bias;        /* [C, d...], default NULL: 0 */
    kn_tensor *weight;      /* [C], default NULL: 1; of the classes, as in kn_cross_entropy */
    int64_t ignore_index;   /* default -100 */
    double label_smoothing; /* default 0 */
    kn_reduction reduction; /* default mean */
    int64_t chunk_size;     /* rows of input; default 0: all; or KN_CHUNK_SIZE_AUTO */
} kn_linear_cross_entropy_params;
#define KN_LINEAR_CROSS_ENTROPY_DEFAULTS .ignore_index = -100
/* So many rows that their logits are about as large as the input, N / ceil(C / in), up to a power of two, but at least
 * 256. */
#define KN_CHUNK_SIZE_AUTO (-1)
KN_API kn_linear_cross_entropy_params kn_linear_cross_entropy_params_init(void);

/* The cross entropy of logits = kn_linear(input, linear_weight, bias): the last layer of a model and its loss. input
 * [N, in] or [in], linear_weight [C, in] or [C, d..., in], target as in kn_cross_entropy. With a chunk_size below N
 * the logits, often the largest tensor of a language model, are never there as a whole, nor is their gradient: each
 * chunk's are computed, used and released in turn. The gradients of input and parameters are computed together with the
 * loss, or in the backward pass, from the logits of a second pass, if nothing is reduced; they have no gradients
 * themselves. chunk_size has no effect where there is a d, or where target or weight require a gradient.
 * torch.nn.functional.linear_cross_entropy. */
KN_API kn_tensor *kn_linear_cross_entropy_with(kn_tensor *input, kn_tensor *linear_weight, kn_tensor *target,
                                               const kn_linear_cross_entropy_params *params);
#define kn_linear_cross_entropy(input, linear_weight, target, ...)                                                     \
    KN_CALL(kn_linear_cross_entropy_with(                                                                              \
        input, linear_weight, target,                                                                                  \
        &(kn_linear_cross_entropy_params){KN_LINEAR_CROSS_ENTROPY_DEFAULTS, __VA_ARGS__}))

typedef struct kn_multi_margin_loss_params {
    int p;                  /* default 1; or 2 */
    double margin;          /* default 1 */
    kn_tensor *weight;      /* [C], default NULL: 1 */
    kn_reduction reduction; /* default mean */
} kn_multi_margin_loss_params;
#define KN_MULTI_MARGIN_LOSS_DEFAULTS .p = 1, .margin = 1
KN_API kn_multi_margin_loss_params kn_multi_margin_loss_params_init(void);

/* Hinge loss of classes: the mean over all classes c of weight[t] max(0, margin - x[t] + x[c])^p, without c = t; t is
 * the target. input [N, C] or [C], target [N] or one class (int64, int32, uint8). */
KN_API kn_tensor *kn_multi_margin_loss_with(kn_tensor *input, kn_tensor *target,
                                            const kn_multi_margin_loss_params *params);
#define kn_multi_margin_loss(input, target, ...)                                                                       \
    KN_CALL(kn_multi_margin_loss_with(input, target,                                                                   \
                                      &(kn_multi_margin_loss_params){KN_MULTI_MARGIN_LOSS_DEFAULTS, __VA_ARGS__}))

/* Hinge loss of several classes per row: the sum of max(0, 1 - x[t] + x[c]) over the targets t and the classes c that
 * are not, divided by C. input and target [N, C] or [C]; a row's targets are class indices (int64, int32) up to the
 * first negative one. Needs memory for N C C elements. */
KN_API kn_tensor *kn_multilabel_margin_loss(kn_tensor *input, kn_tensor *target, kn_reduction reduction);

/* --- of differences: shapes broadcast -------------------------------------------------------------------------------
 * * Operators l1_loss, mse_loss and huber_loss also take a weight of the input's shape (koine/operators.h). */

KN_API kn_tensor *kn_l1_loss(kn_tensor *input, kn_tensor *target, kn_reduction reduction);  /* |input - target| */
KN_API kn_tensor *kn_mse_loss(kn_tensor *input, kn_tensor *target, kn_reduction reduction); /* (input - target)^2 */

typedef struct kn_smooth_l1_loss_params {
    kn_reduction reduction; /* default mean */
    double beta;            /* default 1; 0: kn_l1_loss */
} kn_smooth_l1_loss_params;
#define KN_SMOOTH_L1_LOSS_DEFAULTS .beta = 1
KN_API kn_smooth_l1_loss_params kn_smooth_l1_loss_params_init(void);

/* With d = |input - target|: d^2 / (2 beta) below beta, else d - beta / 2. */
KN_API kn_tensor *kn_smooth_l1_loss_with(kn_tensor *input, kn_tensor *target, const kn_smooth_l1_loss_params *params);
#define kn_smooth_l1_loss(input, target, ...)                                                                          \
    KN_CALL(kn_smooth_l1_loss_with(input, target, &(kn_smooth_l1_loss_params){KN_SMOOTH_L1_LOSS_DEFAULTS, __VA_ARGS__}))

typedef struct kn_huber_loss_params {
    kn_tensor *weight;      /* of the input's shape, default NULL: 1 */
    kn_reduction reduction; /* default mean, not divided by the weights */
    double delta;           /* default 1; greater than 0 */
} kn_huber_loss_params;
#define KN_HUBER_LOSS_DEFAULTS .delta = 1
KN_API kn_huber_loss_params kn_huber_loss_params_init(void);

/* With d = |input - target|: d^2 / 2 up to delta, else delta (d - delta / 2). */
KN_API kn_tensor *kn_huber_loss_with(kn_tensor *input, kn_tensor *target, const kn_huber_loss_params *params);
#define kn_huber_loss(input, target, ...)                                                                              \
    KN_CALL(kn_huber_loss_with(input, target, &(kn_huber_loss_params){KN_HUBER_LOSS_DEFAULTS, __VA_ARGS__}))

/* --- of probabilities --------------------------------------------------------------------------------------------- */

typedef struct kn_loss_params {
    kn_tensor *weight;      /* default NULL: 1 */
    kn_reduction reduction; /* default mean, not divided by the weights */
} kn_loss_params;
#define KN_LOSS_DEFAULTS .weight = NULL
KN_API kn_loss_params kn_loss_params_init(void);

/* - t log(x) - (1 - t) log(1 - x), times the weight, which broadcasts to the input; logarithms are at least -100.
 * Inputs outside 0 .. 1 give NaN. The target has the input's shape. */
KN_API kn_tensor *kn_binary_cross_entropy_with(kn_tensor *input, kn_tensor *target, const kn_loss_params *params);
#define kn_binary_cross_entropy(input, target, ...)                                                                    \
    KN_CALL(kn_binary_cross_entropy_with(input, target, &(kn_loss_params){KN_LOSS_DEFAULTS, __VA_ARGS__}))

/* The same of sigmoid(x): max(x, 0) - x target + log(1 + exp(-|x|)), with pos_weight w: (1 - t) x + (1 + (w - 1) t)
 * (log(1 + exp(-|x|)) + max(-x, 0)). weight and pos_weight broadcast to the input; both may be NULL. */
KN_API kn_tensor *kn_binary_cross_entropy_with_logits(kn_tensor *input, kn_tensor *target, kn_tensor *weight,
                                                      kn_tensor *pos_weight, kn_reduction reduction);

/* The mean over the last dimension, the classes, of the loss above, times the weight: input and target [..., C], weight
 * [C] or of the input's shape; losses [...]. */
KN_API kn_tensor *kn_multilabel_soft_margin_loss_with(kn_tensor *input, kn_tensor *target,
                                                      const kn_loss_params *params);
#define kn_multilabel_soft_margin_loss(input, target, ...)                                                             \
    KN_CALL(kn_multilabel_soft_margin_loss_with(input, target, &(kn_loss_params){KN_LOSS_DEFAULTS, __VA_ARGS__}))

typedef struct kn_kl_div_params {
    kn_reduction reduction; /* default mean, over all elements; the divergence's definition is "batchmean" */
    bool log_target;        /* default false; true: the target is log-probabilities, too */
} kn_kl_div_params;
#define KN_KL_DIV_DEFAULTS .log_target = false
KN_API kn_kl_div_params kn_kl_div_params_init(void);

/* Kullback-Leibler divergence of log-probabilities x from the target: t (log(t) - x), 0 where t is 0; with log_target
 * exp(t) (t - x). Shapes broadcast. */
KN_API kn_tensor *kn_kl_div_with(kn_tensor *input, kn_tensor *target, const kn_kl_div_params *params);
#define kn_kl_div(input, target, ...)                                                                                  \
    KN_CALL(kn_kl_div_with(input, target, &(kn_kl_div_params){KN_KL_DIV_DEFAULTS, __VA_ARGS__}))

typedef struct kn_poisson_nll_loss_params {
    kn_reduction reduction; /* default mean */
    bool log_input;         /* default true: the input is the logarithm of the mean; false: the mean */
    bool full;              /* default false; true: with Stirling's approximation of log(target!) for targets above 1 */
    double eps;             /* default 1e-8, for log(input + eps) without log_input */
} kn_poisson_nll_loss_params;
#define KN_POISSON_NLL_LOSS_DEFAULTS .log_input = true, .eps = 1e-8
KN_API kn_poisson_nll_loss_params kn_poisson_nll_loss_params_init(void);

/* exp(x) - t x, or x - t log(x + eps) without log_input; full: + t log(t) - t + log(2 pi t) / 2. Shapes broadcast. */
KN_API kn_tensor *kn_poisson_nll_loss_with(kn_tensor *input, kn_tensor *target,
                                           const kn_poisson_nll_loss_params *params);
#define kn_poisson_nll_loss(input, target, ...)                                                                        \
    KN_CALL(kn_poisson_nll_loss_with(input, target,                                                                    \
                                     &(kn_poisson_nll_loss_params){KN_POISSON_NLL_LOSS_DEFAULTS, __VA_ARGS__}))

typedef struct kn_gaussian_nll_loss_params {
    kn_reduction reduction; /* default mean */
    bool full;              /* default false; true: with the constant log(2 pi) / 2 */
    double eps;             /* default 1e-6: smaller variances, negative ones too, count as this; greater than 0 */
} kn_gaussian_nll_loss_params;
#define KN_GAUSSIAN_NLL_LOSS_DEFAULTS .eps = 1e-6
KN_API kn_gaussian_nll_loss_params kn_gaussian_nll_loss_params_init(void);

/* (log(v) + (input - target)^2 / v) / 2. input and target broadcast; var has their shape, or 1 instead of one size, or
 * lacks the last dimension. */
KN_API kn_tensor *kn_gaussian_nll_loss_with(kn_tensor *input, kn_tensor *target, kn_tensor *var,
                                            const kn_gaussian_nll_loss_params *params);
#define kn_gaussian_nll_loss(input, target, var, ...)                                                                  \
    KN_CALL(kn_gaussian_nll_loss_with(input, target, var,                                                              \
                                      &(kn_gaussian_nll_loss_params){KN_GAUSSIAN_NLL_LOSS_DEFAULTS, __VA_ARGS__}))

/* --- of signs: targets are 1 or -1; shapes broadcast -------------------------------------------------------------- */

/* log(1 + exp(-target input)) */
KN_API kn_tensor *kn_soft_margin_loss(kn_tensor *input, kn_tensor *target, kn_reduction reduction);

typedef struct kn_hinge_embedding_loss_params {
    kn_reduction reduction; /* default mean */
    double margin;          /* default 1 */
} kn_hinge_embedding_loss_params;
#define KN_HINGE_EMBEDDING_LOSS_DEFAULTS .margin = 1
KN_API kn_hinge_embedding_loss_params kn_hinge_embedding_loss_params_init(void);

/* x where the target is 1, max(0, margin - x) where it is -1. */
KN_API kn_tensor *kn_hinge_embedding_loss_with(kn_tensor *input, kn_tensor *target,
                                               const kn_hinge_embedding_loss_params *params);
#define kn_hinge_embedding_loss(input, target, ...)                                                                    \
    KN_CALL(kn_hinge_embedding_loss_with(                                                                              \
        input, target, &(kn_hinge_embedding_loss_params){KN_HINGE_EMBEDDING_LOSS_DEFAULTS, __VA_ARGS__}))

typedef struct kn_margin_ranking_loss_params {
    kn_reduction reduction; /* default mean */
    double margin;          /* default 0 */
} kn_margin_ranking_loss_params;
#define KN_MARGIN_RANKING_LOSS_DEFAULTS .margin = 0
KN_API kn_margin_ranking_loss_params kn_margin_ranking_loss_params_init(void);

/* max(0, -target (input1 - input2) + margin): input1 should be greater where the target is 1. */
KN_API kn_tensor *kn_margin_ranking_loss_with(kn_tensor *input1, kn_tensor *input2, kn_tensor *target,
                                              const kn_margin_ranking_loss_params *params);
#define kn_margin_ranking_loss(input1, input2, target, ...)                                                            \
    KN_CALL(kn_margin_ranking_loss_with(                                                                               \
        input1, input2, target, &(kn_margin_ranking_loss_params){KN_MARGIN_RANKING_LOSS_DEFAULTS, __VA_ARGS__}))

/* --- of distances (koine/distance.h) ------------------------------------------------------------------------------ */

typedef struct kn_cosine_embedding_loss_params {
    kn_reduction reduction; /* default mean */
    double margin;          /* default 0; -1 .. 1 */
} kn_cosine_embedding_loss_params;
#define KN_COSINE_EMBEDDING_LOSS_DEFAULTS .margin = 0
KN_API kn_cosine_embedding_loss_params kn_cosine_embedding_loss_params_init(void);

/* 1 - cos where the target is 1, max(0, cos - margin) where it is -1, 0 elsewhere; cos is the cosine of the angle
 * between the rows of input1 and input2. Inputs [N, D] and target [N], or inputs [D] and one target. */
KN_API kn_tensor *kn_cosine_embedding_loss_with(kn_tensor *input1, kn_tensor *input2, kn_tensor *target,
                                                const kn_cosine_embedding_loss_params *params);
#define kn_cosine_embedding_loss(input1, input2, target, ...)                                                          \
    KN_CALL(kn_cosine_embedding_loss_with(                                                                             \
        input1, input2, target, &(kn_cosine_embedding_loss_params){KN_COSINE_EMBEDDING_LOSS_DEFAULTS, __VA_ARGS__}))

typedef struct kn_triplet_margin_loss_params {
    kn_reduction reduction; /* default mean */
    double margin;          /* default 1 */
    double p;               /* default 2: the norm's degree */
    double eps;             /* default 1e-6, as of kn_pairwise_distance */
    bool swap;              /* default false; true: the negative is compared with the closer of anchor and positive */
} kn_triplet_margin_loss_params;
#define KN_TRIPLET_MARGIN_LOSS_DEFAULTS .margin = 1, .p = 2, .eps = 1e-6
KN_API kn_triplet_margin_loss_params kn_triplet_margin_loss_params_init(void);

/* max(0, d(anchor, positive) - d(anchor, negative) + margin), where d is kn_pairwise_distance; [N, D] or [D]. */
KN_API kn_tensor *kn_triplet_margin_loss_with(kn_tensor *anchor, kn_tensor *positive, kn_tensor *negative,
                                              const kn_triplet_margin_loss_params *params);
#define kn_triplet_margin_loss(anchor, positive, negative, ...)                                                        \
    KN_CALL(kn_triplet_margin_loss_with(                                                                               \
        anchor, positive, negative, &(kn_triplet_margin_loss_params){KN_TRIPLET_MARGIN_LOSS_DEFAULTS, __VA_ARGS__}))

/* A distance of two tensors: a tensor expression. */
typedef kn_tensor *(*kn_distance_function)(kn_tensor *x1, kn_tensor *x2, void *user);

typedef struct kn_triplet_margin_with_distance_loss_params {
    kn_distance_function distance_function; /* default NULL: kn_pairwise_distance */
    void *user;                             /* its argument */
    double margin;                          /* default 1; greater than 0 */
    bool swap;                              /* default false */
    kn_reduction reduction;                 /* default mean */
} kn_triplet_margin_with_distance_loss_params;
#define KN_TRIPLET_MARGIN_WITH_DISTANCE_LOSS_DEFAULTS .margin = 1
KN_API kn_triplet_margin_with_distance_loss_params kn_triplet_margin_with_distance_loss_params_init(void);

/* The same with any distance. */
KN_API kn_tensor *kn_triplet_margin_with_distance_loss_with(kn_tensor *anchor, kn_tensor *positive, kn_tensor *negative,
                                                            const kn_triplet_margin_with_distance_loss_params *params);
#define kn_triplet_margin_with_distance_loss(anchor, positive, negative, ...)                                          \
    KN_CALL(kn_triplet_margin_with_distance_loss_with(                                                                 \
        anchor, positive, negative,                                                                                    \
        &(kn_triplet_margin_with_distance_loss_params){KN_TRIPLET_MARGIN_WITH_DISTANCE_LOSS_DEFAULTS, __VA_ARGS__}))

/* --- of sequences ------------------------------------------------------------------------------------------------- */

typedef struct kn_ctc_loss_params {
    int64_t blank;          /* default 0: the class that stands for no label */
    kn_reduction reduction; /* default mean: over the batch, of the losses divided by the target lengths */
    bool zero_infinity; /* default false; true: losses of targets that no alignment gives, and their gradients, are 0 */
} kn_ctc_loss_params;
#define KN_CTC_LOSS_DEFAULTS .blank = 0
KN_API kn_ctc_loss_params kn_ctc_loss_params_init(void);

/* Graves et al., "Connectionist Temporal Classification" (2006): minus the logarithm of the probability of a target
 * sequence, summed over all its alignments with the input. log_probs [T, N, C] or [T, C]: log-probabilities, as from
 * kn_log_softmax. target: labels (int64 or int32), [N, S], padded, or all targets one after another in one dimension.
 * input_lengths and target_lengths [N], or one number: integers, at most T and S. A label outside 0 .. C - 1, or a
 * length that does not fit, is reported when the device is next synchronised or read. Targets one after another make
 * the function wait for target_lengths; otherwise everything stays on the device. A loss without an alignment is
 * infinite, its gradient NaN. The gradient is that of log_probs; PyTorch's, which is only right for those of a
 * softmax, adds exp(log_probs), which the gradient of kn_log_softmax removes. */
KN_API kn_tensor *kn_ctc_loss_with(kn_tensor *log_probs, kn_tensor *target, kn_tensor *input_lengths,
                                   kn_tensor *target_lengths, const kn_ctc_loss_params *params);
#define kn_ctc_loss(log_probs, target, input_lengths, target_lengths, ...)                                             \
    KN_CALL(kn_ctc_loss_with(log_probs, target, input_lengths, target_lengths,                                         \
                             &(kn_ctc_loss_params){KN_CTC_LOSS_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif

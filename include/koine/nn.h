/* koine/nn.h - layers. Constructors as in koine/module.h. */
#ifndef KOINE_NN_H
#define KOINE_NN_H

#include <koine/common.h>
#include <koine/module.h>
#include <koine/pool.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

typedef struct kn_nn_linear_params {
    int64_t in_features, out_features;
    bool bias; /* default true */
} kn_nn_linear_params;
#define KN_NN_LINEAR_DEFAULTS .bias = true
KN_API kn_nn_linear_params kn_nn_linear_params_init(void);
KN_API kn_module *kn_nn_linear_with(const kn_nn_linear_params *params);
#define kn_nn_linear(...) KN_CALL(kn_nn_linear_with(&(kn_nn_linear_params){KN_NN_LINEAR_DEFAULTS, __VA_ARGS__}))

/* For all convolutions; sizes are as in kn_conv_params. The weight is [out_channels, in_channels / groups, kernel...],
 * that of transposed convolutions [in_channels, out_channels / groups, kernel...], the bias [out_channels]. */
typedef struct kn_nn_conv_params {
    int64_t in_channels, out_channels;
    int64_t kernel_size, stride, padding, dilation; /* stride, dilation default 1; padding may be KN_PADDING_SAME */
    int64_t output_padding;                         /* transposed convolution only; default 0 */
    int64_t kernel_sizes[3], strides[3];            /* by dimension; used unless all 0 */
    int64_t paddings[3], dilations[3], output_paddings[3];
    int64_t paddings_after[3]; /* by dimension; default KN_PADDING_SYMMETRIC */
    int64_t groups;            /* default 1 */
    bool bias;                 /* default true */
} kn_nn_conv_params;
#define KN_NN_CONV_DEFAULTS                                                                                            \
    .stride = 1, .dilation = 1, .paddings_after = {KN_PADDING_SYMMETRIC, KN_PADDING_SYMMETRIC, KN_PADDING_SYMMETRIC},  \
    .groups = 1, .bias = true
#define KN_NN_CONV_PARAMS(...)                                                                                         \
    &(kn_nn_conv_params) { KN_NN_CONV_DEFAULTS, __VA_ARGS__ }
KN_API kn_nn_conv_params kn_nn_conv_params_init(void);
KN_API kn_module *kn_nn_conv1d_with(const kn_nn_conv_params *params);
KN_API kn_module *kn_nn_conv2d_with(const kn_nn_conv_params *params);
KN_API kn_module *kn_nn_conv3d_with(const kn_nn_conv_params *params);
KN_API kn_module *kn_nn_conv_transpose1d_with(const kn_nn_conv_params *params);
KN_API kn_module *kn_nn_conv_transpose2d_with(const kn_nn_conv_params *params);
KN_API kn_module *kn_nn_conv_transpose3d_with(const kn_nn_conv_params *params);
#define kn_nn_conv1d(...) KN_CALL(kn_nn_conv1d_with(KN_NN_CONV_PARAMS(__VA_ARGS__)))
#define kn_nn_conv2d(...) KN_CALL(kn_nn_conv2d_with(KN_NN_CONV_PARAMS(__VA_ARGS__)))
#define kn_nn_conv3d(...) KN_CALL(kn_nn_conv3d_with(KN_NN_CONV_PARAMS(__VA_ARGS__)))
#define kn_nn_conv_transpose1d(...) KN_CALL(kn_nn_conv_transpose1d_with(KN_NN_CONV_PARAMS(__VA_ARGS__)))
#define kn_nn_conv_transpose2d(...) KN_CALL(kn_nn_conv_transpose2d_with(KN_NN_CONV_PARAMS(__VA_ARGS__)))
#define kn_nn_conv_transpose3d(...) KN_CALL(kn_nn_conv_transpose3d_with(KN_NN_CONV_PARAMS(__VA_ARGS__)))

KN_API kn_module *kn_nn_max_pool1d_with(const kn_pool_params *params);
KN_API kn_module *kn_nn_max_pool2d_with(const kn_pool_params *params);
KN_API kn_module *kn_nn_max_pool3d_with(const kn_pool_params *params);
KN_API kn_module *kn_nn_avg_pool1d_with(const kn_pool_params *params);
KN_API kn_module *kn_nn_avg_pool2d_with(const kn_pool_params *params);
KN_API kn_module *kn_nn_avg_pool3d_with(const kn_pool_params *params);
#define kn_nn_max_pool1d(...) KN_CALL(kn_nn_max_pool1d_with(KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_nn_max_pool2d(...) KN_CALL(kn_nn_max_pool2d_with(KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_nn_max_pool3d(...) KN_CALL(kn_nn_max_pool3d_with(KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_nn_avg_pool1d(...) KN_CALL(kn_nn_avg_pool1d_with(KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_nn_avg_pool2d(...) KN_CALL(kn_nn_avg_pool2d_with(KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_nn_avg_pool3d(...) KN_CALL(kn_nn_avg_pool3d_with(KN_POOL_PARAMS(__VA_ARGS__)))
KN_API kn_module *kn_nn_adaptive_max_pool1d(int64_t output_length);
KN_API kn_module *kn_nn_adaptive_max_pool2d(int64_t output_height, int64_t output_width);
KN_API kn_module *kn_nn_adaptive_max_pool3d(int64_t output_depth, int64_t output_height, int64_t output_width);
KN_API kn_module *kn_nn_adaptive_avg_pool1d(int64_t output_length);
KN_API kn_module *kn_nn_adaptive_avg_pool2d(int64_t output_height, int64_t output_width);
KN_API kn_module *kn_nn_adaptive_avg_pool3d(int64_t output_depth, int64_t output_height, int64_t output_width);

/* Batch normalisation of [N, C] or [N, C, L] (1d), [N, C, H, W] (2d); kn_batch_norm has the formula. Parameters weight
 * (1) and bias (0) if `affine`; buffers running_mean (0), running_var (1) and num_batches_tracked (int64, 0) if
 * `track_running_stats`. In training mode each pass updates the buffers in place on the device, without waiting; so
 * does each replay of a graph. In evaluation mode the running estimates are used, or, without tracking, the batch's
 * statistics. With kn_nn_data_parallel each device normalises its own part of the batch, and the first device's
 * statistics update the buffers, as in PyTorch. */
typedef struct kn_nn_batch_norm_params {
    int64_t num_features;     /* C */
    double eps;               /* default 1e-5 */
    double momentum;          /* default 0.1: running = (1 - momentum) running + momentum batch */
    bool cumulative_average;  /* default false; PyTorch's momentum=None: running estimates are means of all batches */
    bool affine;              /* default true */
    bool track_running_stats; /* default true */
} kn_nn_batch_norm_params;
#define KN_NN_BATCH_NORM_DEFAULTS .eps = 1e-5, .momentum = 0.1, .affine = true, .track_running_stats = true
KN_API kn_nn_batch_norm_params kn_nn_batch_norm_params_init(void);
KN_API kn_module *kn_nn_batch_norm1d_with(const kn_nn_batch_norm_params *params);
KN_API kn_module *kn_nn_batch_norm2d_with(const kn_nn_batch_norm_params *params);
#define kn_nn_batch_norm1d(...)                                                                                        \
    KN_CALL(kn_nn_batch_norm1d_with(&(kn_nn_batch_norm_params){KN_NN_BATCH_NORM_DEFAULTS, __VA_ARGS__}))
#define kn_nn_batch_norm2d(...)                                                                                        \
    KN_CALL(kn_nn_batch_norm2d_with(&(kn_nn_batch_norm_params){KN_NN_BATCH_NORM_DEFAULTS, __VA_ARGS__}))

/* Normalisation over the last dimensions, which are `shape`: kn_nn_layer_norm(KN_SHAPE(1024)). */
typedef struct kn_nn_layer_norm_params {
    double eps;              /* default 1e-5 */
    bool elementwise_affine; /* default true: parameters weight (1) and bias (0) of that shape */
    bool bias;               /* default true; false: the weight alone */
} kn_nn_layer_norm_params;
#define KN_NN_LAYER_NORM_DEFAULTS .eps = 1e-5, .elementwise_affine = true, .bias = true
KN_API kn_nn_layer_norm_params kn_nn_layer_norm_params_init(void);
KN_API kn_module *kn_nn_layer_norm_with(int ndim, const int64_t *shape, const kn_nn_layer_norm_params *params);
#define kn_nn_layer_norm(shape, ...)                                                                                   \
    KN_CALL(kn_nn_layer_norm_with(shape, &(kn_nn_layer_norm_params){KN_NN_LAYER_NORM_DEFAULTS, __VA_ARGS__}))

typedef struct kn_nn_dropout_params {
    double p; /* default 0.5 */
    /* of the masks; default NULL: that of x's device. Borrowed: it must live as long as the module and its copies. */
    kn_generator *generator;
} kn_nn_dropout_params;
#define KN_NN_DROPOUT_DEFAULTS .p = 0.5
KN_API kn_nn_dropout_params kn_nn_dropout_params_init(void);
KN_API kn_module *kn_nn_dropout_with(const kn_nn_dropout_params *params);
KN_API kn_module *kn_nn_dropout2d_with(const kn_nn_dropout_params *params);
#define kn_nn_dropout(...) KN_CALL(kn_nn_dropout_with(&(kn_nn_dropout_params){KN_NN_DROPOUT_DEFAULTS, __VA_ARGS__}))
#define kn_nn_dropout2d(...) KN_CALL(kn_nn_dropout2d_with(&(kn_nn_dropout_params){KN_NN_DROPOUT_DEFAULTS, __VA_ARGS__}))

KN_API kn_module *kn_nn_relu(void);
KN_API kn_module *kn_nn_relu6(void);
KN_API kn_module *kn_nn_hardtanh(double min_val, double max_val); /* PyTorch's defaults are -1, 1 */
KN_API kn_module *kn_nn_sigmoid(void);
KN_API kn_module *kn_nn_tanh(void);
KN_API kn_module *kn_nn_softmax(int dim);
KN_API kn_module *kn_nn_log_softmax(int dim);
KN_API kn_module *kn_nn_flatten(void); /* from dimension 1 on */

/* Applies its children, named "0", "1", ..., in order. Takes ownership of all of them, also on failure. */
KN_API kn_module *kn_nn_sequential_of(kn_module *const *children, int count);
#define kn_nn_sequential(...)                                                                                          \
    kn_nn_sequential_of((kn_module *const[]){__VA_ARGS__},                                                             \
                        (int)(sizeof((kn_module *[]){__VA_ARGS__}) / sizeof(kn_module *)))

/* Appends a child with a given name ("conv1"), as Sequential.add_module; kn_nn_sequential_of(NULL, 0) is an empty
 * Sequential. Takes ownership of the child, also on failure. */
KN_API kn_status kn_nn_add_module(kn_module *sequential, const char *name, kn_module *child);

KN_END_DECLS

#endif

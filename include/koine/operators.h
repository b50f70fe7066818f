/* koine/operators.h - the list of operators: their inputs, parameters and outputs, and calling one by its descriptor.
 *
 * For bindings, importers and tools; programs should call the functions of koine/pointwise.h, koine/reduce.h and so on.
 *
 *     const kn_op *op = kn_op_find("softmax");
 *     kn_softmax_params params;
 *     kn_op_params_init(op, &params);
 *     params.dim = 1;
 *     kn_tensor *y = NULL;                     // or a tensor to compute into
 *     kn_op_call(op, &x, 1, &params, &y, 1);
 *
 * Languages without C structs get the parameters' layout from the descriptor: kn_op_param_at. docs/operators.md lists
 * all operators. Descriptors are static constants; everything here is thread-safe. */
#ifndef KOINE_OPERATORS_H
#define KOINE_OPERATORS_H

#include <koine/common.h>
#include <koine/dtype.h>
#include <koine/embedding.h>
#include <koine/index.h>
#include <koine/linalg.h>
#include <koine/loss.h>
#include <koine/pad.h>
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <koine/sort.h>
#include <koine/status.h>
#include <koine/tensor.h>
#include <koine/vision.h>

KN_BEGIN_DECLS

typedef struct kn_op kn_op;

/* --- the list, sorted by name -------------------------------------------------------------------------------------- *
 * kn_op_find also knows the operators of koine/in_place.h, "sin_" of "sin", which are not in the list. */

KN_API int kn_op_count(void);
KN_API const kn_op *kn_op_at(int index);          /* NULL, without an error, outside 0 .. kn_op_count() - 1 */
KN_API const kn_op *kn_op_find(const char *name); /* NULL, without an error, if there is none */

/* --- one operator ------------------------------------------------------------------------------------------------- */

typedef struct kn_op_info {
    const char *name;
    int num_inputs, num_outputs, num_params;
    size_t params_size;           /* bytes of the struct of parameters; 0 where there are none */
    bool is_differentiable;       /* gradients flow to the floating inputs */
    bool is_twice_differentiable; /* the gradients have gradients: kn_autograd_grad with create_graph */
    bool is_view;                 /* output 0 shares the storage of input 0 */
    bool in_place;                /* output 0 is input 0, changed */
} kn_op_info;
KN_API kn_op_info kn_op_describe(const kn_op *op);

typedef struct kn_op_input {
    const char *name;
    bool is_optional; /* may be NULL, or omitted at the end */
    bool is_list;     /* the last input: one or more tensors, each an element of kn_op_call's `inputs` */
    unsigned dtypes;  /* the supported dtypes: bit 1u << dtype */
} kn_op_input;
KN_API kn_op_input kn_op_input_at(const kn_op *op, int index);
KN_API const char *kn_op_output_at(const kn_op *op, int index); /* its name */

typedef enum kn_param_kind {
    KN_PARAM_BOOL,     /* bool */
    KN_PARAM_INT,      /* int */
    KN_PARAM_INT64,    /* int64_t */
    KN_PARAM_DOUBLE,   /* double */
    KN_PARAM_SCALAR,   /* kn_scalar */
    KN_PARAM_DTYPE,    /* kn_dtype */
    KN_PARAM_ENUM,     /* an enum, stored as int, with names for 0, 1, ... */
    KN_PARAM_INTS,     /* kn_ints */
    KN_PARAM_GENERATOR /* kn_generator *, or NULL */
} kn_param_kind;

/* A list of at most KN_MAX_DIMS integers: sizes or dimensions. */
typedef struct kn_ints {
    int count;
    int64_t values[KN_MAX_DIMS];
} kn_ints;

typedef struct kn_op_param {
    const char *name;
    kn_param_kind kind;
    size_t offset;             /* offset in the struct in bytes */
    size_t size;               /* in bytes; for an array the size of all its values */
    double min, max;           /* for numbers: the allowed range, inclusive; 0 and 0: any */
    const char *const *values; /* for KN_PARAM_ENUM: the names of 0, 1, ...; NULL-terminated */
    bool above_min;            /* min itself is not allowed */
} kn_op_param;
KN_API const kn_op_param *kn_op_param_at(const kn_op *op, int index);

/* Fills a struct of kn_op_describe(op).params_size bytes with the defaults. */
KN_API void kn_op_params_init(const kn_op *op, void *params);

/* --- calling ------------------------------------------------------------------------------------------------------- *
 * `inputs`: num_inputs tensors in the descriptor's order, those of a list one after another; optional ones may be NULL.
 * `params`: the operator's struct, or NULL for the defaults. `outputs`: an array for the first num_outputs outputs; the
 * others are dropped. If outputs[i] is NULL, the result is allocated, owned as results are. If it is KN_SKIP_OUTPUT,
 * the result is not needed (backward passes do not compute it), and outputs[i] becomes NULL. Otherwise the result is
 * written to that tensor, which must have the result's shape and dtype, may have any strides and may be an input, but
 * must not share memory with another output; nothing is then recorded, so inputs that require a gradient need
 * KN_NO_GRAD. On failure the array is unchanged, but the values of given tensors are undefined. */
#define KN_SKIP_OUTPUT ((kn_tensor *)(uintptr_t)1)
KN_API kn_status kn_op_call(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params,
                            kn_tensor **outputs, int num_outputs);

/* --- parameters of operators whose C function takes them as arguments ------------------------------------------- *
 * The defaults are kn_op_params_init's. */

/* add_scalar and the like, fill_: {value}. clamp, hardtanh: {min, max}. threshold: {threshold, value}. polygamma: {n}.
 * lerp_scalar: {weight}. */
typedef struct kn_scalar_args {
    kn_scalar values[3];
} kn_scalar_args;

/* div_mode. */
typedef struct kn_rounding_args {
    kn_rounding rounding_mode;
} kn_rounding_args;

/* softmax, log_softmax, unsqueeze, squeeze, index_select, gather, scatter_add, index_copy, cat, stack: the
 * dimension. */
typedef struct kn_dim_args {
    int dim; /* negative: from the end */
} kn_dim_args;

/* reshape, expand. */
typedef struct kn_shape_args {
    kn_ints shape;
} kn_shape_args;

/* sum, mean, prod, amax, amin, logsumexp. */
typedef struct kn_reduce_args {
    kn_ints dims; /* empty: all */
    bool keepdim;
} kn_reduce_args;

/* var, std. */
typedef struct kn_var_args {
    kn_ints dims;
    bool keepdim;
    double correction; /* default 1 */
} kn_var_args;

typedef struct kn_norm_args {
    kn_ints dims;
    bool keepdim;
    double p; /* default 2 */
} kn_norm_args;

/* max_dim, min_dim, argmax, argmin, median_dim, nanmedian_dim, mode: along one dimension. */
typedef struct kn_along_args {
    int dim; /* default -1 of median_dim, nanmedian_dim, mode, else 0 */
    bool keepdim;
} kn_along_args;

typedef struct kn_topk_args {
    int64_t k;            /* default 1 */
    int dim;              /* default -1 */
    bool largest, sorted; /* default true */
} kn_topk_args;

/* quantile, nanquantile. */
typedef struct kn_quantile_args {
    kn_ints dim; /* one, or none: all elements */
    bool keepdim;
    kn_quantile_interpolation interpolation; /* default linear */
} kn_quantile_args;

/* unique, unique_consecutive. */
typedef struct kn_unique_args {
    kn_ints dim; /* one, or none: all elements */
} kn_unique_args;

/* searchsorted, bucketize. */
typedef struct kn_search_args {
    bool out_int32, right;
} kn_search_args;

typedef struct kn_bincount_args {
    int64_t minlength;
} kn_bincount_args;

typedef struct kn_kthvalue_args {
    int64_t k; /* from 1; default 1 */
    int dim;   /* default -1 */
    bool keepdim;
} kn_kthvalue_args;

typedef struct kn_permute_args {
    kn_ints dims;
} kn_permute_args;

typedef struct kn_transpose_args {
    int dim0, dim1; /* negative: from the end; default 0 and 1 */
} kn_transpose_args;

typedef struct kn_flatten_args {
    int start_dim, end_dim; /* negative: from the end; default 0 and -1: all */
} kn_flatten_args;

typedef struct kn_narrow_args {
    int dim;
    int64_t start, length;
} kn_narrow_args;

/* narrow_backward: zeros of size `size` along dim, with the input at every step-th place from `start` on. */
typedef struct kn_narrow_backward_args {
    int dim;
    int64_t start, size;
    int64_t step; /* default 1 */
} kn_narrow_backward_args;

typedef struct kn_slice_args {
    int dim;
    int64_t start, stop, step; /* default 0, the end, 1 */
} kn_slice_args;

/* diagonal_backward: zeros of that shape, with the input as the diagonal. */
typedef struct kn_diagonal_backward_args {
    kn_ints shape;
    int64_t offset;
    int dim1, dim2; /* default 0 and 1 */
} kn_diagonal_backward_args;

typedef struct kn_tensor_unfold_args {
    int dimension;
    int64_t size, step; /* default 1 and 1 */
} kn_tensor_unfold_args;

/* roll: as many shifts as dims; without dims one, of all elements in a row. */
typedef struct kn_roll_args {
    kn_ints shifts, dims;
} kn_roll_args;

/* tril, triu. */
typedef struct kn_triangle_args {
    int64_t diagonal; /* default 0 */
} kn_triangle_args;

typedef struct kn_as_strided_args {
    kn_ints shape, strides;
    int64_t offset; /* from the start of the storage, in elements */
} kn_as_strided_args;

/* as_strided_backward: `size` zeros, to which the input's elements are added at the positions that as_strided reads. */
typedef struct kn_as_strided_backward_args {
    int64_t size;
    kn_ints strides;
    int64_t offset;
} kn_as_strided_backward_args;

typedef struct kn_select_args {
    int dim;
    int64_t index;
} kn_select_args;

/* scatter, index_fill: the number that is written where no tensor of values is given. */
typedef struct kn_scatter_args {
    int dim;
    kn_scalar value; /* default 0 */
} kn_scatter_args;

typedef struct kn_masked_fill_args {
    kn_scalar value; /* default 0 */
} kn_masked_fill_args;

typedef struct kn_index_add_args {
    int dim;
    double alpha; /* default 1 */
} kn_index_add_args;

/* index, index_put: the dimension of x that each index is along, one for each; empty: 0, 1, ... */
typedef struct kn_index_args {
    kn_ints dims;
    bool accumulate; /* index_put: add instead of writing; default false */
} kn_index_args;

/* scatter_reduce, index_reduce. */
typedef struct kn_scatter_reduce_args {
    int dim;
    kn_scatter_reduction reduce; /* default sum */
    bool include_self;           /* default true */
} kn_scatter_reduce_args;

/* to_dtype, view_dtype. */
typedef struct kn_to_dtype_args {
    kn_dtype dtype;
} kn_to_dtype_args;

/* Adaptive pooling: one size for each dimension of the operator. */
typedef struct kn_adaptive_pool_args {
    kn_ints output_size;
} kn_adaptive_pool_args;

/* pad: two numbers per dimension, from the last one on. */
typedef struct kn_pad_args {
    kn_ints pad;
    kn_padding_mode mode; /* default constant */
    kn_scalar value;      /* default 0 */
} kn_pad_args;

/* fold: as kn_fold_params, with the size of the images. */
typedef struct kn_fold_args {
    kn_ints output_size, kernel_size;
    kn_ints dilation, padding, stride; /* default 1, 0, 1; one number for both dimensions */
} kn_fold_args;

/* fractional_max_pool: one size for each dimension of the operator. */
typedef struct kn_fractional_pool_args {
    kn_ints kernel_size, output_size;
} kn_fractional_pool_args;

/* layer_norm: over the last dimensions, which are `shape`. */
typedef struct kn_layer_norm_args {
    kn_ints shape;
    double eps; /* default 1e-5 */
} kn_layer_norm_args;

/* group_norm: as kn_group_norm_params, whose tensors are inputs here. */
typedef struct kn_group_norm_args {
    int64_t num_groups;
    double eps; /* default 1e-5 */
} kn_group_norm_args;

/* instance_norm: as kn_instance_norm_params, whose tensors are inputs here. */
typedef struct kn_instance_norm_args {
    bool use_input_stats; /* default true */
    double momentum;      /* default 0.1 */
    double eps;           /* default 1e-5 */
} kn_instance_norm_args;

typedef struct kn_local_response_norm_args {
    int64_t size;
    double alpha, beta, k; /* default 1e-4, 0.75, 1 */
} kn_local_response_norm_args;

/* embedding_bag: as kn_embedding_bag_params, whose tensors are inputs here. */
typedef struct kn_embedding_bag_args {
    kn_embedding_bag_mode mode; /* default mean */
    int64_t padding_idx;        /* default none */
    double max_norm, norm_type; /* default 0, 2 */
    bool scale_grad_by_freq;    /* default false */
    bool include_last_offset;   /* default false */
} kn_embedding_bag_args;

/* batch_norm: as kn_batch_norm_params, whose tensors are inputs here. */
typedef struct kn_batch_norm_args {
    bool training;            /* default false */
    bool cumulative;          /* the running estimates are means over num_batches_tracked batches; default false */
    double momentum;          /* default 0.1 */
    double eps;               /* default 1e-5 */
    kn_activation activation; /* default none */
} kn_batch_norm_args;

/* cross_entropy, nll_loss: as kn_cross_entropy_params, whose tensor is an input here. */
typedef struct kn_class_loss_args {
    int64_t ignore_index;   /* default -100 */
    double label_smoothing; /* default 0; cross_entropy only */
    kn_reduction reduction; /* default mean */
} kn_class_loss_args;

/* As kn_linear_cross_entropy_params, whose tensors are inputs here. */
typedef struct kn_linear_cross_entropy_args {
    int64_t ignore_index;   /* default -100 */
    double label_smoothing; /* default 0 */
    kn_reduction reduction; /* default mean */
    int64_t chunk_size;     /* default 0 */
} kn_linear_cross_entropy_args;

/* l1_loss, mse_loss, binary_cross_entropy, binary_cross_entropy_with_logits, soft_margin_loss, multilabel_margin_loss,
 * multilabel_soft_margin_loss. */
typedef struct kn_reduction_args {
    kn_reduction reduction; /* default mean */
} kn_reduction_args;

/* As kn_huber_loss_params and kn_multi_margin_loss_params, whose tensors are inputs here. */
typedef struct kn_huber_loss_args {
    kn_reduction reduction; /* default mean */
    double delta;           /* default 1 */
} kn_huber_loss_args;

typedef struct kn_multi_margin_loss_args {
    int p;                  /* default 1 */
    kn_reduction reduction; /* default mean */
    double margin;          /* default 1 */
} kn_multi_margin_loss_args;

/* cdist, pdist. */
typedef struct kn_distance_args {
    double p; /* default 2 */
} kn_distance_args;

/* scaled_dot_product_attention: as kn_scaled_dot_product_attention_params, whose mask is an input here. */
typedef struct kn_attention_args {
    double dropout_p;        /* default 0 */
    bool is_causal;          /* default false */
    double scale;            /* default 0: 1 / sqrt(E) */
    bool enable_gqa;         /* default false */
    kn_generator *generator; /* default NULL: the device's */
} kn_attention_args;

/* rnn_tanh, rnn_relu, gru, lstm: as kn_rnn_params, whose tensors are inputs here. */
typedef struct kn_rnn_args {
    bool reverse;
} kn_rnn_args;

/* linalg_solve_triangular; linalg_qr; linalg_svd. */
typedef struct kn_solve_triangular_args {
    bool upper, unitriangular; /* default false */
} kn_solve_triangular_args;
/* cholesky_inverse. */
typedef struct kn_cholesky_inverse_args {
    bool upper; /* default false */
} kn_cholesky_inverse_args;
typedef struct kn_qr_args {
    kn_qr_mode mode; /* default reduced */
} kn_qr_args;
typedef struct kn_gradient_args {
    int dim;        /* default -1 */
    double spacing; /* default 1 */
    int edge_order; /* default 1 */
} kn_gradient_args;
typedef struct kn_mvlgamma_args {
    int p; /* default 1 */
} kn_mvlgamma_args;
typedef struct kn_conv_tbc_args {
    int64_t pad; /* default 0 */
} kn_conv_tbc_args;
typedef struct kn_linalg_norm_args {
    kn_norm_kind kind; /* default: the root of the sum of squares */
    double ord;        /* default 2 */
    kn_ints dims;      /* empty: all */
    bool keepdim;
} kn_linalg_norm_args;
typedef struct kn_svd_args {
    bool full_matrices; /* default true */
} kn_svd_args;

typedef struct kn_activation_args {
    kn_activation activation;
} kn_activation_args;

KN_END_DECLS

#endif

/* ops/norm/norm.h - shared by the normalisations, their kernels (cl/norm) and the modules. */
#pragma once

#include <koine/norm.h>
#include <koine/pointwise.h>

#include "autograd/op.h"
#include "loops/rows.h"
#include "ops/pointwise/epilogue.h"

/* Which optional arguments and results are present; must match cl/norm/moments.clh. */
enum {
    KN_NORM_HAS_WEIGHT = 1,
    KN_NORM_HAS_BIAS = 2,
    KN_NORM_HAS_RUNNING = 4,
    KN_NORM_COUNTS = 8,
    KN_NORM_CUMULATIVE = 16,
    KN_NORM_TRAINING = 32,
    KN_NORM_WANTS_X = 64,
    KN_NORM_WANTS_WEIGHT = 128,
    KN_NORM_WANTS_BIAS = 256
};

/* The maximum of a row of logits a, h, before the sum of exp(a - h). It may ignore NaN, since the
 * sum does not. */
extern const kn_rows_pass kn_softmax_maximum;

/* Like kn_batch_norm_with; in training also increments `counter` (int64, one element; may be NULL) on the device.
 * `cumulative`: the running estimates use the factor 1 / counter instead of the momentum, which makes them plain means
 * over all batches so far; ignored without a counter. */
kn_tensor *kn_batch_norm_counted(kn_tensor *x, kn_tensor *counter, bool cumulative, const kn_batch_norm_params *params);

/* Mean and rstd as outputs 1 and 2 (ops/norm/statistics.c): for shape rules; for forward, of a table whose elements
 * `part` and `stride` apart are the mean's two parts and rstd, and those of the next row or channel; and for public
 * functions, where NULL skips one. */
#define KN_NORM_OUTPUTS .outputs = {"result", "mean", "rstd"}, .skips_outputs = true, .first_statistic = 1
kn_status kn_norm_statistics_shape(kn_call *call, int ndim, const int64_t *shape);
kn_status kn_norm_statistics_forward(kn_call *call, const kn_tensor *table, int64_t stride, int64_t part);
kn_tensor *kn_norm_invoke(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params,
                          kn_tensor **mean, kn_tensor **rstd);

/* The record of a batch normalisation's call. */
typedef struct kn_batch_norm_op_params {
    double momentum, eps;
    bool training, cumulative;
    kn_activation activation;
} kn_batch_norm_op_params;

/* The recorded gradients (ops/norm/recorded.c). Saved are x, the statistics, the weight and the bias. */
kn_status kn_layer_norm_backward_recorded(kn_grad_call *grad);
kn_status kn_batch_norm_backward_recorded(kn_grad_call *grad);

/* --- batch normalisation: work division and launches (ops/norm/batch_norm_run.c) -------------------------------- */

/* Contiguous x as [outer, channels, inner], and how its channels are split: see cl/norm/batch.clh. Depends only on the
 * shape and on whether the device is a CPU, so that the order of a sum is the same on all CPUs, and on all others. */
typedef struct kn_batch_shape {
    int64_t outer, channels, inner, tile, length, chunks;
    int64_t group; /* channels that a CPU device processes together; does not affect any sum */
} kn_batch_shape;
kn_batch_shape kn_batch_shape_of(const kn_limits *limits, int ndim, const int64_t *shape);

/* Missing tensors are NULL. All contiguous, of one dtype; counter int64. */
typedef struct kn_batch_forward {
    const kn_tensor *x, *weight, *bias, *running_mean, *running_var, *counter;
    const kn_tensor *y;
    const kn_tensor *table; /* [channels, 3], the statistics, for backward */
    double eps, momentum;
    bool training, cumulative;
    kn_activation activation;
} kn_batch_forward;
kn_status kn_batch_norm_run(kn_stream *stream, const kn_batch_forward *forward);

/* Unwanted gradients are NULL. */
typedef struct kn_batch_backward {
    const kn_tensor *gradient, *x, *weight, *bias, *table; /* bias: read only with an activation */
    const kn_tensor *grad_x, *grad_weight, *grad_bias;
    bool training;
    kn_activation activation;
} kn_batch_backward;
kn_status kn_batch_norm_run_backward(kn_stream *stream, const kn_batch_backward *backward);

/* KN_NORM_... flags of the optional arguments and results present. */
int kn_batch_forward_flags(const kn_batch_forward *forward);
int kn_batch_backward_flags(const kn_batch_backward *backward);

/* The same by work-groups (ops/norm/batch_norm_gpu.c), for a shape from kn_batch_shape_of. */
void kn_batch_split_on_gpu(kn_batch_shape *shape);
kn_status kn_batch_norm_run_on_gpu(kn_stream *stream, const kn_batch_forward *forward, const kn_batch_shape *shape);
kn_status kn_batch_norm_backward_on_gpu(kn_stream *stream, const kn_batch_backward *backward,
                                        const kn_batch_shape *shape);

/* counter += 1 */
kn_status kn_batch_norm_count(kn_stream *stream, const kn_tensor *counter);

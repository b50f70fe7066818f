/* ops/norm/norm.h - shared by the normalisations, their kernels (cl/norm) and the modules. */
#pragma once

#include <koine/norm.h>
#include <koine/pointwise.h>

#include "autograd/op.h"
#include "loops/rows.h"
#include "norm/batch.h"
#include "ops/pointwise/epilogue.h"

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
/* A table of the statistics that a backward operator is given as inputs `mean` and the next: .restore. */
kn_status kn_norm_restore_table(const kn_call *call, int mean, kn_tensor **table, int64_t stride, int64_t part);
kn_status kn_norm_restore_rows(const kn_call *call, kn_tensor **saved); /* of rows; also x and weight */
kn_tensor *kn_norm_invoke(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params,
                          kn_tensor **mean, kn_tensor **rstd);

/* --- of rows (ops/norm/row_norm.c) -------------------------------------------------------------------------------- *
 * Layer normalisation and RMS normalisation have weights by place, group normalisation, of which that of instances is a
 * case, by segment. */

enum { KN_NORM_X, KN_NORM_WEIGHT, KN_NORM_BIAS, KN_NORM_INPUTS };

/* What is computed of a row, by whether there are a weight and a bias; its statistics are saved: the mean's two parts,
 * if it is subtracted, and r = 1 / sqrt(variance + eps). */
typedef struct kn_row_norm {
    kn_rows_code (*codes)[2];
    int statistics;
} kn_row_norm;

/* y = (x - mean) r weight + bias with r = 1 / sqrt(variance + eps); p is 1 / n and q is eps. The mean is kept in two
 * parts, h + l, because rounding it to T may cost a large part of the deviation: the second pass sums deviations from
 * h, which also gives the error of h, l. `extent` is that of weight and bias. */
#define KN_CENTRED "((a - h) - l)"
#define KN_ROW_NORM(id, letters, extent, factor, term)                                                                 \
    {                                                                                                                  \
        .name = id, .inputs = letters, .extent = "wb", .numbers = "pq", .prepass = &kn_norm_average,                   \
        KN_TWO_SUMS_BY("const T d = a - h; u += d; v += d * d;"), .row = "lr",                                         \
        .finish = "l = u * p; const T e = (v - u * l) * p; r = 1 / sqrt((e < 0 ? (T)0 : e) + q);",                     \
        .values = {"h", "l", "r"}, .map = KN_CENTRED " * r" factor term                                                \
    }
extern const kn_rows_pass kn_norm_average;

/* x as [rows, n]. */
typedef struct kn_norm_rows {
    int64_t rows, n;
    int64_t segment, segments; /* of kn_rows_problem; 0: weights by place */
} kn_norm_rows;

/* With c = x - mean and d = g weight: dx = r (d - sum d / n - c r^2 sum d c / n) + rest. */
#define KN_ROW_NORM_BACKWARD(id, letters, extent, factor, rest, ...)                                                   \
    {                                                                                                                  \
        .name = id, .inputs = letters, .extent = "w", .per_row = "hlr", .numbers = "p",                                \
        KN_TWO_SUMS_BY("const T c = " KN_CENTRED "; const T d = g" factor "; u += d; v += d * c;"), .row = "xy",       \
        .finish = "x = u * p; y = v * p * r * r;", .map = "(g" factor " - x - " KN_CENTRED " * y) * r" rest,           \
        __VA_ARGS__                                                                                                    \
    }

/* Forward: saves x, the statistics [count, rows] and the weight, if given. */
kn_status kn_row_norm_forward(kn_call *call, const kn_row_norm *norm, kn_norm_rows r, double eps);

/* Backward: the problem of the code by whether there is a weight, but for the results. */
kn_rows_problem kn_row_norm_backward(kn_grad_call *grad, kn_rows_code codes[2], int statistics, kn_norm_rows r);

/* One of the statistics of all rows. */
kn_rows_operand kn_row_norm_part(const kn_tensor *table, int part);

/* The record of a batch normalisation's call. */
typedef struct kn_batch_norm_op_params {
    double momentum, eps;
    bool training, cumulative;
    kn_activation activation;
} kn_batch_norm_op_params;

/* Allocates the wanted gradients of x, weight and bias: 0 if x, which is saved first, has no elements. */
kn_status kn_norm_new_gradients(kn_grad_call *grad);

/* The recorded gradients (ops/norm/recorded.c). Saved are x, the statistics, the weight and the bias. */
kn_status kn_layer_norm_backward_recorded(kn_grad_call *grad);
kn_status kn_rms_norm_backward_recorded(kn_grad_call *grad);
kn_status kn_group_norm_backward_recorded(kn_grad_call *grad);
kn_status kn_batch_norm_backward_recorded(kn_grad_call *grad);

/* A pass of batch normalisation over contiguous x [N, C, ...] with elements (ops/norm/batch_norm_run.c). The tensors
 * are contiguous and of x's dtype; missing ones are NULL. */
enum { KN_BATCH_COUNTER = 6, KN_BATCH_TENSORS };
typedef struct kn_batch_pass {
    const kn_tensor *x;
    /* weight, bias and the statistics [C, 3]; forward: y, running_mean, running_var, the counter (int64); backward: the
     * gradient and those of x, weight and bias. In the order of the kernels' parameters: cl/norm/batch_shared.clh. */
    const kn_tensor *tensors[KN_BATCH_TENSORS];
    bool is_backward;
    int flags; /* KN_NORM_... */
    double eps, momentum;
    kn_activation activation;
} kn_batch_pass;
kn_status kn_batch_norm_run(kn_stream *stream, const kn_batch_pass *pass);

/* counter += 1 */
kn_status kn_batch_norm_count(kn_stream *stream, const kn_tensor *counter);

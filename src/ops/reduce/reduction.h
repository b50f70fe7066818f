/* ops/reduce/reduction.h - reductions as rows of a table: what they compute of the elements of a row, and the gradient,
 * as texts. The engine for rows (loops/rows.h) and the one for elementwise work (loops/pointwise.h) make of these the
 * forward and the backward pass, over any dimensions, for any dtypes, on any device.
 *
 * In the texts a is an element of the row, y the result and g its gradient; p and q are numbers. A reduction that needs
 * something of all of the row first, a mean or a maximum, has another one `before` it, whose result is m. The gradient
 * of an element may name g, a, y, m, and u and v, which a code `beside` computes of the row in the backward pass. What
 * it names is saved, and nothing else. */
#ifndef KN_OPS_REDUCE_REDUCTION_H
#define KN_OPS_REDUCE_REDUCTION_H

#include "loops/pointwise.h"
#include "ops/reduce/reduce.h"

/* Which dtypes there are, and the result's. */
typedef enum kn_reduction_rule {
    KN_REDUCES_REAL, /* floating: the same */
    KN_REDUCES_WIDE, /* floating: the same; whole ones and bool: int64 */
    KN_REDUCES_ANY   /* the same */
} kn_reduction_rule;

/* The parameters of all of them. */
typedef struct kn_reduction_params {
    kn_reduce_params reduce;
    double number;
} kn_reduction_params;

typedef struct kn_reduction kn_reduction;
struct kn_reduction {
    kn_reduction_rule rule;
    const char *identity;       /* what there is none of for no elements: "maximum"; NULL: the value is defined */
    kn_rows_code *before;       /* NULL: nothing */
    kn_rows_code forward;       /* inputs "a" or "am" */
    kn_rows_code *beside;       /* inputs "a" and the like; values u and v; NULL: nothing */
    kn_pointwise_code backward; /* inputs: those of "gaymuv" that the value names; no value: not differentiable */
    void (*numbers)(double *pq, double number, int64_t n); /* NULL: none */
    double (*reference)(const double *a, int64_t n, double number);
    const kn_reduction *(*variant)(double number); /* the table to take for a number; NULL: this one */
};

/* The op's functions; `detail` of the op is its kn_reduction. Without parameters they go over all dimensions. */
kn_status kn_reduction_shape(kn_call *call);
kn_status kn_reduction_forward(kn_call *call);
kn_status kn_reduction_backward(kn_grad_call *grad);
kn_status kn_reduction_reference(const kn_call *call);

/* The body of public functions: over the dimensions in `dims`, or, with num_dims 0, over all. */
kn_tensor *kn_reduction_apply(const kn_op *op, kn_tensor *x, const int *dims, int num_dims, bool keepdim,
                              double number);

/* What others begin with: the mean, where p is n, and the maximum. */
extern kn_rows_code kn_mean_code;
extern kn_reduction kn_max_table, kn_min_table;

#define KN_REDUCTION_OP(op_name, table)                                                                                \
    {                                                                                                                  \
        .name = op_name, .inputs = {"x"}, .params_size = sizeof(kn_reduction_params), .shape = kn_reduction_shape,     \
        .forward = kn_reduction_forward, .backward = kn_reduction_backward, .reference = kn_reduction_reference,       \
        .work = kn_work_reducing, .detail = (void *)(table)                                                            \
    }

#endif

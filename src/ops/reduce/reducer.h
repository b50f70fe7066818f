/* ops/reduce/reducer.h - reductions as rows of a table: what they compute of the elements of a row, and the gradient,
 * as texts. The engine for rows (loops/rows.h) and the one for elementwise work (loops/pointwise.h) make of these the
 * forward and the backward pass, over any dimensions, for any dtypes, on any device.
 *
 * In the texts a is an element of the row, y the result and g its gradient; p and q are numbers. A reduction that needs
 * something of all of the row first, a mean or a maximum, has another one `before` it, whose result is m. The gradient
 * of an element may name g, a, y, m, and u and v, which a code `beside` computes of the row in the backward pass. What
 * it names is saved, and nothing else. */
#ifndef KN_OPS_REDUCE_REDUCER_H
#define KN_OPS_REDUCE_REDUCER_H

#include "loops/pointwise.h"
#include "ops/shape/reduce.h"

/* The dtype of the result. */
typedef enum kn_reducer_rule {
    KN_REDUCES_SAME, /* the input's */
    KN_REDUCES_WIDE  /* floating: the same; whole ones and bool: int64 */
} kn_reducer_rule;

/* The parameters of all of them. */
typedef struct kn_reducer_params {
    kn_reduce_params reduce;
    double number;
} kn_reducer_params;

typedef struct kn_reducer kn_reducer;
struct kn_reducer {
    kn_reducer_rule rule;
    const char *identity;       /* what there is none of for no elements: "maximum"; NULL: the value is defined */
    kn_rows_code *before;       /* NULL: nothing */
    kn_rows_code forward;       /* inputs "a" or "am" */
    kn_rows_code *beside;       /* inputs "a" and the like; values u and v; NULL: nothing */
    kn_pointwise_code backward; /* inputs: those of "gaymuv" that the value names; no value: not differentiable */
    void (*numbers)(double *pq, double number, int64_t n); /* NULL: none */
    double (*reference)(const double *a, int64_t n, double number);
    const kn_reducer *(*variant)(double number); /* the table to take for a number; NULL: this one */
};

/* The op's functions; `detail` of the op is its kn_reducer. Its parameters are a kn_reduce_args, or a struct that begins
 * so and ends with the number, or none, for all dimensions. */
kn_status kn_reducer_enter(kn_entry *entry);
kn_status kn_reducer_shape(kn_call *call);
kn_status kn_reducer_forward(kn_call *call);
kn_status kn_reducer_backward(kn_grad_call *grad);
kn_status kn_reducer_reference(const kn_call *call);

/* What others begin with: the mean, where p is n, and the maximum. */
extern kn_rows_code kn_mean_code;
extern kn_reducer kn_max_table, kn_min_table;

#define KN_REDUCER_OP(op_name, dtypes_, params_, table)                                                                \
    {                                                                                                                  \
        .name = op_name, .inputs = {"x"}, .dtypes = {dtypes_}, .params = params_, .enter = kn_reducer_enter,           \
        .record_size = sizeof(kn_reducer_params), .shape = kn_reducer_shape, .forward = kn_reducer_forward,            \
        .backward = kn_reducer_backward, .reference = kn_reducer_reference, .work = kn_work_reducing,                  \
        .detail = (void *)(table)                                                                                      \
    }

/* The rows of a kn_reduce_args, and what begins those of the others. */
#define KN_REDUCE_ROWS(type) KN_PARAM(type, dims), KN_PARAM(type, keepdim)

#endif

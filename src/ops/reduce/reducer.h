/* ops/reduce/reducer.h - reductions as table rows: what they compute from a row's elements, and the gradient, as texts.
 * From these the engines for rows (loops/rows.h) and elementwise work (loops/pointwise.h) generate forward and
 * backward, over any dimensions, for any dtypes, on any device.
 *
 * In the texts a is an element of the row, y the result and g its gradient; p and q are numbers. A reduction that first
 * needs a value of the whole row, such as a mean or maximum, has another one `before` it, with result m. The gradient
 * of an element may name g, a, y, m, and u and v, which a code `row_values` computes from the row in the backward pass.
 * Only what it names is saved. */
#pragma once

#include "autograd/work.h"
#include "loops/pointwise.h"
#include "ops/dispatch/backward.h"
#include "ops/shape/reduce.h"

/* The dtype of the result. */
typedef enum kn_reducer_rule {
    KN_REDUCES_SAME, /* the input's */
    KN_REDUCES_REAL, /* floating: the same; integers and bool: float32 */
    KN_REDUCES_WIDE, /* floating: the same; integers and bool: int64 */
    KN_REDUCES_BOOL, /* bool; uint8: uint8 */
    KN_REDUCES_COUNT /* int64 */
} kn_reducer_rule;

/* The parameters of all reductions. */
typedef struct kn_reducer_params {
    kn_reduce_params reduce;
    double number;
} kn_reducer_params;

typedef struct kn_reducer kn_reducer;
struct kn_reducer {
    kn_reducer_rule rule;
    const char *identity;       /* what is undefined for no elements: "maximum"; NULL: defined */
    bool nests;                 /* the result of the results of parts is that of all */
    kn_rows_code *prepass;      /* NULL: none */
    kn_rows_code forward;       /* inputs "a" or "am" */
    kn_rows_code *in_one;       /* both in one kernel, for rows that are not cut; input "a"; NULL: m is needed */
    kn_rows_code *row_values;   /* inputs such as "a"; values u and v; NULL: none */
    kn_pointwise_code backward; /* inputs: the letters of "gaymuv" in the value; no value: not differentiable */
    kn_status (*recorded)(kn_grad_call *grad);             /* the recorded gradient; NULL: `backward`, composed */
    void (*numbers)(double *pq, double number, int64_t n); /* NULL: none */
    double (*reference)(const double *a, int64_t n, double number);
    const kn_reducer *(*variant)(double number); /* the table for a given number; NULL: this one */
};

/* The op's functions; `detail` of the op is its kn_reducer. Its parameters are a kn_reduce_args, a struct that begins
 * like it and ends with the number, or none for all dimensions. */
kn_status kn_reducer_enter(kn_entry *entry);
kn_status kn_reducer_shape(kn_call *call);
kn_status kn_reducer_forward(kn_call *call);
kn_status kn_reducer_backward(kn_grad_call *grad);
kn_status kn_reducer_backward_recorded(kn_grad_call *grad);
kn_status kn_reducer_reference(const kn_call *call);

/* The codes of the extreme of `value`, an expression of a, and of the number of elements whose value is the extreme y,
 * which share the gradient evenly. NaN matches NaN. */
#define KN_EXTREME_OF(id, value, relation, first)                                                                      \
    {                                                                                                                  \
        .name = id, .inputs = "a", .values = {"m"}, .state = "m", .init = "m = " first ";",                            \
        .step = "m = ((" value " " relation " m) | KN_NAN(a)) ? " value " : m;",                                       \
        .merge = "m = ((M " relation " m) | KN_NAN(M)) ? M : m;"                                                       \
    }
#define KN_COUNT_OF(id, value)                                                                                         \
    {                                                                                                                  \
        .name = id, .inputs = "ay", .per_row = "y", .values = {"s"},                                                   \
        KN_SUM_OF("(((" value " == y) | (KN_NAN(a) & KN_NAN(y))) ? (T)1 : (T)0)")                                      \
    }

/* Reducers of all elements, which others build on: the maximum and the minimum. */
extern kn_reducer kn_max_table, kn_min_table;

#define KN_REDUCER_FIELDS(op_name, dtypes_, table)                                                                     \
    .name = op_name, .inputs = {"x"}, .dtypes = {dtypes_}, .enter = kn_reducer_enter,                                  \
    .record_size = sizeof(kn_reducer_params), .shape = kn_reducer_shape, .forward = kn_reducer_forward,                \
    .reference = kn_reducer_reference, .work = kn_work_reducing, .detail = (void *)(table)
#define KN_REDUCER_OP(op_name, dtypes_, params_, table)                                                                \
    {                                                                                                                  \
        KN_REDUCER_FIELDS(op_name, dtypes_, table), .params = params_, .backward = kn_reducer_backward,                \
                                                    .backward_recorded = kn_reducer_backward_recorded, .saved = {      \
                                                        "x",                                                           \
                                                        "result"                                                       \
                                                    }                                                                  \
    }
/* Without a gradient, for all dtypes. */
#define KN_REDUCER_PLAIN_OP(op_name, params_, table)                                                                   \
    {                                                                                                                  \
        KN_REDUCER_FIELDS(op_name, KN_DTYPES_ALL, table), .params = params_                                            \
    }

/* Its backward pass as an operator. The result may be omitted if the gradient does not name it. */
#define KN_REDUCER_BACKWARD_OP(of)                                                                                     \
    {                                                                                                                  \
        KN_BACKWARD_OP(of), .inputs = {"grad", "x", "?result"}, .outputs = { "grad_x" }                                \
    }

/* The rows of a kn_reduce_args, with which other parameter structs begin. */
#define KN_REDUCE_ROWS(type) KN_PARAM(type, dims), KN_PARAM(type, keepdim)

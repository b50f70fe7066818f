/* ops/pointwise/elementwise.h - elementwise operators as table rows: the value and its derivatives as expressions. From
 * these the engine (loops/pointwise.h) generates forward and backward, in place or not, for any dtypes, strides and
 * broadcast operands, on any device.
 *
 * In an expression a, b, c are the operands, p, q the numbers, y is the result and g its gradient; T is the compute
 * type (float for float16 and bfloat16). A row is written with the macros at the end:
 *
 *     KN_FUNCTION(sigmoid, KN_REAL, "(T)1 / ((T)1 + exp(-a))", "g * y * (1 - y)", 1 / (1 + exp(-a)))
 *
 * defines kn_sigmoid_op and kn_sigmoid; the last argument is the reference, plain C in double. A derivative names what
 * it needs: operands and the result are saved only for those that do. On CPU devices, expressions that call functions
 * are computed with explicit vectors, so `x ? y : z` must be valid for vectors: x a comparison, y and z of type T. */
#pragma once

#include "autograd/op.h"
#include "loops/pointwise.h"
#include "ops/dispatch/invoke.h"

#define KN_ELEMENTWISE_OPERANDS 3

/* The result dtype and compute dtype of an operator. */
typedef enum kn_elementwise_rule {
    KN_ANY,     /* the joint dtype of the operands */
    KN_NUMBERS, /* likewise, without bool */
    KN_REAL,    /* likewise, integers as float32 */
    KN_COMPARES /* bool, computed in the joint dtype */
} kn_elementwise_rule;

typedef struct kn_elementwise {
    kn_elementwise_rule rule;
    /* As in PyTorch, a 0-dimensional second operand is not rounded to float16 or bfloat16, and a 0-dimensional operand
     * of a wider dtype keeps its precision in the gradient. */
    bool keeps_factor, keeps_digits;
    bool bounds;                /* the numbers are bounds: infinite ones are absent, others are clipped to the dtype */
    int conditions;             /* how many leading operands are bool and do not affect the dtype */
    kn_pointwise_code forward;  /* inputs "abc" and numbers "pq", as many as the operator has */
    kn_pointwise_code backward; /* inputs "gabcy"; one value per operand, NULL: no gradient */
    bool differentiable;        /* set by the macros: does `backward` have a value? */
    double (*reference)(const double *x, const double *p);
    kn_status (*check)(const kn_call *call); /* further checks of numbers and dtypes, or NULL */
} kn_elementwise;

/* The op's functions; `detail` of the op is its kn_elementwise, p and q are the values of its kn_scalar_args. */
kn_status kn_elementwise_shape(kn_call *call);
kn_status kn_elementwise_shape_in_place(kn_call *call);
kn_status kn_elementwise_forward(kn_call *call);
kn_status kn_elementwise_backward(kn_grad_call *grad);
kn_status kn_elementwise_backward_recorded(kn_grad_call *grad);
kn_status kn_elementwise_reference(const kn_call *call);

/* A tensor as an operand, broadcast to `shape`. */
kn_operand kn_operand_of(const kn_tensor *t, int ndim, const int64_t *shape);

/* output = code(inputs), for use by other operators; inputs are broadcast to the output. */
kn_status kn_elements(kn_stream *stream, kn_pointwise_code *code, const char *operation, kn_dtype compute,
                      const kn_tensor *output, const kn_tensor *const *inputs, int num_inputs,
                      const kn_scalar *numbers);

/* --- rows --------------------------------------------------------------------------------------------------------- */

#define KN_GRADIENTS(...)                                                                                              \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

/* The table of `id`: rule, letters of operands and numbers, kn_vectors, value, gradients, reference, and further fields
 * by name. */
#define KN_ELEMENTWISE_TABLE(id, rule_, operands_, numbers_, vectors_, value, gradients, reference_, ...)              \
    static double id##_reference(const double *x, const double *n)                                                     \
    {                                                                                                                  \
        const double a = x[0], b = x[1], c = x[2], p = n[0], q = n[1];                                                 \
        (void)a, (void)b, (void)c, (void)p, (void)q;                                                                   \
        return reference_;                                                                                             \
    }                                                                                                                  \
    static kn_elementwise id##_table = {                                                                               \
        .rule = rule_,                                                                                                 \
        .forward = {.name = #id, .inputs = operands_, .numbers = numbers_, .vectors = vectors_, .values = {value}},    \
        .backward = {.name = #id "_backward",                                                                          \
                     .inputs = "gabcy",                                                                                \
                     .numbers = numbers_,                                                                              \
                     .vectors = vectors_,                                                                              \
                     .values = gradients},                                                                             \
        .reference = id##_reference,                                                                                   \
        __VA_ARGS__}

/* The dtypes that each rule accepts. */
#define KN_TAKES_KN_ANY KN_DTYPES_ALL
#define KN_TAKES_KN_NUMBERS KN_DTYPES_NUMBERS
#define KN_TAKES_KN_REAL KN_DTYPES_ALL
#define KN_TAKES_KN_COMPARES KN_DTYPES_ALL

/* The op, with its accepted dtypes, parameters (KN_PARAMS of kn_scalar_args, or KN_NO_PARAMS) and operand names. */
#define KN_ELEMENTWISE_OP(op_name, in_place_, differentiable, table, dtypes_, params_, ...)                            \
    {                                                                                                                  \
        KN_ELEMENTWISE_FIELDS(op_name, in_place_, differentiable, table), .dtypes = {dtypes_}, .params = params_,      \
                                                                          .inputs = {                                  \
                                                                              __VA_ARGS__                              \
                                                                          }                                            \
    }

/* The fields common to all, for descriptors with further ones. */
#define KN_ELEMENTWISE_FIELDS(op_name, in_place_, differentiable, table)                                               \
    .name = op_name, .record_size = sizeof(kn_scalar_args), .in_place = in_place_, .strided_outputs = true,            \
    .shape = in_place_ ? kn_elementwise_shape_in_place : kn_elementwise_shape, .forward = kn_elementwise_forward,      \
    .backward = differentiable ? kn_elementwise_backward : NULL,                                                       \
    .backward_recorded = differentiable ? kn_elementwise_backward_recorded : NULL,                                     \
    .reference = kn_elementwise_reference, .detail = table

/* A function of one tensor: arithmetic (KN_UNARY), or one that calls OpenCL's functions (KN_FUNCTION). */
#define KN_UNARY_(name, rule, vectors, value, gradient, reference)                                                     \
    KN_ELEMENTWISE_TABLE(name, rule, "a", NULL, vectors, value, KN_GRADIENTS(gradient), reference);                    \
    const kn_op kn_##name##_op =                                                                                       \
        KN_ELEMENTWISE_OP(#name, false, true, &name##_table, KN_TAKES_##rule, KN_NO_PARAMS, "x");                      \
    kn_tensor *kn_##name(kn_tensor *x) { return kn_invoke(&kn_##name##_op, NULL, x); }
#define KN_UNARY(name, rule, value, gradient, reference)                                                               \
    KN_UNARY_(name, rule, KN_NO_VECTORS, value, gradient, reference)
#define KN_FUNCTION(name, rule, value, gradient, reference)                                                            \
    KN_UNARY_(name, rule, KN_VECTORS, value, gradient, reference)

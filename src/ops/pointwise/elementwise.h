/* ops/pointwise/elementwise.h - elementwise operators as rows of a table: what they compute and its derivative, as
 * expressions. The engine (loops/pointwise.h) makes of these the forward and the backward pass, in place and not, for
 * any dtypes, strides and broadcast operands, on any device.
 *
 * In an expression a, b, c are the operands, p, q the numbers, y is the result and g its gradient; T is the type that
 * is computed in (float16 and bfloat16 are computed on in float). A row is written with the macros at the end:
 *
 *     KN_FUNCTION(sigmoid, KN_REAL, "(T)1 / ((T)1 + exp(-a))", "g * y * (1 - y)", 1 / (1 + exp(-a)))
 *
 * defines kn_sigmoid_op and kn_sigmoid; the last argument is the reference, plain C in double. A derivative names what
 * it needs: operands and the result are saved only for those that do. Expressions that call functions are computed on
 * explicit vectors where the device is a CPU, so `x ? y : z` must hold for these: x a comparison, y and z of type T. */
#ifndef KN_OPS_POINTWISE_ELEMENTWISE_H
#define KN_OPS_POINTWISE_ELEMENTWISE_H

#include "autograd/op.h"
#include "loops/pointwise.h"
#include "ops/dispatch/invoke.h"

#define KN_ELEMENTWISE_OPERANDS 3

/* The dtypes of an operator: of its result, and what it is computed in. */
typedef enum kn_elementwise_rule {
    KN_ANY,     /* the joint dtype of the operands */
    KN_NUMBERS, /* likewise, but bool is refused */
    KN_REAL,    /* likewise, whole dtypes as float32 */
    KN_COMPARES /* bool, computed in the joint dtype */
} kn_elementwise_rule;

typedef struct kn_elementwise {
    kn_elementwise_rule rule;
    /* As in PyTorch, a second operand without dimensions is not rounded to float16 or bfloat16, and an operand of a wider dtype
     * without dimensions counts with its own digits in the gradient. */
    bool keeps_factor, keeps_digits;
    bool
        bounds; /* the numbers are bounds: those that are infinite are not there, the others are clipped to the dtype */
    int conditions;             /* so many operands, the first ones, are bool and have no part in the dtype */
    kn_pointwise_code forward;  /* inputs "abc", as many as there are operands; numbers "pq" likewise */
    kn_pointwise_code backward; /* inputs "gabcy"; a value for each operand, NULL where no gradient flows */
    bool differentiable;        /* set by the macros: does `backward` have a value? */
    double (*reference)(const double *x, const double *p);
    kn_status (*check)(const kn_call *call); /* of numbers and dtypes, beyond the rule; NULL: nothing */
} kn_elementwise;

/* The op's functions; `detail` of the op is its kn_elementwise, p and q are the values of its kn_scalar_args. */
kn_status kn_elementwise_shape(kn_call *call);
kn_status kn_elementwise_shape_in_place(kn_call *call);
kn_status kn_elementwise_forward(kn_call *call);
kn_status kn_elementwise_backward(kn_grad_call *grad);
kn_status kn_elementwise_backward_recorded(kn_grad_call *grad);
kn_status kn_elementwise_reference(const kn_call *call);

/* A tensor as an operand of a pass over `shape`, to which it broadcasts. */
kn_operand kn_operand_of(const kn_tensor *t, int ndim, const int64_t *shape);

/* output = code(inputs), for passes of other operators: the inputs broadcast to the output. */
kn_status kn_elements(kn_stream *stream, kn_pointwise_code *code, const char *operation, kn_dtype compute,
                      const kn_tensor *output, const kn_tensor *const *inputs, int num_inputs,
                      const kn_scalar *numbers);

/* --- rows --------------------------------------------------------------------------------------------------------- */

#define KN_GRADIENTS(...)                                                                                              \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

/* The table of `id`: rule, the letters of operands and numbers, whether the expressions call functions and hold for
 * vectors (kn_vectors), the value, the gradients, the reference, and fields by name. */
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

/* What a row of each rule takes. */
#define KN_TAKES_KN_ANY KN_DTYPES_ALL
#define KN_TAKES_KN_NUMBERS KN_DTYPES_NUMBERS
#define KN_TAKES_KN_REAL KN_DTYPES_ALL
#define KN_TAKES_KN_COMPARES KN_DTYPES_ALL

/* The op, with the dtypes that it takes, its parameters (KN_PARAMS of kn_scalar_args, or KN_NO_PARAMS) and the names of
 * its operands. */
#define KN_ELEMENTWISE_OP(op_name, in_place_, differentiable, table, dtypes_, params_, ...)                            \
    {                                                                                                                  \
        KN_ELEMENTWISE_FIELDS(op_name, in_place_, differentiable, table), .dtypes = {dtypes_}, .params = params_,      \
                                                                          .inputs = {                                  \
                                                                              __VA_ARGS__                              \
                                                                          }                                            \
    }

/* What all of them have, for descriptors that say more. */
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

#endif

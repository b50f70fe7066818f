/* ops/pointwise/elementwise.h - elementwise operators as table rows: the value and its derivatives as expressions. From
 * these the engine (loops/pointwise.h) generates forward and backward, in place or not, for any dtypes, strides and
 * broadcast operands, on any device.
 *
 * In an expression a, b, c are the operands, p, q, r the numbers, y is the result and g its gradient; T is the compute
 * type (float for float16 and bfloat16). A row is written with the macros at the end:
 *
 *     KN_FUNCTION(sigmoid, KN_REAL, "(T)1 / ((T)1 + exp(-a))", "g * y * (1 - y)", 1 / (1 + exp(-a)))
 *
 * defines kn_sigmoid_op and kn_sigmoid; the last argument is the reference, plain C in double. A derivative names what
 * it needs: operands and the result are saved only for those that do. On CPU devices, expressions that call functions
 * are computed with explicit vectors, so `x ? y : z` must be valid for vectors: x a comparison, y and z of type T.
 *
 * A row of two operands serves numbers too: in kn_div_scalar's table b is a number, in kn_rdiv_scalar's a is
 * (KN_TWO_TENSORS, KN_NUMBER_AFTER, KN_NUMBER_BEFORE). */
#pragma once

#include <string.h>

#include "autograd/op.h"
#include "loops/pointwise.h"
#include "ops/dispatch/invoke.h"

#define KN_ELEMENTWISE_OPERANDS 3
#define KN_ELEMENTWISE_NUMBERS 3

/* The result dtype and compute dtype of an operator. */
typedef enum kn_elementwise_rule {
    KN_ANY,           /* the joint dtype of the operands */
    KN_NUMBERS,       /* likewise, without bool */
    KN_JOINT_NUMBERS, /* likewise; it is not bool, though operands may be */
    KN_REAL,          /* the joint dtype, integers as float32 */
    KN_FLOATS,        /* likewise, without integers */
    KN_WHOLES,        /* likewise, without floating dtypes */
    KN_INTS,          /* likewise, without bool */
    KN_COMPARES,      /* bool, computed in the joint dtype */
    KN_REAL_COMPARES  /* bool, computed in float32 for integers */
} kn_elementwise_rule;

typedef struct kn_elementwise {
    kn_elementwise_rule rule;
    /* As in PyTorch, a 0-dimensional second operand is not rounded to float16 or bfloat16, and a 0-dimensional operand
     * of a wider dtype keeps its precision in the gradient. */
    bool keeps_factor, keeps_digits;
    bool rounds_number;         /* the number is rounded to float16 or bfloat16, as an operand would be */
    bool bounds;                /* the numbers are bounds: infinite ones are absent, others are clipped to the dtype */
    int conditions;             /* how many leading operands are bool and do not affect the dtype */
    kn_pointwise_code forward;  /* operands of "abc", numbers of "pqr" or of "abc": those that the operator has */
    kn_pointwise_code backward; /* inputs "gabcy"; one value per operand, NULL: no gradient */
    /* `backward` in terms that kn_compose knows, where it calls functions of its own; NULL: the same. */
    const char *recorded[KN_ELEMENTWISE_OPERANDS];
    double (*reference)(const double *x);    /* of a, b, c, p, q, r */
    kn_status (*check)(const kn_call *call); /* further checks of numbers and dtypes, or NULL */
} kn_elementwise;

/* The op's functions; `detail` of the op is its kn_elementwise, the numbers are the values of its kn_scalar_args. */
kn_status kn_elementwise_shape(kn_call *call);
kn_status kn_elementwise_shape_in_place(kn_call *call);
kn_status kn_elementwise_forward(kn_call *call);
kn_status kn_elementwise_backward(kn_grad_call *grad);
kn_status kn_elementwise_backward_recorded(kn_grad_call *grad);
kn_status kn_elementwise_reference(const kn_call *call);

/* An `enter`: the numbers are the caller's parameters (double, int or bool), in the order of their rows. */
kn_status kn_elementwise_enter(kn_entry *entry);

/* An integral number as an integer, which keeps integer dtypes; another as a real one. */
kn_scalar kn_scalar_nearest(double value);

/* A tensor as an operand, broadcast to `shape`. */
kn_operand kn_operand_of(const kn_tensor *t, int ndim, const int64_t *shape);

/* output = code(inputs), for use by other operators; inputs are broadcast to the output. */
kn_status kn_elements(kn_stream *stream, kn_pointwise_code *code, const char *operation, kn_dtype compute,
                      const kn_tensor *output, const kn_tensor *const *inputs, int num_inputs,
                      const kn_scalar *numbers);

/* --- between the files of the engine ------------------------------------------------------------------------------ */

static inline int kn_elementwise_count_numbers(const kn_elementwise *e)
{
    return e->forward.numbers ? (int)strlen(e->forward.numbers) : 0;
}

/* The dtype of the expression, including its numbers but not its conditions. */
kn_dtype kn_elementwise_joint_dtype(const kn_elementwise *e, kn_tensor *const *operands, int count,
                                    const kn_scalar_args *params);

/* --- rows --------------------------------------------------------------------------------------------------------- */

#define KN_GRADIENTS(...)                                                                                              \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

/* The table of `id`: rule, letters of operands and numbers, kn_vectors, value, gradients, reference, and further fields
 * by name. */
#define KN_ELEMENTWISE_TABLE(id, rule_, operands_, numbers_, vectors_, value, gradients, reference_, ...)              \
    static double id##_reference(const double *x)                                                                      \
    {                                                                                                                  \
        const double a = x[0], b = x[1], c = x[2], p = x[3], q = x[4], r = x[5];                                       \
        (void)a, (void)b, (void)c, (void)p, (void)q, (void)r;                                                          \
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
#define KN_TAKES_KN_FLOATS KN_DTYPES_FLOATING
#define KN_TAKES_KN_WHOLES (KN_DTYPES_ALL & ~KN_DTYPES_FLOATING)
#define KN_TAKES_KN_INTS (KN_DTYPES_NUMBERS & ~KN_DTYPES_FLOATING)
#define KN_TAKES_KN_COMPARES KN_DTYPES_ALL
#define KN_TAKES_KN_REAL_COMPARES KN_DTYPES_ALL

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
    .elementwise = true, .strided_gradients = true, .arrange = kn_call_arrange,                                        \
    .shape = in_place_ ? kn_elementwise_shape_in_place : kn_elementwise_shape, .forward = kn_elementwise_forward,      \
    .backward = differentiable ? kn_elementwise_backward : NULL,                                                       \
    .backward_recorded = differentiable ? kn_elementwise_backward_recorded : NULL,                                     \
    .reference = kn_elementwise_reference, .detail = table

/* A macro of the code's functions: one text for integers and bool, another for floating dtypes. */
#define KN_BY_DTYPE(signature, whole, real)                                                                            \
    "#ifdef KN_WHOLE\n#define " signature " (" whole ")\n#else\n#define " signature " (" real ")\n#endif\n"

/* Functions and constants for several rows. kn_compose knows kn_sigmoid too. */
#define KN_SIGMOID "#define kn_sigmoid(x) ((T)1 / ((T)1 + exp(-(x))))\n"
#define KN_LN_2 "(T)0.693147180559945309417"
#define KN_1_LN_2 "(T)1.442695040888963407360"

/* --- one tensor --------------------------------------------------------------------------------------------------- */

/* kn_NAME(x) of a table: not differentiable, or differentiable; in place with another name. */
#define KN_OF_ONE(table, name, in_place_, differentiable, dtypes)                                                      \
    const kn_op kn_##name##_op =                                                                                       \
        KN_ELEMENTWISE_OP(#name, in_place_, differentiable, &table##_table, dtypes, KN_NO_PARAMS, "x");                \
    kn_tensor *kn_##name(kn_tensor *x) { return kn_invoke(&kn_##name##_op, NULL, x); }

/* Of the bits of halves (kn_pointwise_code's of_bits), whose highest is the sign. */
#define KN_OF_BITS(letters, text)                                                                                      \
    &(kn_pointwise_code)                                                                                               \
    {                                                                                                                  \
        .name = "bits", .inputs = letters, .values = { text }                                                          \
    }
#define KN_SIGN_BIT "(T)-32768"
#define KN_OTHER_BITS "(T)32767"

/* A function of one tensor: arithmetic (KN_UNARY), or one that calls OpenCL's functions (KN_FUNCTION). Further fields
 * of the table by name. */
#define KN_UNARY_(name, rule, vectors, value, gradient, reference, ...)                                                \
    KN_ELEMENTWISE_TABLE(name, rule, "a", NULL, vectors, value, KN_GRADIENTS(gradient), reference, __VA_ARGS__);       \
    KN_OF_ONE(name, name, false, true, KN_TAKES_##rule)
#define KN_UNARY(name, rule, value, gradient, ...) KN_UNARY_(name, rule, KN_NO_VECTORS, value, gradient, __VA_ARGS__, )
#define KN_FUNCTION(name, rule, value, gradient, ...) KN_UNARY_(name, rule, KN_VECTORS, value, gradient, __VA_ARGS__, )

/* A question: the result is bool, without a gradient. */
#define KN_TEST(name, rule, value, ...)                                                                                \
    KN_ELEMENTWISE_TABLE(name, rule, "a", NULL, KN_NO_VECTORS, value, KN_GRADIENTS(NULL), __VA_ARGS__, );              \
    KN_OF_ONE(name, name, false, false, KN_TAKES_##rule)

/* A function of one tensor and of numbers that have defaults: kn_NAME_params, KN_ID_DEFAULTS. The operator's texts are
 * arguments as in KN_ELEMENTWISE_TABLE; the last are the rows of parameters, in the order of the letters:
 *
 *     KN_FUNCTION_OF(elu, ELU, KN_FLOATS, "p", KN_VECTORS, "a > 0 ? a : p * expm1(a)", "a > 0 ? g : g * (y + p)",
 *                    a > 0 ? a : p * expm1(a), KN_PARAM(kn_elu_params, alpha)) */
#define KN_FUNCTION_OF(name, ID, rule, numbers, vectors, value, gradient, reference, ...)                              \
    KN_ELEMENTWISE_TABLE(name, rule, "a", numbers, vectors, value, KN_GRADIENTS(gradient), reference);                 \
    KN_WITH_PARAMS(name, ID, KN_TAKES_##rule, __VA_ARGS__)

/* The same of a table that exists. */
#define KN_WITH_PARAMS(name, ID, dtypes_, ...)                                                                         \
    static const kn_op_param name##_rows[] = {__VA_ARGS__};                                                            \
    const kn_op kn_##name##_op = {                                                                                     \
        KN_ELEMENTWISE_FIELDS(#name, false, true, &name##_table), .inputs = {"x"}, .dtypes = {dtypes_},                \
        .params = KN_PARAMS(kn_##name##_params, name##_rows, KN_##ID##_DEFAULTS), .enter = kn_elementwise_enter};      \
    KN_PARAMS_FUNCTIONS(name, ID)

/* kn_NAME_params_init, kn_NAME_with. */
#define KN_PARAMS_FUNCTIONS(name, ID)                                                                                  \
    kn_##name##_params kn_##name##_params_init(void) { return (kn_##name##_params){KN_##ID##_DEFAULTS}; }              \
    kn_tensor *kn_##name##_with(kn_tensor *x, const kn_##name##_params *params)                                        \
    {                                                                                                                  \
        return kn_invoke(&kn_##name##_op, params, x);                                                                  \
    }

/* --- two operands ------------------------------------------------------------------------------------------------- */

/* Tables of one row: #define DIV KN_REAL, kn_vectors, value, gradient of a, gradient of b, reference, further
 * fields. */
#define KN_TWO_TENSORS(id, ...) KN_TWO_TENSORS_(id, __VA_ARGS__, )
#define KN_NUMBER_AFTER(id, ...) KN_NUMBER_AFTER_(id, __VA_ARGS__, )
#define KN_NUMBER_BEFORE(id, ...) KN_NUMBER_BEFORE_(id, __VA_ARGS__, )
#define KN_TWO_TENSORS_(id, rule, vectors, value, to_a, to_b, ...)                                                     \
    KN_ELEMENTWISE_TABLE(id, rule, "ab", NULL, vectors, value, KN_GRADIENTS(to_a, to_b), __VA_ARGS__)
#define KN_NUMBER_AFTER_(id, rule, vectors, value, to_a, to_b, ...)                                                    \
    KN_ELEMENTWISE_TABLE(id, rule, "a", "b", vectors, value, KN_GRADIENTS(to_a), __VA_ARGS__)
#define KN_NUMBER_BEFORE_(id, rule, vectors, value, to_a, to_b, ...)                                                   \
    KN_ELEMENTWISE_TABLE(id, rule, "b", "a", vectors, value, KN_GRADIENTS(to_b), __VA_ARGS__)

/* kn_NAME(a, b) of a table; kn_NAME_with(a, number), which kn_NAME calls. */
#define KN_OF_TWO(table, name, in_place_, differentiable, dtypes)                                                      \
    const kn_op kn_##name##_op =                                                                                       \
        KN_ELEMENTWISE_OP(#name, in_place_, differentiable, &table##_table, dtypes, KN_NO_PARAMS, "a", "b");           \
    kn_tensor *kn_##name(kn_tensor *a, kn_tensor *b) { return kn_invoke(&kn_##name##_op, NULL, a, b); }
#define KN_OF_NUMBER(table, name, in_place_, differentiable, dtypes, function)                                         \
    const kn_op kn_##name##_op = KN_ELEMENTWISE_OP(#name, in_place_, differentiable, &table##_table, dtypes,           \
                                                   KN_PARAMS(kn_scalar_args, kn_value_rows), "a");                     \
    kn_tensor *function(kn_tensor *a, kn_scalar b) { return kn_invoke(&kn_##name##_op, &(kn_scalar_args){{b}}, a); }

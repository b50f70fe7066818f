/* ops/loss/element_loss.h - losses of a term per element of their inputs, which have one shape: forward, backward of
 * the first and second order and the reference follow from the terms.
 *
 *     static kn_element_codes codes[] = {
 *         KN_LOSS_CODES("l1", "xt", "", KN_NO_VECTORS, "fabs(x - t)", KN_LOSS_SLOPE(...), KN_LOSS_SLOPE(...))};
 */
#pragma once

#include <koine/loss.h>

#include "ops/dispatch/backward.h"
#include "ops/pointwise/elementwise.h"
#include "ops/shape/reduce.h"

enum { KN_LOSS_INPUTS = 4, KN_LOSS_SLOPES = 3, KN_LOSS_NUMBERS = 2 };

/* Inputs are those given, in order; in `slopes` after the gradient g. Numbers are those of the record after n. */
typedef struct kn_element_codes {
    kn_rows_code sum;                         /* of the terms, divided by n */
    kn_pointwise_code each;                   /* the terms, for the reduction "none" */
    kn_pointwise_code slopes[KN_LOSS_SLOPES]; /* times n: the gradients of the first inputs; no value: none */
} kn_element_codes;

/* The op's `detail`. */
typedef struct kn_element_loss {
    kn_element_codes *codes; /* by the record's variant */
    /* The reference: of the inputs, 1 where missing, and the record. */
    double (*term)(const double *in, int variant, const double *numbers);
} kn_element_loss;

/* A call's record. */
typedef struct kn_element_record {
    kn_reduction reduction; /* "batchmean" has become a sum */
    int variant;
    double divisor; /* of the sum */
    double numbers[KN_LOSS_NUMBERS];
} kn_element_record;

/* For `enter`: the record. The inputs are as they will be used. */
void kn_element_loss_enter(kn_entry *entry, kn_reduction reduction, int variant, double p, double q);

/* For `enter`, before that: broadcasts the first `count` inputs to one shape and converts them to one floating dtype.
 * As in PyTorch, that is the joint dtype of the expanded tensors, so a 0-dimensional one may widen it. */
kn_status kn_element_loss_join(kn_entry *entry, int count);

/* Reduces a loss of elements, as public functions do. */
kn_tensor *kn_loss_reduced(kn_tensor *loss, kn_reduction reduction);

kn_status kn_element_loss_shape(kn_call *call);
kn_status kn_element_loss_forward(kn_call *call);
kn_status kn_element_loss_backward(kn_grad_call *grad);
kn_status kn_element_loss_backward_recorded(kn_grad_call *grad);
kn_status kn_element_loss_reference(const kn_call *call);

extern const char *const kn_reduction_names[];
extern const kn_op_param kn_reduction_rows[1];
#define KN_REDUCTION_ROW(type) KN_PARAM(type, reduction, .values = kn_reduction_names)

/* The sum is of separate statements, so that a product is not contracted to an FMA, which rounds differently. */
#define KN_LOSS_CODES(id, letters, numbers_, vectors_, term, ...)                                                      \
    {                                                                                                                  \
        .sum = {.name = id,                                                                                            \
                .inputs = letters,                                                                                     \
                .numbers = "n" numbers_,                                                                               \
                KN_SUM_BY("const T e = " term "; s += e;"),                                                            \
                .takes_long = (vectors_) == KN_VECTORS,                                                                \
                .values = {"s / n"}},                                                                                  \
        .each = {.name = id "_elements",                                                                               \
                 .inputs = letters,                                                                                    \
                 .numbers = "n" numbers_,                                                                              \
                 .vectors = vectors_,                                                                                  \
                 .values = {term}},                                                                                    \
        .slopes = {                                                                                                    \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
/* A gradient, for gradients of gradients in the language of ops/pointwise/compose.h. */
#define KN_LOSS_SLOPE(id, letters, numbers_, vectors_, slope)                                                          \
    {                                                                                                                  \
        .name = id, .inputs = "g" letters, .numbers = "n" numbers_, .vectors = vectors_, .values = {                   \
            "n * g * (" slope ")"                                                                                      \
        }                                                                                                              \
    }

#define KN_ELEMENT_LOSS(loss)                                                                                          \
    .widens_halves = true, .composes = true, .record_size = sizeof(kn_element_record), .shape = kn_element_loss_shape, \
    .forward = kn_element_loss_forward, .backward = kn_element_loss_backward, .reference = kn_element_loss_reference,  \
    .detail = (void *)(loss)

/* Its backward pass as an operator, of the inputs that follow. */
#define KN_ELEMENT_LOSS_BACKWARD(of) KN_BACKWARD_OP(of), .widens_halves = true, .composes = true

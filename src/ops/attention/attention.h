/* ops/attention/attention.h - scaled dot-product attention: the problem, and its implementations. */
#pragma once

#include "attention/attention.h"
#include "autograd/op.h"
#include "ops/dispatch/choice.h"
#include "tensor/tensor.h"

enum { KN_QUERY, KN_KEY, KN_VALUE, KN_ATTENTION_OPERANDS, KN_MASK = KN_ATTENTION_OPERANDS };

/* result = dropout(softmax(scale query key^T + mask)) value. query [..., heads, L, E], key [..., heads / n, S, E] and
 * value [..., heads / n, S, Ev] have the same leading dimensions and, like mask and gradients, the same dtype; result
 * and lse are float32 if that is a half. What is written has strides that kn_attention_takes, and lse is contiguous. */
typedef struct kn_attention_problem {
    kn_tensor *operands[KN_ATTENTION_OPERANDS];
    kn_tensor *mask;   /* added to the scores, broadcast to [..., heads, L, S]; NULL: none */
    kn_tensor *result; /* [..., heads, L, Ev] */
    /* [..., heads, L]: the logarithm of the sum of a row's exponentials; infinity where all keys are hidden */
    kn_tensor *lse;
    kn_tensor *gradient;                         /* backward: of the result */
    kn_tensor *gradients[KN_ATTENTION_OPERANDS]; /* backward: every one is computed */
    double scale, dropout_p;
    kn_philox draw; /* with dropout_p > 0 */
    bool is_causal; /* query i sees the keys up to i */
} kn_attention_problem;

/* Forward computes the result and lse; backward the gradients. Both tables have the same rows. */
extern const kn_implementation_table kn_attention_implementations, kn_attention_backward_implementations;

/* The number of blocks of four random words that dropout draws. */
int64_t kn_attention_draw_blocks(const kn_tensor *query, const kn_tensor *key);

/* The same of recorded operators, with the matrix of scores (composed.c). */
kn_tensor *kn_attention_composed(const kn_attention_problem *problem);
kn_status kn_attention_gradients_composed(const kn_attention_problem *problem, const bool *needs,
                                          kn_tensor *gradients[KN_ATTENTION_OPERANDS]);

/* --- between the files of this op --------------------------------------------------------------------------------- */

/* What a call keeps of its arguments. */
typedef struct kn_attention_record {
    kn_philox draw;
    double scale, dropout_p;
    bool is_causal;
} kn_attention_record;

/* arguments.c: checks query, key and value and expands them to common leading dimensions; `grouped`: with enable_gqa.
 * And the mask of such a query and `keys` keys. */
kn_status kn_attention_broadcast(kn_tensor **in, bool grouped);
kn_status kn_attention_check_mask(const kn_tensor *mask, const kn_tensor *query, int64_t keys, bool is_causal);

/* reference.c: the result, and lse if it is wanted; the call's params are a kn_attention_record. */
kn_status kn_attention_reference_on_host(const kn_call *call);

/* The operands as kernels read them: contiguous copies where their strides do not fit. Release with
 * kn_attention_release, also on failure. */
typedef struct kn_attention_operands {
    kn_attention_shape shape;
    kn_tensor *tensors[KN_ATTENTION_OPERANDS], *mask, *gradient; /* owned; mask is the query if there is none */
} kn_attention_operands;
kn_status kn_attention_operands_of(kn_attention_operands *operands, const kn_attention_problem *problem);
void kn_attention_release(kn_attention_operands *operands);

/* Are the rows contiguous, and the dimensions before the heads like one? */
bool kn_attention_takes(const kn_tensor *t);

/* Runs an implementation that does not read halves on a problem of halves (halves.c). */
kn_status kn_attention_in_f32(kn_stream *stream, const kn_attention_problem *problem, kn_implementation_run *run);

/* cpu.c: tiles of vectors. gpu.c: work-groups. composed.c: with the matrix of scores. */
kn_implementation_predicate kn_attention_prefers_tiles, kn_attention_supports_groups, kn_attention_prefers_groups;
kn_implementation_run kn_attention_tiles, kn_attention_tiles_backward;
kn_implementation_run kn_attention_groups, kn_attention_groups_backward;
kn_implementation_run kn_attention_reference, kn_attention_reference_backward;

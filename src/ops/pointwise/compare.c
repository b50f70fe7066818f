/* ops/pointwise/compare.c - eq, ne, lt, le, gt, ge: bool results, no gradients. Each op's kernel has the op's name. */
#include <koine/ops.h>

#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/pointwise/strided.h"

static kn_status compare_shape(kn_call *call) { return kn_broadcast_output(call, KN_BOOL); }

static kn_status compare_forward(kn_call *call)
{
    const kn_strided_launch launch = {.source = "pointwise/compare.cl",
                                      .kernel = call->op->name,
                                      .operation = call->op->name,
                                      .dtype = call->inputs[0]->dtype,
                                      .output = call->outputs[0],
                                      .inputs = {call->inputs[0], call->inputs[1]}};
    return kn_launch_strided(call->stream, &launch);
}

#define COMPARISON(op, sign)                                                                                           \
    static double op##_number(double a, double b) { return a sign b; }                                                 \
    static kn_status op##_reference(const kn_call *call) { return kn_reference_binary(call, op##_number); }            \
    static const kn_op op##_op = {.name = #op,                                                                         \
                                  .min_inputs = 2,                                                                     \
                                  .max_inputs = 2,                                                                     \
                                  .shape = compare_shape,                                                              \
                                  .forward = compare_forward,                                                          \
                                  .reference = op##_reference};                                                        \
    kn_tensor *kn_##op(kn_tensor *a, kn_tensor *b) { return compare(&op##_op, a, b); }

static kn_tensor *compare(const kn_op *op, kn_tensor *a, kn_tensor *b)
{
    if (!kn_argument_given(op->name, "a", a) || !kn_argument_given(op->name, "b", b))
        return NULL;
    return kn_apply_jointly(op, (kn_tensor *[]){a, b}, 2, NULL, kn_result_type(a, b), KN_BOOL);
}

COMPARISON(eq, ==)
COMPARISON(ne, !=)
COMPARISON(lt, <)
COMPARISON(le, <=)
COMPARISON(gt, >)
COMPARISON(ge, >=)

/* ops/shape/join_together.c - several tensors to their places in one launch (cl/tensor/join.cl). */
#include "ops/shape/join_together.h"

#include <stdio.h>

#include "base/error.h"
#include "base/integer.h"
#include "loops/transpose.h"
#include "tensor/join.h"

enum { GRAIN = 4096 }; /* elements per work-item, at least */

/* A launch each copies short runs, once there are many of them, faster than the loop over all tensors. */
enum { SHORT_RUN = 32, MANY_ROWS = 1000 };
static bool has_many_short_runs(const kn_call *call, int64_t outer)
{
    return outer > MANY_ROWS * (int64_t)(call->num_inputs - 1) &&
           kn_numel(call->outputs[0]) < SHORT_RUN * outer * call->num_inputs;
}

bool kn_joins_together(const kn_call *call, int64_t outer)
{
    const kn_tensor *whole = call->outputs[0];
    bool together = kn_tensor_limits(whole)->is_cpu && call->num_inputs > 1 && kn_numel(whole) > 0 &&
                    kn_is_contiguous(whole) && !has_many_short_runs(call, outer);
    for (int i = 0; i < call->num_inputs; i++)
        together = together && call->inputs[i]->dtype == whole->dtype && kn_is_contiguous(call->inputs[i]);
    return together;
}

/* `start`: the elements of a row before those of the first input; and then before those after the last. */
static kn_status launch(const kn_call *call, kn_tensor *const *inputs, int count, int64_t outer, int64_t *start)
{
    const kn_tensor *whole = call->outputs[0];
    kn_join_plan plan = {.outer = outer, .row = kn_numel(whole) / outer, .count = count, .starts = {*start}};
    kn_arg x[KN_JOIN_MOST];
    for (int i = 0; i < KN_JOIN_MOST; i++)
        x[i] = kn_arg_tensor(inputs[i < count ? i : 0]);
    for (int i = 0; i < count; i++)
        plan.starts[i + 1] = plan.starts[i] + kn_numel(inputs[i]) / outer;
    const int64_t n = outer * (plan.starts[count] - *start);
    *start = plan.starts[count];
    const size_t items = n == 0 ? 0 : kn_work_items(kn_tensor_limits(whole), n, GRAIN);
    char options[32];
    plan.chunk = kn_div_up(n, kn_max_i64(1, (int64_t)items));
    snprintf(options, sizeof options, "-DE=%s", kn_bits_type(whole->dtype));
    return kn_run(call->stream, .source = "tensor/join.cl", .options = options, .kernel = "join",
                  .operation = call->op->name, .dims = 1, .global = {items}, .local = {1},
                  KN_ARGS(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], kn_arg_tensor(whole),
                          kn_arg_struct(&plan, sizeof plan)));
}

kn_status kn_join_together(const kn_call *call, int64_t outer)
{
    int64_t start = 0;
    for (int i = 0; i < call->num_inputs; i += KN_JOIN_MOST) {
        const int count = call->num_inputs - i < KN_JOIN_MOST ? call->num_inputs - i : KN_JOIN_MOST;
        KN_TRY(launch(call, call->inputs + i, count, outer, &start));
    }
    return KN_OK;
}

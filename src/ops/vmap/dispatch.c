/* ops/vmap/dispatch.c - see dispatch.h. */
#include "ops/vmap/dispatch.h"

#include <koine/autograd.h>
#include <koine/join.h>
#include <koine/shape.h>
#include <string.h>

#include "base/load.h"
#include "base/memory.h"
#include "ops/dispatch/operators.h"
#include "tensor/scope.h"

/* --- sample by sample --------------------------------------------------------------------------------------------- */

/* as_strided counts from the start of the memory, which must be the sample's own. */
static kn_tensor *sample_of(const kn_vmap_call *call, int i, int64_t sample)
{
    kn_tensor *x = kn_select(call->inputs[i], 0, sample);
    return x && call->op == &kn_as_strided_op ? kn_clone(x) : x;
}

static kn_status of_sample(const kn_vmap_call *call, int64_t sample, kn_tensor **inputs, kn_tensor **outputs)
{
    for (int i = 0; i < call->num_inputs; i++) {
        inputs[i] = call->is_batched[i] ? sample_of(call, i, sample) : call->inputs[i];
        if (call->is_batched[i] && !inputs[i])
            return kn_error_status();
    }
    memcpy(outputs, call->outputs, (size_t)call->num_outputs * sizeof *outputs);
    return kn_op_invoke_to(call->op, inputs, call->num_inputs, call->params, outputs, call->num_outputs);
}

/* The samples' results of output `index` as one. */
static kn_status join(kn_vmap_call *call, int index, kn_tensor **results, kn_tensor **of_one)
{
    for (int64_t i = 0; i < call->size; i++) {
        of_one[i] = results[i * call->num_outputs + index];
        if (!of_one[i])
            return KN_OK; /* none was wanted */
        if (!kn_same_shape(of_one[i], of_one[0]))
            return kn_fail(KN_ERR_BATCHED, "the results of the samples of a batch have different shapes");
    }
    return kn_status_of(call->outputs[index] = kn_stack(of_one, (int)call->size, 0));
}

static kn_status sample_by_sample(kn_vmap_call *call)
{
    const size_t outputs = (size_t)call->size * (size_t)(call->num_outputs + 1);
    kn_tensor **inputs = kn_malloc(((size_t)call->num_inputs + outputs) * sizeof *inputs);
    kn_tensor **results = inputs + call->num_inputs, **of_one = results + call->size * call->num_outputs;
    if (!inputs)
        return KN_ERR_MEMORY;
    kn_status status = KN_OK;
    for (int64_t i = 0; status == KN_OK && i < call->size; i++)
        status = of_sample(call, i, inputs, results + i * call->num_outputs);
    for (int i = 0; status == KN_OK && !call->op->in_place && i < call->num_outputs; i++)
        status = join(call, i, results, of_one);
    kn_free(inputs);
    return status;
}

/* --- all at once -------------------------------------------------------------------------------------------------- */

/* What was tried failed; the error is forgotten, unless there was another before, which would be lost. */
static bool may_try_again(bool was_pending)
{
    if (!was_pending)
        kn_error_clear();
    return !was_pending;
}

static kn_status by_rule(kn_vmap_call *call, kn_vmap_rule rule)
{
    kn_tensor *wanted[KN_OP_MAX_OUTPUTS];
    const bool was_pending = kn_error_is_sticky();
    memcpy(wanted, call->outputs, (size_t)call->num_outputs * sizeof *wanted);
    const kn_status status = rule(call);
    if (status == KN_OK || !may_try_again(was_pending))
        return status;
    memcpy(call->outputs, wanted, (size_t)call->num_outputs * sizeof *wanted);
    return sample_by_sample(call);
}

static kn_status wrap_outputs(const kn_vmap_call *call, kn_tensor **outputs)
{
    for (int i = 0; i < call->num_outputs; i++) {
        outputs[i] = NULL;
        if (call->outputs[i] && call->outputs[i] != KN_SKIP_OUTPUT)
            KN_TRY(kn_batched_new(&outputs[i], call->outputs[i], call->level));
    }
    return KN_OK;
}

/* --- calling ------------------------------------------------------------------------------------------------------ */

static kn_status check(const kn_vmap_call *call, kn_tensor *const *outputs)
{
    if (call->op->in_place && !call->is_batched[0])
        return kn_fail(KN_ERR_BATCHED,
                       "%s: the tensor is the same for all samples of a batch inside vmap, and cannot be "
                       "changed by what differs between them",
                       call->op->name);
    for (int i = 0; i < call->num_outputs; i++)
        if (outputs[i] && outputs[i] != KN_SKIP_OUTPUT)
            return kn_fail(KN_ERR_BATCHED,
                           "%s: inside vmap the results of a batch cannot be written into a given output",
                           call->op->name);
    return KN_OK;
}

/* Sets `inputs` to the whole batches of this level. */
static void open_inputs(kn_vmap_call *call, kn_tensor *const *inputs)
{
    for (int i = 0; i < call->num_inputs; i++) {
        call->is_batched[i] = kn_batch_level(inputs[i]) == call->level;
        call->inputs[i] = call->is_batched[i] ? inputs[i]->whole : inputs[i];
        if (call->is_batched[i])
            call->size = call->inputs[i]->shape[0];
    }
}

/* The results outlive the scope that releases what the rule made. */
static kn_status run(kn_vmap_call *call, kn_vmap_rule rule, kn_tensor **outputs)
{
    const int depth = kn_scope_begin();
    if (depth == 0)
        return kn_error_status();
    kn_tensor *results[KN_OP_MAX_OUTPUTS] = {NULL};
    kn_status status = rule ? by_rule(call, rule) : sample_by_sample(call);
    if (status == KN_OK && !call->op->in_place)
        status = wrap_outputs(call, results);
    kn_scope_end(depth);
    for (int i = 0; i < call->num_outputs; i++)
        if (status != KN_OK)
            kn_release(results[i]);
        else if (!call->op->in_place)
            outputs[i] = results[i] ? kn_scope_adopt(results[i]) : NULL;
    return status;
}

/* The operators in a composition come here themselves. */
static kn_status compose(kn_vmap_call *call, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const bool was_pending = kn_error_is_sticky();
    const kn_status status =
        kn_op_invoke_unbatched(call->op, inputs, call->num_inputs, call->params, outputs, call->num_outputs);
    return status == KN_ERR_BATCHED && may_try_again(was_pending) ? run(call, NULL, outputs) : status;
}

static kn_status invoke(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params,
                        kn_tensor **outputs, int num_outputs)
{
    kn_tensor **wholes = kn_malloc((size_t)num_inputs * (sizeof *wholes + sizeof(bool)));
    kn_tensor *wanted[KN_OP_MAX_OUTPUTS];
    if (!wholes)
        return KN_ERR_MEMORY;
    kn_vmap_call call = {.op = op,
                         .params = params ? params : kn_op_params_of(op)->defaults,
                         .level = kn_batch_level_of(inputs, num_inputs),
                         .num_inputs = num_inputs,
                         .inputs = wholes,
                         .is_batched = (bool *)(wholes + num_inputs),
                         .num_outputs = num_outputs,
                         .outputs = wanted};
    open_inputs(&call, inputs);
    memcpy(wanted, outputs, (size_t)num_outputs * sizeof *wanted);
    const kn_vmap_rule rule = kn_vmap_rule_of(op);
    kn_status status = check(&call, outputs);
    if (status == KN_OK)
        status = !rule && kn_op_is_composition(op) ? compose(&call, inputs, outputs) : run(&call, rule, outputs);
    if (status == KN_OK && op->in_place && num_outputs > 0)
        outputs[0] = inputs[0];
    kn_free(wholes);
    return status;
}

KN_AT_LOAD register_batches(void) { kn_op_invoke_batched = invoke; }

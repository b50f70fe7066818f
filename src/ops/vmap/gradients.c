/* ops/vmap/gradients.c - kn_autograd_grad of tensors that stand for batches: of the whole batches. The samples are
 * independent, so each one's gradient is that of its own outputs. */
#include <koine/autograd.h>
#include <koine/shape.h>

#include "autograd/engine.h"
#include "base/load.h"
#include "base/memory.h"
#include "ops/vmap/rules.h"
#include "tensor/scope.h"

typedef struct pass {
    int level, num_outputs, num_inputs;
    kn_tensor **outputs, **weights, **inputs, **gradients; /* of whole batches */
    int64_t size;
} pass;

static bool stands(const pass *p, const kn_tensor *tensor) { return kn_batch_level(tensor) == p->level; }

/* What an output of the batch is weighted with: the given weight, in each sample, or 1. */
static kn_tensor *weight_of(const pass *p, kn_tensor *output, kn_tensor *given)
{
    if (!given && kn_numel(output) != 1)
        return kn_fail_null(KN_ERR_SHAPE, "kn_autograd_grad: without a given gradient an output must have one element");
    if (!given)
        return kn_ones_like(output->whole);
    if (stands(p, given))
        return given->whole;
    kn_tensor *repeated = kn_vmap_repeat(given, p->size);
    return repeated ? kn_contiguous(repeated) : NULL;
}

static kn_status open_outputs(pass *p, kn_tensor *const *outputs, kn_tensor *const *weights)
{
    for (int i = 0; i < p->num_outputs; i++) {
        const bool is_batched = stands(p, outputs[i]);
        p->outputs[i] = is_batched ? outputs[i]->whole : outputs[i];
        p->weights[i] = weights ? weights[i] : NULL;
        if (!is_batched)
            continue;
        p->size = outputs[i]->whole->shape[0];
        p->weights[i] = weight_of(p, outputs[i], p->weights[i]);
        if (!p->weights[i])
            return kn_error_status();
    }
    return KN_OK;
}

/* The gradient of a tensor that all samples share would be the sum over the batch. */
static kn_status open_inputs(pass *p, kn_tensor *const *inputs)
{
    for (int i = 0; i < p->num_inputs; i++) {
        if (!stands(p, inputs[i]))
            return kn_fail(KN_ERR_BATCHED,
                           "kn_autograd_grad: input %d is the same for all samples of a batch inside "
                           "vmap; kn_vmap_expand gives each sample its own",
                           i);
        p->inputs[i] = inputs[i]->whole;
    }
    return KN_OK;
}

static kn_status run(pass *p, kn_tensor *const *outputs, kn_tensor *const *inputs,
                     const kn_autograd_grad_params *params)
{
    KN_TRY(open_outputs(p, outputs, params->grad_outputs));
    KN_TRY(open_inputs(p, inputs));
    kn_autograd_grad_params of_batches = *params;
    of_batches.grad_outputs = p->weights;
    return kn_autograd_grad_with(p->outputs, p->num_outputs, p->inputs, p->num_inputs, p->gradients, &of_batches);
}

static kn_status grad_of_batches(int level, kn_tensor *const *outputs, int num_outputs, kn_tensor *const *inputs,
                                 int num_inputs, kn_tensor **gradients, const kn_autograd_grad_params *params)
{
    kn_tensor **space = kn_calloc(2 * ((size_t)num_outputs + (size_t)num_inputs), sizeof *space);
    const int depth = space ? kn_scope_begin() : 0;
    if (depth == 0)
        return kn_free(space), kn_error_status();
    pass p = {level, num_outputs, num_inputs, .outputs = space, .weights = space + num_outputs};
    p.inputs = space + 2 * num_outputs;
    p.gradients = p.inputs + num_inputs;
    kn_status status = run(&p, outputs, inputs, params);
    kn_tensor **results = p.inputs; /* owned */
    for (int i = 0; i < num_inputs; i++) {
        results[i] = NULL;
        if (status == KN_OK && p.gradients[i])
            status = kn_batched_new(&results[i], p.gradients[i], level);
    }
    kn_scope_end(depth);
    for (int i = 0; i < num_inputs; i++)
        if (status != KN_OK)
            kn_release(results[i]);
        else
            gradients[i] = results[i] ? kn_scope_adopt(results[i]) : NULL;
    kn_free(space);
    return status;
}

KN_AT_LOAD register_gradients(void) { kn_grad_of_batches = grad_of_batches; }

/* autograd/work.h - operations as the profiler sees them: a span each, with shapes and work.
 *
 * Work is what the mathematics requires, not what an implementation happens to do: each input read once, each output
 * written once, a multiplication and an addition as two operations, a comparison or a transcendental function as
 * one. */
#pragma once

#include "autograd/op.h"

/* --- for descriptors -------------------------------------------------------------------------- */

/* For kn_op.work: `flops` per output element (the default is 1). */
kn_span_work kn_work_of_outputs(const kn_call *call, double flops);
kn_span_work kn_work_of_input(const kn_call *call, double flops);
/* Products: multiply-adds and further operations per output element. */
kn_span_work kn_work_of_products(const kn_call *call, double multiply_adds, double further);
kn_span_work kn_work_reducing(const kn_call *call);     /* one per element of input 0 */
kn_span_work kn_work_memory_bound(const kn_call *call); /* bytes only */

/* For kn_op.backward_work: `flops` in total, and the bytes of the incoming gradients, the saved tensors and the
 * gradients produced. */
kn_span_work kn_grad_work(const kn_grad_call *call, double flops);
kn_span_work kn_grad_work_memory_bound(const kn_grad_call *call);

/* Elements of the gradient of input `index`; 0 if it is not needed. */
double kn_grad_work_elements(const kn_grad_call *call, int index);

/* --- for apply, engine and observers -------------------------------------------------------- */

kn_span_work kn_call_work(const kn_call *call); /* needs the outputs */
kn_span_work kn_grad_call_work(const kn_grad_call *call);
kn_span kn_inputs_span_begin(const char *name, kn_tensor *const *inputs, int num_inputs);
kn_span kn_call_span_begin(const kn_call *call);
void kn_call_span_report(kn_span span, const kn_call *call);
kn_span kn_grad_call_span_begin(const kn_grad_call *call);
void kn_grad_call_span_report(kn_span span, const kn_grad_call *call);

/* Costs one relaxed load while nobody watches. */
static inline kn_span kn_call_span(const kn_call *call)
{
    return kn_is_watched() ? kn_call_span_begin(call) : KN_NO_SPAN;
}
static inline void kn_call_span_end(kn_span span, const kn_call *call)
{
    if (kn_span_is_open(span))
        kn_call_span_report(span, call);
}
static inline kn_span kn_grad_call_span(const kn_grad_call *call)
{
    return kn_is_watched() ? kn_grad_call_span_begin(call) : KN_NO_SPAN;
}
static inline void kn_grad_call_span_end(kn_span span, const kn_grad_call *call)
{
    if (kn_span_is_open(span))
        kn_grad_call_span_report(span, call);
}

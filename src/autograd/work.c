/* autograd/work.c - spans of operations: names, shapes, work. */
#include "autograd/work.h"

#include <stdio.h>

#include "base/text.h"

/* --- counting --------------------------------------------------------------------------------- */

static double bytes_of(const kn_tensor *t) { return t ? (double)kn_numel(t) * (double)kn_tensor_element_size(t) : 0; }

static kn_span_work work_of(const kn_call *call, double flops)
{
    kn_span_work work = {.flops = flops, .is_f64 = call->inputs[0]->dtype == KN_F64};
    for (int i = 0; i < call->num_inputs; i++)
        work.bytes += bytes_of(call->inputs[i]);
    for (int i = 0; i < call->num_outputs; i++)
        work.bytes += bytes_of(call->outputs[i]);
    return work;
}

kn_span_work kn_work_of_outputs(const kn_call *call, double flops)
{
    return work_of(call, flops * (double)kn_numel(call->outputs[0]));
}

kn_span_work kn_work_of_products(const kn_call *call, double multiply_adds, double further)
{
    kn_span_work work = kn_work_of_outputs(call, 2 * multiply_adds + further);
    work.multiply_adds = multiply_adds * (double)kn_numel(call->outputs[0]);
    return work;
}

kn_span_work kn_work_of_input(const kn_call *call, double flops)
{
    return work_of(call, flops * (double)kn_numel(call->inputs[0]));
}

kn_span_work kn_work_reducing(const kn_call *call) { return kn_work_of_input(call, 1); }
kn_span_work kn_work_memory_bound(const kn_call *call) { return work_of(call, 0); }

double kn_grad_work_elements(const kn_grad_call *call, int index)
{
    bool wanted = index < call->num_inputs && call->needs[index];
    return wanted ? (double)kn_shape_numel(call->input[index].ndim, call->input[index].shape) : 0;
}

kn_span_work kn_grad_work(const kn_grad_call *call, double flops)
{
    kn_span_work work = {.flops = flops, .is_f64 = call->input[0].dtype == KN_F64};
    for (int i = 0; i < call->num_outputs; i++)
        work.bytes += bytes_of(call->grad_outputs[i]);
    for (int i = 0; i < call->num_saved; i++)
        work.bytes += bytes_of(call->saved[i]);
    for (int i = 0; i < call->num_inputs; i++)
        work.bytes += kn_grad_work_elements(call, i) * (double)kn_dtype_size(call->input[i].dtype);
    return work;
}

kn_span_work kn_grad_work_memory_bound(const kn_grad_call *call) { return kn_grad_work(call, 0); }

kn_span_work kn_call_work(const kn_call *call)
{
    if (call->op->is_view || !call->outputs[0])
        return (kn_span_work){0};
    return call->op->work ? call->op->work(call) : kn_work_of_outputs(call, 1);
}

kn_span_work kn_grad_call_work(const kn_grad_call *call)
{
    double made = 0;
    if (call->op->is_view)
        return (kn_span_work){0};
    if (call->op->backward_work)
        return call->op->backward_work(call);
    for (int i = 0; i < call->num_inputs; i++)
        made += kn_grad_work_elements(call, i);
    return kn_grad_work(call, made);
}

/* --- shapes, as JSON -------------------------------------------------------------------------- */

/* Room for 16 shapes of 8 dimensions of 20 digits and 16 dtypes; further ones are omitted. */
#define MAX_LISTED 16
typedef struct lists {
    char shapes[3072], dtypes[512];
    size_t shapes_length, dtypes_length;
    int count;
} lists;

static void add(lists *l, int ndim, const int64_t *shape, const char *dtype)
{
    if (l->count == MAX_LISTED)
        return;
    const char *before = l->count++ ? ", " : "[";
    char text[KN_DESCRIBE + 64];
    kn_format_shape(text, sizeof text, ndim, shape);
    l->shapes_length +=
        (size_t)snprintf(l->shapes + l->shapes_length, sizeof l->shapes - l->shapes_length, "%s%s", before, text);
    l->dtypes_length +=
        (size_t)snprintf(l->dtypes + l->dtypes_length, sizeof l->dtypes - l->dtypes_length, "%s\"%s\"", before, dtype);
}

static void add_tensor(lists *l, const kn_tensor *t)
{
    if (t)
        add(l, t->ndim, t->shape, kn_dtype_name(t->dtype));
    else
        add(l, 0, NULL, "");
}

static kn_span begin(const char *name, lists *l, kn_device *device)
{
    kn_span_info info = {.kind = KN_SPAN_OP, .name = name, .device = device};
    if (l->count > 0) {
        snprintf(l->shapes + l->shapes_length, sizeof l->shapes - l->shapes_length, "]");
        snprintf(l->dtypes + l->dtypes_length, sizeof l->dtypes - l->dtypes_length, "]");
        info.shapes = l->shapes;
        info.dtypes = l->dtypes;
    }
    return kn_span_begin(&info);
}

/* --- spans ------------------------------------------------------------------------------------ */

kn_span kn_inputs_span_begin(const char *name, kn_tensor *const *inputs, int num_inputs)
{
    lists l;
    l.shapes_length = l.dtypes_length = 0;
    l.count = 0;
    for (int i = 0; kn_profiler_wants(KN_WANTS_SHAPES) && i < num_inputs; i++)
        add_tensor(&l, inputs[i]);
    return begin(name, &l, num_inputs > 0 ? inputs[0]->storage->device : NULL);
}

kn_span kn_call_span_begin(const kn_call *call)
{
    return kn_inputs_span_begin(call->op->name, call->inputs, call->num_inputs);
}

void kn_call_span_report(kn_span span, const kn_call *call)
{
    kn_span_work work = kn_profiler_wants(KN_WANTS_WORK) ? kn_call_work(call) : (kn_span_work){0};
    kn_span_end(span, &work);
}

/* Gradients first, then the inputs of forward, in the order of PyTorch's backward functions. */
kn_span kn_grad_call_span_begin(const kn_grad_call *call)
{
    lists l;
    char name[128];
    l.shapes_length = l.dtypes_length = 0;
    l.count = 0;
    for (int i = 0; kn_profiler_wants(KN_WANTS_SHAPES) && i < call->num_outputs; i++)
        add_tensor(&l, call->grad_outputs[i]);
    for (int i = 0; kn_profiler_wants(KN_WANTS_SHAPES) && i < call->num_inputs; i++)
        add(&l, call->input[i].ndim, call->input[i].shape, kn_dtype_name(call->input[i].dtype));
    snprintf(name, sizeof name, "%s_backward", call->op->name);
    return begin(name, &l, call->stream ? kn_stream_device(call->stream) : NULL);
}

void kn_grad_call_span_report(kn_span span, const kn_grad_call *call)
{
    kn_span_work work = kn_profiler_wants(KN_WANTS_WORK) ? kn_grad_call_work(call) : (kn_span_work){0};
    kn_span_end(span, &work);
}

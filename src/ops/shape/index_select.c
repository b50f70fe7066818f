/* ops/shape/index_select.c - selects rows along a dimension by index. */
#include <koine/shape.h>
#include <stdio.h>

#include "autograd/work.h"
#include "base/divisor.h"
#include "loops/work_size.h"
#include "ops/dispatch/backward.h"
#include "ops/dispatch/reference.h"
#include "ops/shape/views.h"

/* x as [outer, n, inner] around the dimension, and the number of selected rows. */
typedef struct layout {
    int64_t outer, n, inner, count;
} layout;

static layout layout_of(int ndim, const int64_t *shape, int dim, int64_t count)
{
    return (layout){kn_shape_numel(dim, shape), shape[dim], kn_shape_numel(ndim - dim - 1, shape + dim + 1), count};
}

#define MAX_IN_32_BITS 0x7fffffff

/* Rows are only copied: float16 is moved as 16-bit integers, as bfloat16 is. */
static const char *options(char *buffer, size_t size, kn_dtype dtype, kn_dtype index)
{
    snprintf(buffer, size, "%s -DINDEX=%s -DWIDE=0", dtype == KN_F16 ? "-DT=ushort" : kn_dtype_options(dtype),
             kn_dtype_cl(index));
    return buffer;
}

static kn_status index_select_shape(kn_call *call)
{
    const int dim = ((const kn_dim_args *)call->params)->dim;
    const kn_tensor *x = call->inputs[0], *index = call->inputs[1];
    int64_t shape[KN_MAX_DIMS];
    char text[KN_DESCRIBE];

    if (index->ndim > 1)
        return kn_fail(KN_ERR_SHAPE, "the index must have one dimension, not %s",
                       kn_tensor_describe(text, sizeof text, index));
    if (index->dtype != KN_I64 && index->dtype != KN_I32)
        return kn_fail(KN_ERR_DTYPE, "the index must be int64 or int32, not %s", kn_dtype_name(index->dtype));
    if (x->ndim == 0)
        return kn_fail(KN_ERR_SHAPE, "a 0-dimensional tensor has no rows");
    for (int d = 0; d < x->ndim; d++)
        shape[d] = d == dim ? kn_numel(index) : x->shape[d];
    if (x->shape[dim] == 0 && kn_numel(index) > 0)
        return kn_fail(KN_ERR_SHAPE, "dimension %d of %s has nothing to select from", dim,
                       kn_tensor_describe(text, sizeof text, x));
    return kn_call_output(call, x->dtype, x->ndim, shape);
}

static kn_status launch_forward_on_cpu(kn_call *call, const kn_tensor *x, const kn_tensor *index, layout l)
{
    const kn_work_size work = kn_work_for(kn_tensor_limits(x), kn_numel(call->outputs[0]));
    char text[64];

    return kn_run(call->stream, .source = "shape/index_select.cl",
                  .options = options(text, sizeof text, x->dtype, index->dtype), .kernel = "index_select_forward",
                  .operation = "index_select", .dims = 1, .global = {work.global},
                  KN_ARGS(kn_arg_tensor(x), kn_arg_tensor(index), kn_arg_tensor(call->outputs[0]), kn_arg_i64(l.outer),
                          kn_arg_i64(l.n), kn_arg_i64(l.inner), kn_arg_i64(l.count), kn_arg_fault()));
}

/* GPUs copy rows in the largest words, up to 16 bytes, that divide the row size and alignment. */
static kn_status launch_forward_on_gpu(kn_call *call, const kn_tensor *x, const kn_tensor *index, layout l)
{
    static const char *const words[] = {[1] = "uchar", [2] = "ushort", [4] = "uint", [8] = "uint2", [16] = "uint4"};
    const int64_t element = (int64_t)kn_dtype_size(x->dtype);
    const kn_tensor *y = call->outputs[0];
    int64_t word = 16;
    char text[64];

    while (((l.inner | x->offset | y->offset) * element) % word != 0)
        word /= 2;
    l.inner = l.inner * element / word;
    const int64_t all = l.outer * l.count * l.inner;
    const kn_work_size work = kn_work_for(kn_tensor_limits(x), all);
    const kn_divisor by_inner = kn_divisor_of(l.inner), by_count = kn_divisor_of(l.count);
    snprintf(text, sizeof text, "-DT=%s -DINDEX=%s -DWIDE=%d", words[word], kn_dtype_cl(index->dtype),
             all > MAX_IN_32_BITS);
    return kn_run(call->stream, .source = "shape/index_select.cl", .options = text, .kernel = "index_select_forward",
                  .operation = "index_select", .dims = 1, .global = {work.global}, .local = {work.local},
                  KN_ARGS(kn_arg_tensor(x), kn_arg_tensor(index), kn_arg_tensor(y), kn_arg_i64(l.outer),
                          kn_arg_i64(l.n), kn_arg_i64(l.inner), kn_arg_i64(l.count),
                          kn_arg_struct(&by_inner, sizeof by_inner), kn_arg_struct(&by_count, sizeof by_count),
                          kn_arg_fault()));
}

static kn_status launch_forward(kn_call *call, const kn_tensor *x, const kn_tensor *index)
{
    const layout l = layout_of(x->ndim, x->shape, ((const kn_dim_args *)call->params)->dim, kn_numel(index));

    return kn_tensor_limits(x)->is_cpu ? launch_forward_on_cpu(call, x, index, l)
                                       : launch_forward_on_gpu(call, x, index, l);
}

static kn_status index_select_forward(kn_call *call)
{
    kn_tensor *x = NULL, *index = NULL;
    kn_status status = kn_tensor_contiguous(&x, call->inputs[0]);

    if (status == KN_OK)
        status = kn_tensor_contiguous(&index, call->inputs[1]);
    if (status == KN_OK && call->needs_grad)
        status = kn_call_save(call, index);
    if (status == KN_OK && kn_numel(call->outputs[0]) > 0)
        status = launch_forward(call, x, index);
    kn_release(index);
    kn_release(x);
    return status;
}

/* Every work-item reads all indices: only as many parts as fill the device. */
static kn_status launch_backward_by_items(kn_grad_call *grad, const kn_tensor *gradient, kn_tensor *out, layout l,
                                          const char *options)
{
    const kn_tensor *index = grad->saved[0];
    const kn_limits *limits = kn_tensor_limits(out);
    const int64_t wanted = limits->is_cpu ? 4 * (int64_t)limits->compute_units : 16384;
    const int64_t others = l.outer * (limits->is_cpu ? 1 : l.inner);
    int64_t parts = wanted / others;

    parts = parts < 1 ? 1 : parts > l.n ? l.n : parts;
    const int64_t rows = (l.n + parts - 1) / parts;
    const kn_work_size work = kn_work_for(limits, limits->is_cpu ? kn_numel(out) : others * parts);
    return kn_run(grad->stream, .source = "shape/index_select.cl", .options = options,
                  .kernel = "index_select_backward", .operation = "index_select", .dims = 1, .global = {work.global},
                  .local = {work.local},
                  KN_ARGS(kn_arg_tensor(gradient), kn_arg_tensor(index), kn_arg_tensor(out), kn_arg_i64(l.outer),
                          kn_arg_i64(l.n), kn_arg_i64(l.inner), kn_arg_i64(l.count), kn_arg_i64(rows)));
}

/* Every work-group reads all indices: enough groups for any GPU. */
enum { GROUP = 256, GROUPS = 2048, MANY_COLUMNS = 32768 };

static bool should_list(const kn_limits *limits, layout l)
{
    return !limits->is_cpu && limits->max_work_group_size >= GROUP && l.outer * l.inner < MANY_COLUMNS &&
           l.n <= MAX_IN_32_BITS;
}

static kn_status launch_backward_by_groups(kn_grad_call *grad, const kn_tensor *gradient, kn_tensor *out, layout l,
                                           const char *options)
{
    const kn_tensor *index = grad->saved[0];
    const int64_t chunks = (l.inner + GROUP - 1) / GROUP;
    int64_t lanes = 1, parts = GROUPS / (l.outer * chunks);

    while (lanes < l.inner && lanes < GROUP)
        lanes *= 2;
    parts = parts < 1 ? 1 : parts > l.n ? l.n : parts;
    const int64_t rows = (l.n + parts - 1) / parts;
    return kn_run(grad->stream, .source = "shape/index_select.cl", .options = options,
                  .kernel = "index_select_backward_listed", .operation = "index_select", .dims = 1,
                  .global = {(size_t)(l.outer * chunks * parts * GROUP)}, .local = {GROUP},
                  KN_ARGS(kn_arg_tensor(gradient), kn_arg_tensor(index), kn_arg_tensor(out), kn_arg_i64(l.n),
                          kn_arg_i64(l.inner), kn_arg_i64(l.count), kn_arg_i32((int32_t)rows),
                          kn_arg_i32((int32_t)lanes), kn_arg_i32((int32_t)parts), kn_arg_i32((int32_t)chunks)));
}

static kn_status launch_backward(kn_grad_call *grad, const kn_tensor *gradient, kn_tensor *out)
{
    const kn_tensor *index = grad->saved[0];
    const layout l = layout_of(out->ndim, out->shape, ((const kn_dim_args *)grad->params)->dim, kn_numel(index));
    const bool listed = should_list(kn_tensor_limits(out), l);
    char text[64];

    options(text, sizeof text, out->dtype, index->dtype);
    return (listed ? launch_backward_by_groups : launch_backward_by_items)(grad, gradient, out, l, text);
}

static kn_status index_select_backward(kn_grad_call *grad)
{
    const kn_dtype dtype = grad->input[0].dtype, compute = kn_compute_type(dtype);
    kn_tensor *gradient = kn_to_dtype(grad->grad_outputs[0], compute);
    kn_tensor *out = gradient ? kn_zeros_with(grad->input[0].ndim, grad->input[0].shape,
                                              &(kn_tensor_options){.dtype = compute, .device = kn_device_of(gradient)})
                              : NULL;
    if (!out)
        return kn_error_status();
    if (kn_numel(out) > 0 && kn_numel(gradient) > 0)
        KN_TRY(launch_backward(grad, gradient, out));
    grad->grad_inputs[0] = kn_to_dtype(out, dtype);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status index_select_reference(const kn_call *call)
{
    const kn_tensor *x = call->inputs[0];
    const layout l = layout_of(x->ndim, x->shape, ((const kn_dim_args *)call->params)->dim, kn_numel(call->inputs[1]));

    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++) {
        const int64_t line = i / l.inner, at = (int64_t)kn_reference_get(call->inputs[1], line % l.count);
        if (at >= 0 && at < l.n)
            kn_reference_set(call->outputs[0], i,
                             kn_reference_get(x, (line / l.count * l.n + at) * l.inner + i % l.inner));
    }
    return KN_OK;
}

extern const kn_op kn_index_select_backward_op;
const kn_op kn_index_select_op = {.name = "index_select",
                                  .inputs = {"x", "index"},
                                  .dtypes = {KN_DTYPES_ALL, KN_DTYPES_INDICES},
                                  .params = KN_PARAMS(kn_dim_args, kn_dim_rows),
                                  .enter = kn_dim_enter,
                                  .shape = index_select_shape,
                                  .forward = index_select_forward,
                                  .backward = index_select_backward,
                                  KN_RECORDED_AS(index_select_backward),
                                  .saved = {"index"},
                                  .reference = index_select_reference,
                                  .work = kn_work_memory_bound};

const kn_op kn_index_select_backward_op = {KN_LINEAR_BACKWARD_OP(index_select), .inputs = {"grad", "x", "index"},
                                           .dtypes[2] = KN_DTYPES_INDICES, .outputs = {"grad_x"}};

kn_tensor *kn_index_select(kn_tensor *x, int dim, kn_tensor *index)
{
    return kn_invoke(&kn_index_select_op, &(kn_dim_args){dim}, x, index);
}

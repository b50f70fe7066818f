/* ops/pool/unpool.c - max unpooling: the inverse of max pooling with indices, zeros elsewhere. */
#include <koine/index.h>
#include <koine/pool.h>
#include <koine/shape.h>
#include <limits.h>
#include <string.h>

#include "autograd/work.h"
#include "base/directions.h"
#include "loops/work_size.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/reference.h"

static int dims_of(const kn_op *op) { return *(const int *)op->detail; }

/* --- shape -------------------------------------------------------------------------------------------------------- */

/* The result's size along one dimension; the caller's may differ by less than a stride from that of plain windows. */
static kn_status size_of(int64_t *size, int64_t given, int64_t inputs, int64_t kernel, int64_t stride, int64_t padding,
                         const char *direction)
{
    if (kernel < 1 || stride < 1 || padding < 0 || kernel > INT_MAX / 4 || stride > INT_MAX / 4 ||
        padding > INT_MAX / 4)
        return kn_fail(KN_ERR_ARGUMENT,
                       "kernel_size %lld and stride %lld (%s) must be 1 or more, padding %lld 0 or more",
                       (long long)kernel, (long long)stride, direction, (long long)padding);
    const int64_t plain = (inputs - 1) * stride - 2 * padding + kernel;
    *size = given != 0 ? given : plain;
    if (given != 0 && (given <= plain - stride || given >= plain + stride))
        return kn_fail(KN_ERR_ARGUMENT, "output_size %lld (%s) must be from %lld to %lld", (long long)given, direction,
                       (long long)(plain - stride + 1), (long long)(plain + stride - 1));
    if (*size < 1 || *size > INT_MAX / 4)
        return kn_fail(KN_ERR_SHAPE, "the result's %s would be %lld", direction, (long long)*size);
    return KN_OK;
}

/* The result's last dimensions. */
static kn_status sizes_of(int64_t *sizes, const kn_max_unpool_params *p, int dims, const int64_t *inputs)
{
    int64_t kernel[3], stride[3], padding[3];
    kn_directions(kernel, dims, p->kernel_size, p->kernel_sizes, 1);
    kn_directions(stride, dims, p->stride, p->strides, 1);
    kn_directions(padding, dims, p->padding, p->paddings, 0);
    for (int i = 0; i < dims; i++) {
        const int d = kn_direction_of(dims, i);
        KN_TRY(size_of(&sizes[i], p->output_sizes[i], inputs[i], kernel[d], stride[d] ? stride[d] : kernel[d],
                       padding[d], kn_direction_name(dims, d)));
    }
    return KN_OK;
}

static kn_status max_unpool_shape(kn_call *call)
{
    const int dims = dims_of(call->op);
    const kn_tensor *x = call->inputs[0], *indices = call->inputs[1];
    const int first = x->ndim - dims;
    int64_t shape[KN_MAX_DIMS];
    char text[KN_DESCRIBE], other[KN_DESCRIBE];

    KN_TRY(kn_call_check_floating(call, 0));
    kn_tensor_describe(text, sizeof text, x);
    if (first != 1 && first != 2)
        return kn_fail(KN_ERR_SHAPE, "expected %d or %d dimensions, got %s", dims + 1, dims + 2, text);
    if (!kn_same_shape(x, indices))
        return kn_fail(KN_ERR_SHAPE, "indices must have the input's shape, but are %s for %s",
                       kn_tensor_describe(other, sizeof other, indices), text);
    memcpy(shape, x->shape, sizeof shape);
    KN_TRY(sizes_of(shape + first, call->params, dims, x->shape + first));
    if (kn_shape_numel(dims, x->shape + first) >= INT_MAX || kn_shape_numel(dims, shape + first) > INT_MAX)
        return kn_fail(KN_ERR_SHAPE, "images of more than 2^31 pixels are not supported: %s", text);
    return kn_call_output(call, x->dtype, x->ndim, shape);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* On a CPU device one pass over whole planes. */
static kn_status launch_planes(kn_call *call, const kn_tensor *x, const kn_tensor *indices, kn_arg planes,
                               kn_arg inputs, kn_arg outputs)
{
    const kn_tensor *y = call->outputs[0];
    const kn_work_size work = kn_work_for(kn_tensor_limits(y), kn_numel(y));

    return kn_run(
        call->stream, .source = "pool/unpool.cl", .options = kn_dtype_options(x->dtype), .kernel = "max_unpool",
        .operation = call->op->name, .dims = 1, .global = {work.global}, .local = {work.local},
        KN_ARGS(kn_arg_tensor(x), kn_arg_tensor(indices), kn_arg_tensor(y), planes, inputs, outputs, kn_arg_fault()));
}

/* On others each place's last element is found first. */
static kn_status launch_marks(kn_call *call, const kn_tensor *x, const kn_tensor *indices, const kn_tensor *winners,
                              kn_arg planes, kn_arg inputs, kn_arg outputs)
{
    const kn_tensor *y = call->outputs[0];
    const kn_work_size marks = kn_work_for(kn_tensor_limits(y), kn_numel(x)),
                       work = kn_work_for(kn_tensor_limits(y), kn_numel(y));

    KN_TRY(kn_run(call->stream, .source = "pool/unpool.cl", .options = kn_dtype_options(x->dtype),
                  .kernel = "max_unpool_mark", .operation = call->op->name, .dims = 1, .global = {marks.global},
                  .local = {marks.local},
                  KN_ARGS(kn_arg_tensor(indices), kn_arg_tensor(winners), planes, inputs, outputs, kn_arg_fault())));
    return kn_run(call->stream, .source = "pool/unpool.cl", .options = kn_dtype_options(x->dtype),
                  .kernel = "max_unpool", .operation = call->op->name, .dims = 1, .global = {work.global},
                  .local = {work.local},
                  KN_ARGS(kn_arg_tensor(x), kn_arg_tensor(winners), kn_arg_tensor(y), planes, inputs, outputs));
}

static kn_status unpool(kn_call *call, const kn_tensor *x, const kn_tensor *indices)
{
    const int dims = dims_of(call->op);
    const kn_tensor *y = call->outputs[0];
    const kn_arg planes = kn_arg_i64(kn_shape_numel(x->ndim - dims, x->shape)),
                 inputs = kn_arg_i64(kn_shape_numel(dims, x->shape + x->ndim - dims)),
                 outputs = kn_arg_i64(kn_shape_numel(dims, y->shape + y->ndim - dims));
    kn_tensor *winners = NULL;

    if (kn_tensor_limits(y)->is_cpu)
        return launch_planes(call, x, indices, planes, inputs, outputs);
    kn_status status = kn_tensor_new(&winners, KN_I32, y->ndim, y->shape, y->storage->device);
    if (status == KN_OK)
        status = kn_tensor_fill(winners, 0);
    if (status == KN_OK)
        status = launch_marks(call, x, indices, winners, planes, inputs, outputs);
    kn_release(winners);
    return status;
}

static kn_status max_unpool_forward(kn_call *call)
{
    kn_tensor *x = NULL, *indices = NULL;
    kn_status status = kn_tensor_contiguous(&x, call->inputs[0]);

    if (status == KN_OK)
        status = kn_tensor_contiguous(&indices, call->inputs[1]);
    if (status == KN_OK && call->needs_grad)
        status = kn_call_save(call, indices);
    if (status == KN_OK)
        status = kn_numel(x) == 0 ? kn_tensor_fill(call->outputs[0], 0) : unpool(call, x, indices);
    kn_release(indices);
    kn_release(x);
    return status;
}

/* As in PyTorch, every element has the gradient of its place, also one that another has overwritten. */
static kn_status max_unpool_backward(kn_grad_call *grad)
{
    const int dims = dims_of(grad->op);
    const kn_input_spec *x = &grad->input[0];
    const int first = x->ndim - dims;
    kn_tensor *g = grad->grad_outputs[0];
    const int64_t planes = kn_shape_numel(first, x->shape);
    kn_tensor *places =
        kn_reshape(grad->saved[0], 2, (const int64_t[]){planes, kn_shape_numel(dims, x->shape + first)});
    kn_tensor *t = kn_reshape(g, 2, (const int64_t[]){planes, kn_shape_numel(dims, g->shape + first)});

    if (!places || !t)
        return kn_error_status();
    grad->grad_inputs[0] = kn_reshape(kn_gather(t, 1, places), x->ndim, x->shape);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status max_unpool_reference(const kn_call *call)
{
    const int dims = dims_of(call->op);
    const kn_tensor *x = call->inputs[0];
    kn_tensor *y = call->outputs[0];
    const int64_t inputs = kn_shape_numel(dims, x->shape + x->ndim - dims),
                  outputs = kn_shape_numel(dims, y->shape + y->ndim - dims);
    for (int64_t i = 0; i < kn_numel(x); i++) {
        const int64_t at = (int64_t)kn_reference_get(call->inputs[1], i);
        if (at >= 0 && at < outputs)
            kn_reference_set(y, i / inputs * outputs + at, kn_reference_get(x, i));
    }
    return KN_OK;
}

/* --- the ops ------------------------------------------------------------------------------------------------------ */

static const kn_op_param rows[] = {
    KN_PARAM(kn_max_unpool_params, kernel_size), KN_PARAM(kn_max_unpool_params, stride),
    KN_PARAM(kn_max_unpool_params, padding),     KN_PARAM(kn_max_unpool_params, kernel_sizes),
    KN_PARAM(kn_max_unpool_params, strides),     KN_PARAM(kn_max_unpool_params, paddings),
    KN_PARAM(kn_max_unpool_params, output_sizes)};

kn_max_unpool_params kn_max_unpool_params_init(void) { return (kn_max_unpool_params){KN_MAX_UNPOOL_DEFAULTS}; }

#define MAX_UNPOOL(n)                                                                                                  \
    const kn_op kn_max_unpool##n##d_op = {.name = "max_unpool" #n "d",                                                 \
                                          .inputs = {"x", "indices"},                                                  \
                                          .dtypes = {KN_DTYPES_FLOATING, 1u << KN_I64},                                \
                                          .widens_halves = true,                                                       \
                                          .num_widened = 1,                                                            \
                                          .params = KN_PARAMS(kn_max_unpool_params, rows, KN_MAX_UNPOOL_DEFAULTS),     \
                                          .shape = max_unpool_shape,                                                   \
                                          .forward = max_unpool_forward,                                               \
                                          .backward = max_unpool_backward,                                             \
                                          .backward_recorded = max_unpool_backward,                                    \
                                          .reference = max_unpool_reference,                                           \
                                          .work = kn_work_memory_bound,                                                \
                                          .backward_work = kn_grad_work_memory_bound,                                  \
                                          .detail = &(int){n}};                                                        \
    kn_tensor *kn_max_unpool##n##d_with(kn_tensor *x, kn_tensor *indices, const kn_max_unpool_params *params)          \
    {                                                                                                                  \
        return kn_invoke(&kn_max_unpool##n##d_op, params, x, indices);                                                 \
    }

MAX_UNPOOL(1)
MAX_UNPOOL(2)
MAX_UNPOOL(3)

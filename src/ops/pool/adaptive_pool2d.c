/* ops/pool/adaptive_pool2d.c - adaptive max and average pooling: window i of n covers floor(i size / n) to ceil((i + 1)
 * size / n). */
#include <koine/functional.h>

#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/pool/pool2d.h"
#include "ops/reduce/reduce.h"

/* Runs one kernel of pool/adaptive.cl with the arguments given, of which number `cut` is left to kn_pool2d_launch;
 * `count`: pieces of work on CPU devices. */
static kn_status launch(kn_stream *stream, const char *operation, const char *kernel, const kn_pool2d_geometry *g,
                        const kn_tensor *to, bool backward, int64_t count, const kn_arg *args, int num_args, int cut)
{
    return kn_pool2d_launch(stream,
                            &(kn_launch_params){.source = "pool/adaptive.cl",
                                                .options = kn_dtype_options(to->dtype),
                                                .kernel = kernel,
                                                .operation = operation,
                                                .args = args,
                                                .num_args = num_args},
                            cut, g, to, backward, count);
}

static kn_tensor *empty_input(const kn_grad_call *grad)
{
    return kn_empty_with(
        grad->input[0].ndim, grad->input[0].shape,
        &(kn_tensor_options){.dtype = grad->input[0].dtype, .device = kn_device_of(grad->grad_outputs[0])});
}

/* --- max --------------------------------------------------------------------------------------------------------- */

static kn_status max_forward(kn_call *call)
{
    const kn_pool2d_geometry *g = call->params;
    kn_tensor *x, *y = call->outputs[0], *index = NULL;
    kn_status status = KN_OK;

    KN_TRY(kn_tensor_contiguous(&x, call->inputs[0]));
    if (call->needs_grad) {
        status = kn_tensor_new(&index, KN_I32, call->spec[0].ndim, call->spec[0].shape, x->storage->device);
        if (status == KN_OK)
            status = kn_call_save(call, index);
    }
    if (status == KN_OK && kn_numel(y) > 0) {
        const kn_arg args[] = {
            kn_arg_tensor(x),         kn_arg_tensor(y), kn_arg_tensor(index ? index : y), kn_arg_pool2d(g), {0},
            kn_arg_i32(index != NULL)};
        status =
            launch(call->stream, call->op->name, "adaptive_max_pool2d_forward", g, y, false, kn_numel(x), args, 6, 4);
    }
    kn_release(index);
    kn_release(x);
    return status;
}

static kn_status max_backward(kn_grad_call *grad)
{
    kn_tensor *out = grad->grad_inputs[0] = empty_input(grad);

    if (!out)
        return kn_error_status();
    const kn_arg args[] = {kn_arg_tensor(grad->grad_outputs[0]),
                           kn_arg_tensor(grad->saved[0]),
                           kn_arg_tensor(out),
                           kn_arg_pool2d(grad->params),
                           {0}};
    return launch(grad->stream, grad->op->name, "adaptive_max_pool2d_backward", grad->params, out, true,
                  4 * kn_numel(out), args, 5, 4);
}

/* --- average ----------------------------------------------------------------------------------------------------- */

static kn_status avg_forward(kn_call *call)
{
    const kn_pool2d_geometry *g = call->params;
    const int64_t pixels = (int64_t)g->height * g->width;
    kn_tensor *x, *y = call->outputs[0];
    kn_status status = KN_OK;

    KN_TRY(kn_tensor_contiguous(&x, call->inputs[0]));
    if (!kn_tensor_limits(x)->is_cpu && g->out_height == 1 && g->out_width == 1) { /* a work-item is slow at a plane */
        status = kn_sum_middle(call->stream, call->op->name, x, g->planes, pixels, 1, (double)pixels, y);
    } else if (kn_numel(y) > 0) {
        const kn_arg args[] = {kn_arg_tensor(x), kn_arg_tensor(y), kn_arg_pool2d(g), {0}};
        status =
            launch(call->stream, call->op->name, "adaptive_avg_pool2d_forward", g, y, false, kn_numel(x), args, 4, 3);
    }
    kn_release(x);
    return status;
}

static kn_status avg_backward(kn_grad_call *grad)
{
    kn_tensor *out = grad->grad_inputs[0] = empty_input(grad);

    if (!out)
        return kn_error_status();
    const kn_arg args[] = {kn_arg_tensor(grad->grad_outputs[0]), kn_arg_tensor(out), kn_arg_pool2d(grad->params), {0}};
    return launch(grad->stream, grad->op->name, "adaptive_avg_pool2d_backward", grad->params, out, true,
                  4 * kn_numel(out), args, 4, 3);
}

/* --- references -------------------------------------------------------------------------------------------------- */

static int64_t start(int64_t i, int64_t n, int64_t size) { return i * size / n; }
static int64_t end(int64_t i, int64_t n, int64_t size) { return ((i + 1) * size + n - 1) / n; }

static kn_status reference(const kn_call *call, bool average)
{
    const kn_pool2d_geometry *g = call->params;

    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++) {
        const int64_t column = i % g->out_width, row = i / g->out_width % g->out_height,
                      plane = i / g->out_width / g->out_height;
        double best = -INFINITY, sum = 0, count = 0;
        for (int64_t h = start(row, g->out_height, g->height); h < end(row, g->out_height, g->height); h++)
            for (int64_t w = start(column, g->out_width, g->width); w < end(column, g->out_width, g->width); w++) {
                const double v = kn_reference_get(call->inputs[0], (plane * g->height + h) * g->width + w);
                best = v > best || isnan(v) ? v : best;
                sum += v;
                count++;
            }
        kn_reference_set(call->outputs[0], i, average ? sum / count : best);
    }
    return KN_OK;
}

static kn_status max_reference(const kn_call *call) { return reference(call, false); }
static kn_status avg_reference(const kn_call *call) { return reference(call, true); }

/* --- the ops ----------------------------------------------------------------------------------------------------- */

const kn_op kn_adaptive_max_pool2d_op = {.name = "adaptive_max_pool2d",
                                         .inputs = {"x"},
                                         .record_size = sizeof(kn_pool2d_geometry),
                                         .shape = kn_pool2d_shape,
                                         .forward = max_forward,
                                         .backward = max_backward,
                                         .reference = max_reference,
                                         .work = kn_pool2d_work,
                                         .backward_work = kn_pool2d_max_backward_work};
const kn_op kn_adaptive_avg_pool2d_op = {.name = "adaptive_avg_pool2d",
                                         .inputs = {"x"},
                                         .record_size = sizeof(kn_pool2d_geometry),
                                         .shape = kn_pool2d_shape,
                                         .forward = avg_forward,
                                         .backward = avg_backward,
                                         .reference = avg_reference,
                                         .work = kn_pool2d_work,
                                         .backward_work = kn_pool2d_average_backward_work};

static kn_tensor *adaptive(const kn_op *op, kn_tensor *x, int64_t height, int64_t width)
{
    kn_pool2d_geometry g;

    if (!kn_pool2d_adaptive(&g, op->name, x, height, width))
        return NULL;
    return kn_apply_as(op, &x, 1, &g, kn_compute_type(x->dtype), x->dtype);
}

kn_tensor *kn_adaptive_max_pool2d(kn_tensor *x, int64_t output_height, int64_t output_width)
{
    return adaptive(&kn_adaptive_max_pool2d_op, x, output_height, output_width);
}

kn_tensor *kn_adaptive_avg_pool2d(kn_tensor *x, int64_t output_height, int64_t output_width)
{
    return adaptive(&kn_adaptive_avg_pool2d_op, x, output_height, output_width);
}

/* ops/user/jit_run.c - running a user's function: the plan of broadcast inputs, which build of it, and the two kernels.
 */
#include <koine/ops.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/pointwise/strided.h"
#include "ops/user/jit.h"
#include "tensor/quads.h"

/* --- shape -------------------------------------------------------------------------------------------------------- */

kn_status kn_jit_shape(kn_call *call)
{
    const kn_dtype dtype = call->inputs[0]->dtype;
    kn_tensor joint = {.ndim = call->inputs[0]->ndim};

    if (dtype == KN_F64 && !kn_tensor_limits(call->inputs[0])->has_f64)
        return kn_fail(KN_ERR_DTYPE, "%s has no double arithmetic: convert the inputs to float32",
                       kn_device_string(kn_device_of(call->inputs[0])));
    memcpy(joint.shape, call->inputs[0]->shape, sizeof joint.shape);
    for (int i = 1; i < call->num_inputs; i++) {
        int ndim;
        int64_t shape[KN_MAX_DIMS];
        KN_TRY(kn_broadcast_shapes(&ndim, shape, &joint, call->inputs[i]));
        joint.ndim = ndim;
        memcpy(joint.shape, shape, sizeof shape);
    }
    const int outputs = ((const kn_jit_params *)call->params)->jit->num_outputs;
    for (int i = 0; i < outputs; i++)
        KN_TRY(kn_call_output(call, dtype, joint.ndim, joint.shape));
    return KN_OK;
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

/* jit_plan in cl/user/elementwise.clh, of which the kernel takes as many rows of strides as there are inputs. With the
 * most inputs, outputs and numbers there are, all parameters take 1012 bytes; every device takes 1024. */
typedef struct kn_jit_plan {
    int64_t count, ndim;
    int64_t shape[KN_MAX_DIMS];
    int64_t strides[KN_JIT_MAX_INPUTS][KN_MAX_DIMS];
} kn_jit_plan;

static size_t plan_size(int inputs)
{
    return offsetof(kn_jit_plan, strides) + (size_t)inputs * KN_MAX_DIMS * sizeof(int64_t);
}

/* Appends a dimension of `size`, joined to the last where every input walks both as one. */
static void add_dimension(kn_jit_plan *plan, int inputs, int64_t size, const int64_t *strides)
{
    int at = (int)plan->ndim - 1;
    bool join = at >= 0;
    for (int i = 0; i < inputs && join; i++)
        join = plan->strides[i][at] == strides[i] * size;
    if (join) {
        plan->shape[at] *= size;
    } else {
        at = (int)plan->ndim++;
        plan->shape[at] = size;
    }
    for (int i = 0; i < inputs; i++)
        plan->strides[i][at] = strides[i];
}

static void make_plan(kn_jit_plan *plan, const kn_tensor *output, kn_tensor *const *inputs, int num_inputs)
{
    int64_t strides[KN_JIT_MAX_INPUTS];

    memset(plan, 0, sizeof *plan);
    plan->count = kn_numel(output);
    for (int d = 0; d < output->ndim; d++) {
        if (output->shape[d] == 1)
            continue;
        for (int i = 0; i < num_inputs; i++) {
            const kn_tensor *x = inputs[i];
            const int own = d - (output->ndim - x->ndim);
            strides[i] = own < 0 || x->shape[own] == 1 ? 0 : x->strides[own];
        }
        add_dimension(plan, num_inputs, output->shape[d], strides);
    }
    if (plan->ndim == 0) { /* one element */
        plan->ndim = plan->shape[0] = 1;
        for (int i = 0; i < num_inputs; i++)
            plan->strides[i][0] = 1;
    }
}

/* --- which build -------------------------------------------------------------------------------------------------- */

#define OPTIONS 160

/* lanes 0: T is an element. Literals are single unless T is double: as precise as T, and none that vectors of floats
 * refuse. */
static void write_options(char buffer[OPTIONS], kn_dtype dtype, int lanes, unsigned wanted)
{
    const char *type = dtype == KN_BOOL ? "bool" : kn_dtype_cl(dtype);
    char width[4] = "", lane_option[24] = "";
    if (lanes > 0) {
        snprintf(width, sizeof width, "%d", lanes);
        snprintf(lane_option, sizeof lane_option, " -DJIT_LANES=%d", lanes);
    }
    snprintf(buffer, OPTIONS, "-DT=%s%s -DTS=%s%s%s -DJIT_WANTED=%u", type, width, kn_dtype_cl(dtype), lane_option,
             dtype == KN_F64 ? " -DKN_USE_F64" : " -cl-single-precision-constant", wanted);
}

static int choose_lanes(const kn_limits *limits, kn_dtype dtype)
{
    const int native = dtype == KN_F64 ? limits->vector_width_f64 : limits->vector_width_f32;
    return native >= 16 ? 16 : native >= 8 ? 8 : 4;
}

/* On CPU devices exp, tanh and the like are several times faster on explicit vectors, which a compiler does not make of
 * a scalar function itself. Many functions are right for vectors as they stand; whether this one is, a build tells. It
 * must build with elements first: what is accepted does not depend on the device. */
static kn_status choose_build(char options[OPTIONS], kn_jit_function *function, const char *kernel, kn_device *device,
                              kn_dtype dtype, unsigned wanted)
{
    const kn_limits *limits = kn_device_limits(device);
    write_options(options, dtype, 0, wanted);
    if (!limits->is_cpu || !function->signature.suits_vectors || (dtype != KN_F32 && dtype != KN_F64))
        return KN_OK;
    atomic_uchar *known = &function->lanes[kn_device_slot(device)][dtype == KN_F64];
    char with_lanes[OPTIONS];
    write_options(with_lanes, dtype, choose_lanes(limits, dtype), wanted);
    if (atomic_load(known) == KN_JIT_LANES_UNKNOWN) {
        KN_TRY(kn_user_source_build(device, function->source.path, options, kernel, NULL));
        const bool builds = kn_user_source_tries(device, function->source.path, with_lanes, kernel);
        atomic_store(known, builds ? KN_JIT_LANES_YES : KN_JIT_LANES_NO);
    }
    if (atomic_load(known) == KN_JIT_LANES_YES)
        memcpy(options, with_lanes, OPTIONS);
    return KN_OK;
}

/* --- launching ---------------------------------------------------------------------------------------------------- */

#define MAX_ARGS (3 * 8 + 1 + KN_JIT_MAX_SCALARS)

typedef struct arguments {
    kn_arg list[MAX_ARGS];
    int count;
} arguments;

static void add_tensors(arguments *args, kn_tensor *const *tensors, int count)
{
    for (int i = 0; i < count; i++)
        if (tensors[i])
            args->list[args->count++] = kn_arg_tensor(tensors[i]);
}

/* The whole number next to `value` towards 0, within [low, high]; NaN is 0. C leaves all but the first undefined. */
static int64_t whole(double value, int64_t low, int64_t high)
{
    if (!(value > (double)low))
        return isnan(value) ? 0 : low;
    return value < (double)high ? (int64_t)value : high;
}

static kn_arg number_argument(const char *type, kn_dtype dtype, double value)
{
    const char of_element[] = {
        [KN_F32] = 'f', [KN_F64] = 'd', [KN_I32] = 'i', [KN_I64] = 'l', [KN_U8] = 'u', [KN_BOOL] = 'b'};
    switch (type[0] == 'T' ? of_element[dtype] : type[0]) {
    case 'f':
        return kn_arg_f32(value);
    case 'd':
        return kn_arg_f64(value);
    case 'i':
        return kn_arg_i32(whole(value, INT32_MIN, INT32_MAX));
    case 'l':
        return kn_arg_i64(whole(value, INT64_MIN, INT64_MAX));
    case 'b':
        return kn_arg_element(dtype, value != 0);
    default:
        return kn_arg_element(dtype,
                              (double)(uint8_t)whole(value, INT64_MIN, INT64_MAX)); /* round the clock, as in C */
    }
}

static void add_numbers(arguments *args, const kn_jit_signature *s, kn_dtype dtype, const double *values)
{
    for (int i = 0; i < s->num_parameters; i++)
        if (s->parameters[i].kind == KN_JIT_NUMBER)
            args->list[args->count++] = number_argument(s->parameters[i].type, dtype, values[s->parameters[i].index]);
}

/* On devices that are no CPUs: four elements at a time. Argument number `at` is the plan. `flat_aligned`: of
 * what has the outputs' shape. */
static kn_status launch_quads(kn_stream *stream, const kn_launch_params *params, const kn_jit_plan *plan, int at,
                              kn_tensor *const *inputs, int num_inputs, bool flat_aligned, const kn_limits *limits)
{
    kn_quad_layout layout = {.ndim = (int)plan->ndim, .operands = 1 + num_inputs, .lanes = 1 + num_inputs};
    int64_t stride = 1;

    memcpy(layout.shape, plan->shape, sizeof plan->shape);
    for (int d = layout.ndim - 1; d >= 0; d--) {
        layout.strides[0][d] = stride;
        stride *= layout.shape[d];
    }
    layout.aligned[0] = flat_aligned;
    for (int i = 0; i < num_inputs; i++) {
        memcpy(layout.strides[1 + i], plan->strides[i], sizeof plan->strides[i]);
        layout.aligned[1 + i] = kn_quad_aligned(inputs[i]);
    }
    return kn_launch_quads(stream, limits, params, at, &layout);
}

/* What a launch goes over besides its arguments. */
typedef struct operands {
    const kn_jit_plan *plan;
    int at;                   /* the plan's argument */
    kn_tensor *const *inputs; /* those that broadcast */
    int num_inputs;
    kn_tensor *const *flat[2]; /* those of the outputs' shape; NULL among them is not there */
    int num_flat[2];
} operands;

static bool are_aligned(const operands *o)
{
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < o->num_flat[k]; i++)
            if (o->flat[k][i] && !kn_quad_aligned(o->flat[k][i]))
                return false;
    return true;
}

/* `like` has the shape of the outputs. */
static kn_status launch(kn_stream *stream, kn_jit_function *function, const char *kernel, const char *operation,
                        const kn_tensor *like, unsigned wanted, const arguments *args, const operands *o)
{
    char options[OPTIONS];
    const kn_limits *limits = kn_tensor_limits(like);
    KN_TRY(choose_build(options, function, kernel, kn_stream_device(stream), like->dtype, wanted));
    kn_launch_params params = {.source = function->source.path,
                               .options = options,
                               .kernel = kernel,
                               .operation = operation,
                               .dims = 1,
                               .args = args->list,
                               .num_args = args->count};
    if (!limits->is_cpu)
        return launch_quads(stream, &params, o->plan, o->at, o->inputs, o->num_inputs, are_aligned(o), limits);
    params.global[0] = kn_work_for(limits, kn_numel(like)).global;
    return kn_launch(stream, &params);
}

kn_status kn_jit_forward(kn_call *call)
{
    const kn_jit_params *params = call->params;
    kn_jit *jit = params->jit;
    arguments args = {.count = 0};
    kn_jit_plan plan;

    for (int i = 0; call->needs_grad && i < call->num_inputs; i++)
        KN_TRY(kn_call_save(call, call->inputs[i]));
    make_plan(&plan, call->outputs[0], call->inputs, call->num_inputs);
    if (plan.count == 0)
        return KN_OK;
    add_tensors(&args, call->outputs, call->num_outputs);
    add_tensors(&args, call->inputs, call->num_inputs);
    const operands o = {.plan = &plan,
                        .at = args.count,
                        .inputs = call->inputs,
                        .num_inputs = call->num_inputs,
                        .flat = {call->outputs},
                        .num_flat = {call->num_outputs}};
    args.list[args.count++] = kn_arg_struct(&plan, plan_size(call->num_inputs));
    add_numbers(&args, &jit->forward.signature, call->outputs[0]->dtype, params->scalars);
    return launch(call->stream, &jit->forward, "jit_forward", jit->op.name, call->outputs[0], 0, &args, &o);
}

/* --- the gradient ------------------------------------------------------------------------------------------------- */

/* The gradients of all outputs: zeros where none came. */
static kn_status complete_gradients(const kn_grad_call *grad, kn_tensor **gradients)
{
    kn_tensor *like = NULL;
    for (int i = 0; i < grad->num_outputs && !like; i++)
        like = grad->grad_outputs[i];
    for (int i = 0; i < grad->num_outputs; i++)
        if (!(gradients[i] = grad->grad_outputs[i] ? grad->grad_outputs[i] : kn_zeros_like(like)))
            return kn_error_status();
    return KN_OK;
}

kn_status kn_jit_backward(kn_grad_call *grad)
{
    const kn_jit_params *params = grad->params;
    kn_jit *jit = params->jit;
    kn_tensor *gradients[KN_JIT_MAX_OUTPUTS], *results[KN_JIT_MAX_INPUTS] = {NULL};
    arguments args = {.count = 0};
    kn_jit_plan plan;
    unsigned wanted = 0;

    KN_TRY(complete_gradients(grad, gradients));
    for (int i = 0; i < grad->num_inputs; i++) {
        if (!grad->needs[i])
            continue;
        wanted |= 1u << i;
        if (!(results[i] = kn_empty_like(gradients[0])))
            return kn_error_status();
    }
    make_plan(&plan, gradients[0], grad->saved, grad->num_inputs);
    add_tensors(&args, results, grad->num_inputs);
    add_tensors(&args, grad->saved, grad->num_inputs);
    add_tensors(&args, gradients, grad->num_outputs);
    const operands o = {.plan = &plan,
                        .at = args.count,
                        .inputs = grad->saved,
                        .num_inputs = grad->num_inputs,
                        .flat = {results, gradients},
                        .num_flat = {grad->num_inputs, grad->num_outputs}};
    args.list[args.count++] = kn_arg_struct(&plan, plan_size(grad->num_inputs));
    add_numbers(&args, &jit->derivative.signature, gradients[0]->dtype, params->scalars);
    if (plan.count > 0)
        KN_TRY(launch(grad->stream, &jit->derivative, "jit_backward", jit->derivative.source.name, gradients[0], wanted,
                      &args, &o));
    for (int i = 0; i < grad->num_inputs; i++)
        if (results[i])
            KN_TRY(kn_give_gradient(grad, i, results[i]));
    return KN_OK;
}

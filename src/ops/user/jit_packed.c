/* ops/user/jit_packed.c - functions of more inputs or outputs than the engine for elementwise work takes
 * (KN_JIT_FEW). The inputs are copied into rows of a matrix, and the results are the rows of another, so that a kernel
 * has few arguments. Backward reads the same matrix, to which it adds rows for the gradients of the results. */
#include <koine/tensor.h>

#include "base/dtype.h"
#include "loops/pointwise_source.h"
#include "loops/work_size.h"
#include "ops/dispatch/promote.h"
#include "ops/shape/broadcast.h"
#include "ops/user/jit.h"

/* --- the kernel --------------------------------------------------------------------------------------------------- */

static void write_kernel(kn_text *out, const void *code, const void *form)
{
    const kn_jit_function *f = code;
    const kn_jit_signature *s = &f->signature;
    const kn_dtype compute = (kn_dtype) * (const uint8_t *)form;
    const int results = s->returns_value ? 1 : s->num_pointers;

    kn_text_format(out, "#define KN_ELEMENT %s\n#define T %s\n#include \"pointwise/elements.clh\"\n%s\n",
                   kn_dtype_cl(compute), compute == KN_BOOL ? "bool" : "KN_ELEMENT", f->functions);
    kn_text_format(out,
                   "#line 1 \"koine\"\nKN_KERNEL_ONCE(" KN_JIT_PACKED_PREFIX "%s, (KN_ARG(kn_values), "
                   "KN_ARG(kn_results), kn_n",
                   f->name);
    for (int i = 0; f->number_types[i]; i++)
        kn_text_format(out, ", kn_scalar%d", i);
    kn_text_append(out, "), KN_IN(kn_values), KN_OUT(kn_results), const long kn_n");
    for (int i = 0; f->number_types[i]; i++)
        kn_text_format(out, ", const %s kn_scalar%d", kn_number_type(f->number_types[i]), i);
    kn_text_format(out,
                   ")\n{\n    KN_BIND_IN(KN_ELEMENT, kn_values);\n    KN_BIND_OUT(KN_ELEMENT, kn_results);\n"
                   "    KN_FOR_ONCE(kn_i, kn_n) {\n%s\n",
                   f->statements);
    for (int i = 0; i < results; i++)
        kn_text_format(out, "KN_STORE_%s(KN_ELEMENT, kn_result%d, kn_results, %d * kn_n + kn_i);\n",
                       kn_store_kind(compute, compute), i, i);
    kn_text_append(out, "    }\n}\n");
}

static kn_status launch(kn_stream *stream, kn_jit_function *f, const kn_tensor *values, const kn_tensor *results,
                        const double *scalars)
{
    const uint8_t compute = (uint8_t)values->dtype;
    const int64_t n = values->shape[1];
    const kn_work_size work = kn_work_for(kn_tensor_limits(values), n);
    const kn_user_source *kernel;
    kn_arg args[3 + KN_JIT_MAX_SCALARS] = {kn_arg_tensor(values), kn_arg_tensor(results), kn_arg_i64(n)};
    int count = 3;

    if (n == 0)
        return KN_OK;
    KN_TRY(kn_written_kernel_get(&kernel, &f->packed,
                                 &(kn_kernel_request){.prefix = KN_JIT_PACKED_PREFIX,
                                                      .name = f->name,
                                                      .code = f,
                                                      .form = &compute,
                                                      .form_size = sizeof compute,
                                                      .write = write_kernel,
                                                      .has_user_code = true}));
    for (int i = 0; f->number_types[i]; i++)
        args[count++] = kn_number_argument(f->number_types[i], values->dtype, kn_scalar_real(scalars[i]));
    return kn_run(stream, .source = kernel->path, .kernel = kernel->name, .operation = f->name,
                  .options = kn_written_kernel_options(compute == KN_F64, compute == KN_F64), .dims = 1,
                  .global = {work.global}, .local = {work.local}, .args = args, .num_args = count);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Rows of the matrix from `first` on, in another shape. */
static kn_status rows_of(kn_tensor **rows, kn_tensor *matrix, int64_t first, int ndim, const int64_t *shape)
{
    return kn_tensor_view(rows, matrix, ndim, shape, NULL, matrix->offset + first * matrix->shape[1]);
}

/* Inputs promoted to float16 or bfloat16 are rounded before the operation, as in PyTorch. */
static kn_status pack_one(kn_tensor *row, kn_tensor *input, kn_dtype joint)
{
    kn_tensor *rounded = NULL;
    if (!kn_dtype_is_reduced(joint) || input->dtype == joint)
        return kn_tensor_copy_broadcast(row, input, false);
    KN_TRY(kn_tensor_cast(&rounded, input, joint, input->storage->device));
    const kn_status status = kn_tensor_copy_broadcast(row, rounded, false);
    kn_release(rounded);
    return status;
}

static kn_status pack(kn_tensor *values, kn_tensor *const *inputs, int count, kn_dtype joint)
{
    int64_t shape[KN_MAX_DIMS];
    int ndim;
    KN_TRY(kn_broadcast_all(&ndim, shape, inputs, count));
    for (int i = 0; i < count; i++) {
        kn_tensor *row;
        KN_TRY(rows_of(&row, values, i, ndim, shape));
        const kn_status status = pack_one(row, inputs[i], joint);
        kn_release(row);
        KN_TRY(status);
    }
    return KN_OK;
}

/* --- the op ------------------------------------------------------------------------------------------------------- */

kn_status kn_jit_packed_shape(kn_call *call)
{
    const int64_t outputs = ((const kn_jit_record *)call->params)->jit->num_outputs;
    int64_t shape[KN_MAX_DIMS];
    int ndim;

    KN_TRY(kn_jit_check_dtype(call));
    KN_TRY(kn_broadcast_all(&ndim, shape, call->inputs, call->num_inputs));
    return kn_call_output(call, kn_result_type_of(call->inputs, call->num_inputs), 2,
                          (const int64_t[]){outputs, kn_shape_numel(ndim, shape)});
}

kn_status kn_jit_packed_forward(kn_call *call)
{
    const kn_jit_record *params = call->params;
    kn_tensor *y = call->outputs[0], *values = NULL, *results = NULL;
    const kn_dtype compute = kn_compute_type(y->dtype);
    kn_device *device = y->storage->device;
    const int64_t rows = call->num_inputs + (call->needs_grad ? y->shape[0] : 0);
    kn_status status = kn_tensor_new(&values, compute, 2, (const int64_t[]){rows, y->shape[1]}, device);

    if (status == KN_OK)
        status = pack(values, call->inputs, call->num_inputs, y->dtype);
    if (status == KN_OK && call->needs_grad)
        status = kn_call_save(call, values);
    if (status == KN_OK && y->dtype == compute)
        results = kn_retain(y);
    else if (status == KN_OK)
        status = kn_tensor_new(&results, compute, 2, y->shape, device);
    if (status == KN_OK)
        status = launch(call->stream, &params->jit->forward, values, results, params->scalars);
    if (status == KN_OK && results != y)
        status = kn_tensor_copy(y, results);
    kn_release(values);
    kn_release(results);
    return status;
}

/* The shape that the inputs were broadcast to. */
static int joint_shape(int64_t shape[KN_MAX_DIMS], const kn_grad_call *grad)
{
    int ndim = 0;
    for (int i = 0; i < grad->num_inputs; i++)
        ndim = grad->input[i].ndim > ndim ? grad->input[i].ndim : ndim;
    for (int d = 0; d < ndim; d++)
        shape[d] = 1;
    for (int i = 0; i < grad->num_inputs; i++)
        for (int d = 0; d < grad->input[i].ndim; d++)
            if (grad->input[i].shape[d] != 1)
                shape[ndim - grad->input[i].ndim + d] = grad->input[i].shape[d];
    return ndim;
}

static kn_status give_row(kn_grad_call *grad, int index, kn_tensor *results)
{
    int64_t shape[KN_MAX_DIMS];
    const int ndim = joint_shape(shape, grad);
    kn_tensor *row = NULL;
    kn_tensor *made =
        kn_empty_with(ndim, shape, &(kn_tensor_options){.dtype = results->dtype, .device = results->storage->device});
    if (!made)
        return kn_error_status();
    KN_TRY(rows_of(&row, results, index, ndim, shape));
    const kn_status status = kn_tensor_copy(made, row);
    kn_release(row);
    return status == KN_OK ? kn_give_gradient(grad, index, made) : status;
}

kn_status kn_jit_packed_backward(kn_grad_call *grad)
{
    const kn_jit_record *params = grad->params;
    kn_tensor *g = grad->grad_outputs[0], *values = grad->saved[0], *rows = NULL;

    KN_TRY(rows_of(&rows, values, grad->num_inputs, 2, g->shape));
    const kn_status status = kn_tensor_copy(rows, g);
    kn_release(rows);
    KN_TRY(status);
    kn_tensor *results = kn_empty_with(2, (const int64_t[]){grad->num_inputs, values->shape[1]},
                                       &(kn_tensor_options){.dtype = values->dtype, .device = values->storage->device});
    if (!results)
        return kn_error_status();
    KN_TRY(launch(grad->stream, &params->jit->derivative, values, results, params->scalars));
    for (int i = 0; i < grad->num_inputs; i++)
        if (grad->needs[i])
            KN_TRY(give_row(grad, i, results));
    return KN_OK;
}

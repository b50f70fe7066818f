/* ops/norm/statistics.c - mean and rstd as outputs 1 and 2 of a normalisation. */
#include <koine/shape.h>
#include <math.h>

#include "loops/pointwise.h"
#include "ops/dispatch/invoke.h"
#include "ops/norm/norm.h"

enum { MEAN = 1, RSTD, OUTPUTS };
#define BOTH_SKIPPED (1u << MEAN | 1u << RSTD)

/* A call without them, as most are, has one output. */
kn_status kn_norm_statistics_shape(kn_call *call, int ndim, const int64_t *shape)
{
    if ((call->skipped & BOTH_SKIPPED) == BOTH_SKIPPED)
        return KN_OK;
    const kn_dtype dtype = kn_compute_type(call->inputs[0]->dtype);
    KN_TRY(kn_call_output(call, dtype, ndim, shape));
    return kn_call_output(call, dtype, ndim, shape);
}

/* The mean is saved in two parts. */
static kn_pointwise_code statistics = {.name = "norm_statistics", .inputs = "hlr", .values = {"h + l", "r"}};

kn_status kn_norm_statistics_forward(kn_call *call, const kn_tensor *table, int64_t stride, int64_t part)
{
    kn_pointwise_problem p = {.code = &statistics,
                              .operation = call->op->name,
                              .compute = table->dtype,
                              .ndim = 1,
                              .num_outputs = OUTPUTS - MEAN,
                              .num_inputs = 3};

    for (int i = MEAN; i < call->num_outputs; i++) {
        kn_tensor *output = call->outputs[i];
        if (!output)
            continue;
        if (kn_numel(call->inputs[0]) == 0)
            KN_TRY(kn_tensor_fill(output, (double)NAN));
        p.shape[0] = kn_numel(output);
        p.outputs[i - MEAN] = (kn_operand){
            .buffer = output->storage->buffer, .offset = output->offset, .dtype = output->dtype, .strides = {1}};
        for (int k = i == MEAN ? 0 : 2; k < (i == MEAN ? 2 : 3); k++)
            p.inputs[k] = (kn_operand){.buffer = table->storage->buffer,
                                       .offset = table->offset + k * part,
                                       .dtype = table->dtype,
                                       .strides = {stride}};
    }
    return p.shape[0] > 0 && kn_numel(call->inputs[0]) > 0 ? kn_pointwise_run(call->stream, &p) : KN_OK;
}

static kn_pointwise_code parts = {.name = "norm_parts", .inputs = "hr", .values = {"h", "(T)0", "r"}};

kn_status kn_norm_restore_table(const kn_call *call, int mean, kn_tensor **table, int64_t stride, int64_t part)
{
    const int64_t count = kn_numel(call->inputs[mean]);
    kn_tensor *given[2], *t = *table = kn_empty_with(2, stride == 1 ? (int64_t[]){3, count} : (int64_t[]){count, 3},
                                                     &(kn_tensor_options){.dtype = call->inputs[mean]->dtype,
                                                                          .device = kn_device_of(call->inputs[mean])});
    if (!t)
        return kn_error_status();
    kn_pointwise_problem p = {.code = &parts,
                              .operation = call->op->name,
                              .compute = t->dtype,
                              .ndim = 1,
                              .shape = {count},
                              .num_outputs = 3,
                              .num_inputs = 2};
    for (int i = 0; i < 2; i++) {
        if (!(given[i] = kn_contiguous(call->inputs[mean + i])))
            return kn_error_status();
        p.inputs[i] = (kn_operand){
            .buffer = given[i]->storage->buffer, .offset = given[i]->offset, .dtype = given[i]->dtype, .strides = {1}};
    }
    for (int i = 0; i < 3; i++)
        p.outputs[i] = (kn_operand){
            .buffer = t->storage->buffer, .offset = t->offset + i * part, .dtype = t->dtype, .strides = {stride}};
    return count > 0 ? kn_pointwise_run(call->stream, &p) : KN_OK;
}

kn_status kn_norm_restore_rows(const kn_call *call, kn_tensor **saved)
{
    enum { GRAD, INPUT, SCALE, SHIFT, GIVEN };
    saved[0] = call->inputs[INPUT];
    saved[2] = call->inputs[SCALE];
    return kn_norm_restore_table(call, GIVEN, &saved[1], 1, kn_numel(call->inputs[GIVEN]));
}

kn_tensor *kn_norm_invoke(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params,
                          kn_tensor **mean, kn_tensor **rstd)
{
    kn_tensor *outputs[OUTPUTS] = {[MEAN] = mean ? NULL : KN_SKIP_OUTPUT, [RSTD] = rstd ? NULL : KN_SKIP_OUTPUT};
    const kn_status status = kn_op_invoke_to(op, inputs, num_inputs, params, outputs, OUTPUTS);

    if (mean)
        *mean = status == KN_OK ? outputs[MEAN] : NULL;
    if (rstd)
        *rstd = status == KN_OK ? outputs[RSTD] : NULL;
    return status == KN_OK ? outputs[0] : kn_error_make_sticky();
}

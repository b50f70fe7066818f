/* operation.c - benchmarks of one operation: its inputs are created once; each repetition applies it, or computes its
 * gradients from a forward pass that was recorded once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bench.h"
#include "ops/dispatch/params_text.h"

typedef struct operands {
    kn_tensor *x[BENCH_INPUTS];
    kn_tensor *y, *gradient; /* of the recorded forward pass */
    kn_tensor *kept;         /* the first forward result, for `results` */
    const kn_op *op;         /* of `call` */
    void *params;
    int count; /* of inputs */
    bool first_is_done;
} operands;

static kn_tensor *make_input(const bench_input *input, const kn_tensor_options *options)
{
    int64_t shape[5];
    memcpy(shape, input->shape, sizeof shape);
    if (input->transposed) {
        shape[0] = input->shape[1];
        shape[1] = input->shape[0];
    }
    const kn_tensor_options whole = {.dtype = KN_I64, .device = options->device};
    if (input->fill == BENCH_INDICES)
        return kn_randint_with(0, input->below, input->ndim, shape, &whole);
    if (input->fill == BENCH_MASK)
        return kn_to_dtype(kn_randint_with(0, 2, input->ndim, shape, &whole), KN_BOOL);
    kn_tensor *x = input->fill == BENCH_NORMAL  ? kn_randn_with(input->ndim, shape, options)
                   : input->fill == BENCH_ZEROS ? kn_zeros_with(input->ndim, shape, options)
                   : input->fill == BENCH_ONES  ? kn_ones_with(input->ndim, shape, options)
                                                : kn_rand_with(input->ndim, shape, options);
    KN_NO_GRAD;
    if (input->fill == BENCH_SIGNED)
        kn_sub_scalar_(kn_mul_scalar_(x, 2), 1);
    if (input->fill == BENCH_FROM_1)
        kn_add_scalar_(x, 1);
    return input->transposed ? kn_t(x) : x;
}

/* Finds the operator of "NAME PARAMETERS" and reads its parameters. */
static kn_status find_operator(operands *o, const char *call)
{
    char name[64];
    const size_t length = strcspn(call, " ");
    snprintf(name, sizeof name, "%.*s", (int)length, call);
    o->op = kn_op_find(name);
    if (!o->op)
        return kn_error_set(KN_ERR_ARGUMENT, "there is no operator `%s`", name);
    o->params = calloc(1, kn_op_describe(o->op).params_size + 1);
    if (!o->params)
        return KN_ERR_MEMORY;
    kn_op_params_init(o->op, o->params);
    return call[length] ? kn_op_params_read(o->op, o->params, call + length + 1) : KN_OK;
}

static kn_tensor *apply(const bench_operation *op, operands *o)
{
    kn_tensor *y = NULL;
    if (op->apply)
        return op->apply(o->x, op->parameters);
    return kn_op_call(o->op, o->x, o->count, o->params, &y, 1) == KN_OK ? y : NULL;
}

static kn_status allow_tf32(bool allowed)
{
    return kn_set_allow_reduced_precision(KN_MATMUL_ALLOW_TF32 | KN_CONV_ALLOW_TF32, allowed);
}

kn_status bench_operation_setup(const bench_case *self, bench_state *state)
{
    const bench_operation *op = self->operation;
    operands *o = calloc(1, sizeof *o);
    bool failed = false;
    if (!o)
        return KN_ERR_MEMORY;
    state->data = o;
    KN_TRY(allow_tf32(op->tf32));
    if (op->call)
        KN_TRY(find_operator(o, op->call));
    {
        KN_SCOPE;
        for (int i = 0; i < BENCH_INPUTS && op->inputs[i].ndim > 0; i++) {
            const kn_tensor_options options = {
                .dtype = self->dtype, .device = state->device, .requires_grad = (op->gradients >> i & 1) != 0};
            o->x[i] = kn_retain(make_input(&op->inputs[i], &options));
            failed = failed || !o->x[i];
            o->count = i + 1;
        }
        if (op->gradients && !failed) {
            o->y = kn_retain(apply(op, o));
            o->gradient = o->y ? kn_retain(kn_randn_with(kn_ndim(o->y), kn_shape(o->y),
                                                         &(kn_tensor_options){self->dtype, .device = state->device}))
                               : NULL;
            failed = !o->gradient;
        }
    }
    return failed ? kn_error_status() : KN_OK;
}

kn_status bench_operation_run(const bench_case *self, bench_state *state)
{
    const bench_operation *op = self->operation;
    operands *o = state->data;
    kn_status status = KN_ERR_MEMORY;
    {
        KN_SCOPE;
        if (op->gradients == 0) {
            kn_tensor *y = apply(op, o);
            status = y ? KN_OK : kn_error_status();
            if (!o->first_is_done)
                o->kept = kn_retain(y);
        } else {
            for (int i = 0; i < BENCH_INPUTS && o->x[i]; i++)
                kn_set_grad(o->x[i], NULL);
            status = kn_backward_with(o->y, o->gradient, true);
        }
    }
    o->first_is_done = true;
    return status;
}

static kn_status put(kn_tensor_file *file, const char *name, int index, kn_tensor *tensor)
{
    char text[32];
    snprintf(text, sizeof text, "%s%d", name, index);
    return kn_tensor_file_put(file, text, tensor);
}

kn_status bench_operation_inputs(const bench_case *self, bench_state *state, kn_tensor_file *file)
{
    (void)self;
    operands *o = state->data;
    kn_status status = KN_OK;
    for (int i = 0; i < BENCH_INPUTS && o->x[i] && status == KN_OK; i++)
        status = put(file, "in", i, o->x[i]);
    if (status == KN_OK && o->gradient)
        status = kn_tensor_file_put(file, "gradient", o->gradient);
    return status;
}

/* Of a large result only the first rows are compared with the peer's: 2^24 elements. */
static kn_tensor *beginning(kn_tensor *y)
{
    if (!y)
        return NULL;
    const int64_t most = 1 << 24, rows = kn_ndim(y) > 0 ? kn_size(y, 0) : 1;
    const int64_t kept = rows > 0 ? most / (kn_numel(y) / rows + 1) : 0;
    return kn_numel(y) <= most || kept < 1 ? y : kn_narrow(y, 0, 0, kept);
}

kn_status bench_operation_results(const bench_case *self, bench_state *state, kn_tensor_file *file)
{
    operands *o = state->data;
    kn_status status = KN_OK;
    {
        KN_SCOPE;
        if (o->kept)
            status = kn_tensor_file_put(file, "out", beginning(o->kept));
        for (int i = 0; i < BENCH_INPUTS && o->x[i] && status == KN_OK; i++)
            if (self->operation->gradients >> i & 1)
                status = put(file, "grad", i, beginning(kn_grad(o->x[i])));
    }
    kn_release(o->kept); /* so that timed repetitions can use its memory */
    o->kept = NULL;
    return status;
}

void bench_operation_teardown(bench_state *state)
{
    operands *o = state->data;
    allow_tf32(false);
    if (!o)
        return;
    for (int i = 0; i < BENCH_INPUTS; i++)
        kn_release(o->x[i]);
    kn_release(o->y);
    kn_release(o->gradient);
    kn_release(o->kept);
    free(o->params);
    free(o);
}

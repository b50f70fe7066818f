/* ops/shape/turn.c - flip and roll: elements in reverse order, and shifted round. */
#include <koine/shape.h>
#include <string.h>

#include "autograd/work.h"
#include "loops/pointwise.h"
#include "ops/dispatch/operators.h"
#include "ops/dispatch/reference.h"
#include "ops/shape/views.h"

/* By dimension of the tensor, on the tape. */
typedef struct turn {
    bool mirrored[KN_MAX_DIMS];
    int64_t shift[KN_MAX_DIMS]; /* 0 .. size - 1 */
} turn;

static kn_status same_shape(kn_call *call)
{
    return kn_call_output(call, call->inputs[0]->dtype, call->inputs[0]->ndim, call->inputs[0]->shape);
}

static kn_status turn_reference(const kn_call *call)
{
    const turn *t = call->params;
    kn_tensor *y = call->outputs[0];

    for (int64_t i = 0; i < kn_numel(y); i++) {
        int64_t rest = i, from = 0, step = 1;
        for (int d = y->ndim - 1; d >= 0; d--) {
            const int64_t n = y->shape[d], at = (rest % n + n - t->shift[d]) % n;
            from += (t->mirrored[d] ? n - 1 - at : at) * step;
            step *= n;
            rest /= n;
        }
        kn_reference_set(y, i, kn_reference_get(call->inputs[0], from));
    }
    return KN_OK;
}

/* --- flip --------------------------------------------------------------------------------------------------------- */

static kn_status flip_enter(kn_entry *entry)
{
    const kn_ints *dims = &((const kn_permute_args *)entry->params)->dims;
    turn *t = kn_entry_record(entry, sizeof *t);

    for (int i = 0; i < dims->count; i++) {
        int dim;
        KN_TRY(kn_dim_from_front(&dim, dims->values[i], entry->inputs[0]->ndim));
        if (t->mirrored[dim])
            return kn_fail(KN_ERR_ARGUMENT, "dimension %d is given twice", dim);
        t->mirrored[dim] = true;
    }
    return KN_OK;
}

static kn_pointwise_code copy_code = {
    .name = "flip", .inputs = "a", .values = {"a"}, .of_bits = &copy_code, .backwards = true};

/* A copy that walks backwards through the input. */
static kn_status flip_forward(kn_call *call)
{
    const turn *t = call->params;
    const kn_tensor *x = call->inputs[0], *y = call->outputs[0];
    kn_pointwise_problem p = {.code = &copy_code,
                              .operation = call->op->name,
                              .compute = kn_compute_type(x->dtype),
                              .ndim = x->ndim,
                              .num_outputs = 1,
                              .num_inputs = 1,
                              .outputs = {{.buffer = y->storage->buffer, .offset = y->offset, .dtype = y->dtype}},
                              .inputs = {{.buffer = x->storage->buffer, .offset = x->offset, .dtype = x->dtype}}};

    if (kn_numel(x) == 0)
        return KN_OK;
    memcpy(p.shape, x->shape, sizeof p.shape);
    memcpy(p.outputs[0].strides, y->strides, sizeof y->strides);
    for (int d = 0; d < x->ndim; d++) {
        p.inputs[0].strides[d] = t->mirrored[d] ? -x->strides[d] : x->strides[d];
        p.inputs[0].offset += t->mirrored[d] ? (x->shape[d] - 1) * x->strides[d] : 0;
    }
    return kn_pointwise_run(call->stream, &p);
}

static kn_status flip_backward(kn_grad_call *grad)
{
    const turn *t = grad->params;
    int dims[KN_MAX_DIMS], count = 0;

    for (int d = 0; d < grad->input[0].ndim; d++)
        if (t->mirrored[d])
            dims[count++] = d;
    return kn_view_give(grad, kn_flip(grad->grad_outputs[0], dims, count));
}

#define TURN_OP(op_name, params_, composes_, enter_, forward_, backward_, ...)                                         \
    {                                                                                                                  \
        .name = op_name, .inputs = {"x"}, .params = params_, .composes = composes_, .enter = enter_,                   \
        .record_size = sizeof(turn), .strided_outputs = true, .shape = same_shape, .forward = forward_,                \
        .backward = backward_, .backward_recorded = backward_, .reference = turn_reference,                            \
        .work = kn_work_memory_bound, .backward_work = kn_grad_work_memory_bound, __VA_ARGS__                          \
    }
static const kn_op_param flip_rows[] = {KN_PARAM(kn_permute_args, dims)};
const kn_op kn_flip_op = TURN_OP("flip", KN_PARAMS(kn_permute_args, flip_rows), false, flip_enter, flip_forward,
                                 flip_backward, .arrange = kn_call_arrange);

/* A public function's list of dimensions. */
static bool read_dims(kn_ints *list, const char *function, const int *dims, int count)
{
    list->count = count;
    if (count > 0 && !dims)
        return kn_fail_argument_null(function, "dims"), kn_error_make_sticky(), false;
    for (int i = 0; i < count && i < KN_MAX_DIMS; i++)
        list->values[i] = dims[i];
    return true;
}

kn_tensor *kn_flip(kn_tensor *x, const int *dims, int num_dims)
{
    kn_permute_args args;
    return read_dims(&args.dims, "flip", dims, num_dims) ? kn_invoke(&kn_flip_op, &args, x) : NULL;
}

kn_tensor *kn_fliplr(kn_tensor *x) { return kn_flip(x, (const int[]){1}, 1); }
kn_tensor *kn_flipud(kn_tensor *x) { return kn_flip(x, (const int[]){0}, 1); }

/* --- roll --------------------------------------------------------------------------------------------------------- */

/* Without dims the elements are one row. */
static kn_status roll_flat(kn_entry *entry, const kn_roll_args *args)
{
    kn_tensor *x = entry->inputs[0], *row = kn_reshape(x, 1, (const int64_t[]){-1});
    kn_roll_args own = {.shifts = args->shifts, .dims = {1, {0}}};

    if (kn_numel(x) == 0)
        return kn_entry_return_input(entry);
    entry->result = kn_reshape(kn_invoke(&kn_roll_op, &own, row), x->ndim, x->shape);
    return entry->result ? KN_OK : kn_error_status();
}

static kn_status roll_enter(kn_entry *entry)
{
    const kn_roll_args *args = entry->params;
    const kn_tensor *x = entry->inputs[0];
    turn *t = kn_entry_record(entry, sizeof *t);

    if (args->shifts.count != (args->dims.count > 0 ? args->dims.count : 1))
        return kn_fail(KN_ERR_ARGUMENT, "there are %d shifts for %d dims", args->shifts.count, args->dims.count);
    if (args->dims.count == 0)
        return roll_flat(entry, args);
    for (int i = 0; i < args->dims.count; i++) {
        int dim;
        KN_TRY(kn_dim_from_front(&dim, args->dims.values[i], x->ndim));
        const int64_t n = x->ndim > 0 && x->shape[dim] > 0 ? x->shape[dim] : 1;
        t->shift[dim] = ((t->shift[dim] + args->shifts.values[i]) % n + n) % n;
    }
    return KN_OK;
}

/* Copies one of the blocks that the shifts cut the tensor into: bit d of `block` is its half along dimension d. */
static kn_status copy_block(const turn *t, kn_tensor *y, kn_tensor *x, unsigned block)
{
    int64_t shape[KN_MAX_DIMS], to = y->offset, from = x->offset;
    kn_tensor *target = NULL, *source = NULL;

    for (int d = 0; d < x->ndim; d++) {
        const int64_t n = x->shape[d], shift = t->shift[d];
        const bool wrapped = block >> d & 1;
        shape[d] = wrapped ? shift : n - shift;
        if (shape[d] == 0)
            return KN_OK;
        to += (wrapped ? 0 : shift) * y->strides[d];
        from += (wrapped ? n - shift : 0) * x->strides[d];
    }
    kn_status status = kn_tensor_view(&target, y, x->ndim, shape, y->strides, to);
    if (status == KN_OK)
        status = kn_tensor_view(&source, x, x->ndim, shape, x->strides, from);
    if (status == KN_OK)
        status = kn_tensor_copy(target, source);
    kn_release(source);
    kn_release(target);
    return status;
}

static kn_status roll_forward(kn_call *call)
{
    turn t = *(const turn *)call->params;
    kn_tensor *x = call->inputs[0];
    unsigned shifted = 0;

    for (int d = 0; d < x->ndim; d++) {
        t.shift[d] = x->strides[d] == 0 ? 0 : t.shift[d]; /* equal elements */
        shifted |= t.shift[d] > 0 ? 1u << d : 0;
    }
    for (unsigned block = 0; block < 1u << x->ndim && kn_numel(x) > 0; block++)
        if ((block & ~shifted) == 0)
            KN_TRY(copy_block(&t, call->outputs[0], x, block));
    return KN_OK;
}

static kn_status roll_backward(kn_grad_call *grad)
{
    const turn *t = grad->params;
    kn_roll_args back = {.shifts.count = grad->input[0].ndim, .dims.count = grad->input[0].ndim};

    for (int d = 0; d < back.dims.count; d++) {
        back.dims.values[d] = d;
        back.shifts.values[d] = -t->shift[d];
    }
    if (back.dims.count == 0)
        return kn_view_give(grad, grad->grad_outputs[0]);
    return kn_view_give(grad, kn_invoke(&kn_roll_op, &back, grad->grad_outputs[0]));
}

static const kn_op_param roll_rows[] = {KN_PARAM(kn_roll_args, shifts), KN_PARAM(kn_roll_args, dims)};
const kn_op kn_roll_op =
    TURN_OP("roll", KN_PARAMS(kn_roll_args, roll_rows), true, roll_enter, roll_forward, roll_backward, );

kn_tensor *kn_roll(kn_tensor *x, int num_shifts, const int64_t *shifts, const int *dims)
{
    kn_roll_args args;
    return kn_ints_of(&args.shifts, "roll", "shifts", num_shifts, shifts) &&
                   read_dims(&args.dims, "roll", dims, dims ? num_shifts : 0)
               ? kn_invoke(&kn_roll_op, &args, x)
               : NULL;
}

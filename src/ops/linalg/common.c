/* ops/linalg/common.c - see linalg.h. */
#include <koine/create.h>
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <string.h>

#include "base/error.h"
#include "base/integer.h"
#include "loops/work_size.h"
#include "ops/linalg/linalg.h"

/* --- shapes ------------------------------------------------------------------------------------------------------- */

kn_status kn_check_matrices(const kn_call *call, int index)
{
    const kn_tensor *t = call->inputs[index];
    char text[KN_DESCRIBE];

    KN_TRY(kn_call_check_floating(call, index));
    if (t->ndim < 2)
        return kn_fail(KN_ERR_SHAPE, "%s must have at least 2 dimensions, not be %s", call->op->inputs[index],
                       kn_tensor_describe(text, sizeof text, t));
    return KN_OK;
}

kn_status kn_check_square(const kn_call *call, int index)
{
    const kn_tensor *t = call->inputs[index];
    char text[KN_DESCRIBE];

    KN_TRY(kn_check_matrices(call, index));
    if (kn_rows(t) != kn_columns(t))
        return kn_fail(KN_ERR_SHAPE, "%s must be batches of square matrices, not %s", call->op->inputs[index],
                       kn_tensor_describe(text, sizeof text, t));
    return KN_OK;
}

kn_status kn_linalg_system_shape(kn_call *call)
{
    const kn_tensor *a = call->inputs[0], *b = call->inputs[1];
    char text_a[KN_DESCRIBE], text_b[KN_DESCRIBE];

    KN_TRY(kn_check_square(call, 0));
    KN_TRY(kn_check_matrices(call, 1));
    KN_TRY(kn_call_check_same_dtype(call, 0, 1));
    if (kn_rows(a) != kn_rows(b))
        return kn_fail(KN_ERR_SHAPE, "a, %s, and b, %s, differ in the number of rows",
                       kn_tensor_describe(text_a, sizeof text_a, a), kn_tensor_describe(text_b, sizeof text_b, b));
    return kn_call_output(call, b->dtype, b->ndim, b->shape);
}

kn_status kn_linalg_output(kn_call *call, kn_dtype dtype, int count, int64_t first, int64_t second)
{
    const kn_tensor *t = call->inputs[0];
    int64_t shape[KN_MAX_DIMS];
    int ndim = t->ndim - 2;

    memcpy(shape, t->shape, (size_t)ndim * sizeof *shape);
    if (count > 0)
        shape[ndim++] = first;
    if (count > 1)
        shape[ndim++] = second;
    return kn_call_output(call, dtype, ndim, shape);
}

/* The batch sizes that t has and `ndim` batch dimensions want, which it must be 1 or equal. */
static bool merge_batch(const kn_tensor *t, int ndim, int64_t *shape)
{
    for (int d = 0; d < t->ndim - 2; d++) {
        int64_t *size = &shape[ndim - (t->ndim - 2) + d];
        if (*size != t->shape[d] && *size != 1 && t->shape[d] != 1)
            return false;
        *size = *size == 1 ? t->shape[d] : *size;
    }
    return true;
}

kn_status kn_linalg_broadcast(kn_entry *entry)
{
    kn_tensor **in = entry->inputs;
    int64_t shape[KN_MAX_DIMS];
    char a[KN_DESCRIBE], b[KN_DESCRIBE];

    if (in[0]->ndim < 2 || in[1]->ndim < 2)
        return kn_fail(KN_ERR_SHAPE, "matrices have at least 2 dimensions, unlike %s and %s",
                       kn_tensor_describe(a, sizeof a, in[0]), kn_tensor_describe(b, sizeof b, in[1]));
    const int ndim = (in[0]->ndim > in[1]->ndim ? in[0]->ndim : in[1]->ndim) - 2;
    for (int d = 0; d < ndim; d++)
        shape[d] = 1;
    if (!merge_batch(in[0], ndim, shape) || !merge_batch(in[1], ndim, shape))
        return kn_fail(KN_ERR_SHAPE, "the batches of %s and %s do not broadcast",
                       kn_tensor_describe(a, sizeof a, in[0]), kn_tensor_describe(b, sizeof b, in[1]));
    for (int i = 0; i < 2; i++) {
        memcpy(shape + ndim, in[i]->shape + in[i]->ndim - 2, 2 * sizeof *shape);
        if (in[i]->ndim != ndim + 2 || memcmp(in[i]->shape, shape, (size_t)ndim * sizeof *shape) != 0)
            in[i] = kn_expand(in[i], ndim + 2, shape);
        if (!in[i])
            return kn_error_status();
    }
    return KN_OK;
}

bool kn_has_matrices(const char *function, const kn_tensor *a)
{
    char text[KN_DESCRIBE];
    if (!a)
        return false;
    if (a->ndim >= 2)
        return true;
    kn_fail_null(KN_ERR_SHAPE, "%s: a must have at least 2 dimensions, not be %s", function,
                 kn_tensor_describe(text, sizeof text, a));
    return false;
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

enum { LANES = 64 };

kn_status kn_linalg_run(kn_stream *stream, const kn_linalg_launch *launch, const kn_arg *args, int num_args)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const size_t lanes = limits->is_cpu ? 1 : limits->max_work_group_size < LANES ? limits->max_work_group_size : LANES;
    kn_work_size work = {(size_t)launch->matrices * lanes, lanes};

    if (launch->matrices + launch->count == 0)
        return KN_OK;
    if (launch->count > 0)
        work = kn_work_for(limits, launch->count);
    return kn_launch(stream, &(kn_launch_params){.source = launch->source,
                                                 .options = kn_dtype_options(launch->dtype),
                                                 .kernel = launch->kernel,
                                                 .operation = launch->operation,
                                                 .dims = 1,
                                                 .global = {work.global},
                                                 .local = {work.local},
                                                 .args = args,
                                                 .num_args = num_args});
}

kn_tensor *kn_linalg_invoke(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params,
                            kn_tensor **second, kn_tensor **third)
{
    kn_tensor *outputs[] = {NULL, second ? NULL : KN_SKIP_OUTPUT, third ? NULL : KN_SKIP_OUTPUT};
    const kn_status status = kn_op_invoke_to(op, inputs, num_inputs, params, outputs, kn_op_describe(op).num_outputs);

    if (second)
        *second = status == KN_OK ? outputs[1] : NULL;
    if (third)
        *third = status == KN_OK ? outputs[2] : NULL;
    return status == KN_OK ? outputs[0] : kn_error_make_sticky();
}

/* --- recorded operations on matrices ------------------------------------------------------------------------------ */

kn_tensor *kn_matrix_transpose(kn_tensor *x) { return kn_transpose(x, -2, -1); }

/* x where its row compares like that with its column, else 0. */
static kn_tensor *part(kn_tensor *x, kn_tensor *(*compare)(kn_tensor *, kn_tensor *))
{
    if (!x)
        return NULL;
    kn_device *device = kn_device_of(x);
    kn_tensor *rows = kn_arange(0, (double)kn_rows(x), 1, .dtype = KN_I64, .device = device);
    kn_tensor *columns = kn_arange(0, (double)kn_columns(x), 1, .dtype = KN_I64, .device = device);
    kn_tensor *zero = kn_zeros_with(0, NULL, &(kn_tensor_options){.dtype = x->dtype, .device = device});
    return kn_where(compare(kn_unsqueeze(rows, 1), columns), x, zero);
}

kn_tensor *kn_lower_part(kn_tensor *x, bool strict) { return part(x, strict ? kn_gt : kn_ge); }
kn_tensor *kn_upper_part(kn_tensor *x, bool strict) { return part(x, strict ? kn_lt : kn_le); }

kn_tensor *kn_diagonal_matrix(kn_tensor *x)
{
    kn_tensor *wide = kn_unsqueeze(x, -1);
    int64_t shape[KN_MAX_DIMS];

    if (!wide)
        return NULL;
    memcpy(shape, wide->shape, sizeof shape);
    shape[wide->ndim - 1] = shape[wide->ndim - 2];
    return part(kn_expand(wide, wide->ndim, shape), kn_eq);
}

kn_tensor *kn_identity(int64_t n, kn_dtype dtype, kn_device *device)
{
    return kn_eye_with(n, n, &(kn_tensor_options){.dtype = dtype, .device = device});
}

/* --- eigenvalues and singular values ------------------------------------------------------------------------------ */

double kn_linalg_tolerance(kn_dtype dtype) { return dtype == KN_F64 ? 1e-16 : 6e-8; }

/* A matrix has one work-item there. */
bool kn_linalg_reflects(const kn_tensor *a)
{
    enum { LARGE = 8 };
    return kn_tensor_limits(a)->is_cpu && kn_min_i64(kn_rows(a), kn_columns(a)) >= LARGE;
}

int64_t kn_linalg_row_size(int64_t n)
{
    enum { VECTOR = 16 };
    return kn_round_up_i64(n, VECTOR);
}

kn_status kn_linalg_make_skipped(kn_call *call, int i)
{
    return call->outputs[i] ? KN_OK
                            : kn_tensor_new(&call->outputs[i], call->spec[i].dtype, call->spec[i].ndim,
                                            call->spec[i].shape, call->inputs[0]->storage->device);
}

kn_tensor *kn_inverse_gaps(kn_tensor *x)
{
    kn_tensor *gaps = kn_sub(kn_unsqueeze(x, -2), kn_unsqueeze(x, -1));
    kn_tensor *ones = kn_identity(kn_size(x, -1), kn_dtype_of(x), kn_device_of(x));
    return kn_sub(kn_reciprocal(kn_add(gaps, ones)), ones);
}

kn_tensor *kn_antisymmetric(kn_tensor *x) { return kn_sub(x, kn_matrix_transpose(x)); }

/* ops/vision/resize.c - resizing, one dimension after another: each pass is a product with a banded matrix
 * (cl/vision/resize.cl). Backward multiplies with the transposed matrices in reverse order. */
#include "ops/vision/resize.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "loops/work_size.h"
#include "ops/dispatch/reference.h"
#include "vision/resize.h"

/* --- one dimension ------------------------------------------------------------------------------------------------ */

/* The step in the input per element of the result. */
static double step_of(const kn_resize_record *r, int i, int64_t size)
{
    const double ratio = (double)size / (double)r->out_size[i];
    if (r->kind <= KN_RESIZE_NEAREST_EXACT)
        return r->factor[i] > 0 ? (float)(1.0 / r->factor[i]) : (float)size / (float)r->out_size[i];
    if (r->align_corners)
        return r->out_size[i] > 1 ? (double)(size - 1) / (double)(r->out_size[i] - 1) : 0;
    return r->factor[i] > 0 ? 1 / r->factor[i] : ratio;
}

/* How many elements make one, at most: of the result for gradients. */
static int64_t most_of(const kn_resize_axis *a, double scale)
{
    static const int widths[] = {1, 1, 2, 4, 2, 4};
    const bool smooth = a->kind >= KN_RESIZE_LINEAR_SMOOTH;
    const double width = widths[a->kind] * (smooth && scale > 1 ? scale : 1);
    if (!a->transposed)
        return smooth ? (int64_t)ceil(width) + 2 : (int64_t)width;
    const double most = scale > 0 ? (width + 2) / scale + 3 : a->out_size;
    return most < a->out_size ? (int64_t)most : a->out_size;
}

static kn_resize_axis axis_of(const kn_resize_record *r, int i, int64_t size, bool transposed)
{
    kn_resize_axis a = {.size = (int32_t)size,
                        .out_size = (int32_t)r->out_size[i],
                        .kind = r->kind,
                        .align_corners = r->align_corners,
                        .transposed = transposed};
    a.most = (int32_t)most_of(&a, step_of(r, i, size));
    return a;
}

static kn_status run_axis(kn_stream *stream, const kn_resize_axis *a, double scale, const kn_tensor *x, kn_tensor *y,
                          kn_tensor *places, kn_tensor *weights)
{
    const kn_limits *limits = kn_tensor_limits(y);
    const kn_work_size table = kn_work_for(limits, 16 * kn_numel(places)), work = kn_work_for(limits, kn_numel(y));
    char options[80];

    snprintf(options, sizeof options, "%s -DRESIZE_TABLE", kn_dtype_options(y->dtype));
    KN_TRY(kn_run(stream, .source = "vision/resize.cl", .options = options, .kernel = "resize_table",
                  .operation = "interpolate", .dims = 1, .global = {table.global}, .local = {table.local},
                  KN_ARGS(kn_arg_tensor(places), kn_arg_tensor(weights), kn_arg_struct(a, sizeof *a),
                          kn_arg_real(y->dtype, scale))));
    return kn_run(stream, .source = "vision/resize.cl", .options = kn_dtype_options(y->dtype), .kernel = "resize",
                  .operation = "interpolate", .dims = 1, .global = {work.global}, .local = {work.local},
                  KN_ARGS(kn_arg_tensor(x), kn_arg_tensor(places), kn_arg_tensor(weights), kn_arg_tensor(y),
                          kn_arg_struct(a, sizeof *a)));
}

/* Resizes dimension 2 + i of x, contiguous, into y. */
static kn_status resize(kn_stream *stream, const kn_resize_record *r, int i, int64_t size, bool transposed,
                        const kn_tensor *x, kn_tensor *y)
{
    kn_resize_axis a = axis_of(r, i, size, transposed);
    kn_tensor *places = NULL, *weights = NULL;
    const int64_t n = a.transposed ? a.size : a.out_size;

    a.outer = kn_shape_numel(2 + i, x->shape);
    a.inner = kn_shape_numel(x->ndim - 3 - i, x->shape + 3 + i);
    kn_status status = kn_tensor_new(&places, KN_I32, 1, (const int64_t[]){2 * n}, y->storage->device);
    if (status == KN_OK)
        status = kn_tensor_new(&weights, y->dtype, 1, (const int64_t[]){n * a.most}, y->storage->device);
    if (status == KN_OK && kn_numel(y) > 0)
        status = run_axis(stream, &a, step_of(r, i, size), x, y, places, weights);
    kn_release(weights);
    kn_release(places);
    return status;
}

/* --- all dimensions ----------------------------------------------------------------------------------------------- */

/* Is the result the input along this dimension? */
static bool keeps(const kn_resize_record *r, int i, int64_t size)
{
    const bool own_step = r->factor[i] > 0 && r->factor[i] != 1;
    return size == r->out_size[i] && (!own_step || r->kind == KN_RESIZE_LINEAR);
}

/* The dimensions in the order in which they are resized. The last one, whose elements are adjacent and are picked one
 * by one, comes when the others are small: first if those grow. */
static int order_of(int order[3], const kn_resize_record *r, const int64_t *size)
{
    double growth = 1;
    int count = 0;
    for (int i = 0; i + 1 < r->dims; i++)
        growth *= (double)r->out_size[i] / (double)size[i];
    for (int k = 0; k < r->dims; k++) {
        const int i = growth > 1 ? (k + r->dims - 1) % r->dims : k;
        if (!keeps(r, i, size[i]))
            order[count++] = i;
    }
    return count;
}

kn_status kn_resize_run(kn_stream *stream, const kn_resize_record *r, const int64_t *size, bool transposed,
                        kn_tensor *from, kn_tensor *to)
{
    int order[3];
    const int count = order_of(order, r, size);
    kn_tensor *x;

    if (count == 0)
        return kn_tensor_copy(to, from);
    KN_TRY(kn_tensor_contiguous(&x, from));
    kn_status status = KN_OK;
    for (int k = 0; k < count && status == KN_OK; k++) {
        const int i = order[transposed ? count - 1 - k : k];
        int64_t shape[KN_MAX_DIMS];
        kn_tensor *y = NULL;
        memcpy(shape, x->shape, sizeof shape);
        shape[2 + i] = transposed ? size[i] : r->out_size[i];
        status = k == count - 1 ? (y = kn_retain(to), KN_OK)
                                : kn_tensor_new(&y, x->dtype, x->ndim, shape, x->storage->device);
        if (status == KN_OK)
            status = resize(stream, r, i, size[i], transposed, x, y);
        kn_release(x);
        x = y;
    }
    kn_release(x);
    return status;
}

/* --- reference ---------------------------------------------------------------------------------------------------- */

static double keys(double x, double c)
{
    x = fabs(x);
    return x <= 1  ? (c + 2) * x * x * x - (c + 3) * x * x + 1
           : x < 2 ? c * x * x * x - 5 * c * x * x + 8 * c * x - 4 * c
                   : 0;
}

/* The weight of element j of the input, of a size, in element i of the result along one dimension. */
static double reference_weight(const kn_resize_axis *a, double scale, int64_t i, int64_t j)
{
    if (a->kind <= KN_RESIZE_NEAREST_EXACT) {
        const float at = ((float)i + (a->kind == KN_RESIZE_NEAREST ? 0.0f : 0.5f)) * (float)scale;
        return j == (at < (float)a->size ? (int64_t)floorf(at) : a->size - 1);
    }
    if (a->kind >= KN_RESIZE_LINEAR_SMOOTH) {
        const double wide = scale > 1 ? scale : 1, half = (a->kind == KN_RESIZE_CUBIC_SMOOTH ? 2 : 1) * wide;
        const double middle = scale * ((double)i + 0.5);
        const int64_t first = (int64_t)fmax(middle - half + 0.5, 0), end = (int64_t)fmin(middle + half + 0.5, a->size);
        double sum = 0, own = 0;
        for (int64_t k = first; k < end; k++) {
            const double at = ((double)k - middle + 0.5) / wide,
                         w = a->kind == KN_RESIZE_CUBIC_SMOOTH ? keys(at, -0.5) : fmax(1 - fabs(at), 0);
            sum += w;
            own += k == j ? w : 0;
        }
        return own / sum;
    }
    double at = a->align_corners ? scale * (double)i : scale * ((double)i + 0.5) - 0.5, sum = 0;
    const int around = a->kind == KN_RESIZE_CUBIC ? 1 : 0;
    at = around ? at : fmax(at, 0);
    for (int64_t k = (int64_t)floor(at) - around; k <= (int64_t)floor(at) + 1 + around; k++)
        if ((k < 0 ? 0 : k < a->size ? k : a->size - 1) == j)
            sum += around ? keys(at - (double)k, -0.75) : 1 - fabs(at - (double)k);
    return sum;
}

kn_status kn_resize_reference(const kn_call *call)
{
    const kn_resize_record *r = call->params;
    const kn_tensor *x = call->inputs[0], *y = call->outputs[0];
    kn_resize_axis a[3] = {{.size = 1, .out_size = 1}, {.size = 1, .out_size = 1}, {.size = 1, .out_size = 1}};

    double scale[3] = {1, 1, 1};
    for (int i = 0; i < r->dims; i++) {
        a[3 - r->dims + i] = axis_of(r, i, x->shape[2 + i], false);
        scale[3 - r->dims + i] = step_of(r, i, x->shape[2 + i]);
    }
    const int64_t volume = (int64_t)a[0].size * a[1].size * a[2].size;
    for (int64_t e = 0; e < kn_numel(y); e++) {
        const int64_t column = e % a[2].out_size, row = e / a[2].out_size % a[1].out_size,
                      slice = e / a[2].out_size / a[1].out_size % a[0].out_size,
                      plane = e / a[2].out_size / a[1].out_size / a[0].out_size;
        double sum = 0;
        for (int64_t j = 0; j < volume; j++) {
            const double w = reference_weight(&a[2], scale[2], column, j % a[2].size) *
                             reference_weight(&a[1], scale[1], row, j / a[2].size % a[1].size) *
                             reference_weight(&a[0], scale[0], slice, j / a[2].size / a[1].size);
            sum += w != 0 ? w * kn_reference_get(x, plane * volume + j) : 0;
        }
        kn_reference_set(call->outputs[0], e, sum);
    }
    return KN_OK;
}

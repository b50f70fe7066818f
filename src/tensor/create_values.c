/* tensor/create_values.c - tensors with regular values: see koine/create.h. Whole numbers, which operators also need
 * while a graph is captured, come from cl/tensor/arange.cl and triangle.cl, others from the host. */
#include <koine/create.h>
#include <math.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "loops/work_size.h"
#include "tensor/element.h"
#include "tensor/tensor.h"

/* Value `i` of the tensor. */
typedef double (*value_at)(int64_t i, const double *numbers);

static kn_tensor *make(const char *function, int ndim, const int64_t *shape, const kn_tensor_options *options,
                       kn_dtype dtype, value_at at, const double *numbers)
{
    kn_tensor_options own = options ? *options : kn_tensor_options_init();

    own.dtype = own.dtype == KN_DTYPE_DEFAULT ? dtype : own.dtype;
    kn_tensor *tensor = kn_empty_with(ndim, shape, &own);
    if (!tensor)
        return kn_error_prefix("%s", function), kn_error_make_sticky();
    const size_t bytes = (size_t)kn_numel(tensor) * kn_tensor_element_size(tensor);
    void *values = bytes > 0 ? kn_malloc(bytes) : NULL;
    if (bytes > 0 && !values)
        return kn_error_make_sticky();
    for (int64_t i = 0; i < kn_numel(tensor); i++)
        kn_element_set(values, tensor->dtype, i, (kn_element){.real = at(i, numbers)}, KN_F64);
    const kn_status status = bytes > 0 ? kn_write(tensor, values, bytes) : KN_OK;
    kn_free(values);
    return status == KN_OK ? tensor : kn_error_make_sticky();
}

static kn_status check_sizes(const char *function, int64_t rows, int64_t columns)
{
    return rows >= 0 && columns >= 0 ? KN_OK
                                     : kn_fail(KN_ERR_ARGUMENT, "%s: sizes must be 0 or more, not %lld and %lld",
                                               function, (long long)rows, (long long)columns);
}

/* --- arange ------------------------------------------------------------------------------------------------------- */

enum { MANY_NUMBERS = 1024 }; /* of a work-item */

static double stepped(int64_t i, const double *n) { return n[0] + (double)i * n[1]; }

/* Writes whole numbers to a tensor of int64, int32, float64 or float32. */
typedef kn_status (*on_device)(kn_stream *stream, kn_tensor *tensor, const int64_t *numbers);

static kn_status count_on_device(kn_stream *stream, kn_tensor *tensor, const int64_t *numbers)
{
    const int64_t n = kn_numel(tensor);
    return kn_run(stream, .source = "tensor/arange.cl", .options = kn_dtype_options(tensor->dtype), .kernel = "arange",
                  .dims = 1, .global = {kn_work_items(kn_tensor_limits(tensor), n, MANY_NUMBERS)},
                  KN_ARGS(kn_arg_tensor(tensor), kn_arg_i64(numbers[0]), kn_arg_i64(numbers[1]), kn_arg_i64(n)));
}

static kn_status run_on_device(kn_tensor *tensor, on_device write, const int64_t *numbers)
{
    kn_stream *stream = kn_tensor_stream(tensor);
    return stream ? write(stream, tensor, numbers) : kn_error_status();
}

/* Numbers of other dtypes are converted from 64-bit ones. */
static kn_tensor *whole(int ndim, const int64_t *shape, const kn_tensor_options *options, on_device write,
                        const int64_t *numbers)
{
    kn_tensor *tensor = kn_empty_with(ndim, shape, options), *wide = NULL;
    if (!tensor || kn_numel(tensor) == 0)
        return tensor;
    const kn_dtype dtype = tensor->dtype;
    if (dtype == KN_I64 || dtype == KN_I32 || dtype == KN_F64 || dtype == KN_F32)
        return run_on_device(tensor, write, numbers) == KN_OK ? tensor : kn_error_make_sticky();
    kn_status status = kn_tensor_new(&wide, KN_I64, ndim, shape, tensor->storage->device);
    if (status == KN_OK)
        status = run_on_device(wide, write, numbers);
    if (status == KN_OK)
        status = kn_tensor_copy(tensor, wide);
    kn_release(wide);
    return status == KN_OK ? tensor : kn_error_make_sticky();
}

static bool is_for_device(const kn_tensor_options *options)
{
    kn_device *device = options->device || options->pin_memory ? options->device : kn_device_current();
    return device && !kn_device_is_host(device);
}

/* Are whole numbers up to x exact in float64? */
static bool is_exact(double x) { return floor(x) == x && fabs(x) < 0x1p53; }

kn_tensor *kn_arange_with(double start, double end, double step, const kn_tensor_options *options)
{
    if (step == 0 || !isfinite(start) || !isfinite(end) || !isfinite(step) || (end - start) / step < 0)
        return kn_fail_null(KN_ERR_ARGUMENT, "arange: cannot get from %g to %g in steps of %g", start, end, step);
    const bool is_whole = floor(start) == start && floor(end) == end && floor(step) == step;
    const double steps = ceil((end - start) / step);
    if (!(steps < 0x1p63))
        return kn_fail_null(KN_ERR_ARGUMENT, "arange: from %g to %g in steps of %g there are too many numbers", start,
                            end, step);
    const int64_t count = (int64_t)steps;
    kn_tensor_options own = options ? *options : kn_tensor_options_init();
    own.dtype = own.dtype == KN_DTYPE_DEFAULT ? (is_whole ? KN_I64 : KN_F32) : own.dtype;
    if (is_exact(start) && is_exact(step) && is_exact(start + step * (double)count) && is_for_device(&own))
        return whole(1, &count, &own, count_on_device, (const int64_t[]){(int64_t)start, (int64_t)step});
    return make("arange", 1, &count, &own, KN_F32, stepped, (const double[]){start, step});
}

/* --- linspace, logspace ------------------------------------------------------------------------------------------- */

/* From both ends, so that the values are symmetric; numbers: start, end, steps, base or 0. */
static double spaced(int64_t i, const double *n)
{
    const int64_t steps = (int64_t)n[2];
    const double step = steps > 1 ? (n[1] - n[0]) / (double)(steps - 1) : 0;
    const double at = i < steps / 2 || steps == 1 ? n[0] + (double)i * step : n[1] - (double)(steps - 1 - i) * step;
    return n[3] == 0 ? at : pow(n[3], at);
}

kn_tensor *kn_linspace_with(double start, double end, int64_t steps, const kn_tensor_options *options)
{
    if (steps < 0)
        return kn_fail_null(KN_ERR_ARGUMENT, "linspace: steps must be 0 or more, not %lld", (long long)steps);
    return make("linspace", 1, &steps, options, KN_F32, spaced, (const double[]){start, end, (double)steps, 0});
}

kn_tensor *kn_logspace_with(double start, double end, int64_t steps, double base, const kn_tensor_options *options)
{
    if (steps < 0 || !(base > 0))
        return kn_fail_null(KN_ERR_ARGUMENT, "logspace: steps must be 0 or more, not %lld, and base positive, not %g",
                            (long long)steps, base);
    return make("logspace", 1, &steps, options, KN_F32, spaced, (const double[]){start, end, (double)steps, base});
}

/* --- eye ---------------------------------------------------------------------------------------------------------- */

kn_tensor *kn_eye_with(int64_t n, int64_t m, const kn_tensor_options *options)
{
    const int64_t shape[] = {n, m}, length = n < m ? n : m, step = m + 1;
    kn_tensor *diagonal;

    if (check_sizes("eye", n, m) != KN_OK)
        return kn_error_make_sticky();
    kn_tensor *tensor = kn_zeros_with(2, shape, options);
    if (!tensor)
        return kn_error_prefix("eye"), kn_error_make_sticky();
    kn_status status = kn_tensor_view(&diagonal, tensor, 1, &length, &step, 0);
    if (status == KN_OK) {
        status = kn_tensor_fill(diagonal, 1);
        kn_release(diagonal);
    }
    return status == KN_OK ? tensor : kn_error_make_sticky();
}

/* --- triangles ---------------------------------------------------------------------------------------------------- */

/* How many elements of row `r` are in the lower triangle, which is all up to this. */
static int64_t lower(int64_t r, int64_t columns, int64_t offset)
{
    const int64_t end = r + offset + 1;
    return end < 0 ? 0 : end > columns ? columns : end;
}

static kn_status triangle_on_device(kn_stream *stream, kn_tensor *tensor, const int64_t *numbers)
{
    const int64_t rows = numbers[0], columns = numbers[1];
    const int64_t grain = columns < MANY_NUMBERS ? MANY_NUMBERS / columns : 1;
    return kn_run(stream, .source = "tensor/triangle.cl", .options = kn_dtype_options(tensor->dtype),
                  .kernel = "triangle", .dims = 1, .global = {kn_work_items(kn_tensor_limits(tensor), rows, grain)},
                  KN_ARGS(kn_arg_tensor(tensor), kn_arg_i64(rows), kn_arg_i64(columns), kn_arg_i64(numbers[2]),
                          kn_arg_i64(numbers[3]), kn_arg_i64(tensor->shape[1])));
}

static kn_tensor *triangle(const char *function, int64_t rows, int64_t columns, int64_t offset, bool upper,
                           const kn_tensor_options *options)
{
    int64_t shape[] = {2, 0}, at = 0;
    kn_tensor_options own = options ? *options : kn_tensor_options_init();

    if (check_sizes(function, rows, columns) != KN_OK)
        return kn_error_make_sticky();
    if (rows > 0 && columns > INT64_MAX / rows)
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: %lld rows and %lld columns are too many", function, (long long)rows,
                            (long long)columns);
    offset = offset < -rows ? -rows : offset > columns ? columns : offset;
    offset -= upper; /* the upper triangle is what the lower one leaves */
    for (int64_t r = 0; r < rows; r++)
        shape[1] += upper ? columns - lower(r, columns, offset) : lower(r, columns, offset);
    own.dtype = own.dtype == KN_DTYPE_DEFAULT ? KN_I64 : own.dtype;
    if (is_for_device(&own))
        return whole(2, shape, &own, triangle_on_device, (const int64_t[]){rows, columns, offset, upper});
    kn_tensor *tensor = kn_empty_with(2, shape, &own);
    const size_t bytes = tensor ? (size_t)kn_numel(tensor) * kn_tensor_element_size(tensor) : 0;
    void *values = bytes > 0 ? kn_malloc(bytes) : NULL;
    if (!tensor || (bytes > 0 && !values))
        return kn_error_make_sticky();
    for (int64_t r = 0; r < rows; r++) {
        const int64_t cut = lower(r, columns, offset), first = upper ? cut : 0, end = upper ? columns : cut;
        for (int64_t c = first; c < end; c++, at++) {
            kn_element_set(values, tensor->dtype, at, (kn_element){.real = (double)r}, KN_F64);
            kn_element_set(values, tensor->dtype, at + shape[1], (kn_element){.real = (double)c}, KN_F64);
        }
    }
    const kn_status status = bytes > 0 ? kn_write(tensor, values, bytes) : KN_OK;
    kn_free(values);
    return status == KN_OK ? tensor : kn_error_make_sticky();
}

kn_tensor *kn_tril_indices_with(int64_t rows, int64_t columns, int64_t offset, const kn_tensor_options *options)
{
    return triangle("tril_indices", rows, columns, offset, false, options);
}

kn_tensor *kn_triu_indices_with(int64_t rows, int64_t columns, int64_t offset, const kn_tensor_options *options)
{
    return triangle("triu_indices", rows, columns, offset, true, options);
}

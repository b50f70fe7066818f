/* optim/gradients.c - launches over many tensors, eight at a time. */
#include "optim/gradients.h"

#include <koine/autograd.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/liveness.h"

#define SOURCE "optim/gradients.cl"
#define SLOTS 8 /* must match the kernels */
#define ELEMENTS_PER_PART 8192
#define MAX_PARTS 64
#define GPU_PARTS 256

static kn_status add(kn_many *many, const char *function, kn_tensor *tensor)
{
    KN_TRY(kn_check_tensor(function, "tensor", tensor));
    if (!kn_dtype_is_floating(tensor->dtype))
        return kn_fail(KN_ERR_DTYPE, "%s: takes floating dtypes, not %s", function, kn_dtype_name(tensor->dtype));
    if (kn_device_is_host(tensor->storage->device) || (many->device && many->device != tensor->storage->device))
        return kn_fail(KN_ERR_DEVICE, "%s: takes tensors of one device; there is one on %s and one on %s", function,
                       kn_device_string(many->device ? many->device : kn_device_current()),
                       kn_device_string(tensor->storage->device));
    many->device = tensor->storage->device;
    many->has_f64 |= tensor->dtype == KN_F64;
    many->tensors[many->count] = tensor;
    return kn_tensor_contiguous(&many->copies[many->count++], tensor);
}

static kn_status collect(kn_many *many, const char *function, kn_tensor *const *tensors, int count, bool gradients)
{
    *many = (kn_many){0};
    if (count < 0 || (count > 0 && tensors == NULL))
        return kn_fail(KN_ERR_ARGUMENT, "%s: %d tensors in %s", function, count, tensors ? "a list" : "NULL");
    many->tensors = kn_calloc((size_t)count + 1, sizeof(kn_tensor *));
    many->copies = kn_calloc((size_t)count + 1, sizeof(kn_tensor *));
    if (!many->tensors || !many->copies)
        return KN_ERR_MEMORY;
    for (int i = 0; i < count; i++) {
        if (gradients)
            KN_TRY(kn_check_tensor(function, "parameters", tensors[i]));
        kn_tensor *tensor = gradients ? kn_grad(tensors[i]) : tensors[i];
        if (tensor || !gradients)
            KN_TRY(add(many, function, tensor));
    }
    return KN_OK;
}

kn_status kn_many_gradients(kn_many *many, const char *function, kn_tensor *const *parameters, int count)
{
    return collect(many, function, parameters, count, true);
}

kn_status kn_many_tensors(kn_many *many, const char *function, kn_tensor *const *tensors, int count)
{
    return collect(many, function, tensors, count, false);
}

void kn_many_free(kn_many *many)
{
    for (int i = 0; i < many->count; i++)
        kn_release(many->copies[i]);
    kn_free(many->tensors);
    kn_free(many->copies);
    *many = (kn_many){0};
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

static kn_dtype norm_dtype(const kn_many *many) { return many->has_f64 ? KN_F64 : KN_F32; }

/* From tensor `first` on: how many have its dtype and fit. */
static int run_of(const kn_many *many, int first)
{
    int n = 1;
    while (n < SLOTS && first + n < many->count && many->copies[first + n]->dtype == many->copies[first]->dtype)
        n++;
    return n;
}

static int64_t longest_of(kn_tensor *const *tensors, int count)
{
    int64_t longest = 0;
    for (int i = 0; i < count; i++)
        longest = kn_numel(tensors[i]) > longest ? kn_numel(tensors[i]) : longest;
    return longest;
}

/* One launch; unused slots have the first one's buffer and no elements. */
static kn_status launch(const kn_many *many, int first, int count, size_t items, const char *kernel,
                        const char *operation, const char *option, const kn_arg *more, int num_more)
{
    kn_arg args[2 * SLOTS + 6];
    char options[120];
    int n = 0;
    const kn_dtype dtype = many->copies[first]->dtype, norm = norm_dtype(many);
    for (int i = 0; i < SLOTS; i++) {
        args[n++] = kn_arg_tensor(many->copies[i < count ? first + i : first]);
        args[n++] = kn_arg_i64(i < count ? kn_numel(many->copies[first + i]) : 0);
    }
    for (int i = 0; i < num_more; i++)
        args[n++] = more[i];
    snprintf(options, sizeof options, "-DT=%s -DS=%s%s%s%s", kn_dtype_cl(kn_compute_type(dtype)), kn_dtype_cl(norm),
             norm == KN_F64 ? " -DKN_USE_F64" : "",
             dtype == KN_F16    ? " -DKN_HALF"
             : dtype == KN_BF16 ? " -DKN_BFLOAT"
                                : "",
             option);
    return kn_run(kn_stream_current(many->device), .source = SOURCE, .options = options, .kernel = kernel,
                  .operation = operation, .dims = 2, .global = {items, (size_t)count}, .args = args, .num_args = n);
}

kn_status kn_many_change(const kn_many *many, const char *kernel, const char *operation, const kn_arg *args,
                         int num_args, const double *real)
{
    const kn_limits *limits = many->count > 0 ? kn_device_limits(many->device) : NULL;
    for (int first = 0, n; first < many->count; first += n) {
        kn_arg more[3];
        n = run_of(many, first);
        for (int i = 0; i < num_args; i++)
            more[i] = args[i];
        if (real)
            more[num_args] = kn_arg_real(many->copies[first]->dtype, *real);
        const size_t items = kn_work_items(limits, longest_of(many->copies + first, n), 4096);
        KN_TRY(launch(many, first, n, items, kernel, operation, "", more, num_args + (real != NULL)));
    }
    for (int i = 0; i < many->count; i++) {
        kn_tensor_bump_version(many->tensors[i]);
        if (many->copies[i] != many->tensors[i])
            KN_TRY(kn_tensor_copy(many->tensors[i], many->copies[i]));
    }
    return KN_OK;
}

/* --- norms -------------------------------------------------------------------------------------------------------- */

static kn_status sum_parts(const kn_many *many, double p, const char *option, kn_tensor *parts, int64_t count,
                           kn_tensor *norm)
{
    char options[120];
    for (int first = 0, n; first < many->count; first += n) {
        n = run_of(many, first);
        const kn_arg more[] = {kn_arg_tensor(parts), kn_arg_i64(first), kn_arg_i64(count),
                               kn_arg_real(norm_dtype(many), p)};
        KN_TRY(launch(many, first, n, (size_t)count, "norm_parts", "get_total_norm", option, more, 4));
    }
    const kn_dtype dtype = norm_dtype(many);
    snprintf(options, sizeof options, "-DT=%s -DS=%s%s%s", kn_dtype_cl(dtype), kn_dtype_cl(dtype),
             dtype == KN_F64 ? " -DKN_USE_F64" : "", option);
    return kn_run(
        kn_stream_current(many->device), .source = SOURCE, .options = options, .kernel = "norm_total",
        .operation = "get_total_norm", .dims = 1, .global = {1},
        KN_ARGS(kn_arg_tensor(parts), kn_arg_tensor(norm), kn_arg_i64(many->count * count), kn_arg_real(dtype, p)));
}

kn_status kn_many_norm(const kn_many *many, double p, kn_tensor **norm)
{
    *norm = NULL;
    kn_device *device = many->count > 0 ? many->device : kn_device_current();
    KN_TRY(device ? kn_tensor_new(norm, norm_dtype(many), 0, NULL, device) : kn_error_status());
    if (many->count == 0)
        return kn_tensor_fill(*norm, 0);
    const kn_limits *limits = kn_device_limits(device);
    const int64_t longest = longest_of(many->copies, many->count);
    int64_t parts = limits->is_cpu ? (int64_t)kn_work_items(limits, longest, ELEMENTS_PER_PART)
                                   : (longest + ELEMENTS_PER_PART / 64 - 1) / (ELEMENTS_PER_PART / 64);
    const int64_t most = limits->is_cpu ? MAX_PARTS : GPU_PARTS;
    parts = parts < 1 ? 1 : parts > most ? most : parts;
    const int64_t total = parts * many->count;
    char option[24];
    snprintf(option, sizeof option, " -DNORM=%d", isinf(p) ? 0 : p == 1 ? 1 : p == 2 ? 2 : 3);
    kn_tensor *sums = NULL;
    kn_status status = kn_tensor_new(&sums, norm_dtype(many), 1, &total, device);
    if (status == KN_OK)
        status = sum_parts(many, p, option, sums, parts, *norm);
    kn_release(sums);
    return status;
}

/* --- the public functions ----------------------------------------------------------------------------------------- */

kn_clip_grad_params kn_clip_grad_params_init(void) { return (kn_clip_grad_params){KN_CLIP_GRAD_DEFAULTS}; }

static kn_status norm_of(const kn_many *many, const char *function, const kn_clip_grad_params *params, kn_tensor **norm)
{
    *norm = NULL;
    params = params ? params : &(kn_clip_grad_params){KN_CLIP_GRAD_DEFAULTS};
    if (!(params->norm_type > 0))
        return kn_fail(KN_ERR_ARGUMENT, "%s: norm_type (%g) must be above 0", function, params->norm_type);
    KN_TRY(kn_many_norm(many, params->norm_type, norm));
    double value = 0;
    if (params->error_if_nonfinite)
        KN_TRY(kn_item(*norm, &value));
    return isfinite(value) ? KN_OK
                           : kn_fail(KN_ERR_NUMERIC, "%s: the norm of order %g is %g, so it cannot be clipped",
                                     function, params->norm_type, value);
}

static kn_tensor *deliver(kn_tensor *norm, kn_status status)
{
    if (status == KN_OK)
        return kn_scope_adopt(norm);
    kn_release(norm);
    return kn_error_make_sticky();
}

kn_tensor *kn_get_total_norm_with(kn_tensor *const *tensors, int count, const kn_clip_grad_params *params)
{
    kn_many many;
    kn_tensor *norm = NULL;
    kn_status status = kn_many_tensors(&many, "get_total_norm", tensors, count);
    if (status == KN_OK)
        status = norm_of(&many, "get_total_norm", params, &norm);
    kn_many_free(&many);
    return deliver(norm, status);
}

static kn_status clip(const kn_many *many, const char *function, double max_norm, const kn_tensor *norm)
{
    if (!(max_norm == max_norm))
        return kn_fail(KN_ERR_ARGUMENT, "%s: max_norm is NaN", function);
    if (many->count == 0)
        return KN_OK;
    const kn_arg args[] = {kn_arg_tensor(norm), kn_arg_real(norm_dtype(many), max_norm)};
    return kn_many_change(many, "clip_to_norm", function, args, 2, NULL);
}

kn_tensor *kn_clip_grad_norm_with_(kn_parameter_list parameters, double max_norm, const kn_clip_grad_params *params)
{
    kn_many many;
    kn_tensor *norm = NULL;
    kn_status status = kn_many_gradients(&many, "clip_grad_norm_", parameters.tensors, parameters.count);
    if (status == KN_OK)
        status = norm_of(&many, "clip_grad_norm_", params, &norm);
    if (status == KN_OK)
        status = clip(&many, "clip_grad_norm_", max_norm, norm);
    kn_many_free(&many);
    return deliver(norm, status);
}

kn_status kn_clip_grads_with_norm_(kn_parameter_list parameters, double max_norm, const kn_tensor *total_norm)
{
    kn_many many;
    KN_TRY(kn_check_tensor("clip_grads_with_norm_", "total_norm", total_norm));
    kn_status status = kn_many_gradients(&many, "clip_grads_with_norm_", parameters.tensors, parameters.count);
    if (status == KN_OK && many.count > 0 &&
        (kn_numel(total_norm) != 1 || total_norm->dtype != norm_dtype(&many) ||
         total_norm->storage->device != many.device))
        status = kn_fail(KN_ERR_ARGUMENT, "clip_grads_with_norm_: total_norm must be one %s element on %s",
                         kn_dtype_name(norm_dtype(&many)), kn_device_string(many.device));
    if (status == KN_OK)
        status = clip(&many, "clip_grads_with_norm_", max_norm, total_norm);
    kn_many_free(&many);
    return status;
}

kn_status kn_clip_grad_value_(kn_parameter_list parameters, double clip_value)
{
    kn_many many;
    if (!(clip_value >= 0))
        return kn_fail(KN_ERR_ARGUMENT, "clip_grad_value_: clip_value (%g) must be 0 or more", clip_value);
    kn_status status = kn_many_gradients(&many, "clip_grad_value_", parameters.tensors, parameters.count);
    if (status == KN_OK)
        status = kn_many_change(&many, "clip_to_value", "clip_grad_value_", NULL, 0, &clip_value);
    kn_many_free(&many);
    return status;
}

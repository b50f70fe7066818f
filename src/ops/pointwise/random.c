/* ops/pointwise/random.c - random numbers with parameters in tensors: torch.normal, bernoulli, poisson, binomial,
 * multinomial. */
#include <koine/autograd.h>
#include <koine/pointwise.h>
#include <koine/random.h>
#include <koine/shape.h>

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "tensor/liveness.h"
#include "tensor/tensor.h"

static kn_generator *generator_of(const kn_random_params *params) { return params ? params->generator : NULL; }

static kn_status check(const char *function, const char *name, const kn_tensor *tensor)
{
    KN_TRY(kn_check_tensor(function, name, tensor));
    if (!kn_dtype_is_floating(tensor->dtype))
        return kn_fail(KN_ERR_DTYPE, "%s: %s is %s; it must be floating", function, name, kn_dtype_name(tensor->dtype));
    if (kn_device_is_host(tensor->storage->device))
        return kn_fail(KN_ERR_DEVICE, "%s: %s is on the host; move it to a device with kn_to", function, name);
    return KN_OK;
}

/* The parameters as the kernels take them: contiguous, of the type to compute in. */
static kn_status computed(kn_tensor **result, kn_tensor *tensor)
{
    const kn_dtype dtype = kn_compute_type(tensor->dtype);
    return dtype == tensor->dtype ? kn_tensor_contiguous(result, tensor)
                                  : kn_tensor_cast(result, tensor, dtype, tensor->storage->device);
}

static kn_status run(const char *kernel, const kn_tensor *from, kn_tensor *to, kn_generator *generator, uint64_t words,
                     const kn_arg *more, int num_more, int64_t items)
{
    KN_TRY(kn_generator_check(generator, from->storage->device));
    const kn_philox state = kn_generator_reserve(generator, from->storage->device, words);
    kn_arg args[7] = {kn_arg_tensor(from), kn_arg_tensor(to), kn_arg_seed(&state), kn_arg_draw_offset(&state)};
    for (int i = 0; i < num_more; i++)
        args[4 + i] = more[i];
    kn_stream *stream = kn_tensor_stream(from);
    if (!stream)
        return kn_error_status();
    return kn_run(stream, .source = "tensor/draws.cl", .options = kn_dtype_options(from->dtype), .kernel = kernel,
                  .dims = 1, .global = {kn_work_items(kn_tensor_limits(from), items, 256)}, .args = args,
                  .num_args = 4 + num_more);
}

static kn_tensor *deliver(kn_tensor *tensor, kn_status status)
{
    if (status == KN_OK)
        return kn_scope_adopt(tensor);
    kn_release(tensor);
    return kn_error_make_sticky();
}

/* One number for each element of `tensor`; `words`: 32-bit words that each takes. */
static kn_tensor *draw_each(const char *function, const char *name, const char *kernel, kn_tensor *tensor, int words,
                            const kn_random_params *params)
{
    kn_tensor *from = NULL, *to = NULL, *cast = NULL;
    kn_status status = check(function, name, tensor);
    const int64_t n = status == KN_OK ? kn_numel(tensor) : 0;
    if (status == KN_OK)
        status = computed(&from, tensor);
    if (status == KN_OK)
        status = kn_tensor_new(&to, from->dtype, tensor->ndim, tensor->shape, tensor->storage->device);
    if (status == KN_OK && n > 0)
        status = run(kernel, from, to, generator_of(params), (uint64_t)n * (uint64_t)words,
                     (const kn_arg[]){kn_arg_i64(n)}, 1, n);
    if (status == KN_OK && to->dtype != tensor->dtype) {
        status = kn_tensor_cast(&cast, to, tensor->dtype, tensor->storage->device);
        kn_release(to);
        to = cast;
    }
    kn_release(from);
    return deliver(to, status);
}

kn_tensor *kn_bernoulli_with(kn_tensor *p, const kn_random_params *params)
{
    return draw_each("kn_bernoulli", "p", "bernoulli_of", p, 1, params);
}

kn_tensor *kn_poisson_with(kn_tensor *rates, const kn_random_params *params)
{
    return draw_each("kn_poisson", "rates", "poisson", rates, 4, params);
}

/* Numbers of `count`'s dtype, of trials and probabilities of the same shape. */
static kn_status draw_binomial(kn_tensor **result, kn_tensor *count, kn_tensor *prob, const kn_random_params *params)
{
    kn_tensor *trials = NULL, *chances = NULL, *to = NULL;
    const int64_t n = kn_numel(count);
    kn_status status = computed(&trials, count);
    if (status == KN_OK)
        status = computed(&chances, prob);
    if (status == KN_OK)
        status = kn_tensor_new(&to, trials->dtype, count->ndim, count->shape, count->storage->device);
    if (status == KN_OK && n > 0)
        status = run("binomial", trials, to, generator_of(params), (uint64_t)n * 4,
                     (const kn_arg[]){kn_arg_tensor(chances), kn_arg_i64(n)}, 2, n);
    if (status == KN_OK)
        status = kn_tensor_cast(result, to, count->dtype, count->storage->device);
    kn_release(trials);
    kn_release(chances);
    kn_release(to);
    return status;
}

kn_tensor *kn_binomial_with(kn_tensor *count, kn_tensor *prob, const kn_random_params *params)
{
    if (check("kn_binomial", "count", count) != KN_OK || check("kn_binomial", "prob", prob) != KN_OK)
        return kn_error_make_sticky();
    if (count->dtype != prob->dtype)
        return kn_fail_null(KN_ERR_DTYPE, "kn_binomial: count is %s, but prob is %s: convert one with kn_to_dtype",
                            kn_dtype_name(count->dtype), kn_dtype_name(prob->dtype));
    const int scope = kn_scope_begin();
    const bool recording = kn_set_grad_enabled(false);
    kn_tensor *both[2], *result = NULL;
    kn_status status = kn_broadcast_tensors((kn_tensor *[]){count, prob}, 2, both);
    if (status == KN_OK)
        status = draw_binomial(&result, both[0], both[1], params);
    kn_set_grad_enabled(recording);
    return kn_scope_return(scope, deliver(result, status));
}

kn_tensor *kn_normal_with(kn_tensor *mean, kn_tensor *std, const kn_random_params *params)
{
    if (check("kn_normal", "mean", mean) != KN_OK || check("kn_normal", "std", std) != KN_OK)
        return kn_error_make_sticky();
    const int scope = kn_scope_begin();
    const bool recording = kn_set_grad_enabled(false);
    kn_tensor *shape = kn_add(mean, std); /* broadcast */
    kn_tensor *normal = shape ? kn_randn_like_with(shape, params) : NULL;
    kn_tensor *result = kn_add(mean, kn_mul(std, normal));
    kn_set_grad_enabled(recording);
    return kn_scope_return(scope, result);
}

kn_multinomial_params kn_multinomial_params_init(void) { return (kn_multinomial_params){KN_MULTINOMIAL_DEFAULTS}; }

static kn_status check_multinomial(const kn_tensor *weights, int64_t samples, bool replacement)
{
    char text[KN_DESCRIBE];
    KN_TRY(check("kn_multinomial", "weights", weights));
    if (weights->ndim < 1 || weights->ndim > 2 || weights->shape[weights->ndim - 1] < 1)
        return kn_fail(KN_ERR_SHAPE, "kn_multinomial: weights must be [C] or [N, C] with C above 0, not %s",
                       kn_tensor_describe(text, sizeof text, weights));
    if (samples < 1)
        return kn_fail(KN_ERR_ARGUMENT, "kn_multinomial: num_samples (%" PRId64 ") must be 1 or more", samples);
    if (!replacement && samples > weights->shape[weights->ndim - 1])
        return kn_fail(KN_ERR_ARGUMENT,
                       "kn_multinomial: cannot draw %" PRId64 " of %" PRId64 " categories without replacement", samples,
                       weights->shape[weights->ndim - 1]);
    return KN_OK;
}

kn_tensor *kn_multinomial_with(kn_tensor *weights, int64_t num_samples, const kn_multinomial_params *params)
{
    params = params ? params : &(kn_multinomial_params){KN_MULTINOMIAL_DEFAULTS};
    kn_tensor *from = NULL, *to = NULL;
    kn_status status = check_multinomial(weights, num_samples, params->replacement);
    if (status == KN_OK)
        status = computed(&from, weights);
    const int64_t categories = status == KN_OK ? weights->shape[weights->ndim - 1] : 1;
    const int64_t rows = status == KN_OK && weights->ndim == 2 ? weights->shape[0] : 1;
    const int64_t shape[] = {rows, num_samples};
    if (status == KN_OK)
        status = weights->ndim == 2 ? kn_tensor_new(&to, KN_I64, 2, shape, weights->storage->device)
                                    : kn_tensor_new(&to, KN_I64, 1, shape + 1, weights->storage->device);
    const int64_t items = params->replacement ? rows * num_samples : rows;
    const int64_t blocks = params->replacement ? items : rows * categories;
    if (status == KN_OK && items > 0)
        status = run(params->replacement ? "multinomial_with" : "multinomial_without", from, to, params->generator,
                     4 * (uint64_t)blocks,
                     (const kn_arg[]){kn_arg_i64(categories), kn_arg_i64(num_samples), kn_arg_i64(items)}, 3, items);
    kn_release(from);
    return deliver(to, status);
}

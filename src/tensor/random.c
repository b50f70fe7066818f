/* tensor/random.c - random tensors, on devices by cl/tensor/random.cl; the host code here gives the same numbers. */
#include <koine/random.h>

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/element.h"
#include "tensor/hooks.h"
#include "tensor/liveness.h"
#include "tensor/philox.h"
#include "tensor/tensor.h"

typedef enum draw_kind {
    DRAW_UNIFORM,
    DRAW_NORMAL,
    DRAW_LOG_NORMAL,
    DRAW_BERNOULLI,
    DRAW_RANDINT,
    DRAW_EXPONENTIAL, /* from here on: functions of one uniform number, DEVIATE in the kernel */
    DRAW_GEOMETRIC,
    DRAW_CAUCHY,
    DRAW_TRUNCATED
} draw_kind;

/* uniform: low `a`, high `b`; normal and log normal: mean `a`, deviation `b`; bernoulli: probability `a`; randint:
 * `low`, `range`; exponential: rate `a`; geometric: log(1 - p) `a`; cauchy: median `a`, sigma `b`; truncated: normal,
 * and the part `cut` .. `cut` + `share` of its distribution, from `least` to `most`. */
typedef struct draw {
    draw_kind kind;
    double a, b, cut, share, least, most;
    int64_t low;
    uint64_t range;
    uint32_t mask;           /* the bits of a word that count in float32; 0: all */
    kn_generator *generator; /* NULL: the device's */
} draw;

/* Uniform numbers to be rounded to float16 or bfloat16 have as many bits as these hold, so that none rounds to 1. */
static uint32_t mask_for(kn_dtype dtype)
{
    return dtype == KN_F16 ? 0xffe00000u : dtype == KN_BF16 ? 0xff000000u : UINT32_MAX;
}

/* 32-bit words per element: two for doubles and integers, else one. */
static int words_per_element(const draw *d, kn_dtype dtype)
{
    if (d->kind == DRAW_BERNOULLI)
        return 1;
    return d->kind == DRAW_RANDINT || dtype == KN_F64 ? 2 : 1;
}

/* --- on the host ------------------------------------------------------------------------------ */

/* By bisection and Newton's steps, which is exact enough for any dtype. */
static double erf_inverse(double x)
{
    double low = -6, high = 6;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        *(erf(middle) < x ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

static double host_deviate(const draw *d, double u)
{
    if (d->kind == DRAW_EXPONENTIAL)
        return -log(u) / d->a;
    if (d->kind == DRAW_GEOMETRIC)
        return fmax(ceil(log(u) / d->a), 1);
    if (d->kind == DRAW_CAUCHY)
        return d->a + d->b * tan(3.14159265358979323846 * (u - 0.5));
    const double v = d->a + d->b * 1.4142135623730951 * erf_inverse(2 * (d->cut + u * d->share) - 1);
    return fmin(fmax(v, d->least), d->most); /* far from the mean the distribution is 0 or 1, and its inverse inexact */
}

static void host_real_pair(double out[2], const draw *d, bool f64, const uint32_t *w)
{
    const uint32_t bits = d->mask ? d->mask : UINT32_MAX;
    double u0 = f64 ? kn_uniform_f64(w[0], w[1]) : kn_uniform_f32(w[0] & bits);
    double u1 = f64 ? kn_uniform_f64(w[2], w[3]) : kn_uniform_f32(w[1] & bits);
    const double tiny = f64 ? 0x1p-53 : 0x1p-24;
    if (d->kind >= DRAW_EXPONENTIAL) {
        out[0] = host_deviate(d, u0 + tiny);
        out[1] = host_deviate(d, u1 + tiny);
    } else if (d->kind == DRAW_UNIFORM && f64) {
        out[0] = fma(u0, d->b - d->a, d->a);
        out[1] = fma(u1, d->b - d->a, d->a);
    } else if (d->kind == DRAW_UNIFORM) {
        out[0] = fmaf((float)u0, (float)(d->b - d->a), (float)d->a);
        out[1] = fmaf((float)u1, (float)(d->b - d->a), (float)d->a);
    } else {
        double radius = sqrt(-2 * log(u0 + tiny)), angle = 6.283185307179586476925286766559 * u1;
        out[0] = fma(radius * cos(angle), d->b, d->a);
        out[1] = fma(radius * sin(angle), d->b, d->a);
        for (int i = 0; i < 2 && d->kind == DRAW_LOG_NORMAL; i++)
            out[i] = exp(out[i]);
    }
}

static kn_element host_element(const draw *d, kn_dtype dtype, kn_philox state, int64_t i)
{
    int per = words_per_element(d, dtype);
    int64_t word = i * per;
    uint32_t words[4];
    kn_philox_block(words, state.seed, state.offset, (uint64_t)word / 4);
    const uint32_t *at = words + word % 4;
    if (d->kind == DRAW_BERNOULLI)
        return kn_element_whole(kn_uniform_f32(*at) < (float)d->a);
    if (d->kind == DRAW_RANDINT) {
        __extension__ typedef unsigned __int128 wide;
        uint64_t bits = (uint64_t)at[1] << 32 | at[0];
        return kn_element_whole((int64_t)((uint64_t)d->low + (uint64_t)((wide)bits * d->range >> 64)));
    }
    double pair[2];
    host_real_pair(pair, d, per == 2, words + word % 4 / (2 * per) * (2 * per));
    return (kn_element){.real = pair[i % 2]};
}

static kn_status draw_on_host(kn_tensor *tensor, const draw *d, kn_philox state)
{
    int64_t n = kn_numel(tensor);
    char *data = kn_data(tensor);
    kn_dtype from = d->kind == DRAW_BERNOULLI || d->kind == DRAW_RANDINT ? KN_I64 : KN_F64;
    for (int64_t i = 0; i < n; i++)
        kn_element_set(data, tensor->dtype, i, host_element(d, tensor->dtype, state, i), from);
    return KN_OK;
}

/* --- on a device ------------------------------------------------------------------------------ */

static kn_status draw_on_device(kn_tensor *tensor, const draw *d, kn_philox state)
{
    static const char *const kernels[] = {"uniform", "normal",  "normal",  "bernoulli", "randint",
                                          "deviate", "deviate", "deviate", "deviate"};
    bool whole = d->kind == DRAW_BERNOULLI || d->kind == DRAW_RANDINT;
    kn_stream *stream = kn_tensor_stream(tensor);
    if (!stream)
        return kn_error_status();
    char options[96];
    int64_t n = kn_numel(tensor);
    if (whole)
        snprintf(options, sizeof options, "-DT=float -DB=%s%s", kn_dtype_cl(tensor->dtype),
                 tensor->dtype == KN_F64 ? " -DKN_USE_F64" : "");
    else if (d->kind == DRAW_LOG_NORMAL)
        snprintf(options, sizeof options, "%s -DLOG_NORMAL", kn_dtype_options(tensor->dtype));
    else if (d->kind >= DRAW_EXPONENTIAL)
        snprintf(options, sizeof options, "%s -DDEVIATE=%d", kn_dtype_options(tensor->dtype),
                 d->kind - DRAW_EXPONENTIAL);
    else if (d->mask)
        snprintf(options, sizeof options, "%s -DMASK=0x%xu", kn_dtype_options(tensor->dtype), (unsigned)d->mask);
    else
        snprintf(options, sizeof options, "%s", kn_dtype_options(tensor->dtype));
    kn_arg args[10] = {kn_arg_tensor(tensor), kn_arg_seed(&state), kn_arg_draw_offset(&state), kn_arg_i64(n)};
    int count = 4;
    if (d->kind == DRAW_RANDINT) {
        args[count++] = kn_arg_i64(d->low);
        args[count++] = kn_arg_i64((int64_t)d->range);
    } else if (d->kind == DRAW_BERNOULLI) {
        args[count++] = kn_arg_f32(d->a);
    } else {
        args[count++] = kn_arg_real(tensor->dtype, d->a);
        args[count++] = kn_arg_real(tensor->dtype, d->kind == DRAW_UNIFORM ? d->b - d->a : d->b);
        if (d->kind >= DRAW_EXPONENTIAL) {
            args[count++] = kn_arg_real(tensor->dtype, d->cut);
            args[count++] = kn_arg_real(tensor->dtype, d->share);
            args[count++] = kn_arg_real(tensor->dtype, d->least);
            args[count++] = kn_arg_real(tensor->dtype, d->most);
        }
    }
    return kn_run(stream, .source = "tensor/random.cl", .options = options, .kernel = kernels[d->kind], .dims = 1,
                  .global = {kn_work_items(kn_tensor_limits(tensor), (n + 3) / 4, 1024)}, .args = args,
                  .num_args = count);
}

/* --- both ------------------------------------------------------------------------------------- */

static kn_status draw_contiguous(kn_tensor *tensor, const draw *d)
{
    int64_t n = kn_numel(tensor);
    if (n == 0)
        return KN_OK;
    kn_philox state = kn_generator_reserve(d->generator, tensor->storage->device,
                                           (uint64_t)n * (uint64_t)words_per_element(d, tensor->dtype));
    return kn_device_is_host(tensor->storage->device) ? draw_on_host(tensor, d, state)
                                                      : draw_on_device(tensor, d, state);
}

/* Non-contiguous tensors, float16 and bfloat16, and integers that are made from real numbers, are drawn into a
 * temporary and copied. */
static kn_status draw_into(kn_tensor *tensor, const draw *d)
{
    const bool is_real = kn_dtype_is_floating(tensor->dtype) || d->kind != DRAW_GEOMETRIC;
    const kn_dtype dtype = is_real ? kn_compute_type(tensor->dtype) : KN_F32;
    kn_tensor_bump_version(tensor);
    if (kn_is_contiguous(tensor) && dtype == tensor->dtype)
        return draw_contiguous(tensor, d);
    kn_tensor *temporary;
    KN_TRY(kn_tensor_new(&temporary, dtype, tensor->ndim, tensor->shape, tensor->storage->device));
    draw drawn = *d;
    drawn.mask = d->kind == DRAW_UNIFORM ? mask_for(tensor->dtype) : 0;
    kn_status status = draw_contiguous(temporary, &drawn);
    if (status == KN_OK)
        status = kn_tensor_copy(tensor, temporary);
    kn_release(temporary);
    return status;
}

static kn_tensor *draw_in_place(kn_tensor *tensor, const draw *kind, const kn_random_params *params,
                                const char *function)
{
    draw own = *kind;
    const draw *d = &own;
    own.generator = params ? params->generator : NULL;
    if (kn_check_tensor(function, "tensor", tensor) != KN_OK)
        return kn_error_make_sticky();
    if (kn_tensor_autograd->check_unrecorded(function, tensor) != KN_OK)
        return kn_error_make_sticky();
    if (kn_tensor_check_no_overlap(tensor) != KN_OK ||
        kn_generator_check(d->generator, tensor->storage->device) != KN_OK) {
        kn_error_prefix("%s", function);
        return kn_error_make_sticky();
    }
    const bool any = d->kind == DRAW_BERNOULLI || d->kind == DRAW_RANDINT || d->kind == DRAW_GEOMETRIC;
    if (!any && !kn_dtype_is_floating(tensor->dtype))
        return kn_fail_null(KN_ERR_DTYPE, "%s takes a floating dtype, not %s", function, kn_dtype_name(tensor->dtype));
    return draw_into(tensor, d) == KN_OK ? tensor : kn_error_make_sticky();
}

static kn_status draw_checked(kn_tensor *tensor, const draw *d)
{
    KN_TRY(kn_generator_check(d->generator, tensor->storage->device));
    return draw_into(tensor, d);
}

static kn_tensor *draw_new(int ndim, const int64_t *shape, const kn_tensor_options *options, const draw *kind,
                           kn_dtype dtype)
{
    kn_tensor_options chosen = options ? *options : kn_tensor_options_init();
    draw own = *kind;
    const draw *d = &own;
    own.generator = chosen.generator;
    if (chosen.dtype == KN_DTYPE_DEFAULT)
        chosen.dtype = dtype;
    if (d->kind != DRAW_RANDINT && !kn_dtype_is_floating(chosen.dtype))
        return kn_fail_null(KN_ERR_DTYPE, "uniform and normal deviates have a floating dtype, not %s",
                            kn_dtype_name(chosen.dtype));
    int scope = kn_scope_begin();
    kn_tensor *tensor = scope ? kn_empty_with(ndim, shape, &chosen) : NULL;
    if (tensor && draw_checked(tensor, d) != KN_OK)
        tensor = kn_error_make_sticky();
    return kn_scope_return(scope, tensor);
}

kn_random_params kn_random_params_init(void) { return (kn_random_params){KN_RANDOM_DEFAULTS}; }

kn_tensor *kn_uniform_with_(kn_tensor *tensor, double low, double high, const kn_random_params *params)
{
    const double widest = tensor && kn_compute_type(tensor->dtype) == KN_F64 ? DBL_MAX : FLT_MAX;
    if (!(low <= high && high - low <= widest))
        return kn_fail_null(KN_ERR_ARGUMENT, "kn_uniform_: %g to %g is not a range of finite width", low, high);
    return draw_in_place(tensor, &(draw){.kind = DRAW_UNIFORM, .a = low, .b = high}, params, "kn_uniform_");
}

kn_tensor *kn_normal_with_(kn_tensor *tensor, double mean, double std, const kn_random_params *params)
{
    if (!(std >= 0))
        return kn_fail_null(KN_ERR_ARGUMENT, "kn_normal_: std (%g) must be 0 or more", std);
    return draw_in_place(tensor, &(draw){.kind = DRAW_NORMAL, .a = mean, .b = std}, params, "kn_normal_");
}

kn_tensor *kn_bernoulli_with_(kn_tensor *tensor, double p, const kn_random_params *params)
{
    if (!(p >= 0 && p <= 1))
        return kn_fail_null(KN_ERR_ARGUMENT, "kn_bernoulli_: probability %g is not between 0 and 1", p);
    return draw_in_place(tensor, &(draw){.kind = DRAW_BERNOULLI, .a = p}, params, "kn_bernoulli_");
}

kn_tensor *kn_log_normal_with_(kn_tensor *tensor, double mean, double std, const kn_random_params *params)
{
    if (!(std > 0))
        return kn_fail_null(KN_ERR_ARGUMENT, "kn_log_normal_: std (%g) must be above 0", std);
    return draw_in_place(tensor, &(draw){.kind = DRAW_LOG_NORMAL, .a = mean, .b = std}, params, "kn_log_normal_");
}

kn_tensor *kn_exponential_with_(kn_tensor *tensor, double lambd, const kn_random_params *params)
{
    if (!(lambd > 0))
        return kn_fail_null(KN_ERR_ARGUMENT, "kn_exponential_: lambd (%g) must be above 0", lambd);
    return draw_in_place(tensor, &(draw){.kind = DRAW_EXPONENTIAL, .a = lambd}, params, "kn_exponential_");
}

kn_tensor *kn_geometric_with_(kn_tensor *tensor, double p, const kn_random_params *params)
{
    if (!(p > 0 && p < 1))
        return kn_fail_null(KN_ERR_ARGUMENT, "kn_geometric_: p (%g) must be above 0 and below 1", p);
    return draw_in_place(tensor, &(draw){.kind = DRAW_GEOMETRIC, .a = log1p(-p)}, params, "kn_geometric_");
}

kn_tensor *kn_cauchy_with_(kn_tensor *tensor, double median, double sigma, const kn_random_params *params)
{
    if (!(sigma > 0))
        return kn_fail_null(KN_ERR_ARGUMENT, "kn_cauchy_: sigma (%g) must be above 0", sigma);
    return draw_in_place(tensor, &(draw){.kind = DRAW_CAUCHY, .a = median, .b = sigma}, params, "kn_cauchy_");
}

kn_tensor *kn_truncated_normal_with_(kn_tensor *tensor, double mean, double std, double a, double b,
                                     const kn_random_params *params)
{
    if (isnan(mean) || !(std > 0) || !(a < b))
        return kn_fail_null(
            KN_ERR_ARGUMENT,
            "kn_truncated_normal_: mean (%g) must be a number, std (%g) above 0, and a (%g) below b (%g)", mean, std, a,
            b);
    const double low = erfc(-(a - mean) / std / sqrt(2)) / 2, high = erfc(-(b - mean) / std / sqrt(2)) / 2;
    const draw truncated = {
        .kind = DRAW_TRUNCATED, .a = mean, .b = std, .cut = low, .share = high - low, .least = a, .most = b};
    return draw_in_place(tensor, &truncated, params, "kn_truncated_normal_");
}

kn_tensor *kn_random_with_(kn_tensor *tensor, int64_t low, int64_t high, const kn_random_params *params)
{
    if (high <= low)
        return kn_fail_null(KN_ERR_ARGUMENT, "kn_random_: there is no integer from %" PRId64 " to below %" PRId64, low,
                            high);
    return draw_in_place(tensor, &(draw){.kind = DRAW_RANDINT, .low = low, .range = (uint64_t)high - (uint64_t)low},
                         params, "kn_random_");
}

kn_tensor *kn_randint_like_with(const kn_tensor *like, int64_t low, int64_t high, const kn_random_params *params)
{
    if (kn_check_tensor("kn_randint_like", "like", like) != KN_OK)
        return kn_error_make_sticky();
    kn_tensor_options options = {
        .dtype = like->dtype, .device = like->storage->device, .generator = params ? params->generator : NULL};
    return kn_randint_with(low, high, like->ndim, like->shape, &options);
}

kn_tensor *kn_rand_with(int ndim, const int64_t *shape, const kn_tensor_options *options)
{
    return draw_new(ndim, shape, options, &(draw){.kind = DRAW_UNIFORM, .a = 0, .b = 1}, KN_F32);
}

kn_tensor *kn_randn_with(int ndim, const int64_t *shape, const kn_tensor_options *options)
{
    return draw_new(ndim, shape, options, &(draw){.kind = DRAW_NORMAL, .a = 0, .b = 1}, KN_F32);
}

static kn_tensor *draw_like(const kn_tensor *like, draw_kind kind, const kn_random_params *params, const char *function)
{
    if (kn_check_tensor(function, "like", like) != KN_OK)
        return kn_error_make_sticky();
    kn_tensor_options options = {
        .dtype = like->dtype, .device = like->storage->device, .generator = params ? params->generator : NULL};
    return draw_new(like->ndim, like->shape, &options, &(draw){.kind = kind, .a = 0, .b = 1}, KN_F32);
}

kn_tensor *kn_rand_like_with(const kn_tensor *like, const kn_random_params *params)
{
    return draw_like(like, DRAW_UNIFORM, params, "kn_rand_like");
}

kn_tensor *kn_randn_like_with(const kn_tensor *like, const kn_random_params *params)
{
    return draw_like(like, DRAW_NORMAL, params, "kn_randn_like");
}

kn_tensor *kn_randint_with(int64_t low, int64_t high, int ndim, const int64_t *shape, const kn_tensor_options *options)
{
    const kn_dtype dtype = options && options->dtype != KN_DTYPE_DEFAULT ? options->dtype : KN_I64;
    if (high <= low)
        return kn_fail_null(KN_ERR_ARGUMENT, "kn_randint: there is no integer from %" PRId64 " to below %" PRId64, low,
                            high);
    if (!kn_dtype_is_floating(dtype) && (low < kn_dtype_lowest(dtype) || high - 1 > kn_dtype_highest(dtype)))
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "kn_randint: %s does not have all integers from %" PRId64 " to below %" PRId64,
                            kn_dtype_name(dtype), low, high);
    return draw_new(ndim, shape, options,
                    &(draw){.kind = DRAW_RANDINT, .low = low, .range = (uint64_t)high - (uint64_t)low}, KN_I64);
}

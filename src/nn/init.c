/* nn/init.c - torch.nn.init: initialisation in place, which is not recorded. */
#include <math.h>
#include <string.h>

#include <koine/autograd.h>
#include <koine/init.h>
#include <koine/random.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/liveness.h"
#include "tensor/philox.h"
#include "tensor/tensor.h"

/* `call`, without recording. */
#define UNRECORDED(call)                                                                                               \
    const bool enabled = kn_set_grad_enabled(false);                                                                   \
    kn_tensor *result = call;                                                                                          \
    kn_set_grad_enabled(enabled);                                                                                      \
    return result

/* --- random numbers ----------------------------------------------------------------------------------------------- */

kn_tensor *kn_init_uniform_with_(kn_tensor *tensor, double low, double high, const kn_random_params *params)
{
    UNRECORDED(kn_uniform_with_(tensor, low, high, params));
}

kn_tensor *kn_init_normal_with_(kn_tensor *tensor, double mean, double std, const kn_random_params *params)
{
    UNRECORDED(kn_normal_with_(tensor, mean, std, params));
}

kn_tensor *kn_init_trunc_normal_with_(kn_tensor *tensor, double mean, double std, double a, double b,
                                      const kn_random_params *params)
{
    UNRECORDED(kn_truncated_normal_with_(tensor, mean, std, a, b, params));
}

/* A weight is [out, in, receptive field...]: fan_in = in * field, fan_out = out * field. */
static kn_status fans(const kn_tensor *tensor, const char *function, double *fan_in, double *fan_out)
{
    KN_TRY(kn_check_tensor(function, "tensor", tensor));
    if (tensor->ndim < 2) {
        char shape[KN_DESCRIBE];
        return kn_fail(KN_ERR_SHAPE, "%s: fan in and fan out need a weight of at least 2 dimensions, not %s", function,
                       kn_tensor_describe(shape, sizeof shape, tensor));
    }
    double field = 1;
    for (int i = 2; i < tensor->ndim; i++)
        field *= (double)tensor->shape[i];
    *fan_in = (double)tensor->shape[1] * field;
    *fan_out = (double)tensor->shape[0] * field;
    return KN_OK;
}

double kn_init_calculate_gain(const char *nonlinearity, double a)
{
    static const struct {
        const char *name;
        double gain;
    } gains[] = {{"linear", 1},           {"conv1d", 1},           {"conv2d", 1},  {"conv3d", 1},
                 {"conv_transpose1d", 1}, {"conv_transpose2d", 1}, {"sigmoid", 1}, {"conv_transpose3d", 1},
                 {"tanh", 5.0 / 3},       {"selu", 0.75}};
    if (nonlinearity == NULL || strcmp(nonlinearity, "leaky_relu") == 0)
        return sqrt(2 / (1 + a * a));
    if (strcmp(nonlinearity, "relu") == 0)
        return sqrt(2);
    for (size_t i = 0; i < sizeof gains / sizeof gains[0]; i++)
        if (strcmp(gains[i].name, nonlinearity) == 0)
            return gains[i].gain;
    kn_fail(KN_ERR_ARGUMENT, "init_calculate_gain: \"%s\" is not a known nonlinearity", nonlinearity);
    return (double)NAN;
}

kn_init_kaiming_params kn_init_kaiming_params_init(void) { return (kn_init_kaiming_params){KN_INIT_KAIMING_DEFAULTS}; }

/* The standard deviation; 0 for a tensor without elements. */
static kn_status kaiming_std(const kn_tensor *tensor, const char *function, double a,
                             const kn_init_kaiming_params *params, double *std)
{
    double fan_in = 0, fan_out = 0;
    *std = 0;
    KN_TRY(fans(tensor, function, &fan_in, &fan_out));
    if (params->mode != KN_FAN_IN && params->mode != KN_FAN_OUT)
        return kn_fail(KN_ERR_ARGUMENT, "%s: mode (%d) is neither KN_FAN_IN nor KN_FAN_OUT", function,
                       (int)params->mode);
    const double gain = kn_init_calculate_gain(params->nonlinearity, a);
    if (gain != gain) {
        kn_error_prefix("%s", function);
        return kn_error_status();
    }
    if (kn_numel(tensor) > 0)
        *std = gain / sqrt(params->mode == KN_FAN_IN ? fan_in : fan_out);
    return KN_OK;
}

kn_tensor *kn_init_kaiming_uniform_with_(kn_tensor *tensor, double a, const kn_init_kaiming_params *params)
{
    double std;
    params = params ? params : &(kn_init_kaiming_params){KN_INIT_KAIMING_DEFAULTS};
    if (kaiming_std(tensor, "init_kaiming_uniform_", a, params, &std) != KN_OK)
        return kn_error_make_sticky();
    if (kn_numel(tensor) == 0)
        return tensor;
    const kn_random_params random = {.generator = params->generator};
    return kn_init_uniform_with_(tensor, -sqrt(3) * std, sqrt(3) * std, &random);
}

kn_tensor *kn_init_kaiming_normal_with_(kn_tensor *tensor, double a, const kn_init_kaiming_params *params)
{
    double std;
    params = params ? params : &(kn_init_kaiming_params){KN_INIT_KAIMING_DEFAULTS};
    if (kaiming_std(tensor, "init_kaiming_normal_", a, params, &std) != KN_OK)
        return kn_error_make_sticky();
    const kn_random_params random = {.generator = params->generator};
    return kn_numel(tensor) == 0 ? tensor : kn_init_normal_with_(tensor, 0, std, &random);
}

kn_tensor *kn_init_xavier_uniform_with_(kn_tensor *tensor, double gain, const kn_random_params *params)
{
    double fan_in = 0, fan_out = 0;
    if (fans(tensor, "init_xavier_uniform_", &fan_in, &fan_out) != KN_OK)
        return kn_error_make_sticky();
    if (kn_numel(tensor) == 0)
        return tensor;
    double bound = gain * sqrt(6 / (fan_in + fan_out));
    return kn_init_uniform_with_(tensor, -bound, bound, params);
}

kn_tensor *kn_init_xavier_normal_with_(kn_tensor *tensor, double gain, const kn_random_params *params)
{
    double fan_in = 0, fan_out = 0;
    if (fans(tensor, "init_xavier_normal_", &fan_in, &fan_out) != KN_OK)
        return kn_error_make_sticky();
    return kn_numel(tensor) == 0 ? tensor
                                 : kn_init_normal_with_(tensor, 0, gain * sqrt(2 / (fan_in + fan_out)), params);
}

/* --- made on the host --------------------------------------------------------------------------------------------- */

static kn_tensor *fill(kn_tensor *tensor, const char *function, double value)
{
    if (kn_check_tensor(function, "tensor", tensor) != KN_OK || kn_tensor_fill(tensor, value) != KN_OK)
        return kn_error_make_sticky();
    kn_tensor_bump_version(tensor);
    return tensor;
}

kn_tensor *kn_init_constant_(kn_tensor *tensor, double value) { return fill(tensor, "init_constant_", value); }
kn_tensor *kn_init_zeros_(kn_tensor *tensor) { return fill(tensor, "init_zeros_", 0); }
kn_tensor *kn_init_ones_(kn_tensor *tensor) { return fill(tensor, "init_ones_", 1); }

/* The elements of a floating tensor of `least` to `most` dimensions on the host, as float64; zeros or, with `params`,
 * standard normal deviates. */
static kn_status begin(kn_tensor **host, kn_tensor *tensor, const char *function, int least, int most, bool random,
                       const kn_random_params *params)
{
    char text[KN_DESCRIBE];
    *host = NULL;
    KN_TRY(kn_check_tensor(function, "tensor", tensor));
    if (tensor->ndim < least || tensor->ndim > most)
        return kn_fail(KN_ERR_SHAPE, "%s: takes tensors of %d to %d dimensions, not %s", function, least, most,
                       kn_tensor_describe(text, sizeof text, tensor));
    if (random) {
        if (!kn_init_normal_with_(tensor, 0, 1, params))
            return kn_error_status();
        return kn_tensor_cast(host, tensor, KN_F64, kn_device_host());
    }
    KN_TRY(kn_tensor_new(host, KN_F64, tensor->ndim, tensor->shape, kn_device_host()));
    return kn_tensor_fill(*host, 0);
}

static kn_tensor *end(kn_tensor *host, kn_tensor *tensor, kn_status status)
{
    if (status == KN_OK)
        status = kn_tensor_copy(tensor, host);
    kn_release(host);
    if (status != KN_OK)
        return kn_error_make_sticky();
    kn_tensor_bump_version(tensor);
    return tensor;
}

kn_tensor *kn_init_eye_(kn_tensor *tensor)
{
    kn_tensor *host;
    kn_status status = begin(&host, tensor, "init_eye_", 2, 2, false, NULL);
    for (int64_t i = 0; status == KN_OK && i < tensor->shape[0] && i < tensor->shape[1]; i++)
        ((double *)kn_data(host))[i * tensor->shape[1] + i] = 1;
    return end(host, tensor, status);
}

kn_tensor *kn_init_dirac_(kn_tensor *tensor, int64_t groups)
{
    kn_tensor *host;
    kn_status status = begin(&host, tensor, "init_dirac_", 3, 5, false, NULL);
    if (status == KN_OK && (groups < 1 || tensor->shape[0] % groups != 0))
        status = kn_fail(KN_ERR_ARGUMENT, "init_dirac_: groups (%lld) must divide the %lld output channels",
                         (long long)groups, (long long)tensor->shape[0]);
    int64_t field = 1, middle = 0;
    for (int d = 2; status == KN_OK && d < tensor->ndim; d++) {
        field *= tensor->shape[d];
        middle = middle * tensor->shape[d] + tensor->shape[d] / 2;
    }
    const int64_t out = status == KN_OK && field > 0 ? tensor->shape[0] / groups : 0;
    for (int64_t g = 0; g < groups && out > 0; g++)
        for (int64_t i = 0; i < out && i < tensor->shape[1]; i++)
            ((double *)kn_data(host))[((g * out + i) * tensor->shape[1] + i) * field + middle] = 1;
    return end(host, tensor, status);
}

/* Orthonormal rows, by the Gram-Schmidt process, twice for accuracy. The rows of random normal matrices are
 * independent. */
static void orthonormalise(double *m, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++) {
        double *row = m + i * columns, norm = 0;
        for (int64_t k = 0; k < 2 * i; k++) {
            const double *other = m + k % i * columns;
            double product = 0;
            for (int64_t c = 0; c < columns; c++)
                product += row[c] * other[c];
            for (int64_t c = 0; c < columns; c++)
                row[c] -= product * other[c];
        }
        for (int64_t c = 0; c < columns; c++)
            norm += row[c] * row[c];
        for (int64_t c = 0; c < columns; c++)
            row[c] /= sqrt(norm);
    }
}

kn_tensor *kn_init_orthogonal_with_(kn_tensor *tensor, double gain, const kn_random_params *params)
{
    kn_tensor *host;
    kn_status status = begin(&host, tensor, "init_orthogonal_", 2, KN_MAX_DIMS, true, params);
    const int64_t rows = status == KN_OK ? tensor->shape[0] : 0, columns = rows > 0 ? kn_numel(tensor) / rows : 0;
    double *m = rows * columns > 0 ? kn_data(host) : NULL, *turned = m;
    const bool turn = rows > columns; /* then its columns are orthonormal */
    if (m != NULL && turn && (turned = kn_calloc((size_t)(rows * columns), sizeof *turned)) == NULL)
        status = KN_ERR_MEMORY;
    for (int64_t i = 0; m != NULL && turn && turned != NULL && i < rows * columns; i++)
        turned[i % columns * rows + i / columns] = m[i];
    if (m != NULL && turned != NULL)
        orthonormalise(turned, turn ? columns : rows, turn ? rows : columns);
    for (int64_t i = 0; m != NULL && turned != NULL && i < rows * columns; i++)
        m[i] = gain * (turn ? turned[i % columns * rows + i / columns] : m[i]);
    if (turned != m)
        kn_free(turned);
    return end(host, tensor, status);
}

kn_tensor *kn_init_sparse_with_(kn_tensor *tensor, double sparsity, double std, const kn_random_params *params)
{
    kn_tensor *host;
    kn_status status = KN_OK;
    if (!(sparsity >= 0 && sparsity <= 1))
        return kn_fail_null(KN_ERR_ARGUMENT, "init_sparse_: sparsity (%g) must be from 0 to 1", sparsity);
    status = begin(&host, tensor, "init_sparse_", 2, 2, true, params);
    const int64_t rows = status == KN_OK ? tensor->shape[0] : 0, columns = rows > 0 ? tensor->shape[1] : 0;
    const int64_t zeros = (int64_t)ceil(sparsity * (double)rows);
    double *m = rows * columns > 0 ? kn_data(host) : NULL;
    int64_t *order = m != NULL ? kn_calloc((size_t)rows, sizeof *order) : NULL;
    if (m != NULL && order == NULL)
        status = KN_ERR_MEMORY;
    kn_philox state = {0};
    if (order != NULL)
        state = kn_generator_reserve(params ? params->generator : NULL, tensor->storage->device,
                                     4 * (uint64_t)(rows * columns));
    for (int64_t c = 0; order != NULL && c < columns; c++) {
        for (int64_t r = 0; r < rows; r++) {
            order[r] = r;
            m[r * columns + c] *= std;
        }
        for (int64_t r = 0; r < zeros; r++) { /* the first of a random order */
            uint32_t words[4];
            kn_philox_block(words, state.seed, state.offset, (uint64_t)(c * rows + r));
            const int64_t from = r + (int64_t)(kn_uniform_f64(words[0], words[1]) * (double)(rows - r)),
                          at = order[from];
            order[from] = order[r];
            order[r] = at;
            m[at * columns + c] = 0;
        }
    }
    kn_free(order);
    return end(host, tensor, status);
}

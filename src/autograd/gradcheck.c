/* autograd/gradcheck.c - gradients against central differences: (L(x + eps) - L(x - eps)) / (2 eps), L the output
 * weighted with fixed random numbers. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "autograd/tape.h"
#include "base/memory.h"
#include "tensor/philox.h"

typedef struct check {
    kn_gradcheck_function function;
    void *user;
    kn_tensor *const *inputs;
    kn_gradcheck_options options;
} check;

static double weight(int64_t i)
{
    uint32_t words[4];
    kn_philox_block(words, 42, 0, (uint64_t)i);
    return kn_uniform_f64(words[0], words[1]) - 0.5;
}

static kn_status weighted_sum(double *sum, const kn_tensor *output)
{
    int64_t n = kn_numel(output);
    if (output->dtype != KN_F64)
        return kn_fail(KN_ERR_DTYPE, "kn_gradcheck: the function returned %s, not float64",
                       kn_dtype_name(output->dtype));
    double *values = kn_malloc((size_t)n * sizeof *values);
    if (!values)
        return KN_ERR_MEMORY;
    kn_status status = kn_read(output, values, (size_t)n * sizeof *values);
    *sum = 0;
    for (int64_t i = 0; i < n && status == KN_OK; i++)
        *sum += values[i] * weight(i);
    kn_free(values);
    return status;
}

static kn_status evaluate(double *loss, const check *c)
{
    kn_status status = KN_ERR_MEMORY;

    KN_SCOPE;

    KN_NO_GRAD;
    kn_tensor *output = c->function(c->inputs, c->user);
    status = output ? weighted_sum(loss, output) : kn_error_status();

    return status;
}

static kn_status analytic(const check *c, int num_inputs)
{
    for (int i = 0; i < num_inputs; i++)
        KN_TRY(kn_set_grad(c->inputs[i], NULL));
    kn_status status = KN_ERR_MEMORY;

    KN_SCOPE;
    kn_tensor *output = c->function(c->inputs, c->user);
    double *weights = output ? kn_malloc((size_t)kn_numel(output) * sizeof *weights) : NULL;
    for (int64_t i = 0; weights && i < kn_numel(output); i++)
        weights[i] = weight(i);
    kn_tensor_options options = {.dtype = KN_F64, .device = kn_device_of(output)};
    kn_tensor *gradient = weights ? kn_from_data_with(weights, kn_ndim(output), kn_shape(output), &options) : NULL;
    status = gradient ? kn_backward_with(output, gradient, false) : kn_error_status();
    kn_free(weights);

    return status;
}

/* The numeric derivative by element `i` of `values`, which are the input's. */
static kn_status numeric(double *slope, const check *c, kn_tensor *input, double *values, int64_t i)
{
    size_t bytes = (size_t)kn_numel(input) * sizeof *values;
    double kept = values[i], eps = c->options.eps, above, below;
    values[i] = kept + eps;
    KN_TRY(kn_write(input, values, bytes));
    KN_TRY(evaluate(&above, c));
    values[i] = kept - eps;
    KN_TRY(kn_write(input, values, bytes));
    KN_TRY(evaluate(&below, c));
    values[i] = kept;
    *slope = (above - below) / (2 * eps);
    return kn_write(input, values, bytes);
}

static kn_status compare(const check *c, int index, double *values, double *gradient)
{
    kn_tensor *input = c->inputs[index];
    int64_t n = kn_numel(input);
    size_t bytes = (size_t)n * sizeof *values;
    memset(gradient, 0, bytes);
    KN_TRY(kn_read(input, values, bytes));
    if (kn_grad(input))
        KN_TRY(kn_read(kn_grad(input), gradient, bytes));
    for (int64_t i = 0; i < n; i++) {
        double slope;
        KN_TRY(numeric(&slope, c, input, values, i));
        if (!(fabs(gradient[i] - slope) <= c->options.atol + c->options.rtol * fabs(slope)))
            return kn_fail(KN_ERR_NUMERIC,
                           "kn_gradcheck: input %d, element %" PRId64
                           ": the gradient is %.9g, central differences give %.9g",
                           index, i, gradient[i], slope);
    }
    return KN_OK;
}

static kn_status check_input(const check *c, int index)
{
    kn_tensor *input = c->inputs[index];
    size_t bytes = (size_t)kn_numel(input) * sizeof(double);
    double *values = kn_malloc(bytes), *gradient = kn_malloc(bytes);
    kn_status status = values && gradient ? compare(c, index, values, gradient) : KN_ERR_MEMORY;
    kn_free(values);
    kn_free(gradient);
    return status;
}

kn_gradcheck_options kn_gradcheck_options_init(void) { return (kn_gradcheck_options){KN_GRADCHECK_DEFAULTS}; }

static kn_gradcheck_options with_defaults(const kn_gradcheck_options *given)
{
    const kn_gradcheck_options defaults = kn_gradcheck_options_init(), options = given ? *given : defaults;
    return (kn_gradcheck_options){.eps = options.eps ? options.eps : defaults.eps,
                                  .atol = options.atol ? options.atol : defaults.atol,
                                  .rtol = options.rtol ? options.rtol : defaults.rtol};
}

kn_status kn_gradcheck(kn_gradcheck_function function, void *user, kn_tensor *const *inputs, int num_inputs,
                       const kn_gradcheck_options *options)
{
    if (!function || !inputs)
        return kn_fail_argument_null("kn_gradcheck", function ? "inputs" : "function");
    check c = {function, user, inputs, with_defaults(options)};
    for (int i = 0; i < num_inputs; i++) {
        if (!inputs[i])
            return kn_fail_argument_null("kn_gradcheck", "inputs[i]");
        if (kn_requires_grad(inputs[i]) && inputs[i]->dtype != KN_F64)
            return kn_fail(KN_ERR_DTYPE, "kn_gradcheck: input %d is %s; differences need float64", i,
                           kn_dtype_name(inputs[i]->dtype));
    }
    KN_TRY(analytic(&c, num_inputs));
    for (int i = 0; i < num_inputs; i++)
        if (kn_requires_grad(inputs[i]))
            KN_TRY(check_input(&c, i));
    return KN_OK;
}

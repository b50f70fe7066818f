/* autograd/gradcheck.c - compares gradients with central differences, (L(x + eps) - L(x - eps)) / (2 eps), where L is
 * the sum of the output weighted by fixed random numbers. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <koine/random.h>

#include "autograd/tape.h"
#include "base/memory.h"
#include "tensor/philox.h"

/* What is checked: the function's result or, if `second`, its gradients, weighted by an additional input of the
 * result's shape (dL/dresult). */
typedef struct check {
    const char *name;
    kn_gradcheck_function function;
    void *user;
    kn_tensor *const *inputs;
    int num_inputs; /* the function's */
    kn_tensor *weights;
    bool second;
    kn_gradcheck_params options;
    kn_tensor **leaves, **outputs; /* one slot per input: those that require gradients, and what is checked */
} check;

static double weight(int64_t i)
{
    uint32_t words[4];
    kn_philox_block(words, 42, 0, (uint64_t)i);
    return kn_uniform_f64(words[0], words[1]) - 0.5;
}

/* Adds the weighted sum of the output's elements. */
static kn_status add_weighted(double *sum, const check *c, const kn_tensor *output)
{
    int64_t n = kn_numel(output);
    if (output->dtype != KN_F64)
        return kn_fail(KN_ERR_DTYPE, "%s: the function returned %s, not float64", c->name,
                       kn_dtype_name(output->dtype));
    double *values = kn_malloc((size_t)n * sizeof *values);
    if (!values)
        return KN_ERR_MEMORY;
    kn_status status = kn_read(output, values, (size_t)n * sizeof *values);
    for (int64_t i = 0; i < n && status == KN_OK; i++)
        *sum += values[i] * weight(i);
    kn_free(values);
    return status;
}

/* --- outputs ------------------------------------------------------------------------------------------------------ */

/* Returns how many of the inputs require gradients. */
static int find_leaves(const check *c)
{
    int count = 0;
    for (int i = 0; i < c->num_inputs; i++)
        if (kn_requires_grad(c->inputs[i]))
            c->leaves[count++] = c->inputs[i];
    return count;
}

/* Fills c->outputs with the tensors whose gradients are checked; NULL for those that are always zero. */
static kn_status evaluate(const check *c, int *count)
{
    bool before = kn_set_grad_enabled(kn_grad_enabled() || c->second);
    kn_tensor *output = c->function(c->inputs, c->user);
    kn_status status = output ? KN_OK : kn_error_status();
    *count = 1;
    if (status == KN_OK && c->second) {
        *count = find_leaves(c);
        status = kn_autograd_grad(&output, 1, c->leaves, *count, c->outputs, .grad_outputs = &c->weights,
                                  .create_graph = true, .allow_unused = true);
    } else
        c->outputs[0] = output;
    kn_set_grad_enabled(before);
    return status;
}

static kn_status loss_of(double *loss, const check *c)
{
    int count;
    *loss = 0;
    KN_SCOPE;
    KN_NO_GRAD;
    KN_TRY(evaluate(c, &count));
    for (int i = 0; i < count; i++)
        if (c->outputs[i])
            KN_TRY(add_weighted(loss, c, c->outputs[i]));
    return KN_OK;
}

static kn_status add_gradients_of(kn_tensor *output)
{
    double *weights = kn_malloc((size_t)kn_numel(output) * sizeof *weights);
    if (!weights)
        return KN_ERR_MEMORY;
    for (int64_t i = 0; i < kn_numel(output); i++)
        weights[i] = weight(i);
    kn_tensor_options options = {.dtype = KN_F64, .device = kn_device_of(output)};
    kn_tensor *gradient = kn_from_data_with(weights, kn_ndim(output), kn_shape(output), &options);
    kn_free(weights);
    return gradient ? kn_backward_with(output, gradient, true) : kn_error_status();
}

static kn_status analytic(const check *c)
{
    int count;
    for (int i = 0; i < c->num_inputs; i++)
        KN_TRY(kn_set_grad(c->inputs[i], NULL));
    KN_SCOPE;
    KN_TRY(evaluate(c, &count));
    for (int i = 0; i < count; i++)
        if (!c->second || kn_requires_grad(c->outputs[i])) /* the gradient of a linear function is constant */
            KN_TRY(c->outputs[i] ? add_gradients_of(c->outputs[i]) : KN_OK);
    return KN_OK;
}

/* --- differences -------------------------------------------------------------------------------------------------- */

/* The numeric derivative with respect to element `i` of `values`, the input's values. */
static kn_status numeric(double *slope, const check *c, kn_tensor *input, double *values, int64_t i)
{
    size_t bytes = (size_t)kn_numel(input) * sizeof *values;
    double kept = values[i], eps = c->options.eps, above, below;
    values[i] = kept + eps;
    KN_TRY(kn_write(input, values, bytes));
    KN_TRY(loss_of(&above, c));
    values[i] = kept - eps;
    KN_TRY(kn_write(input, values, bytes));
    KN_TRY(loss_of(&below, c));
    values[i] = kept;
    *slope = (above - below) / (2 * eps);
    return kn_write(input, values, bytes);
}

static kn_status compare(const check *c, kn_tensor *input, int index, double *values, double *gradient)
{
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
                           "%s: input %d, element %" PRId64 ": the gradient is %.9g, central differences give %.9g",
                           c->name, index, i, gradient[i], slope);
    }
    return KN_OK;
}

static kn_status check_input(const check *c, kn_tensor *input, int index)
{
    size_t bytes = (size_t)kn_numel(input) * sizeof(double);
    double *values = kn_malloc(bytes), *gradient = kn_malloc(bytes);
    kn_status status = values && gradient ? compare(c, input, index, values, gradient) : KN_ERR_MEMORY;
    kn_free(values);
    kn_free(gradient);
    return status;
}

/* --- public ------------------------------------------------------------------------------------------------------- */

kn_gradcheck_params kn_gradcheck_params_init(void) { return (kn_gradcheck_params){KN_GRADCHECK_DEFAULTS}; }

static kn_gradcheck_params with_defaults(const kn_gradcheck_params *given)
{
    const kn_gradcheck_params defaults = kn_gradcheck_params_init(), options = given ? *given : defaults;
    return (kn_gradcheck_params){.eps = options.eps ? options.eps : defaults.eps,
                                 .atol = options.atol ? options.atol : defaults.atol,
                                 .rtol = options.rtol ? options.rtol : defaults.rtol};
}

static kn_status begin(check *c, const kn_gradcheck_params *options)
{
    if (!c->function || !c->inputs)
        return kn_fail_argument_null(c->name, c->function ? "inputs" : "function");
    c->options = with_defaults(options);
    for (int i = 0; i < c->num_inputs; i++) {
        if (!c->inputs[i])
            return kn_fail_argument_null(c->name, "inputs[i]");
        if (kn_requires_grad(c->inputs[i]) && c->inputs[i]->dtype != KN_F64)
            return kn_fail(KN_ERR_DTYPE, "%s: input %d is %s; differences need float64", c->name, i,
                           kn_dtype_name(c->inputs[i]->dtype));
    }
    return KN_OK;
}

static kn_status check_leaves(const check *c)
{
    KN_TRY(analytic(c));
    for (int i = 0; i < c->num_inputs; i++)
        if (kn_requires_grad(c->inputs[i]))
            KN_TRY(check_input(c, c->inputs[i], i));
    return c->weights ? check_input(c, c->weights, c->num_inputs) : KN_OK;
}

static kn_status run(check *c)
{
    const size_t places = (size_t)c->num_inputs + 1;
    c->leaves = kn_calloc(2 * places, sizeof *c->leaves);
    if (!c->leaves)
        return KN_ERR_MEMORY;
    c->outputs = c->leaves + places;
    const kn_status status = check_leaves(c);
    kn_free(c->leaves);
    return status;
}

kn_status kn_gradcheck(kn_gradcheck_function function, void *user, kn_tensor *const *inputs, int num_inputs,
                       const kn_gradcheck_params *options)
{
    check c = {.name = "kn_gradcheck", .function = function, .user = user, .inputs = inputs, .num_inputs = num_inputs};
    KN_TRY(begin(&c, options));
    return run(&c);
}

/* A random tensor, shaped like the function's result, that requires gradients. */
static kn_status new_weights(check *c)
{
    KN_SCOPE;
    kn_tensor *output = c->function(c->inputs, c->user);
    if (!output)
        return kn_error_status();
    c->weights = kn_retain(
        kn_rand_with(kn_ndim(output), kn_shape(output),
                     &(kn_tensor_options){.dtype = KN_F64, .device = kn_device_of(output), .requires_grad = true}));
    return c->weights ? KN_OK : kn_error_status();
}

kn_status kn_gradgradcheck(kn_gradcheck_function function, void *user, kn_tensor *const *inputs, int num_inputs,
                           const kn_gradcheck_params *options)
{
    check c = {.name = "kn_gradgradcheck",
               .function = function,
               .user = user,
               .inputs = inputs,
               .num_inputs = num_inputs,
               .second = true};
    KN_TRY(begin(&c, options));
    KN_TRY(new_weights(&c));
    const kn_status status = run(&c);
    kn_release(c.weights);
    return status;
}

/* autograd/gradcheck.c - compares gradients with central differences, (L(x + eps) - L(x - eps)) / (2 eps), where L is
 * the sum of the output weighted by fixed random numbers. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <koine/autograd.h>
#include <koine/random.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/philox.h"
#include "tensor/tensor.h"

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

/* Streams of fixed random numbers. */
enum { WEIGHT_STREAM, DIRECTION_STREAM };

static double weight(int stream, int64_t i)
{
    uint32_t words[4];
    kn_philox_block(words, 42, (uint64_t)stream, (uint64_t)i);
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
        *sum += values[i] * weight(WEIGHT_STREAM, i);
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
        weights[i] = weight(WEIGHT_STREAM, i);
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

#define FAST_DIRECTIONS 2

/* What is known of an input while it is checked: four arrays of `n` numbers. */
typedef struct place {
    kn_tensor *input;
    int index;
    int64_t n;
    double *values, *gradient, *along, *moved; /* `along`: the direction; `moved`: values with a step along it */
} place;

/* Element `d` alone or, in fast mode, all elements by random amounts. */
static void choose_direction(const check *c, const place *p, int64_t d)
{
    for (int64_t i = 0; i < p->n; i++)
        p->along[i] = c->options.fast_mode ? weight(DIRECTION_STREAM + (int)d, i) : i == d;
}

static kn_status loss_at(double *loss, const check *c, const place *p, double step)
{
    for (int64_t i = 0; i < p->n; i++)
        p->moved[i] = p->values[i] + step * p->along[i];
    KN_TRY(kn_write(p->input, p->moved, (size_t)p->n * sizeof *p->moved));
    return loss_of(loss, c);
}

static kn_status numeric(double *slope, const check *c, const place *p)
{
    const double eps = c->options.eps;
    double above = 0, below = 0;
    kn_status status = loss_at(&above, c, p, eps);
    if (status == KN_OK)
        status = loss_at(&below, c, p, -eps);
    *slope = (above - below) / (2 * eps);
    const kn_status restored = kn_write(p->input, p->values, (size_t)p->n * sizeof *p->values);
    return status == KN_OK ? restored : status;
}

static kn_status compare_along(const check *c, const place *p, int64_t d)
{
    double slope, expected = 0;
    choose_direction(c, p, d);
    for (int64_t i = 0; i < p->n; i++)
        expected += p->along[i] != 0 ? p->along[i] * p->gradient[i] : 0;
    KN_TRY(numeric(&slope, c, p));
    if (fabs(expected - slope) <= c->options.atol + c->options.rtol * fabs(slope))
        return KN_OK;
    return kn_fail(KN_ERR_NUMERIC, "%s: input %d, %s %" PRId64 ": the gradient is %.9g, central differences give %.9g",
                   c->name, p->index, c->options.fast_mode ? "random direction" : "element", d, expected, slope);
}

static kn_status compare(const check *c, const place *p)
{
    const size_t bytes = (size_t)p->n * sizeof(double);
    const int64_t directions = c->options.fast_mode && p->n > FAST_DIRECTIONS ? FAST_DIRECTIONS : p->n;
    KN_TRY(kn_read(p->input, p->values, bytes));
    if (kn_grad(p->input))
        KN_TRY(kn_read(kn_grad(p->input), p->gradient, bytes));
    for (int64_t d = 0; d < directions; d++)
        KN_TRY(compare_along(c, p, d));
    return KN_OK;
}

static kn_status check_input(const check *c, kn_tensor *input, int index)
{
    const size_t n = (size_t)kn_numel(input);
    if (n == 0)
        return KN_OK;
    double *memory = kn_calloc(4 * n, sizeof *memory);
    if (!memory)
        return KN_ERR_MEMORY;
    const place p = {input, index, (int64_t)n, memory, memory + n, memory + 2 * n, memory + 3 * n};
    const kn_status status = compare(c, &p);
    kn_free(memory);
    return status;
}

/* --- public ------------------------------------------------------------------------------------------------------- */

kn_gradcheck_params kn_gradcheck_params_init(void) { return (kn_gradcheck_params){KN_GRADCHECK_DEFAULTS}; }

static kn_gradcheck_params with_defaults(const kn_gradcheck_params *given)
{
    const kn_gradcheck_params defaults = kn_gradcheck_params_init(), options = given ? *given : defaults;
    return (kn_gradcheck_params){.eps = options.eps ? options.eps : defaults.eps,
                                 .atol = options.atol ? options.atol : defaults.atol,
                                 .rtol = options.rtol ? options.rtol : defaults.rtol,
                                 .fast_mode = options.fast_mode};
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

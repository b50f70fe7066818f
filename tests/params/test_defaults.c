/* test_defaults.c - the defaults of each parameter struct have one definition: a call with NULL, one with the
 * initialiser's struct, and the macro without arguments do the same. tests/params/params.sh checks that no function
 * with such a struct is missing here. */
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outcome.h"

/* A row: the outcomes of the plain function with `params` and of the macro. ROW: both succeed. NEEDS: without arguments
 * both fail alike, because something is required. GIVEN: both with the same arguments. */
#define CALLS(name, type, show, with, macro)                                                                           \
    static char *name##_with_params(const void *pointer)                                                               \
    {                                                                                                                  \
        const type *params = pointer;                                                                                  \
        return show(with);                                                                                             \
    }                                                                                                                  \
    static char *name##_by_macro(void) { return show(macro); }                                                         \
    static const void *name##_initialised(void)                                                                        \
    {                                                                                                                  \
        static type params;                                                                                            \
        params = type##_init();                                                                                        \
        return &params;                                                                                                \
    }

typedef struct row {
    const char *name;
    char *(*with)(const void *params);
    char *(*macro)(void);
    const void *(*initialised)(void);
    void (*give)(void *params); /* NULL: none */
    bool fails;
} row;

/* --- arguments ------------------------------------------------------------------------------------- */

static kn_tensor *ramp(int ndim, const int64_t *shape)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++)
        count *= shape[d];
    return kn_reshape(kn_mul_scalar(kn_to_dtype(kn_arange(-3, (double)count - 3, 1), KN_F32), 0.37), ndim, shape);
}
static kn_tensor *image(void) { return ramp(KN_SHAPE(1, 2, 6, 6)); }
static kn_tensor *weight(void) { return ramp(KN_SHAPE(3, 2, 3, 3)); }
static kn_tensor *signal(void) { return ramp(KN_SHAPE(1, 2, 7)); }
static kn_tensor *weight1d(void) { return ramp(KN_SHAPE(2, 2, 3)); }
static kn_tensor *volume(void) { return ramp(KN_SHAPE(1, 2, 3, 4, 5)); }
static kn_tensor *weight3d(void) { return ramp(KN_SHAPE(2, 2, 2, 3, 2)); }
static kn_tensor *matrix(void) { return ramp(KN_SHAPE(4, 3)); }
/* One target is -100, the class to ignore, and one is 0, which is not ignored. */
static kn_tensor *classes(void) { return kn_from_data(((int64_t[]){2, 0, -100, 1}), KN_SHAPE(4), .dtype = KN_I64); }
static kn_tensor *mean(void) { return kn_full(KN_SHAPE(2), 0.5); }

/* --- tensors ---------------------------------------------------------------------------------------------------- */

static const int64_t shape23[] = {2, 3};
static const float six[] = {1, 2, 3, 4, 5, 6};
CALLS(kn_empty, kn_tensor_options, show_kind, kn_empty_with(2, shape23, params), kn_empty(KN_SHAPE(2, 3)))
CALLS(kn_zeros, kn_tensor_options, show_tensor, kn_zeros_with(2, shape23, params), kn_zeros(KN_SHAPE(2, 3)))
CALLS(kn_ones, kn_tensor_options, show_tensor, kn_ones_with(2, shape23, params), kn_ones(KN_SHAPE(2, 3)))
CALLS(kn_full, kn_tensor_options, show_tensor, kn_full_with(2, shape23, kn_scalar_int(7), params),
      kn_full(KN_SHAPE(2, 3), 7))
CALLS(kn_from_data, kn_tensor_options, show_tensor, kn_from_data_with(six, 2, shape23, params),
      kn_from_data(six, KN_SHAPE(2, 3)))
CALLS(kn_arange, kn_tensor_options, show_tensor, kn_arange_with(0, 5, 1, params), kn_arange(0, 5, 1))
CALLS(kn_rand, kn_tensor_options, show_tensor, kn_rand_with(2, shape23, params), kn_rand(KN_SHAPE(2, 3)))
CALLS(kn_randn, kn_tensor_options, show_tensor, kn_randn_with(2, shape23, params), kn_randn(KN_SHAPE(2, 3)))
CALLS(kn_uniform_, kn_random_params, show_tensor, kn_uniform_with_(matrix(), 0, 1, params), kn_uniform_(matrix(), 0, 1))
CALLS(kn_normal_, kn_random_params, show_tensor, kn_normal_with_(matrix(), 0, 1, params), kn_normal_(matrix(), 0, 1))
CALLS(kn_bernoulli_, kn_random_params, show_tensor, kn_bernoulli_with_(matrix(), 0.5, params),
      kn_bernoulli_(matrix(), 0.5))
CALLS(kn_rand_like, kn_random_params, show_tensor, kn_rand_like_with(matrix(), params), kn_rand_like(matrix()))
CALLS(kn_randn_like, kn_random_params, show_tensor, kn_randn_like_with(matrix(), params), kn_randn_like(matrix()))
CALLS(kn_init_uniform_, kn_random_params, show_tensor, kn_init_uniform_with_(matrix(), 0, 1, params),
      kn_init_uniform_(matrix(), 0, 1))
CALLS(kn_init_normal_, kn_random_params, show_tensor, kn_init_normal_with_(matrix(), 0, 1, params),
      kn_init_normal_(matrix(), 0, 1))
CALLS(kn_init_kaiming_uniform_, kn_random_params, show_tensor, kn_init_kaiming_uniform_with_(matrix(), 0, params),
      kn_init_kaiming_uniform_(matrix(), 0))
CALLS(kn_init_xavier_uniform_, kn_random_params, show_tensor, kn_init_xavier_uniform_with_(matrix(), 1, params),
      kn_init_xavier_uniform_(matrix(), 1))
CALLS(kn_randint, kn_tensor_options, show_tensor, kn_randint_with(0, 9, 2, shape23, params),
      kn_randint(0, 9, KN_SHAPE(2, 3)))
CALLS(kn_randperm, kn_tensor_options, show_tensor, kn_randperm_with(11, params), kn_randperm(11))
CALLS(kn_to, kn_to_params, show_tensor, kn_to_with(matrix(), params), kn_to_device(matrix(), NULL))

static char *copied(kn_status (*copy)(kn_tensor *destination, kn_tensor *source, const kn_copy_params *params),
                    const kn_copy_params *params)
{
    kn_tensor *destination = kn_zeros(KN_SHAPE(4, 3));
    return copy(destination, matrix(), params) == KN_OK ? show_tensor(destination) : show_error();
}
static kn_status copy_with(kn_tensor *destination, kn_tensor *source, const kn_copy_params *params)
{
    return kn_copy_with(destination, source, params);
}
static kn_status copy_by_macro(kn_tensor *destination, kn_tensor *source, const kn_copy_params *params)
{
    (void)params;
    return kn_copy(destination, source);
}
CALLS(kn_copy, kn_copy_params, , copied(copy_with, params), copied(copy_by_macro, NULL))

/* --- steps on lists --------------------------------------------------------------------------------------------- */

static char *adam_stepped(const kn_fused_adam_params *params, bool by_macro)
{
    kn_tensor *p = matrix(), *g = matrix(), *m = kn_zeros(KN_SHAPE(4, 3)), *v = kn_zeros(KN_SHAPE(4, 3));
    kn_tensor *step = kn_ones(KN_SCALAR);
    kn_status status = by_macro ? kn_fused_adam(&p, &g, &m, &v, NULL, &step, 1)
                                : kn_fused_adam_with(&p, &g, &m, &v, NULL, &step, 1, params);
    return status == KN_OK ? show_tensor(p) : show_error();
}
CALLS(kn_fused_adam, kn_fused_adam_params, , adam_stepped(params, false), adam_stepped(NULL, true))

static char *sgd_stepped(const kn_fused_sgd_params *params, bool by_macro)
{
    kn_tensor *p = matrix(), *g = matrix();
    kn_status status = by_macro ? kn_fused_sgd(&p, &g, NULL, 1) : kn_fused_sgd_with(&p, &g, NULL, 1, params);
    return status == KN_OK ? show_tensor(p) : show_error();
}
CALLS(kn_fused_sgd, kn_fused_sgd_params, , sgd_stepped(params, false), sgd_stepped(NULL, true))

/* --- functions -------------------------------------------------------------------------------------------------- */

CALLS(kn_clamp, kn_clamp_params, show_tensor, kn_clamp_with(matrix(), params), kn_clamp(matrix()))
CALLS(kn_linear, kn_linear_params, show_tensor, kn_linear_with(matrix(), matrix(), NULL, params),
      kn_linear(matrix(), matrix(), NULL))
CALLS(kn_conv2d, kn_conv_params, show_tensor, kn_conv2d_with(image(), weight(), NULL, params),
      kn_conv2d(image(), weight(), NULL))
CALLS(kn_conv1d, kn_conv_params, show_tensor, kn_conv1d_with(signal(), weight1d(), NULL, params),
      kn_conv1d(signal(), weight1d(), NULL))
CALLS(kn_conv3d, kn_conv_params, show_tensor, kn_conv3d_with(volume(), weight3d(), NULL, params),
      kn_conv3d(volume(), weight3d(), NULL))
CALLS(kn_conv_transpose1d, kn_conv_params, show_tensor, kn_conv_transpose1d_with(signal(), weight1d(), NULL, params),
      kn_conv_transpose1d(signal(), weight1d(), NULL))
CALLS(kn_conv_transpose2d, kn_conv_params, show_tensor,
      kn_conv_transpose2d_with(image(), kn_transpose(weight(), 0, 1), NULL, params),
      kn_conv_transpose2d(image(), kn_transpose(weight(), 0, 1), NULL))
CALLS(kn_conv_transpose3d, kn_conv_params, show_tensor, kn_conv_transpose3d_with(volume(), weight3d(), NULL, params),
      kn_conv_transpose3d(volume(), weight3d(), NULL))
CALLS(kn_max_pool1d, kn_pool_params, show_tensor, kn_max_pool1d_with(signal(), params), kn_max_pool1d(signal()))
CALLS(kn_max_pool3d, kn_pool_params, show_tensor, kn_max_pool3d_with(volume(), params), kn_max_pool3d(volume()))
CALLS(kn_avg_pool1d, kn_pool_params, show_tensor, kn_avg_pool1d_with(signal(), params), kn_avg_pool1d(signal()))
CALLS(kn_avg_pool3d, kn_pool_params, show_tensor, kn_avg_pool3d_with(volume(), params), kn_avg_pool3d(volume()))
static kn_tensor *places;
CALLS(kn_max_pool1d_with_indices, kn_pool_params, show_tensor,
      kn_max_pool1d_with_indices_with(signal(), &places, params), kn_max_pool1d_with_indices(signal(), &places))
CALLS(kn_max_pool2d_with_indices, kn_pool_params, show_tensor,
      kn_max_pool2d_with_indices_with(image(), &places, params), kn_max_pool2d_with_indices(image(), &places))
CALLS(kn_max_pool3d_with_indices, kn_pool_params, show_tensor,
      kn_max_pool3d_with_indices_with(volume(), &places, params), kn_max_pool3d_with_indices(volume(), &places))
CALLS(max_pool1d_of_2, kn_pool_params, show_tensor, kn_max_pool1d_with(signal(), params),
      kn_max_pool1d(signal(), .kernel_size = 2))
CALLS(max_pool3d_of_2, kn_pool_params, show_tensor, kn_max_pool3d_with(volume(), params),
      kn_max_pool3d(volume(), .kernel_size = 2))
CALLS(avg_pool1d_of_3, kn_pool_params, show_tensor, kn_avg_pool1d_with(signal(), params),
      kn_avg_pool1d(signal(), .kernel_size = 3, .padding = 1))
CALLS(avg_pool3d_of_3, kn_pool_params, show_tensor, kn_avg_pool3d_with(volume(), params),
      kn_avg_pool3d(volume(), .kernel_size = 3, .padding = 1))
CALLS(places_of_2, kn_pool_params, show_tensor, kn_max_pool2d_with_indices_with(image(), &places, params),
      kn_max_pool2d_with_indices(image(), &places, .kernel_size = 2))
CALLS(kn_max_pool2d, kn_pool_params, show_tensor, kn_max_pool2d_with(image(), params), kn_max_pool2d(image()))
CALLS(kn_avg_pool2d, kn_pool_params, show_tensor, kn_avg_pool2d_with(image(), params), kn_avg_pool2d(image()))
CALLS(max_pool2d_of_2, kn_pool_params, show_tensor, kn_max_pool2d_with(image(), params),
      kn_max_pool2d(image(), .kernel_size = 2))
CALLS(avg_pool2d_of_3, kn_pool_params, show_tensor, kn_avg_pool2d_with(image(), params),
      kn_avg_pool2d(image(), .kernel_size = 3, .padding = 1))
static void give_2(void *params) { ((kn_pool_params *)params)->kernel_size = 2; }
static void give_3(void *params)
{
    ((kn_pool_params *)params)->kernel_size = 3;
    ((kn_pool_params *)params)->padding = 1;
}
CALLS(kn_batch_norm, kn_batch_norm_params, show_tensor, kn_batch_norm_with(image(), params), kn_batch_norm(image()))
CALLS(batch_norm_training, kn_batch_norm_params, show_tensor, kn_batch_norm_with(image(), params),
      kn_batch_norm(image(), .training = true, .running_mean = mean(), .running_var = mean()))
static void give_training(void *params)
{
    kn_batch_norm_params *p = params;
    p->training = true;
    p->running_mean = mean();
    p->running_var = mean();
}
CALLS(kn_layer_norm, kn_layer_norm_params, show_tensor, kn_layer_norm_with(matrix(), 1, shape23 + 1, params),
      kn_layer_norm(matrix(), KN_SHAPE(3)))
CALLS(kn_dropout, kn_dropout_params, show_tensor, kn_dropout_with(matrix(), params), kn_dropout(matrix()))
CALLS(kn_dropout2d, kn_dropout_params, show_tensor, kn_dropout2d_with(image(), params), kn_dropout2d(image()))
CALLS(kn_cross_entropy, kn_cross_entropy_params, show_tensor, kn_cross_entropy_with(matrix(), classes(), params),
      kn_cross_entropy(matrix(), classes()))
CALLS(kn_nll_loss, kn_cross_entropy_params, show_tensor, kn_nll_loss_with(matrix(), classes(), params),
      kn_nll_loss(matrix(), classes()))

/* --- user code ----------------------------------------------------------------------------------------- */

static const char code[] = "T f(T x, T a) { return a * x + 1; }";
static kn_tensor *applied(kn_jit *jit, bool with, const kn_jit_call_params *options)
{
    kn_tensor *inputs[] = {matrix(), kn_full(KN_SCALAR, 2)};
    const int count = kn_jit_num_inputs(jit);
    kn_tensor *y =
        with ? kn_jit_call_with(jit, inputs, count, options) : kn_jit_call(jit, KN_JIT_INPUTS(inputs[0], inputs[1]));
    kn_jit_free(jit);
    return y;
}
CALLS(kn_jit_elementwise, kn_jit_params, show_tensor, applied(kn_jit_elementwise_with(code, params), false, NULL),
      applied(kn_jit_elementwise(code), false, NULL))
CALLS(kn_jit_call, kn_jit_call_params, show_tensor, applied(kn_jit_elementwise(code), true, params),
      applied(kn_jit_elementwise(code), false, NULL))

static kn_tensor *ran;
static kn_kernel_arg ran_args[2];
static char *run_kernel(bool with, bool given, const kn_kernel_run_params *launch)
{
    static const char source[] = "#include \"common/koine.clh\"\n"
                                 "kernel void fill(KN_OUT(y), float v)\n"
                                 "{ KN_BIND_OUT(float, y); KN_FOR(i, 6) y[i] = v + i; }\n";
    kn_user_kernel *kernel = kn_kernel_new(source, "fill", NULL);
    kn_tensor *y = ran ? ran : kn_zeros(KN_SHAPE(6));
    kn_status status = kn_status_of(kernel);
    if (status == KN_OK && with)
        status = kn_kernel_run_with(kernel, launch);
    else if (status == KN_OK && given)
        status = kn_kernel_run(kernel, KN_KERNEL_ARGS(kn_kernel_output(y), kn_kernel_f32(3)), .global = {6});
    else if (status == KN_OK)
        status = kn_kernel_run(kernel);
    kn_kernel_free(kernel);
    ran = NULL;
    return status == KN_OK ? show_tensor(y) : show_error();
}
CALLS(kn_kernel_run, kn_kernel_run_params, , run_kernel(true, false, params), run_kernel(false, false, NULL))
CALLS(kernel_of_6, kn_kernel_run_params, , run_kernel(true, true, params), run_kernel(false, true, NULL))
static void give_global(void *params)
{
    ran = kn_zeros(KN_SHAPE(6));
    ran_args[0] = kn_kernel_output(ran);
    ran_args[1] = kn_kernel_f32(3);
    ((kn_kernel_run_params *)params)->args = ran_args;
    ((kn_kernel_run_params *)params)->num_args = 2;
    ((kn_kernel_run_params *)params)->global[0] = 6;
}

static kn_tensor *times_101(kn_tensor *gradient, void *user)
{
    (void)user;
    return kn_mul_scalar(gradient, 1.01);
}
static kn_tensor *cube(kn_tensor *const *inputs, void *user)
{
    (void)user;
    kn_tensor *y = kn_mul(kn_mul(inputs[0], inputs[0]), inputs[0]);
    if (kn_requires_grad(y))
        kn_register_hook(y, times_101, NULL);
    return y;
}
static char *check_cube_twice(const kn_gradcheck_params *options)
{
    kn_tensor *x = kn_full(KN_SHAPE(2), 1.5, .dtype = KN_F64, .requires_grad = true);
    return kn_gradgradcheck(cube, NULL, &x, 1, options) == KN_OK ? strdup("no difference") : show_error();
}
CALLS(kn_gradgradcheck, kn_gradcheck_params, , check_cube_twice(params),
      check_cube_twice(&(kn_gradcheck_params){KN_GRADCHECK_DEFAULTS}))
static char *slope_of_cube(bool by_macro, const kn_autograd_grad_params *params)
{
    kn_tensor *x = kn_full(KN_SHAPE(1), 1.5, .dtype = KN_F64, .requires_grad = true), *slope = NULL;
    kn_tensor *y = kn_mul(kn_mul(x, x), x);
    const kn_status status =
        by_macro ? kn_autograd_grad(&y, 1, &x, 1, &slope) : kn_autograd_grad_with(&y, 1, &x, 1, &slope, params);
    return status == KN_OK ? show_tensor(slope) : show_error();
}
CALLS(kn_autograd_grad, kn_autograd_grad_params, , slope_of_cube(false, params), slope_of_cube(true, NULL))
/* The message contains the difference, which depends on eps, and the tolerance. */
static char *check_cube(const kn_gradcheck_params *options)
{
    kn_tensor *x = kn_full(KN_SHAPE(2), 1.5, .dtype = KN_F64, .requires_grad = true);
    return kn_gradcheck(cube, NULL, &x, 1, options) == KN_OK ? strdup("no difference") : show_error();
}
CALLS(kn_gradcheck, kn_gradcheck_params, , check_cube(params),
      check_cube(&(kn_gradcheck_params){KN_GRADCHECK_DEFAULTS}))

/* --- modules and optimizers -------------------------------------------------------------------------------------- */

CALLS(kn_nn_linear, kn_nn_linear_params, show_module, kn_nn_linear_with(params), kn_nn_linear())
CALLS(linear_of_3, kn_nn_linear_params, show_module, kn_nn_linear_with(params),
      kn_nn_linear(.in_features = 3, .out_features = 2))
static void give_features(void *params)
{
    ((kn_nn_linear_params *)params)->in_features = 3;
    ((kn_nn_linear_params *)params)->out_features = 2;
}
CALLS(kn_nn_conv2d, kn_nn_conv_params, show_module, kn_nn_conv2d_with(params), kn_nn_conv2d())
CALLS(conv2d_of_3, kn_nn_conv_params, show_module, kn_nn_conv2d_with(params),
      kn_nn_conv2d(.in_channels = 2, .out_channels = 4, .kernel_size = 3))
static void give_channels(void *params)
{
    ((kn_nn_conv_params *)params)->in_channels = 2;
    ((kn_nn_conv_params *)params)->out_channels = 4;
    ((kn_nn_conv_params *)params)->kernel_size = 3;
}
CALLS(kn_nn_conv1d, kn_nn_conv_params, show_module, kn_nn_conv1d_with(params), kn_nn_conv1d())
CALLS(kn_nn_conv3d, kn_nn_conv_params, show_module, kn_nn_conv3d_with(params), kn_nn_conv3d())
CALLS(kn_nn_conv_transpose1d, kn_nn_conv_params, show_module, kn_nn_conv_transpose1d_with(params),
      kn_nn_conv_transpose1d())
CALLS(kn_nn_conv_transpose2d, kn_nn_conv_params, show_module, kn_nn_conv_transpose2d_with(params),
      kn_nn_conv_transpose2d())
CALLS(kn_nn_conv_transpose3d, kn_nn_conv_params, show_module, kn_nn_conv_transpose3d_with(params),
      kn_nn_conv_transpose3d())
CALLS(conv1d_of_3, kn_nn_conv_params, show_module, kn_nn_conv1d_with(params),
      kn_nn_conv1d(.in_channels = 2, .out_channels = 4, .kernel_size = 3))
CALLS(conv_transpose3d_of_3, kn_nn_conv_params, show_module, kn_nn_conv_transpose3d_with(params),
      kn_nn_conv_transpose3d(.in_channels = 2, .out_channels = 4, .kernel_size = 3))
CALLS(kn_nn_max_pool1d, kn_pool_params, show_module, kn_nn_max_pool1d_with(params), kn_nn_max_pool1d())
CALLS(kn_nn_max_pool3d, kn_pool_params, show_module, kn_nn_max_pool3d_with(params), kn_nn_max_pool3d())
CALLS(kn_nn_avg_pool1d, kn_pool_params, show_module, kn_nn_avg_pool1d_with(params), kn_nn_avg_pool1d())
CALLS(kn_nn_avg_pool3d, kn_pool_params, show_module, kn_nn_avg_pool3d_with(params), kn_nn_avg_pool3d())
CALLS(kn_nn_max_pool2d, kn_pool_params, show_module, kn_nn_max_pool2d_with(params), kn_nn_max_pool2d())
CALLS(kn_nn_avg_pool2d, kn_pool_params, show_module, kn_nn_avg_pool2d_with(params), kn_nn_avg_pool2d())
CALLS(nn_max_pool2d_of_2, kn_pool_params, show_module, kn_nn_max_pool2d_with(params),
      kn_nn_max_pool2d(.kernel_size = 2))
CALLS(nn_avg_pool2d_of_2, kn_pool_params, show_module, kn_nn_avg_pool2d_with(params),
      kn_nn_avg_pool2d(.kernel_size = 2))
CALLS(kn_nn_batch_norm1d, kn_nn_batch_norm_params, show_module, kn_nn_batch_norm1d_with(params), kn_nn_batch_norm1d())
CALLS(kn_nn_batch_norm2d, kn_nn_batch_norm_params, show_module, kn_nn_batch_norm2d_with(params), kn_nn_batch_norm2d())
CALLS(batch_norm1d_of_2, kn_nn_batch_norm_params, show_module, kn_nn_batch_norm1d_with(params),
      kn_nn_batch_norm1d(.num_features = 2))
CALLS(batch_norm2d_of_2, kn_nn_batch_norm_params, show_module, kn_nn_batch_norm2d_with(params),
      kn_nn_batch_norm2d(.num_features = 2))
static void give_num_features(void *params) { ((kn_nn_batch_norm_params *)params)->num_features = 2; }
CALLS(kn_nn_layer_norm, kn_nn_layer_norm_params, show_module, kn_nn_layer_norm_with(2, shape23, params),
      kn_nn_layer_norm(KN_SHAPE(2, 3)))
CALLS(kn_nn_dropout, kn_nn_dropout_params, show_module, kn_nn_dropout_with(params), kn_nn_dropout())
CALLS(kn_nn_dropout2d, kn_nn_dropout_params, show_module, kn_nn_dropout2d_with(params), kn_nn_dropout2d())
CALLS(kn_nn_data_parallel, kn_data_parallel_params, show_module, kn_nn_data_parallel_with(kn_nn_relu(), params),
      kn_nn_data_parallel(kn_nn_relu()))

CALLS(kn_optim_sgd, kn_sgd_params, show_optim, kn_optim_sgd_with(some_parameters(), params),
      kn_optim_sgd(some_parameters()))
CALLS(kn_optim_adam, kn_adam_params, show_optim, kn_optim_adam_with(some_parameters(), params),
      kn_optim_adam(some_parameters()))

static char *show_made(kn_module *module)
{
    if (module == NULL)
        return show_error();
    static char text[64];
    snprintf(text, sizeof text, "%d in, %d out", kn_module_input_count(module), kn_module_output_count(module));
    kn_module_free(module);
    return strdup(text);
}
static kn_status pass_on(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    (void)module;
    outputs[0] = inputs[0];
    return KN_OK;
}
CALLS(kn_module_new_many, kn_module_new_many_params, show_made, kn_module_new_many_with("Any", pass_on, params),
      kn_module_new_many("Any", pass_on))

/* Neither function has a macro with options: uses the plain call instead. */
CALLS(kn_module_summary, kn_module_summary_params, show_text, kn_module_summary_with(some_module(), params),
      kn_module_summary(some_module()))
static char *load_module(const kn_module_load_params *params)
{
    return kn_module_load_with(some_module(), "/nowhere/net.safetensors", params) == KN_OK ? NULL : show_error();
}
static char *load_module_by_macro(void)
{
    return kn_module_load(some_module(), "/nowhere/net.safetensors") == KN_OK ? NULL : show_error();
}
CALLS(kn_module_load, kn_module_load_params, , load_module(params), load_module_by_macro())

/* --- data and training ------------------------------------------------------------------------------------------- */

static kn_loader *load(bool with, const kn_loader_params *params)
{
    return with ? kn_loader_new_with(some_data(), params) : kn_loader_new(some_data());
}
/* The transform adds one. */
static kn_status add_one(void *value, const kn_field *field, uint64_t random, void *user)
{
    (void)field, (void)random, (void)user;
    *(float *)value += 1;
    return KN_OK;
}
static char *transformed(bool with, const kn_transform_dataset_params *params)
{
    float x[2];
    int64_t y;
    static char text[64];
    KN_SCOPE;
    kn_tensor *rows = kn_ones(KN_SHAPE(1, 2), .device = kn_device_host());
    kn_dataset *base = kn_tensor_dataset(rows, kn_zeros(KN_SHAPE(1), .dtype = KN_I64, .device = kn_device_host()));
    kn_dataset *dataset =
        with ? kn_transform_dataset_with(base, add_one, NULL, params) : kn_transform_dataset(base, add_one, NULL);
    if (kn_dataset_get(dataset, 0, (void *[]){x, &y}) != KN_OK)
        return show_error();
    snprintf(text, sizeof text, "%g %g %d", (double)x[0], (double)x[1], (int)y);
    kn_dataset_free(dataset);
    return strdup(text);
}
CALLS(kn_transform_dataset, kn_transform_dataset_params, , transformed(true, params), transformed(false, NULL))

CALLS(kn_loader_new, kn_loader_params, show_loader, load(true, params), load(false, NULL))

static kn_trainer *train(bool with, bool given, const kn_trainer_params *params)
{
    return with    ? kn_trainer_new_with(params)
           : given ? kn_trainer_new(.module = some_module(), .optim = some_optim(), .quiet = true)
                   : kn_trainer_new();
}
CALLS(kn_trainer_new, kn_trainer_params, show_trainer, train(true, false, params), train(false, false, NULL))
CALLS(trainer_of_a_module, kn_trainer_params, show_trainer, train(true, true, params), train(false, true, NULL))
static void give_module(void *params)
{
    ((kn_trainer_params *)params)->module = some_module();
    ((kn_trainer_params *)params)->optim = some_optim();
    ((kn_trainer_params *)params)->quiet = true;
}

/* --- the profiler ------------------------------------------------------------------------------------------------ */

static char *profiled(kn_status started)
{
    if (started != KN_OK)
        return show_error();
    kn_sum(matrix());
    return kn_profiler_stop() == KN_OK ? show_profile() : show_error();
}
CALLS(kn_profiler_start, kn_profiler_params, profiled, kn_profiler_start_with(params), kn_profiler_start())
static char *enter(const kn_profiler_params *params)
{
    return profiled(kn_profiler_enter(params) ? KN_OK : kn_error_status());
}
static char *enter_by_macro(void)
{
    {
        KN_PROFILE();
        kn_sum(matrix());
    }
    return show_profile();
}
CALLS(kn_profiler_enter, kn_profiler_params, , enter(params), enter_by_macro())
/* For the recording left by the previous rows. */
CALLS(kn_profiler_table, kn_profiler_table_params, show_text, kn_profiler_table_with(params), kn_profiler_table())

/* --- the rows --------------------------------------------------------------------------------------------------- */

#define ENTRY(name, give, fails)                                                                                       \
    {                                                                                                                  \
#name, name##_with_params, name##_by_macro, name##_initialised, give, fails                                    \
    }
#define ROW(name) ENTRY(name, NULL, false)
#define NEEDS(name) ENTRY(name, NULL, true)
#define GIVEN(name, give) ENTRY(name, give, false)
static const row rows[] = {
    ROW(kn_empty),
    ROW(kn_zeros),
    ROW(kn_ones),
    ROW(kn_full),
    ROW(kn_from_data),
    ROW(kn_arange),
    ROW(kn_rand),
    ROW(kn_randn),
    ROW(kn_randint),
    ROW(kn_uniform_),
    ROW(kn_normal_),
    ROW(kn_bernoulli_),
    ROW(kn_rand_like),
    ROW(kn_randn_like),
    ROW(kn_init_uniform_),
    ROW(kn_init_normal_),
    ROW(kn_init_kaiming_uniform_),
    ROW(kn_init_xavier_uniform_),
    ROW(kn_randperm),
    ROW(kn_to),
    ROW(kn_copy),
    ROW(kn_fused_adam),
    ROW(kn_fused_sgd),
    ROW(kn_clamp),
    ROW(kn_linear),
    ROW(kn_conv1d),
    ROW(kn_conv2d),
    ROW(kn_conv3d),
    ROW(kn_conv_transpose1d),
    ROW(kn_conv_transpose2d),
    ROW(kn_conv_transpose3d),
    NEEDS(kn_max_pool1d),
    NEEDS(kn_max_pool3d),
    NEEDS(kn_avg_pool1d),
    NEEDS(kn_avg_pool3d),
    NEEDS(kn_max_pool1d_with_indices),
    NEEDS(kn_max_pool2d_with_indices),
    NEEDS(kn_max_pool3d_with_indices),
    GIVEN(max_pool1d_of_2, give_2),
    GIVEN(max_pool3d_of_2, give_2),
    GIVEN(avg_pool1d_of_3, give_3),
    GIVEN(avg_pool3d_of_3, give_3),
    GIVEN(places_of_2, give_2),
    NEEDS(kn_max_pool2d),
    NEEDS(kn_avg_pool2d),
    GIVEN(max_pool2d_of_2, give_2),
    GIVEN(avg_pool2d_of_3, give_3),
    NEEDS(kn_batch_norm),
    GIVEN(batch_norm_training, give_training),
    ROW(kn_layer_norm),
    ROW(kn_dropout),
    ROW(kn_dropout2d),
    ROW(kn_cross_entropy),
    ROW(kn_nll_loss),
    ROW(kn_jit_elementwise),
    ROW(kn_jit_call),
    NEEDS(kn_kernel_run),
    GIVEN(kernel_of_6, give_global),
    ROW(kn_autograd_grad),
    ROW(kn_gradgradcheck),
    NEEDS(kn_gradcheck),
    NEEDS(kn_nn_linear),
    GIVEN(linear_of_3, give_features),
    NEEDS(kn_nn_conv1d),
    NEEDS(kn_nn_conv2d),
    NEEDS(kn_nn_conv3d),
    NEEDS(kn_nn_conv_transpose1d),
    NEEDS(kn_nn_conv_transpose2d),
    NEEDS(kn_nn_conv_transpose3d),
    GIVEN(conv1d_of_3, give_channels),
    GIVEN(conv_transpose3d_of_3, give_channels),
    NEEDS(kn_nn_max_pool1d),
    NEEDS(kn_nn_max_pool3d),
    NEEDS(kn_nn_avg_pool1d),
    NEEDS(kn_nn_avg_pool3d),
    GIVEN(conv2d_of_3, give_channels),
    NEEDS(kn_nn_max_pool2d),
    NEEDS(kn_nn_avg_pool2d),
    GIVEN(nn_max_pool2d_of_2, give_2),
    GIVEN(nn_avg_pool2d_of_2, give_2),
    NEEDS(kn_nn_batch_norm1d),
    NEEDS(kn_nn_batch_norm2d),
    GIVEN(batch_norm1d_of_2, give_num_features),
    GIVEN(batch_norm2d_of_2, give_num_features),
    ROW(kn_nn_layer_norm),
    ROW(kn_nn_dropout),
    ROW(kn_nn_dropout2d),
    ROW(kn_nn_data_parallel),
    ROW(kn_module_summary),
    ROW(kn_module_new_many),
    ROW(kn_transform_dataset),
    NEEDS(kn_module_load),
    ROW(kn_optim_sgd),
    ROW(kn_optim_adam),
    ROW(kn_loader_new),
    NEEDS(kn_trainer_new),
    GIVEN(trainer_of_a_module, give_module),
    ROW(kn_profiler_start),
    ROW(kn_profiler_enter),
    ROW(kn_profiler_table),
};

static char *seeded(char *(*with)(const void *params), char *(*macro)(void), const void *params)
{
    KN_SCOPE;
    kn_manual_seed(3);
    return with ? with(params) : macro();
}

/* `text`, which it frees, is what the macro gave. */
static bool same(const row *r, const char *what, char *text, const char *expected)
{
    const bool equal = text && expected && strcmp(text, expected) == 0;
    if (!equal)
        print_error("%s: %s gives\n%s\nand the macro\n%s\n", r->name, what, text ? text : "?",
                    expected ? expected : "?");
    free(text);
    return equal;
}

static bool check_row(const row *r)
{
    bool fine = true;
    char *expected = seeded(NULL, r->macro, NULL);
    assert_non_null(expected);
    if (is_error(expected) != r->fails) {
        print_error("%s: the macro gives\n%s\n", r->name, expected);
        fine = false;
    }
    if (!r->give)
        fine = same(r, "NULL", seeded(r->with, NULL, NULL), expected) && fine;
    KN_SCOPE;
    const void *params = r->initialised();
    if (r->give)
        r->give((void *)(uintptr_t)params);
    fine = same(r, "the initialiser", seeded(r->with, NULL, params), expected) && fine;
    free(expected);
    return fine;
}

static void defaults_are_the_same_three_ways(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        wrong += !check_row(&rows[i]);
    kn_profiler_clear();
    forget_outcomes();
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(defaults_are_the_same_three_ways)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

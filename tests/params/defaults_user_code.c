/* defaults_user_code.c - user code: jit, kernels, gradient checks. */
#include "defaults.h"

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
    kn_tensor *x = kn_full(KN_SHAPE(1), 1.5, .requires_grad = true), *slope = NULL;
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

/* clang-format off */
DEFAULTS(user_code_defaults,
         ROW(kn_jit_elementwise),
         ROW(kn_jit_call),
         NEEDS(kn_kernel_run),
         GIVEN(kernel_of_6, give_global),
         ROW(kn_autograd_grad),
         ROW(kn_gradgradcheck),
         NEEDS(kn_gradcheck))
/* clang-format on */

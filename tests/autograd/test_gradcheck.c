/* test_gradcheck.c - kn_gradcheck rejects wrong gradients and accepts right ones; the observer sees each operation. */
#include "support/check.h"

#include <string.h>

#include "autograd/op.h"

/* --- an operation with selectable errors ----------------------------------------------------------- */

typedef struct cube_params {
    double factor;    /* of the gradient: 1 is correct */
    bool wrong_shape; /* the gradient has the shape [1] */
    bool no_gradient; /* backward sets none */
} cube_params;

static kn_status cube_shape(kn_call *call)
{
    return kn_call_output(call, call->inputs[0]->dtype, call->inputs[0]->ndim, call->inputs[0]->shape);
}

/* x^3, composed of public operations. */
static kn_status cube_forward(kn_call *call)
{
    kn_status status = KN_ERR_MEMORY;
    {
        KN_SCOPE;

        KN_NO_GRAD;
        kn_tensor *x = call->inputs[0], *cube = kn_mul(x, kn_mul(x, x));
        status = cube ? kn_tensor_copy(call->outputs[0], cube) : kn_error_status();
    }
    return status == KN_OK && call->needs_grad ? kn_call_save(call, call->inputs[0]) : status;
}

static kn_status cube_backward(kn_grad_call *call)
{
    const cube_params *params = call->params;
    kn_tensor *x = call->saved[0], *g = call->grad_outputs[0];
    if (params->no_gradient)
        return KN_OK;
    call->grad_inputs[0] = params->wrong_shape ? kn_ones(KN_SHAPE(1), .dtype = KN_F64)
                                               : kn_mul_scalar(kn_mul(g, kn_mul(x, x)), 3 * params->factor);
    return call->grad_inputs[0] ? KN_OK : kn_error_status();
}

static const kn_op cube_op = {
    .name = "cube",
    .inputs = {"x"},
    .record_size = sizeof(cube_params),
    .shape = cube_shape,
    .forward = cube_forward,
    .backward = cube_backward,
};

static kn_tensor *cube(kn_tensor *const *inputs, void *user) { return kn_apply(&cube_op, user, inputs[0]); }

static kn_tensor *input(void)
{
    const double values[] = {0.5, -1, 2};
    return kn_from_data(values, KN_SHAPE(3), .dtype = KN_F64, .requires_grad = true);
}

TENSOR_TEST_F64(test_right_gradient)
{
    kn_tensor *x = input();
    cube_params right = {.factor = 1};
    CHECK_OK(kn_gradcheck(cube, &right, &x, 1, NULL));
    CHECK_VALUES(x, 0.5, -1, 2); /* the input is unchanged */
}

TENSOR_TEST_F64(test_wrong_gradient)
{
    kn_tensor *x = input();
    cube_params slightly_off = {.factor = 1.01}, sign = {.factor = -1}, none = {.no_gradient = true};
    assert_int_equal(kn_gradcheck(cube, &slightly_off, &x, 1, NULL), KN_ERR_NUMERIC);
    CHECK_ERROR(KN_ERR_NUMERIC, "input 0", "element 0");
    assert_int_equal(kn_gradcheck(cube, &sign, &x, 1, NULL), KN_ERR_NUMERIC);
    kn_error_clear();
    assert_int_equal(kn_gradcheck(cube, &none, &x, 1, NULL), KN_ERR_NUMERIC);
    kn_error_clear();
    assert_int_equal(kn_gradcheck(cube, &slightly_off, &x, 1, &(kn_gradcheck_params){.fast_mode = true}),
                     KN_ERR_NUMERIC);
    CHECK_ERROR(KN_ERR_NUMERIC, "input 0", "random direction 0");
    kn_gradcheck_params loose = {.rtol = 0.1};
    CHECK_OK(kn_gradcheck(cube, &slightly_off, &x, 1, &loose));
    CHECK_VALUES(x, 0.5, -1, 2);
}

static kn_tensor *counted_cube(kn_tensor *const *inputs, void *user)
{
    ++*(int *)user;
    cube_params right = {.factor = 1};
    return cube(inputs, &right);
}

/* Two directions, each with a step up and one down, and the gradient itself. */
TENSOR_TEST_F64(test_fast_mode)
{
    kn_tensor *x = input(), *empty = kn_empty(KN_SHAPE(0), .dtype = KN_F64, .requires_grad = true);
    int calls = 0;
    CHECK_OK(kn_gradcheck(counted_cube, &calls, &x, 1, &(kn_gradcheck_params){.fast_mode = true}));
    assert_int_equal(calls, 5);
    CHECK_VALUES(x, 0.5, -1, 2);
    calls = 0;
    CHECK_OK(kn_gradcheck(counted_cube, &calls, &empty, 1, NULL));
    assert_int_equal(calls, 1);
}

/* A gradient with a shape other than its input's is an error that names the op, not an out-of-bounds write. */
TENSOR_TEST_F64(test_gradient_of_another_shape)
{
    kn_tensor *x = input();
    cube_params wrong = {.wrong_shape = true};
    kn_tensor *y = cube(&x, &wrong);
    CHECK_TENSOR(y);
    assert_int_equal(kn_backward(kn_sum(y)), KN_ERR_INTERNAL);
    CHECK_ERROR(KN_ERR_INTERNAL, "cube", "input 0", "[1]");
}

TENSOR_TEST(test_needs_f64)
{
    kn_tensor *x = kn_ones(KN_SHAPE(2), .requires_grad = true);
    cube_params right = {.factor = 1};
    assert_int_equal(kn_gradcheck(cube, &right, &x, 1, NULL), KN_ERR_DTYPE);
    CHECK_ERROR(KN_ERR_DTYPE, "input 0", "float64");
}

static kn_tensor *two_inputs(kn_tensor *const *inputs, void *user)
{
    (void)user;
    return kn_mul(kn_exp(inputs[0]), kn_t(inputs[1]));
}

/* Inputs without requires_grad are ignored; views and broadcasting inside the function work. */
TENSOR_TEST_F64(test_some_inputs)
{
    const double values[] = {0.5, -1, 2, 1};
    kn_tensor *inputs[2] = {input(), kn_from_data(values, KN_SHAPE(1, 1), .dtype = KN_F64)};
    CHECK_OK(kn_gradcheck(two_inputs, NULL, inputs, 2, NULL));
    assert_null(kn_grad(inputs[1]));
}

/* The tape copies the parameters of a call: changing them later has no effect. */
TENSOR_TEST_F64(test_params_are_copied)
{
    kn_tensor *x = input();
    cube_params params = {.factor = 1};
    kn_tensor *y = cube(&x, &params);
    params.factor = 100;
    CHECK_OK(kn_backward(kn_sum(y)));
    CHECK_VALUES(kn_grad(x), 0.75, 3, 12);
}

/* --- the observer ------------------------------------------------------------------------------------ */

typedef struct observed {
    int before, after;
    bool refuse;
} observed;

static kn_status observe(kn_call *call, bool after, void *user)
{
    observed *log = user;
    if (strcmp(call->op->name, "cube") != 0)
        return KN_OK;
    log->before += !after;
    log->after += after;
    return log->refuse && after ? kn_error_set(KN_ERR_NUMERIC, "the observer objects") : KN_OK;
}

TENSOR_TEST_F64(test_observer)
{
    kn_tensor *x = input();
    cube_params right = {.factor = 1};
    observed log = {0, 0, false};
    kn_op_set_observer(observe, &log);
    CHECK_TENSOR(cube(&x, &right));
    assert_int_equal(log.before, 1);
    assert_int_equal(log.after, 1);
    log.refuse = true;
    assert_null(cube(&x, &right));
    CHECK_ERROR(KN_ERR_NUMERIC, "cube", "the observer objects");
    kn_op_set_observer(NULL, NULL);
    CHECK_TENSOR(cube(&x, &right));
    assert_int_equal(log.before, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_right_gradient), TEST(test_wrong_gradient),    TEST(test_gradient_of_another_shape),
        TEST(test_needs_f64),      TEST(test_params_are_copied), TEST(test_some_inputs),
        TEST(test_observer),       TEST(test_fast_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

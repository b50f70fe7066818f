/* test_function_rules.c - user-defined functions: their parameters, what is theirs, their mistakes; hooks with a
 * destructor. */
#include "support/check.h"

#include <stdlib.h>

/* --- parameters --------------------------------------------------------------------------------------------------- */

typedef struct scale_params {
    double factor;
    int *destroyed;
    bool fail;
} scale_params;

static kn_status scale_forward(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    scale_params *params = kn_function_params(context);
    if (params->fail)
        return kn_error_set(KN_ERR_NUMERIC, "asked to fail");
    outputs[0] = kn_mul_scalar(inputs[0], params->factor);
    params->factor *= 10; /* for backward */
    return KN_OK;
}

static kn_status scale_backward(kn_function_context *context, kn_tensor *const *grad_outputs, kn_tensor **grad_inputs)
{
    const scale_params *params = kn_function_params(context);
    grad_inputs[0] = kn_mul_scalar(grad_outputs[0], params->factor);
    return KN_OK;
}

static void scale_destroy(void *params) { ++*((scale_params *)params)->destroyed; }

static const kn_function scale = {.name = "scale",
                                  .forward = scale_forward,
                                  .backward = scale_backward,
                                  .destroy = scale_destroy,
                                  .params_size = sizeof(scale_params)};

TENSOR_TEST(parameters_are_a_copy_and_are_destroyed_once)
{
    int destroyed = 0;
    kn_tensor *x = kn_ones(KN_SHAPE(1), .requires_grad = true), *y = NULL;
    scale_params params = {.factor = 2, .destroyed = &destroyed};
    {
        KN_SCOPE;
        y = kn_retain(kn_function_apply(&scale, KN_TENSORS(x), &params));
        assert_true(params.factor == 2);
        params.factor = 1000;
        CHECK_VALUES(y, 2);
        CHECK_OK(kn_backward(y)); /* nothing was saved: a second pass is fine, as in PyTorch */
        CHECK_OK(kn_backward(y));
        CHECK_VALUES(kn_grad(x), 40);
    }
    assert_int_equal(destroyed, 0);
    kn_release(y);
    assert_int_equal(destroyed, 1);

    { /* not recorded */
        KN_NO_GRAD;
        CHECK_VALUES(kn_function_apply(&scale, KN_TENSORS(x), &params), 1000);
        assert_int_equal(destroyed, 2);
    }
    CHECK_VALUES(kn_function_apply(&scale, KN_TENSORS(kn_detach(x)), &params), 1000);
    assert_int_equal(destroyed, 3);

    params.fail = true;
    assert_null(kn_function_apply(&scale, KN_TENSORS(x), &params));
    CHECK_ERROR(KN_ERR_NUMERIC, "scale: asked to fail");
    assert_int_equal(destroyed, 4);
    assert_null(kn_function_apply(&scale, KN_TENSORS(NULL), &params));
    CHECK_ERROR(KN_ERR_ARGUMENT, "scale: input 0 is NULL");
    assert_int_equal(destroyed, 5);
}

TENSOR_TEST(parameters_by_pointer)
{
    int destroyed = 0;
    kn_function by_pointer = scale;
    by_pointer.params_size = 0;
    scale_params params = {.factor = 3, .destroyed = &destroyed};
    {
        KN_SCOPE;
        kn_tensor *x = kn_ones(KN_SHAPE(1), .requires_grad = true);
        CHECK_OK(kn_backward(kn_function_apply(&by_pointer, KN_TENSORS(x), &params)));
        assert_true(params.factor == 30);
        CHECK_VALUES(kn_grad(x), 30);
        assert_int_equal(destroyed, 0);
    }
    assert_int_equal(destroyed, 1);
}

/* --- ownership of tensors made by callbacks ----------------------------------------------------------------------- */

typedef struct keeper {
    kn_tensor *forward, *backward;
} keeper;

static kn_status keeping_forward(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    keeper *self = kn_function_params(context);
    self->forward = kn_mul_scalar(inputs[0], 2);
    outputs[0] = kn_add_scalar(self->forward, 1);
    return KN_OK;
}

static kn_status keeping_backward(kn_function_context *context, kn_tensor *const *grad_outputs, kn_tensor **grad_inputs)
{
    keeper *self = kn_function_params(context);
    grad_inputs[0] = self->backward = kn_mul_scalar(grad_outputs[0], 2);
    return KN_OK;
}

static const kn_function keeping = {.name = "keeping", .forward = keeping_forward, .backward = keeping_backward};

TENSOR_TEST(what_callbacks_keep_lives_to_the_end_of_the_programs_scope)
{
    keeper self;
    kn_tensor *x = kn_ones(KN_SHAPE(2), .requires_grad = true);
    CHECK_OK(kn_backward(kn_sum(kn_function_apply(&keeping, KN_TENSORS(x), &self))));
    for (int i = 0; i < 20; i++)
        kn_full(KN_SHAPE(2), -9); /* would reuse its memory if it were free */
    CHECK_VALUES(self.forward, 2, 2);
    CHECK_VALUES(self.backward, 2, 2);
}

static void without_a_scope_the_result_is_the_callers(void **state)
{
    (void)state;
    keeper self;
    kn_tensor *x = kn_ones(KN_SHAPE(1), .requires_grad = true);
    kn_tensor *y = kn_function_apply(&keeping, KN_TENSORS(x), &self);
    CHECK_VALUES(y, 3);
    CHECK_OK(kn_backward(y));
    CHECK_VALUES(kn_grad(x), 2);
    kn_release(y);
    kn_release(x);
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

typedef enum mistake { EXPRESSION, MESSAGE, SILENT, MISSING, SHAPE, DTYPE, NO_SAVED } mistake;

typedef struct mistakes {
    mistake kind;
    bool in_backward;
} mistakes;

static kn_status make_mistake(kn_function_context *context, mistake kind, kn_tensor *x, kn_tensor **result)
{
    *result = NULL;
    switch (kind) {
    case EXPRESSION:
        *result = kn_matmul(x, kn_ones(KN_SHAPE(7, 7)));
        return KN_OK; /* it did not check */
    case MESSAGE:
        return kn_error_set(KN_ERR_NUMERIC, "not to my liking");
    case SILENT:
        return KN_ERR_FORMAT;
    case MISSING:
        return KN_OK;
    case SHAPE:
        *result = kn_ones(KN_SHAPE(9));
        return KN_OK;
    case DTYPE:
        *result = kn_to_dtype(x, KN_F64);
        return KN_OK;
    case NO_SAVED:
        *result = kn_function_saved(context, 3);
        return KN_OK;
    }
    return KN_OK;
}

static kn_status mistaken_forward(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const mistakes *params = kn_function_params(context);
    outputs[0] = kn_exp(inputs[0]);
    return params->in_backward ? KN_OK : make_mistake(context, params->kind, inputs[0], outputs);
}

static kn_status mistaken_backward(kn_function_context *context, kn_tensor *const *grad_outputs,
                                   kn_tensor **grad_inputs)
{
    const mistakes *params = kn_function_params(context);
    return make_mistake(context, params->kind, grad_outputs[0], grad_inputs);
}

static const kn_function mistaken = {
    .name = "mistaken", .forward = mistaken_forward, .backward = mistaken_backward, .params_size = sizeof(mistakes)};

static void expect(mistake kind, bool in_backward, kn_status status, const char *const *pieces)
{
    kn_tensor *x = kn_ones(KN_SHAPE(2, 2), .requires_grad = true);
    kn_tensor *y = kn_function_apply(&mistaken, KN_TENSORS(x), &(mistakes){kind, in_backward});
    if (in_backward) {
        CHECK_TENSOR(y);
        assert_int_equal(kn_backward(kn_sum(y)), status);
        assert_null(kn_grad(x));
    } else {
        assert_null(y);
    }
    check_error(status, pieces, __FILE__, __LINE__);
}
#define EXPECT(kind, in_backward, status, ...)                                                                         \
    expect(kind, in_backward, status, (const char *const[]){__VA_ARGS__, NULL})

TENSOR_TEST_F64(errors_begin_with_the_functions_name)
{
    EXPECT(EXPRESSION, false, KN_ERR_SHAPE, "mistaken: matmul");
    EXPECT(MESSAGE, false, KN_ERR_NUMERIC, "mistaken: not to my liking");
    EXPECT(SILENT, false, KN_ERR_FORMAT, "mistaken: its forward failed with KN_ERR_FORMAT");
    EXPECT(MISSING, false, KN_ERR_STATE, "mistaken: its forward did not set output 0");
    EXPECT(NO_SAVED, false, KN_ERR_ARGUMENT, "mistaken: kn_function_saved", "no saved tensor 3");
    EXPECT(EXPRESSION, true, KN_ERR_SHAPE, "backward of mistaken: matmul");
    EXPECT(MESSAGE, true, KN_ERR_NUMERIC, "backward of mistaken: not to my liking");
    EXPECT(SILENT, true, KN_ERR_FORMAT, "backward of mistaken: its backward failed with KN_ERR_FORMAT");
    EXPECT(SHAPE, true, KN_ERR_SHAPE, "backward of mistaken: ", "[9]", "input 0", "[2, 2]");
    EXPECT(DTYPE, true, KN_ERR_DTYPE, "backward of mistaken: ", "float64", "float32 [2, 2]");
    EXPECT(NO_SAVED, true, KN_ERR_ARGUMENT, "backward of mistaken: kn_function_saved");
}

TENSOR_TEST(a_gradient_that_is_left_out_does_not_flow)
{
    kn_tensor *x = kn_ones(KN_SHAPE(2), .requires_grad = true);
    kn_tensor *y = kn_function_apply(&mistaken, KN_TENSORS(x), &(mistakes){MISSING, true});
    CHECK_OK(kn_backward(kn_sum(y)));
    assert_null(kn_grad(x));
}

TENSOR_TEST(wrong_arguments)
{
    kn_tensor *x = kn_ones(KN_SHAPE(2)), *y = x;
    assert_null(kn_function_apply(NULL, KN_TENSORS(x), NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_function_apply", "`function` is NULL");
    assert_null(kn_function_apply(&(kn_function){0}, KN_TENSORS(x), NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "no forward");
    assert_null(kn_function_apply(&keeping, NULL, 1, NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "keeping: invalid arguments: 1 inputs");
    assert_int_equal(kn_function_apply_many(&keeping, KN_TENSORS(x), NULL, &y, -1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "keeping: invalid arguments: 1 inputs and -1 outputs");
    /* NULL in, NULL out: the first error is reported */
    assert_null(kn_function_apply(&keeping, KN_TENSORS(kn_matmul(x, kn_ones(KN_SHAPE(5)))), NULL));
    CHECK_ERROR(KN_ERR_SHAPE, "matmul");
}

/* --- hooks with a destructor -------------------------------------------------------------------------------------- */

static kn_tensor *add_hook(kn_tensor *gradient, void *user) { return kn_add_scalar(gradient, *(double *)user); }

static double *number(double value)
{
    double *made = malloc(sizeof *made);
    *made = value;
    return made;
}

static int freed;
static void free_number(void *user)
{
    freed++;
    free(user);
}

TENSOR_TEST(a_hooks_user_is_destroyed_once)
{
    kn_tensor *x = kn_zeros(KN_SHAPE(1), .requires_grad = true);
    freed = 0;
    {
        KN_SCOPE;
        kn_tensor *y = kn_mul_scalar(x, 2);
        CHECK_OK(kn_register_hook_with(y, add_hook, number(3), free_number));
        CHECK_OK(kn_register_hook_with(y, add_hook, number(4), free_number));
        CHECK_OK(kn_backward_with(y, NULL, true));
        CHECK_OK(kn_backward(y));
        CHECK_VALUES(kn_grad(x), 32);
        assert_int_equal(freed, 0);
    }
    assert_int_equal(freed, 2);
    assert_int_equal(kn_register_hook_with(kn_detach(x), add_hook, number(1), free_number), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "does not require gradients");
    assert_int_equal(freed, 3);
    assert_int_equal(kn_register_hook_with(x, NULL, number(1), free_number), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "hook");
    assert_int_equal(freed, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(parameters_are_a_copy_and_are_destroyed_once),
        TEST(parameters_by_pointer),
        TEST(errors_begin_with_the_functions_name),
        TEST(a_gradient_that_is_left_out_does_not_flow),
        TEST(wrong_arguments),
        TEST(what_callbacks_keep_lives_to_the_end_of_the_programs_scope),
        TEST(without_a_scope_the_result_is_the_callers),
        TEST(a_hooks_user_is_destroyed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_function.c - user-defined functions (koine/function.h): what they compute and record. */
#include "support/check.h"

#include <string.h>

static kn_status error_or_ok(const void *made) { return made ? KN_OK : kn_error_status(); }

/* --- a fused x * sigmoid(x), with raw kernels --------------------------------------------------------------------- */

static const char swish_source[] = "#include \"common/koine.clh\"\n"
                                   "kernel void forward(KN_OUT(y), KN_IN(x), long n)\n"
                                   "{\n"
                                   "    KN_BIND_OUT(T, y);\n"
                                   "    KN_BIND_IN(T, x);\n"
                                   "    KN_FOR(i, n) y[i] = x[i] / (1 + exp(-x[i]));\n"
                                   "}\n"
                                   "kernel void backward(KN_OUT(dx), KN_IN(x), KN_IN(dy), long n)\n"
                                   "{\n"
                                   "    KN_BIND_OUT(T, dx);\n"
                                   "    KN_BIND_IN(T, x);\n"
                                   "    KN_BIND_IN(T, dy);\n"
                                   "    KN_FOR(i, n)\n"
                                   "    {\n"
                                   "        const T s = 1 / (1 + exp(-x[i]));\n"
                                   "        dx[i] = dy[i] * s * (1 + x[i] * (1 - s));\n"
                                   "    }\n"
                                   "}\n";

typedef struct swish_kernels {
    kn_user_kernel *forward, *backward;
} swish_kernels;

static kn_status swish_forward(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const swish_kernels *kernels = kn_function_params(context);
    kn_tensor *x = kn_contiguous(inputs[0]), *y = outputs[0] = kn_empty_like(x);
    kn_status status = kn_function_save(context, x);
    if (status != KN_OK)
        return status;
    return kn_kernel_run(kernels->forward,
                         KN_KERNEL_ARGS(kn_kernel_output(y), kn_kernel_input(x), kn_kernel_i64(kn_numel(x))),
                         .global = {(size_t)kn_numel(x)});
}

static kn_status swish_backward(kn_function_context *context, kn_tensor *const *grad_outputs, kn_tensor **grad_inputs)
{
    const swish_kernels *kernels = kn_function_params(context);
    kn_tensor *x = kn_function_saved(context, 0);
    grad_inputs[0] = kn_empty_like(x);
    return kn_kernel_run(kernels->backward,
                         KN_KERNEL_ARGS(kn_kernel_output(grad_inputs[0]), kn_kernel_input(x),
                                        kn_kernel_input(grad_outputs[0]), kn_kernel_i64(kn_numel(x))),
                         .global = {(size_t)kn_numel(x)});
}

static const kn_function swish = {
    .name = "swish", .forward = swish_forward, .backward = swish_backward, .params_size = sizeof(swish_kernels)};

static swish_kernels make_swish(const char *options)
{
    swish_kernels kernels = {NULL, NULL};
    CHECK_NEW(kernels.forward = kn_kernel_new(swish_source, "forward", options));
    CHECK_NEW(kernels.backward = kn_kernel_new(swish_source, "backward", options));
    return kernels;
}

static void free_swish(swish_kernels *kernels)
{
    kn_kernel_free(kernels->forward);
    kn_kernel_free(kernels->backward);
}

static kn_tensor *apply_swish(kn_tensor *const *inputs, void *user)
{
    return kn_function_apply(&swish, KN_TENSORS(kn_t(inputs[0])), user);
}

TENSOR_TEST_F64(a_function_of_raw_kernels)
{
    swish_kernels kernels = make_swish("-DT=float"), doubles = make_swish("-DT=double -DKN_USE_F64");
    const float values[] = {-1, 0, 2};
    kn_tensor *x = kn_from_data(values, KN_SHAPE(3), .requires_grad = true);
    kn_tensor *y = kn_function_apply(&swish, KN_TENSORS(x), &kernels), *z = kn_mul_scalar(y, 3);
    CHECK_VALUES(y, -0.26894143, 0, 1.7615942);
    assert_true(kn_requires_grad(y));
    char *text = kn_to_string(y);
    assert_non_null(strstr(text, "grad_fn=<swish>"));
    kn_free(text);
    CHECK_OK(kn_backward(kn_sum(z)));
    CHECK_VALUES(kn_grad(x), 3 * 0.07232949, 1.5, 3 * 1.0907842);

    kn_tensor *matrix = kn_rand(KN_SHAPE(3, 5), .dtype = KN_F64, .requires_grad = true);
    CHECK_OK(kn_gradcheck(apply_swish, &doubles, &matrix, 1, NULL));
    free_swish(&kernels);
    free_swish(&doubles);
}

/* --- any number of inputs, outputs and saved tensors -------------------------------------------------------------- */

enum { MANY = 21 };

/* Output i is (i + 1) * input i * input MANY - 1 - i. */
static kn_status products_forward(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    int count = kn_function_num_outputs(context);
    for (int i = 0; i < count; i++) {
        outputs[i] = kn_mul_scalar(kn_mul(inputs[i], inputs[count - 1 - i]), i + 1);
        kn_status status = kn_function_save(context, inputs[i]);
        if (status != KN_OK)
            return status;
    }
    return KN_OK;
}

static kn_status products_backward(kn_function_context *context, kn_tensor *const *grad_outputs,
                                   kn_tensor **grad_inputs)
{
    int count = kn_function_num_inputs(context);
    for (int i = 0; i < count; i++) {
        if (!kn_function_needs_grad(context, i))
            continue;
        kn_tensor *other = kn_function_saved(context, count - 1 - i);
        grad_inputs[i] = kn_add(kn_mul_scalar(kn_mul(grad_outputs[i], other), i + 1),
                                kn_mul_scalar(kn_mul(grad_outputs[count - 1 - i], other), count - i));
    }
    return kn_function_num_saved(context) == count ? KN_OK : kn_error_set(KN_ERR_STATE, "saved tensors are missing");
}

static const kn_function products = {.name = "products", .forward = products_forward, .backward = products_backward};

/* Uses only three outputs: no gradient reaches the others. */
static kn_tensor *apply_products(kn_tensor *const *inputs, void *user)
{
    kn_tensor *outputs[MANY];
    (void)user;
    if (kn_function_apply_many(&products, inputs, MANY, NULL, outputs, MANY) != KN_OK)
        return NULL;
    return kn_add(kn_add(outputs[0], kn_mul(outputs[7], outputs[7])), outputs[MANY / 2]);
}

TENSOR_TEST_F64(any_number_of_inputs_outputs_and_saved_tensors)
{
    kn_tensor *inputs[MANY];
    for (int i = 0; i < MANY; i++)
        inputs[i] = kn_rand(KN_SHAPE(2, 3), .dtype = KN_F64, .requires_grad = i != 5);
    CHECK_OK(kn_gradcheck(apply_products, NULL, inputs, MANY, NULL));
    assert_null(kn_grad(inputs[5]));
}

static kn_status no_inputs_forward(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    (void)inputs;
    outputs[0] = kn_full(KN_SHAPE(2), 7);
    return kn_function_num_inputs(context) == 0 ? error_or_ok(outputs[0]) : KN_ERR_STATE;
}

TENSOR_TEST(no_input_and_no_output)
{
    const kn_function constant = {.name = "constant", .forward = no_inputs_forward, .backward = products_backward};
    CHECK_VALUES(kn_function_apply(&constant, NULL, 0, NULL), 7, 7);
    kn_tensor *x = kn_ones(KN_SHAPE(1), .requires_grad = true);
    CHECK_OK(kn_function_apply_many(&products, KN_TENSORS(x), NULL, NULL, 0));
}

/* --- missing gradients, outputs without gradient ------------------------------------------------------------------ */

typedef struct split_log {
    bool materialize, mark;
    bool got[3];
} split_log;

/* The input, twice the input, and the input rounded to integers. */
static kn_status split_forward(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const split_log *log = kn_function_params(context);
    outputs[0] = kn_mul_scalar(inputs[0], 1);
    outputs[1] = kn_mul_scalar(inputs[0], 2);
    outputs[2] = kn_to_dtype(inputs[0], KN_I64);
    kn_function_set_materialize_grads(context, log->materialize);
    return log->mark ? kn_function_mark_non_differentiable(context, 1) : KN_OK;
}

static kn_status split_backward(kn_function_context *context, kn_tensor *const *grad_outputs, kn_tensor **grad_inputs)
{
    split_log *log = kn_function_params(context);
    for (int i = 0; i < 3; i++)
        log->got[i] = grad_outputs[i] != NULL;
    if (log->materialize) {
        CHECK_DTYPE(grad_outputs[2], KN_I64);
        CHECK_VALUES(grad_outputs[1], 0, 0);
        CHECK_VALUES(grad_outputs[2], 0, 0);
    }
    grad_inputs[0] = kn_mul_scalar(grad_outputs[0], 5);
    return KN_OK;
}

static const kn_function split = {.name = "split", .forward = split_forward, .backward = split_backward};

static void try_split(split_log *log)
{
    kn_tensor *x = kn_full(KN_SHAPE(2), 3, .requires_grad = true), *outputs[3];
    CHECK_OK(kn_function_apply_many(&split, KN_TENSORS(x), log, outputs, 3));
    assert_true(kn_requires_grad(outputs[0]));
    assert_int_equal(kn_requires_grad(outputs[1]), !log->mark);
    assert_false(kn_requires_grad(outputs[2]));
    CHECK_VALUES(outputs[2], 3, 3);
    CHECK_OK(kn_backward(kn_sum(outputs[0])));
    CHECK_VALUES(kn_grad(x), 5, 5);
    assert_int_equal(log->got[1], log->materialize);
    assert_int_equal(log->got[2], log->materialize);
}

TENSOR_TEST(gradients_that_did_not_come_are_zeros_or_null)
{
    try_split(&(split_log){.materialize = true});
    try_split(&(split_log){.materialize = false});
    try_split(&(split_log){.materialize = true, .mark = true});
}

TENSOR_TEST(without_backward_nothing_requires_gradients)
{
    kn_function forward_only = split;
    forward_only.backward = NULL;
    kn_tensor *x = kn_ones(KN_SHAPE(2), .requires_grad = true), *outputs[3];
    CHECK_OK(kn_function_apply_many(&forward_only, KN_TENSORS(x), &(split_log){0}, outputs, 3));
    assert_false(kn_requires_grad(outputs[0]));
}

/* --- memory shared with inputs, changes in place ------------------------------------------------------------------ */

/* A layer that reverses gradients: its outputs are its input, and a view of it. */
static kn_status reverse_forward(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    (void)context;
    outputs[0] = inputs[0];
    outputs[1] = kn_reshape(inputs[0], KN_SHAPE(2, 1));
    return KN_OK;
}

static kn_status reverse_backward(kn_function_context *context, kn_tensor *const *grad_outputs, kn_tensor **grad_inputs)
{
    (void)context;
    grad_inputs[0] = kn_neg(kn_add(grad_outputs[0], kn_reshape(grad_outputs[1], KN_SHAPE(2))));
    return KN_OK;
}

TENSOR_TEST(an_output_that_shares_memory_is_a_copy)
{
    const kn_function reverse = {.name = "reverse", .forward = reverse_forward, .backward = reverse_backward};
    kn_tensor *x = kn_full(KN_SHAPE(2), 4, .requires_grad = true), *outputs[2];
    CHECK_OK(kn_function_apply_many(&reverse, KN_TENSORS(x), NULL, outputs, 2));
    CHECK_TENSOR(kn_mul_scalar_(outputs[0], 3));
    CHECK_VALUES(x, 4, 4);
    CHECK_VALUES(outputs[0], 12, 12);
    CHECK_VALUES(outputs[1], 4, 4);
    CHECK_OK(kn_backward(kn_add(kn_sum(outputs[0]), kn_sum(outputs[1]))));
    CHECK_VALUES(kn_grad(x), -4, -4);
}

static kn_status change_forward(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    (void)context;
    if (!kn_fill_(inputs[1], 1)) /* as a running estimate is changed */
        return kn_error_status();
    outputs[0] = kn_mul_scalar(inputs[0], 1);
    return KN_OK;
}

TENSOR_TEST(an_input_that_is_recorded_is_not_changed_in_place)
{
    const kn_function change = {.name = "change", .forward = change_forward, .backward = reverse_backward};
    kn_tensor *x = kn_ones(KN_SHAPE(2), .requires_grad = true), *count = kn_zeros(KN_SHAPE(1));
    CHECK_TENSOR(kn_function_apply(&change, KN_TENSORS(x, count), NULL));
    CHECK_VALUES(count, 1);
    assert_null(kn_function_apply(&change, KN_TENSORS(x, kn_mul_scalar(x, 1)), NULL));
    CHECK_ERROR(KN_ERR_STATE, "change: ", "changed a recorded input in place", "kn_clone");
}

TENSOR_TEST(what_was_saved_must_not_be_changed_and_goes_with_the_record)
{
    swish_kernels kernels = make_swish("-DT=float");
    kn_tensor *x = kn_ones(KN_SHAPE(2), .requires_grad = true), *middle = kn_mul_scalar(x, 2);
    kn_tensor *loss = kn_sum(kn_function_apply(&swish, KN_TENSORS(middle), &kernels));
    CHECK_OK(kn_backward_with(loss, NULL, true));
    CHECK_OK(kn_backward(loss));
    assert_int_equal(kn_backward(loss), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "freed", "retain_graph");

    middle = kn_mul_scalar(x, 2);
    loss = kn_sum(kn_function_apply(&swish, KN_TENSORS(middle), &kernels));
    CHECK_TENSOR(kn_mul_scalar_(middle, 2));
    assert_int_equal(kn_backward(loss), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "backward of swish", "changed in place");
    free_swish(&kernels);
}

/* --- on the host -------------------------------------------------------------------------------------------------- */

static kn_status square_forward(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const float *x = kn_data(inputs[0]);
    outputs[0] = kn_empty_like(inputs[0]);
    float *y = kn_data(outputs[0]);
    for (int64_t i = 0; i < kn_numel(inputs[0]); i++)
        y[i] = x[i] * x[i];
    return kn_function_save(context, inputs[0]);
}

static kn_status square_backward(kn_function_context *context, kn_tensor *const *grad_outputs, kn_tensor **grad_inputs)
{
    kn_tensor *x = kn_function_saved(context, 0);
    grad_inputs[0] = kn_empty_like(x);
    const float *values = kn_data(x), *dy = kn_data(grad_outputs[0]);
    float *dx = kn_data(grad_inputs[0]);
    for (int64_t i = 0; i < kn_numel(x); i++)
        dx[i] = 2 * values[i] * dy[i];
    return KN_OK;
}

/* A bridge between a device and C code: the function's tensors are on the host. */
TENSOR_TEST(a_function_in_c_on_the_host)
{
    const kn_function square = {.name = "square", .forward = square_forward, .backward = square_backward};
    kn_tensor *x = kn_full(KN_SHAPE(3), 3, .requires_grad = true);
    kn_tensor *y = kn_function_apply(&square, KN_TENSORS(kn_to(x, kn_device_host())), NULL);
    CHECK_OK(kn_backward(kn_sum(kn_to(y, kn_device_of(x)))));
    CHECK_VALUES(kn_grad(x), 6, 6, 6);
}

/* --- second gradients --------------------------------------------------------------------------------------------- */

/* x y exp(x), which saves both inputs, one of them twice, and the output. */
static kn_status product_forward(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    outputs[0] = kn_mul(kn_mul(inputs[0], inputs[1]), kn_exp(inputs[0]));
    kn_tensor *const saved[] = {inputs[0], inputs[1], outputs[0], inputs[0]};
    for (int i = 0; i < 4; i++)
        if (kn_function_save(context, saved[i]) != KN_OK)
            return kn_error_status();
    return KN_OK;
}

/* d/dx = y exp(x) + x y exp(x), d/dy = x exp(x). */
static kn_status product_backward(kn_function_context *context, kn_tensor *const *grad_outputs, kn_tensor **grad_inputs)
{
    kn_tensor *x = kn_function_saved(context, 0), *y = kn_function_saved(context, 1),
              *z = kn_function_saved(context, 2);
    kn_tensor *power = kn_exp(kn_function_saved(context, 3));
    grad_inputs[0] = kn_mul(grad_outputs[0], kn_add(kn_mul(y, power), z));
    grad_inputs[1] = kn_mul(grad_outputs[0], kn_mul(x, power));
    return grad_inputs[0] && grad_inputs[1] ? KN_OK : kn_error_status();
}

static kn_tensor *apply_product(kn_tensor *const *inputs, void *user)
{
    return kn_function_apply(user, inputs, 2, NULL);
}

TENSOR_TEST_F64(a_backward_of_operations_has_gradients)
{
    const kn_tensor_options options = {.dtype = KN_F64, .requires_grad = true};
    kn_tensor *inputs[2];
    kn_function function = {
        .name = "product", .forward = product_forward, .backward = product_backward, .twice_differentiable = true};
    for (int i = 0; i < 2; i++)
        inputs[i] = kn_rand_with(2, (const int64_t[]){2, 3}, &options);
    CHECK_OK(kn_gradcheck(apply_product, &function, inputs, 2, NULL));
    CHECK_OK(kn_gradgradcheck(apply_product, &function, inputs, 2, NULL));
    function.twice_differentiable = false;
    kn_tensor *y = kn_sum(apply_product(inputs, &function)), *gradient;
    assert_int_equal(kn_autograd_grad(&y, 1, inputs, 1, &gradient, .create_graph = true), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "backward of product", "create_graph");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_function_of_raw_kernels),
        TEST(any_number_of_inputs_outputs_and_saved_tensors),
        TEST(no_input_and_no_output),
        TEST(gradients_that_did_not_come_are_zeros_or_null),
        TEST(without_backward_nothing_requires_gradients),
        TEST(an_output_that_shares_memory_is_a_copy),
        TEST(an_input_that_is_recorded_is_not_changed_in_place),
        TEST(what_was_saved_must_not_be_changed_and_goes_with_the_record),
        TEST(a_function_in_c_on_the_host),
        TEST(a_backward_of_operations_has_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

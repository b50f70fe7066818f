/* test_harness.c - the harness of op_row.h detects errors: operations with one deliberate error each must fail.
 *
 * The operation is y = 2 x, computed on the host through kn_read and kn_write. The FAIL lines that it prints are
 * expected. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

#include "autograd/op.h"
#include "support/op_row.h"
#include "support/values.h"

typedef enum mistake { RIGHT, WRONG_VALUE, WRONG_GRADIENT, WRONG_F32_GRADIENT, UNSTEADY, LEAK } mistake;

typedef struct twice_params {
    mistake mistake;
} twice_params;

static int calls;

/* The leak of the row "leak", released once the harness has detected it, so that LeakSanitizer finds nothing. */
#define MAX_LEAKED 64
static kn_tensor *leaked[MAX_LEAKED];
static int num_leaked;

static kn_status twice_shape(kn_call *call)
{
    return kn_call_output(call, call->inputs[0]->dtype, call->inputs[0]->ndim, call->inputs[0]->shape);
}

static kn_status twice_forward(kn_call *call)
{
    mistake wrong = ((const twice_params *)call->params)->mistake;
    int64_t count = kn_numel(call->inputs[0]);
    double *values = read_doubles(call->inputs[0]);
    for (int64_t i = 0; values && i < count; i++)
        values[i] *= 2;
    if (values && count > 5 && wrong == WRONG_VALUE)
        values[5] += 0.001;
    if (values && count > 0 && wrong == UNSTEADY)
        values[0] *= 1 + 1e-7 * (++calls % 2);
    if (wrong == LEAK && num_leaked < MAX_LEAKED)
        leaked[num_leaked++] = kn_retain(call->inputs[0]);
    void *bytes = values ? bytes_of_doubles(values, count, call->outputs[0]->dtype) : NULL;
    kn_status status = bytes ? kn_write(call->outputs[0], bytes, (size_t)count * kn_dtype_size(call->outputs[0]->dtype))
                             : KN_ERR_MEMORY;
    free(values);
    free(bytes);
    return status;
}

static kn_status twice_backward(kn_grad_call *call)
{
    mistake wrong = ((const twice_params *)call->params)->mistake;
    bool off = wrong == WRONG_GRADIENT || (wrong == WRONG_F32_GRADIENT && call->input[0].dtype == KN_F32);
    call->grad_inputs[0] = kn_mul_scalar(call->grad_outputs[0], off ? 2.01 : 2);
    return call->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status twice_reference(const kn_call *call)
{
    const double *x = kn_data(call->inputs[0]);
    double *y = kn_data(call->outputs[0]);
    for (int64_t i = 0; i < kn_numel(call->inputs[0]); i++)
        y[i] = 2 * x[i];
    return KN_OK;
}

static const kn_op twice_op = {
    .name = "twice",
    .inputs = {"x"},
    .record_size = sizeof(twice_params),
    .shape = twice_shape,
    .forward = twice_forward,
    .backward = twice_backward,
    .reference = twice_reference,
};

static kn_tensor *build_twice(kn_tensor *const *x, const void *params) { return kn_apply(&twice_op, params, x[0]); }

#define MISTAKE(which)                                                                                                 \
    &(const twice_params) { which }

/* clang-format off */
OP_ROWS_BEGIN
static const op_row rows[] = {
    {"twice/right", build_twice, {FLOATS(3, 5)}, MISTAKE(RIGHT), .layouts = true, .reads = true},
    {"right_large/gradient", build_twice, {FLOATS(29, 31)}, MISTAKE(RIGHT), .reads = true},
    {"twice/wrong_value", build_twice, {FLOATS(3, 5)}, MISTAKE(WRONG_VALUE), .reads = true},
    {"wrong/gradient", build_twice, {FLOATS(3, 5)}, MISTAKE(WRONG_GRADIENT), .reads = true},
    {"wrong_large/gradient", build_twice, {FLOATS(29, 31)}, MISTAKE(WRONG_GRADIENT), .reads = true},
    {"wrong_f32/gradient", build_twice, {FLOATS(3, 5)}, MISTAKE(WRONG_F32_GRADIENT), .reads = true},
    {"twice/unsteady", build_twice, {FLOATS(3, 5)}, MISTAKE(UNSTEADY), .reads = true},
    {"twice/leak", build_twice, {FLOATS(3, 5)}, MISTAKE(LEAK), .reads = true},
    {"captured/reads", build_twice, {FLOATS(3, 5)}, MISTAKE(RIGHT)},
};
OP_ROWS_END
/* clang-format on */

static const op_table table = {.rows = rows, .count = (int)(sizeof rows / sizeof rows[0])};

static int run(const char *only, const char *dtype)
{
    static const op_table *const tables[] = {&table, NULL};
    char name[64];
    snprintf(name, sizeof name, "%s@", only);
    char *arguments[] = {(char *)"test_harness", (char *)"--only",  name,          (char *)"--device",
                         (char *)"auto",         (char *)"--dtype", (char *)dtype, NULL};
    return op_test_main(7, arguments, tables);
}

static void test_right_passes(void **state)
{
    (void)state;
    assert_int_equal(run("twice/right", "f32"), 0);
    assert_int_equal(run("right_large/gradient", "f32"), 0);
}

static void test_mistakes_fail(void **state)
{
    (void)state;
    assert_int_equal(run("twice/wrong_value", "f32"), 1);
    assert_int_equal(run("twice/unsteady", "f32"), 1);
    assert_int_equal(run("captured/reads", "f32"), 1);
    assert_int_equal(run("twice/leak", "f32"), 1);
    assert_true(num_leaked > 0);
    while (num_leaked > 0)
        kn_release(leaked[--num_leaked]);
}

/* Gradients are checked in f64, so these need a device that has it. */
static void test_wrong_gradients_fail(void **state)
{
    (void)state;
    kn_device_properties properties;
    CHECK_OK(kn_device_get_properties(kn_device_current(), &properties));
    if (!properties.has_f64)
        skip();
    assert_int_equal(run("wrong/gradient", "f64"), 1);
    assert_int_equal(run("wrong_large/gradient", "f64"), 1);
    assert_int_equal(run("wrong_f32/gradient", "f32"), 1);
    assert_int_equal(run("right_large/gradient", "f64"), 0);
}

/* A prefix that matches nothing is not a success, and wrong usage is reported. */
static void test_usage(void **state)
{
    (void)state;
    static const op_table *const tables[] = {&table, NULL};
    char *unknown[] = {(char *)"test_harness", (char *)"--bogus", NULL};
    assert_int_equal(op_test_main(2, unknown, tables), 2);
    assert_int_equal(run("no_such_row", "f32"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_passes),
        cmocka_unit_test(test_mistakes_fail),
        cmocka_unit_test(test_wrong_gradients_fail),
        cmocka_unit_test(test_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_operators.c - the list of operators is sorted and complete: each has a unique name, names its inputs, describes
 * its parameters, and has a reference unless it only moves data or is a backward pass (test_backward_operators.c).
 * Operators called by their descriptors. */
#include "cli/op_check.h"
#include "cli/op_samples.h"
#include "ops/dispatch/operators.h"
#include "ops/pointwise/elementwise.h"

#include <math.h>
#include <string.h>

#include "support/check.h"
#include "support/full.h"

static void each_is_found_by_its_name(void **state)
{
    (void)state;
    for (int i = 0; i < kn_op_count(); i++) {
        const kn_op *op = kn_op_at(i);
        assert_ptr_equal(kn_op_find(op->name), op);
        if (i > 0)
            assert_true(strcmp(kn_op_at(i - 1)->name, op->name) < 0);
    }
    assert_null(kn_op_find("no_such_operator"));
    assert_null(kn_op_at(-1));
    assert_null(kn_op_at(kn_op_count()));
}

static bool only_moves_data(const char *name)
{
    static const char *const movers[] = {"clone", "contiguous", "reshape", "to_dtype"};
    for (size_t i = 0; i < sizeof movers / sizeof movers[0]; i++)
        if (strcmp(name, movers[i]) == 0)
            return true;
    return false;
}

static void each_is_whole(void **state)
{
    (void)state;
    for (int i = 0; i < kn_op_count(); i++) {
        const kn_op *op = kn_op_at(i);
        bool optional = false;
        const bool composed = kn_op_is_composition(op);
        if (!op->inputs[0] || (composed ? !op->enter || !op->composes : !op->shape))
            fail_msg("%s has no inputs, shape rule or forward", op->name);
        if (!composed && !op->reference && !op->is_view && !op->backward_of && !only_moves_data(op->name))
            fail_msg("%s has no reference", op->name);
        for (int k = 0; k < KN_OP_MAX_INPUTS && op->inputs[k]; k++) {
            if (k > 0 && op->inputs[k - 1][0] == '*')
                fail_msg("%s: input `%s` comes after a list", op->name, op->inputs[k]);
            if (optional && op->inputs[k][0] != '?')
                fail_msg("%s: input `%s` comes after an optional one", op->name, op->inputs[k]);
            optional = op->inputs[k][0] == '?';
        }
    }
}

/* --- parameters --------------------------------------------------------------------------------------------------- */

/* Consecutive fields are separated only by padding, so none is missing in the descriptor. */
static void the_rows_cover_the_struct(void **state)
{
    (void)state;
    for (int i = 0; i < kn_op_count(); i++) {
        const kn_op *op = kn_op_at(i);
        const kn_op_info info = kn_op_describe(op);
        size_t end = 0;
        for (int k = 0; k < info.num_params; k++) {
            const kn_op_param *param = kn_op_param_at(op, k);
            if (param->offset < end || param->offset - end >= 8)
                fail_msg("%s: a gap before parameter %s", info.name, param->name);
            if ((param->kind == KN_PARAM_ENUM) != (param->values != NULL))
                fail_msg("%s: parameter %s has names, or lacks them", info.name, param->name);
            end = param->offset + param->size;
        }
        const bool is_scalar_args = info.num_params > 0 && kn_op_param_at(op, 0)->kind == KN_PARAM_SCALAR;
        if (info.num_params > 0 && info.params_size - end >= 8 && !is_scalar_args) /* these may have unused numbers */
            fail_msg("%s: %zu bytes behind the last parameter", info.name, info.params_size - end);
        assert_null(kn_op_param_at(op, info.num_params));
        assert_null(kn_op_param_at(op, -1));
    }
}

/* --- dtypes --- */

static bool takes(const kn_op *op, kn_dtype dtype)
{
    kn_op_sample sample;
    kn_tensor *result = NULL;
    CHECK_OK(kn_op_sample_make(&sample, op, KN_F32, false));
    const kn_dtype own = kn_dtype_of(sample.inputs[0]);
    for (int i = 0; i < sample.num_inputs; i++)
        if (sample.inputs[i] && kn_dtype_of(sample.inputs[i]) == own)
            sample.inputs[i] = kn_to_dtype(sample.inputs[i], dtype);
    const bool taken = kn_op_call(op, sample.inputs, sample.num_inputs, sample.params, &result, 1) == KN_OK;
    kn_op_sample_free(&sample);
    kn_error_clear();
    return taken;
}

/* The first input's dtypes in the descriptor, with the other inputs of its dtype. In a dry run, without
 * kernels. */
TENSOR_TEST_F64(each_takes_the_dtypes_that_it_says)
{
    const bool before = kn_op_set_dry_run(true);
    for (int i = 0; i < kn_op_count(); i++)
        for (kn_dtype dtype = KN_F64; dtype <= KN_BOOL; dtype++) {
            KN_SCOPE;
            const kn_op_input input = kn_op_input_at(kn_op_at(i), 0);
            if (takes(kn_op_at(i), dtype) == (input.dtypes >> dtype & 1))
                continue;
            kn_op_set_dry_run(before);
            fail_msg("%s: %s does not do as its descriptor says", kn_op_describe(kn_op_at(i)).name,
                     kn_dtype_name(dtype));
        }
    kn_op_set_dry_run(before);
}

/* The operator on its sample's numbers, doubled and in `dtype`, against its reference. */
static void check_in(const kn_op *op, kn_dtype dtype)
{
    kn_op_check check = {0};
    kn_op_sample sample;
    kn_tensor *result = NULL;
    KN_SCOPE;
    CHECK_OK(kn_op_sample_make(&sample, op, KN_F32, false));
    for (int i = 0; i < sample.num_inputs; i++)
        if (sample.inputs[i] && kn_dtype_of(sample.inputs[i]) == KN_F32)
            sample.inputs[i] = kn_to_dtype(kn_mul_scalar(sample.inputs[i], 2), dtype);
    kn_op_check_begin(&check);
    CHECK_OK(kn_op_call(op, sample.inputs, sample.num_inputs, sample.params, &result, 1));
    kn_op_check_end(&check);
    if (check.wrong[0])
        fail_msg("%s in %s: %s", check.wrong, kn_dtype_name(dtype), check.difference);
    kn_op_sample_free(&sample);
}

/* By default in f32, and of the operators, which are many to compile with the optimiser, every eighth, but every
 * thirty-second of those whose kernels are written by the engine for elementwise work. */
TENSOR_TEST(each_computes_in_the_dtypes_that_it_says)
{
    static const kn_dtype dtypes[] = {KN_F32, KN_BF16, KN_I8, KN_I16};
    for (int i = 0, elementwise = 0, others = 0; i < kn_op_count(); i++) {
        const bool is_elementwise = kn_op_at(i)->forward == kn_elementwise_forward;
        if ((is_elementwise ? elementwise++ % 32 : others++ % 8) != 0 && !test_full())
            continue;
        for (size_t k = 0; k < (test_full() ? sizeof dtypes / sizeof dtypes[0] : 1); k++)
            if (kn_op_input_at(kn_op_at(i), 0).dtypes >> dtypes[k] & 1)
                check_in(kn_op_at(i), dtypes[k]);
    }
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static kn_tensor *matrix(void) { return kn_from_data(((float[]){1, -2, 3, -4, 5, -6}), KN_SHAPE(2, 3)); }

static kn_status call(const char *name, kn_tensor *input, const void *params, kn_tensor **output)
{
    return kn_op_call(kn_op_find(name), &input, 1, params, output, 1);
}

TENSOR_TEST(an_operator_is_called_by_name)
{
    kn_tensor *y = NULL, *z = NULL;
    kn_tensor *inputs[] = {matrix(), kn_ones(KN_SHAPE(3))};
    CHECK_OK(call("relu", matrix(), NULL, &y));
    CHECK_VALUES(y, 1, 0, 3, 0, 5, 0);
    CHECK_OK(kn_op_call(kn_op_find("add"), inputs, 2, NULL, &z, 1));
    CHECK_VALUES(z, 2, -1, 4, -3, 6, -5);
}

TENSOR_TEST(parameters_start_from_the_defaults)
{
    const kn_op *op = kn_op_find("dropout");
    kn_dropout_params params = {0};
    kn_tensor *x = matrix(), *y = NULL;
    kn_op_params_init(op, &params);
    assert_true(params.p == 0.5 && params.training);
    params.training = false;
    CHECK_OK(kn_op_call(op, &x, 1, &params, &y, 1));
    assert_ptr_equal(y, x);
    params.p = 2;
    assert_int_equal(kn_op_call(op, &x, 1, &params, &y, 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "dropout", "p must be from 0 to 1", "2");
    kn_narrow_args part = {.dim = 1, .start = 1, .length = 2};
    kn_tensor *view = NULL;
    CHECK_OK(call("narrow", x, &part, &view));
    CHECK_VALUES(view, -2, 3, 5, -6);
}

TENSOR_TEST(an_output_given_is_computed_into)
{
    kn_tensor *x = matrix(), *dense = kn_zeros(KN_SHAPE(2, 3));
    kn_tensor *whole = kn_zeros(KN_SHAPE(3, 4)), *strided = kn_t(kn_narrow(whole, 1, 1, 2)), *own = matrix();
    kn_tensor *const expected_dense = dense, *const expected_strided = strided;
    CHECK_OK(call("neg", x, NULL, &dense));
    CHECK_VALUES(dense, -1, 2, -3, 4, -5, 6);
    CHECK_OK(call("neg", x, NULL, &strided));
    CHECK_VALUES(whole, 0, -1, 4, 0, 0, 2, -5, 0, 0, -3, 6, 0);
    CHECK_OK(call("neg", own, NULL, &own)); /* an input */
    CHECK_VALUES(own, -1, 2, -3, 4, -5, 6);
    assert_true(dense == expected_dense && strided == expected_strided);
    const kn_permute_args turned = {{2, {1, 0}}}; /* a view, or a copy if requested */
    kn_tensor *copy = kn_zeros(KN_SHAPE(3, 2));
    CHECK_OK(call("permute", x, &turned, &copy));
    CHECK_VALUES(copy, 1, -4, -2, 5, 3, -6);
    const kn_dropout_params none = {.p = 0, .training = true}; /* computed in float32 */
    kn_tensor *half = kn_to_dtype(matrix(), KN_F16), *kept = kn_zeros(KN_SHAPE(2, 3), .dtype = KN_F16);
    CHECK_OK(kn_op_call(kn_op_find("dropout"), &half, 1, &none, &kept, 1));
    CHECK_VALUES(kept, 1, -2, 3, -4, 5, -6);
}

/* A sum over dimensions of size 1 is a copy: not to the beginning of the memory. */
TENSOR_TEST(a_sum_over_dimensions_of_size_1_is_copied_to_the_given_place)
{
    kn_tensor *whole = kn_zeros(KN_SHAPE(3, 2)), *column = kn_from_data(((float[]){5, 6}), KN_SHAPE(2, 1));
    kn_tensor *sum = kn_select(whole, 0, 1), *mean = kn_select(whole, 0, 2), *one = kn_select(sum, 0, 0);
    const kn_reduce_args last = {.dims = {1, {1}}};
    CHECK_OK(call("sum", column, &last, &sum));
    CHECK_OK(call("mean", column, &last, &mean));
    CHECK_VALUES(whole, 0, 0, 5, 6, 5, 6);
    CHECK_OK(call("sum", kn_full(KN_SCALAR, 7.0), NULL, &one));
    CHECK_VALUES(whole, 0, 0, 7, 6, 5, 6);
}

/* One dimension more adds (p - 1) / 2 log(pi) and a term; p (p - 1) is more than an int here. */
TENSOR_TEST_F64(mvlgamma_of_many_dimensions)
{
    enum { P = 50000 };
    kn_tensor *x = kn_full(KN_SHAPE(1), 30000.0, .dtype = KN_F64);
    double more, less;
    CHECK_OK(kn_item(kn_mvlgamma(x, P), &more));
    CHECK_OK(kn_item(kn_mvlgamma(x, 40000), &less));
    for (int p = 40001; p <= P; p++)
        less += (p - 1) / 2.0 * log(3.14159265358979323846) + lgamma(30000 + (1 - p) / 2.0);
    assert_true(fabs(more - less) < 1e-9 * fabs(less));
}

static int64_t allocations(const kn_tensor *x)
{
    int64_t count = 0;
    CHECK_OK(kn_memory_stat(kn_device_of(x), "allocation.all.allocated", &count));
    return count;
}

static void check_equal(kn_tensor *a, kn_tensor *b)
{
    bool equal = false;
    CHECK_OK(kn_equal(a, b, &equal));
    assert_true(equal);
}

/* Vectors that overlap at the end of a row would be computed twice. */
TENSOR_TEST(an_elementwise_result_may_take_the_place_of_an_operand)
{
    kn_tensor *x = kn_rand(KN_SHAPE(37)), *y = kn_rand(KN_SHAPE(37)), *line = kn_rand(KN_SHAPE(38));
    kn_tensor *first = kn_narrow(line, 0, 0, 37), *second = kn_narrow(line, 0, 1, 37);
    kn_tensor *exponential = kn_exp(x), *sum = kn_add(exponential, y), *shifted = kn_neg(second);
    kn_tensor *both[] = {x, y}, *narrow = kn_rand(KN_SHAPE(3, 1)), *wide = kn_expand(narrow, KN_SHAPE(3, 3));
    const int64_t before = allocations(x);
    CHECK_OK(call("exp", x, NULL, &x));
    CHECK_OK(kn_op_call(kn_op_find("add"), both, 2, NULL, &y, 1));
    assert_int_equal(allocations(x), before);
    check_equal(x, exponential);
    check_equal(y, sum);
    CHECK_OK(call("neg", second, NULL, &first)); /* the next element's place */
    check_equal(first, shifted);
    assert_int_equal(call("neg", wide, NULL, &wide), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "neg", "share memory");
}

TENSOR_TEST(an_output_that_does_not_fit_is_refused)
{
    kn_tensor *x = matrix(), *short_one = kn_zeros(KN_SHAPE(2, 2)), *whole = kn_zeros(KN_SHAPE(2, 3), .dtype = KN_I64);
    assert_int_equal(call("neg", x, NULL, &short_one), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "neg: the given output 0 is", "[2, 2]", "the result is float32 [2, 3]");
    assert_int_equal(call("neg", x, NULL, &whole), KN_ERR_DTYPE);
    CHECK_ERROR(KN_ERR_DTYPE, "neg: the given output 0 is", "int64");
    kn_tensor *outputs[] = {short_one, KN_SKIP_OUTPUT};
    assert_int_equal(kn_op_call(kn_op_find("max_dim"), &x, 1, NULL, outputs, 2), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "max_dim: the given output 0 is");
    assert_true(outputs[0] == short_one && outputs[1] == KN_SKIP_OUTPUT);
    kn_tensor *leaf = kn_rand(KN_SHAPE(2, 3), .requires_grad = true), *y = kn_zeros(KN_SHAPE(2, 3));
    assert_int_equal(call("neg", leaf, NULL, &y), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "neg", "KN_NO_GRAD");
    assert_int_equal(call("neg", x, NULL, &leaf), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "neg", "KN_NO_GRAD");
    KN_NO_GRAD;
    CHECK_OK(call("neg", leaf, NULL, &y));
}

/* Results that are not computed in the given tensor but copied to it. */
TENSOR_TEST(a_copied_output_that_does_not_fit_is_refused)
{
    kn_tensor *x = matrix(), *half = kn_to_dtype(x, KN_F16), *whole = kn_zeros(KN_SHAPE(2, 3), .dtype = KN_I64);
    kn_tensor *larger = kn_zeros(KN_SHAPE(4, 2, 3), .dtype = KN_F16);
    assert_int_equal(call("softmax", half, NULL, &larger), KN_ERR_SHAPE); /* computed in float32 */
    CHECK_ERROR(KN_ERR_SHAPE, "softmax: the given output 0 is", "[4, 2, 3]", "the result is float16 [2, 3]");
    assert_int_equal(call("softmax", half, NULL, &whole), KN_ERR_DTYPE);
    CHECK_ERROR(KN_ERR_DTYPE, "softmax: the given output 0 is", "int64");
    assert_int_equal(call("contiguous", half, NULL, &larger), KN_ERR_SHAPE); /* the input itself */
    CHECK_ERROR(KN_ERR_SHAPE, "contiguous: the given output 0 is", "[4, 2, 3]");
    assert_int_equal(call("contiguous", x, NULL, &whole), KN_ERR_DTYPE);
    CHECK_ERROR(KN_ERR_DTYPE, "contiguous: the given output 0 is", "int64");
    kn_tensor *leaf = kn_rand(KN_SHAPE(2, 3), .requires_grad = true), *y = kn_zeros(KN_SHAPE(2, 3));
    assert_int_equal(call("contiguous", leaf, NULL, &y), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "contiguous", "KN_NO_GRAD");
}

/* After a call that leaves others, which do not fit, on the stack. In a dry run, without kernels. */
TENSOR_TEST(optional_inputs_may_be_omitted_at_the_end)
{
    const bool before = kn_op_set_dry_run(true);
    for (int i = 0; i < kn_op_count(); i++) {
        KN_SCOPE;
        const kn_op *op = kn_op_at(i);
        kn_tensor *odd[KN_OP_MAX_INPUTS], *y = NULL, *z = NULL;
        kn_op_sample sample;
        int count = kn_op_describe(op).num_inputs;
        for (int k = 0; k < count; k++)
            odd[k] = kn_ones(KN_SHAPE(7, 1, 5, 1));
        (void)kn_op_call(op, odd, count, NULL, &y, 1);
        kn_error_clear();
        while (count > 0 && kn_op_input_at(op, count - 1).is_optional)
            count--;
        CHECK_OK(kn_op_sample_make(&sample, op, KN_F32, false));
        if (count < kn_op_describe(op).num_inputs)
            CHECK_OK(kn_op_call(op, sample.inputs, count, sample.params, &z, 1));
        kn_op_sample_free(&sample);
    }
    kn_op_set_dry_run(before);
}

TENSOR_TEST(a_call_is_recorded)
{
    kn_tensor *x = kn_ones(KN_SHAPE(3), .requires_grad = true), *y = NULL;
    const kn_scalar_args three = {{kn_scalar_int(3)}};
    CHECK_OK(call("mul_scalar", x, &three, &y));
    CHECK_OK(kn_backward(kn_sum(y)));
    CHECK_VALUES(kn_grad(x), 3, 3, 3);
}

/* --- bad input ---------------------------------------------------------------------------------------------------- */

TENSOR_TEST(no_operator_takes_null)
{
    kn_tensor *const nothing[KN_OP_MAX_INPUTS] = {NULL};
    for (int i = 0; i < kn_op_count(); i++) {
        const kn_op *op = kn_op_at(i);
        kn_tensor *y = NULL;
        for (int count = 0; count <= kn_op_describe(op).num_inputs; count++) {
            assert_int_equal(kn_op_call(op, nothing, count, NULL, &y, 1), KN_ERR_ARGUMENT);
            CHECK_ERROR(KN_ERR_ARGUMENT, op->name,
                        count == 0 && kn_op_input_at(op, 0).is_list ? "is empty" : "is NULL");
            assert_null(y);
        }
    }
    kn_tensor *x = matrix(), *y = NULL;
    assert_int_equal(kn_op_call(NULL, &x, 1, NULL, &y, 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_op_call", "`op` is NULL");
    assert_int_equal(kn_op_call(kn_op_find("neg"), NULL, 1, NULL, &y, 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "neg", "`inputs` is NULL");
    assert_int_equal(kn_op_call(kn_op_find("neg"), &x, 1, NULL, NULL, 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "neg", "`outputs` is NULL");
    assert_int_equal(kn_op_call(kn_op_find("neg"), &x, 9, NULL, &y, 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "neg", "9 inputs");
    assert_int_equal(kn_op_call(kn_op_find("neg"), &x, 1, NULL, &y, 5), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "neg", "room for 5 outputs");
    CHECK_OK(kn_op_call(kn_op_find("neg"), &x, 1, NULL, NULL, 0)); /* no output is wanted */
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

TENSOR_TEST(whole_numbers_are_exact)
{
    const int64_t large = ((int64_t)1 << 53) + 1;
    int64_t value = 0;
    kn_tensor *zero = kn_zeros(KN_SHAPE(1), .dtype = KN_I64);
    CHECK_OK(kn_read(kn_add_scalar(zero, large), &value, sizeof value));
    assert_int_equal(value, large);
    CHECK_OK(kn_read(kn_fill_(zero, large), &value, sizeof value));
    assert_int_equal(value, large);
    CHECK_OK(kn_read(kn_full(KN_SHAPE(1), large, .dtype = KN_I64), &value, sizeof value));
    assert_int_equal(value, large);
    CHECK_DTYPE(kn_mul_scalar(zero, 2), KN_I64);
    CHECK_DTYPE(kn_mul_scalar(zero, 2.0), KN_F32); /* as in PyTorch */
    CHECK_DTYPE(kn_add_scalar(kn_to_dtype(zero, KN_BOOL), 1), KN_I64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_found_by_its_name),
        cmocka_unit_test(each_is_whole),
        cmocka_unit_test(the_rows_cover_the_struct),
        TEST(each_takes_the_dtypes_that_it_says),
        TEST(each_computes_in_the_dtypes_that_it_says),
        TEST(an_operator_is_called_by_name),
        TEST(parameters_start_from_the_defaults),
        TEST(an_output_given_is_computed_into),
        TEST(a_sum_over_dimensions_of_size_1_is_copied_to_the_given_place),
        TEST(mvlgamma_of_many_dimensions),
        TEST(an_elementwise_result_may_take_the_place_of_an_operand),
        TEST(an_output_that_does_not_fit_is_refused),
        TEST(a_copied_output_that_does_not_fit_is_refused),
        TEST(optional_inputs_may_be_omitted_at_the_end),
        TEST(a_call_is_recorded),
        TEST(no_operator_takes_null),
        TEST(whole_numbers_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_join.c - operators that take a list of tensors: kn_cat and kn_stack of any number, and what is refused. */
#include "support/check.h"

enum { MANY = 100 };

static kn_tensor *counted(int64_t rows, int64_t start, kn_dtype dtype)
{
    return kn_reshape(kn_arange((double)start, (double)(start + rows * 2), 1, .dtype = dtype), KN_SHAPE(rows, 2));
}

/* --- many --------------------------------------------------------------------------------------------------------- */

TENSOR_TEST(a_hundred_tensors_of_every_dtype)
{
    for (kn_dtype dtype = check_has_f64() ? KN_F64 : KN_F32; dtype <= KN_BOOL; dtype++) {
        KN_SCOPE;
        kn_tensor *parts[MANY];
        for (int i = 0; i < MANY; i++)
            parts[i] = kn_full(KN_SHAPE(1, 3), i % 2, .dtype = dtype);
        kn_tensor *joined = kn_cat(parts, MANY, 0), *stacked = kn_stack(parts, MANY, 2);
        CHECK_DTYPE(joined, dtype);
        CHECK_SHAPE(joined, MANY, 3);
        CHECK_SHAPE(stacked, 1, 3, MANY);
        double sum = 0;
        CHECK_OK(kn_item(kn_sum(kn_to_dtype(joined, KN_F32)), &sum));
        assert_true(sum == 150);
        CHECK_VALUES(kn_select(kn_select(stacked, 2, 98), 0, 0), 0, 0, 0);
        CHECK_VALUES(kn_select(kn_select(stacked, 2, 99), 0, 0), 1, 1, 1);
    }
}

/* Contiguous parts of 0, 1, ... along the dimension give the whole again: several launches, several work-items. */
TENSOR_TEST(parts_of_every_size)
{
    enum { PARTS = 37 };
    for (int dim = 0; dim < 2; dim++) {
        KN_SCOPE;
        const int64_t length = PARTS * (PARTS - 1) / 2, other = 40;
        const int64_t rows = dim ? other : length, columns = dim ? length : other;
        kn_tensor *whole =
            kn_reshape(kn_arange(0, (double)(rows * columns), 1, .dtype = KN_I32), KN_SHAPE(rows, columns));
        kn_tensor *parts[PARTS];
        for (int i = 0; i < PARTS; i++)
            parts[i] = kn_contiguous(kn_narrow(whole, dim, i * (i - 1) / 2, i));
        kn_tensor *joined = kn_cat(parts, PARTS, dim);
        CHECK_TENSOR(joined);
        bool equal = false;
        CHECK_OK(kn_equal(joined, whole, &equal));
        assert_true(equal);
    }
}

/* The sum of the squares of all, joined, each element times its index. */
static kn_tensor *weigh(kn_tensor *joined)
{
    kn_tensor *weights =
        kn_reshape(kn_arange(0, (double)kn_numel(joined), 1, .dtype = KN_F64), kn_ndim(joined), kn_shape(joined));
    return kn_sum(kn_mul(kn_mul(joined, joined), weights));
}

/* As many tensors as the first dimension of the only input has. */
static kn_tensor *parts_joined(kn_tensor *const *inputs, void *user)
{
    kn_tensor *parts[MANY];
    for (int i = 0; i < MANY; i++)
        parts[i] = kn_select(inputs[0], 0, i);
    return weigh(*(bool *)user ? kn_stack(parts, MANY, 1) : kn_cat(parts, MANY, 1));
}

TENSOR_TEST_F64(a_hundred_gradients_and_their_gradients)
{
    kn_tensor *x = kn_rand(KN_SHAPE(MANY, 2, 1), .dtype = KN_F64, .requires_grad = true);
    const kn_gradcheck_params params = {.fast_mode = true};
    for (int stacked = 0; stacked < 2; stacked++) {
        bool is_stack = stacked;
        CHECK_OK(kn_gradcheck(parts_joined, &is_stack, &x, 1, &params));
        CHECK_OK(kn_gradgradcheck(parts_joined, &is_stack, &x, 1, &params));
    }
}

TENSOR_TEST(gradients_have_the_dtypes_of_the_tensors)
{
    kn_tensor *a = kn_ones(KN_SHAPE(2), .dtype = KN_F16, .requires_grad = true), *whole = counted(1, 5, KN_I64);
    kn_tensor *b = kn_ones(KN_SHAPE(3), .dtype = KN_F32, .requires_grad = true);
    kn_tensor *nothing = kn_zeros(KN_SHAPE(0), .requires_grad = true);
    kn_tensor *y = kn_cat(KN_TENSORS(nothing, a, kn_reshape(whole, KN_SHAPE(2)), b), 0);
    CHECK_DTYPE(y, KN_F32);
    CHECK_VALUES(y, 1, 1, 5, 6, 1, 1, 1);
    CHECK_OK(kn_backward(kn_sum(kn_mul(y, kn_arange(0, 7, 1, .dtype = KN_F32)))));
    CHECK_DTYPE(kn_grad(a), KN_F16);
    CHECK_VALUES(kn_grad(a), 0, 1);
    CHECK_VALUES(kn_grad(b), 4, 5, 6);
    CHECK_SHAPE(kn_grad(nothing), 0);
}

/* --- by the descriptor -------------------------------------------------------------------------------------------- */

TENSOR_TEST(a_list_is_called_by_name)
{
    const kn_op *op = kn_op_find("cat");
    const kn_op_input input = kn_op_input_at(op, 0);
    assert_int_equal(kn_op_describe(op).num_inputs, 1);
    assert_true(input.is_list && !input.is_optional);
    assert_string_equal(input.name, "tensors");
    assert_false(kn_op_input_at(kn_op_find("add"), 1).is_list);
    kn_tensor *parts[MANY], *y = NULL, *given = kn_zeros(KN_SHAPE(2, MANY)), *const expected = given;
    for (int i = 0; i < MANY; i++)
        parts[i] = kn_full(KN_SHAPE(MANY - i, 2), i);
    CHECK_OK(kn_op_call(op, parts, MANY, NULL, &y, 1));
    CHECK_SHAPE(y, MANY * (MANY + 1) / 2, 2);
    for (int i = 0; i < MANY; i++)
        parts[i] = kn_full(KN_SHAPE(2), i);
    given = kn_t(kn_zeros(KN_SHAPE(MANY, 2))); /* strided */
    kn_tensor *const strided = given;
    CHECK_OK(kn_op_call(kn_op_find("stack"), parts, MANY, &(kn_dim_args){1}, &given, 1));
    assert_ptr_equal(given, strided);
    assert_ptr_not_equal(given, expected);
    CHECK_VALUES(kn_select(given, 1, 77), 77, 77);
}

/* The tensor that is computed into may be one of the list. */
TENSOR_TEST(into_a_part)
{
    kn_tensor *whole = counted(3, 0, KN_F32), *top = kn_narrow(whole, 0, 0, 2), *row = kn_narrow(whole, 0, 2, 1);
    kn_tensor *const parts[] = {row, top};
    kn_tensor *given = whole;
    CHECK_OK(kn_op_call(kn_op_find("cat"), parts, 2, NULL, &given, 1));
    CHECK_VALUES(whole, 4, 5, 0, 1, 2, 3);
}

/* --- what is refused ---------------------------------------------------------------------------------------------- */

TENSOR_TEST(lists_that_do_not_do)
{
    kn_tensor *a = counted(2, 0, KN_F32), *b = counted(3, 0, KN_F32), *scalar = kn_ones(KN_SCALAR);
    kn_tensor *const hole[] = {a, NULL, a};
    assert_null(kn_cat(NULL, 2, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "cat", "`tensors` is NULL");
    assert_null(kn_cat(NULL, 0, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "cat", "`tensors` is NULL");
    assert_null(kn_cat(&a, 0, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "cat", "`tensors` is empty", "at least one tensor");
    assert_null(kn_stack(&a, -3, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "stack", "`tensors` is empty");
    assert_null(kn_cat(hole, 3, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "cat", "`tensors[1]` is NULL");
    assert_null(kn_cat(KN_TENSORS(a, b), 1));
    CHECK_ERROR(KN_ERR_SHAPE, "cat", "tensor 1 is", "[3, 2]", "[2, 2]");
    assert_null(kn_stack(KN_TENSORS(a, b), 0));
    CHECK_ERROR(KN_ERR_SHAPE, "stack", "shapes must be equal", "tensor 1");
    assert_null(kn_cat(KN_TENSORS(a, b), 2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "cat", "dimension 2 is out of range");
    assert_null(kn_stack(KN_TENSORS(a, a), 3));
    CHECK_ERROR(KN_ERR_ARGUMENT, "stack", "dimension 3 is out of range");
    assert_null(kn_cat(KN_TENSORS(scalar, scalar), 0));
    CHECK_ERROR(KN_ERR_SHAPE, "cat", "0-dimensional", "kn_stack");
    assert_null(kn_cat(KN_TENSORS(a, kn_to(a, kn_device_host())), 0));
    CHECK_ERROR(KN_ERR_DEVICE, "cat", "input 1 is on the host");
    kn_tensor *deep = kn_zeros(KN_SHAPE(1, 1, 1, 1, 1, 1, 1, 1));
    assert_null(kn_stack(&deep, 1, 0));
    CHECK_ERROR(KN_ERR_SHAPE, "stack", "already have 8 dimensions");
    kn_tensor *large = kn_expand(kn_zeros(KN_SHAPE(1, 1)), KN_SHAPE(INT64_C(1) << 60, 1));
    assert_null(kn_cat(KN_TENSORS(large, large, large, large, large, large, large, large), 0));
    CHECK_ERROR(KN_ERR_SHAPE, "cat", "too large");
    CHECK_SHAPE(kn_cat(KN_TENSORS(kn_zeros(KN_SHAPE(0)), kn_zeros(KN_SHAPE(0))), 1), 0); /* as PyTorch does */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_hundred_tensors_of_every_dtype),
        TEST(parts_of_every_size),
        TEST(a_hundred_gradients_and_their_gradients),
        TEST(gradients_have_the_dtypes_of_the_tensors),
        TEST(a_list_is_called_by_name),
        TEST(into_a_part),
        TEST(lists_that_do_not_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

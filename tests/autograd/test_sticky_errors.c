/* test_sticky_errors.c - the first error of a chain of expressions is kept until it is read, and names the operation
 * and the cause. */
#include "support/check.h"

#include <pthread.h>
#include <string.h>

TENSOR_TEST(test_first_error_stays)
{
    kn_tensor *a = kn_ones(KN_SHAPE(2, 3)), *b = kn_ones(KN_SHAPE(4, 5));
    kn_tensor *end = kn_relu(kn_add(kn_matmul(a, b), kn_ones(KN_SHAPE(7)))); /* matmul fails first */
    assert_null(end);
    assert_int_equal(kn_error_status(), KN_ERR_SHAPE);
    assert_int_equal(kn_error_status(), KN_ERR_SHAPE); /* kn_error_status does not clear it */
    /* Later errors do not replace it. */
    assert_null(kn_add(a, kn_ones(KN_SHAPE(9))));
    assert_null(kn_sum(NULL));
    CHECK_ERROR(KN_ERR_SHAPE, "matmul", "[2, 3]", "[4, 5]");
    /* Once it was read, the next error replaces it. */
    assert_null(kn_add(a, kn_ones(KN_SHAPE(9))));
    CHECK_ERROR(KN_ERR_SHAPE, "add", "[2, 3]", "[9]");
    kn_error_clear();
    assert_int_equal(kn_error_status(), KN_OK);
    assert_string_equal(kn_error_message(), "");
}

TENSOR_TEST(test_working_calls_do_not_clear)
{
    kn_tensor *a = kn_ones(KN_SHAPE(2));
    assert_null(kn_add(a, kn_ones(KN_SHAPE(3))));
    CHECK_TENSOR(kn_add(a, a));
    CHECK_OK(kn_synchronize(kn_device_current()));
    CHECK_ERROR(KN_ERR_SHAPE, "add");
}

/* Backward of a failed expression reports the original error. */
TENSOR_TEST(test_backward_of_a_failed_expression)
{
    kn_tensor *w = kn_ones(KN_SHAPE(3, 2), .requires_grad = true);
    kn_tensor *loss = kn_mean(kn_matmul(kn_ones(KN_SHAPE(4, 4)), w));
    assert_int_equal(kn_backward(loss), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "matmul", "[4, 4]", "[3, 2]");
}

static void *other_thread(void *user)
{
    (void)user;
    if (kn_error_status() != KN_OK)
        return (void *)"another thread's error is seen";
    if (kn_add(NULL, NULL) || kn_error_status() != KN_ERR_ARGUMENT)
        return (void *)"the thread has no error of its own";
    return NULL;
}

TENSOR_TEST(test_errors_belong_to_a_thread)
{
    assert_null(kn_add(kn_ones(KN_SHAPE(2)), kn_ones(KN_SHAPE(3))));
    pthread_t thread;
    void *problem = NULL;
    assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
    pthread_join(thread, &problem);
    assert_null(problem);
    CHECK_ERROR(KN_ERR_SHAPE, "[2]", "[3]");
}

TENSOR_TEST(test_status_names)
{
    assert_string_equal(kn_status_name(KN_OK), "KN_OK");
    assert_string_equal(kn_status_name(KN_ERR_SHAPE), "KN_ERR_SHAPE");
    assert_string_equal(kn_status_name(KN_ERR_INTERNAL), "KN_ERR_INTERNAL");
    assert_non_null(kn_status_name((kn_status)99));
}

TENSOR_TEST(test_user_errors)
{
    assert_int_equal(kn_error_set(KN_ERR_IO, "disk %d is on fire", 3), KN_ERR_IO);
    CHECK_ERROR(KN_ERR_IO, "disk 3 is on fire");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_first_error_stays),
        TEST(test_working_calls_do_not_clear),
        TEST(test_backward_of_a_failed_expression),
        TEST(test_errors_belong_to_a_thread),
        TEST(test_status_names),
        TEST(test_user_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

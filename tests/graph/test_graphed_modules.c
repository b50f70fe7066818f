/* test_graphed_modules.c - errors of graphed modules: late and repeated backward passes, inputs that require a gradient
 * when the sample did not. */
#include "graph_case.h"

/* The next pass overwrites saved tensors: a late backward pass is an error, not wrong gradients. */
static void graphed_modules_keep_one_pass(void **state)
{
    (void)state;
    graph_case c;
    case_make(&c, adam, KN_F32);
    CHECK_OK(kn_make_graphed_callable(c.net, c.x));
    {
        KN_SCOPE;
        kn_tensor *first = kn_sum(kn_forward(c.net, c.x)), *second = kn_sum(kn_forward(c.net, c.x));
        assert_int_equal(kn_backward(first), KN_ERR_STATE);
        CHECK_ERROR(KN_ERR_STATE, "holds one call at a time");
        CHECK_OK(kn_backward_with(second, NULL, true));
        assert_int_equal(kn_backward(second), KN_ERR_STATE);
        CHECK_ERROR(KN_ERR_STATE, "holds one call at a time");
        kn_tensor *x = kn_clone(c.x);
        kn_set_requires_grad(x, true);
        assert_null(kn_forward(c.net, x));
        CHECK_ERROR(KN_ERR_STATE, "the sample it was recorded with did not");

        KN_NO_GRAD;
        CHECK_TENSOR(kn_forward(c.net, x));
    }
    case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(graphed_modules_keep_one_pass)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_leaf_order.c - a leaf's gradient is accumulated as soon as it is complete, while the pass goes on. */
#include <string.h>

#include "support/check.h"

static char order[64];

static kn_status note_leaf(kn_tensor *leaf, void *name)
{
    (void)leaf;
    strcat(order, name);
    return KN_OK;
}

static kn_tensor *note_result(kn_tensor *gradient, void *name)
{
    strcat(order, name);
    return gradient;
}

static kn_tensor *new_leaf(const char *name)
{
    kn_tensor *leaf = kn_ones(KN_SHAPE(3), .requires_grad = true);
    CHECK_OK(kn_register_post_accumulate_grad_hook(leaf, note_leaf, (void *)(uintptr_t)name, NULL));
    return leaf;
}

static kn_tensor *watched(kn_tensor *result, const char *name)
{
    CHECK_OK(kn_register_hook(result, note_result, (void *)(uintptr_t)name));
    return result;
}

static void last_layers_first(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *a = new_leaf("a"), *b = new_leaf("b"), *c = new_leaf("c");
    for (int pass = 0; pass < 2; pass++) {
        KN_SCOPE;
        order[0] = '\0';
        kn_tensor *x = watched(kn_mul(a, a), "x");
        kn_tensor *y = watched(kn_mul(x, b), "y");
        CHECK_OK(kn_backward(kn_sum(kn_mul(y, c))));
        assert_string_equal(order, "cybxa");
    }
}

/* Once, with the sum: after the first use of it, which comes last. */
static void a_shared_leaf_waits_for_all_its_uses(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *w = new_leaf("w"), *b = new_leaf("b");
    kn_tensor *x = watched(kn_mul(w, b), "x"), *y = watched(kn_mul(x, w), "y");
    kn_tensor *loss = kn_sum(y);
    double value = 0;
    order[0] = '\0';
    CHECK_OK(kn_backward_with(loss, NULL, true));
    assert_true(strcmp(order, "yxwb") == 0 || strcmp(order, "yxbw") == 0);
    CHECK_OK(kn_item(kn_narrow(kn_grad(w), 0, 0, 1), &value));
    assert_true(value == 2);
    order[0] = '\0';
    CHECK_OK(kn_backward(loss)); /* the same graph again */
    assert_true(strcmp(order, "yxwb") == 0 || strcmp(order, "yxbw") == 0);
    CHECK_OK(kn_item(kn_narrow(kn_grad(w), 0, 0, 1), &value));
    assert_true(value == 4);
}

/* A use that the pass does not reach: it comes last, with the right value, once. */
static void a_use_outside_the_pass_makes_it_late(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *a = new_leaf("a"), *b = new_leaf("b");
    kn_tensor *elsewhere = kn_mul(b, b);
    kn_tensor *x = watched(kn_mul(a, a), "x");
    double value = 0;
    order[0] = '\0';
    CHECK_OK(kn_backward(kn_sum(kn_mul(x, b))));
    assert_string_equal(order, "xab");
    CHECK_OK(kn_backward(kn_sum(elsewhere)));
    assert_string_equal(order, "xabb");
    CHECK_OK(kn_item(kn_narrow(kn_grad(b), 0, 0, 1), &value));
    assert_true(value == 3);
}

static void gradients_asked_for_are_given_once(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *a = new_leaf("a"), *b = new_leaf("b"), *gradient = NULL;
    kn_tensor *loss = kn_sum(kn_mul(kn_mul(a, b), b));
    double value = 0;
    CHECK_OK(kn_register_hook(b, note_result, (void *)(uintptr_t) "g"));
    order[0] = '\0';
    CHECK_OK(kn_autograd_grad(&loss, 1, &b, 1, &gradient));
    assert_string_equal(order, "g");
    CHECK_OK(kn_item(kn_narrow(gradient, 0, 0, 1), &value));
    assert_true(value == 2 && kn_grad(b) == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(last_layers_first),
        TEST(a_shared_leaf_waits_for_all_its_uses),
        TEST(a_use_outside_the_pass_makes_it_late),
        TEST(gradients_asked_for_are_given_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

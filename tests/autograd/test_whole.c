/* test_whole.c - gradients of tensors that are used in parts (autograd/whole.h): any views of views, of some elements,
 * of all, of the same ones several times; and those that attention writes in their place. */
#include "support/check.h"

#include <stdio.h>

#include "support/values.h"

enum { ROWS = 4, COLUMNS = 6, COUNT = ROWS * COLUMNS, CASES = 60, USES = 5 };

static int64_t number(test_random *random, int64_t below)
{
    return (int64_t)(test_random_next(random) % (uint64_t)below);
}

/* A random view of x. */
static kn_tensor *view_of(kn_tensor *x, test_random random)
{
    for (int64_t views = 1 + number(&random, 3); views > 0 && kn_ndim(x) > 0; views--) {
        const int dim = (int)number(&random, kn_ndim(x));
        const int64_t size = kn_size(x, dim), start = number(&random, size + 1);
        switch (number(&random, 5)) {
        case 0:
            x = size > 0 ? kn_select(x, dim, start % size) : x;
            break;
        case 1:
            x = kn_narrow(x, dim, start, number(&random, size - start + 1));
            break;
        case 2:
            x = kn_slice(x, dim, start, KN_SLICE_END, 1 + number(&random, 3));
            break;
        case 3:
            x = kn_transpose(x, dim, (int)number(&random, kn_ndim(x)));
            break;
        default:
            x = kn_reshape(x, KN_SHAPE(size, kn_numel(x) / (size > 0 ? size : 1)));
        }
    }
    return x;
}

/* Adds the part's weights to `expected`, where x has those elements; returns the part times them. */
static kn_tensor *weighted(kn_tensor *x, kn_tensor *numbers, test_random *random, double *expected)
{
    float weights[COUNT];
    int64_t places[COUNT];
    const test_random same = *random;
    kn_tensor *part = view_of(x, same), *places_of_part = view_of(numbers, same);
    CHECK_TENSOR(part);
    CHECK_OK(kn_read(places_of_part, places, (size_t)kn_numel(part) * sizeof *places));
    for (int64_t i = 0; i < kn_numel(part); i++) {
        weights[i] = (float)number(random, 9);
        expected[places[i]] += (double)weights[i];
    }
    return kn_sum(kn_mul(part, kn_from_data_with(weights, kn_ndim(part), kn_shape(part), NULL)));
}

TENSOR_TEST(random_views_add_up)
{
    for (int i = 0; i < CASES; i++) {
        KN_SCOPE;
        char name[16];
        snprintf(name, sizeof name, "views %d", i);
        test_random random = test_random_from(name);
        kn_tensor *x = kn_ones(KN_SHAPE(ROWS, COLUMNS)),
                  *numbers = kn_reshape(kn_arange(0, COUNT, 1), KN_SHAPE(ROWS, COLUMNS));
        double expected[COUNT] = {0};
        CHECK_OK(kn_set_requires_grad(x, true));
        kn_tensor *used = i % 2 ? kn_mul_scalar(x, 1) : x, *loss = weighted(used, numbers, &random, expected);
        for (int64_t uses = number(&random, USES); uses > 0; uses--)
            loss = kn_add(loss, weighted(used, numbers, &random, expected));
        if (i % 3 == 0)
            loss = kn_add(loss, kn_sum(kn_mul_scalar(used, 0)));
        if (i % 5 == 0 && used != x)
            CHECK_OK(kn_retain_grad(used));
        CHECK_OK(kn_backward(loss));
        check_values(kn_grad(x), expected, COUNT, name, __FILE__, __LINE__);
    }
}

/* --- attention, which writes the gradients of its operands in their places ---------------------------------------- */

enum { BATCH = 2, LENGTH = 5, HEADS = 2, WIDTH = 3, ALL = BATCH * LENGTH * 3 * HEADS * WIDTH };

typedef enum use_of_parts { PLAIN, ONE_OPERAND, TWICE, KEPT, HOOKED, USED_OTHERWISE, USES_OF_PARTS } use_of_parts;

static kn_tensor *doubled(kn_tensor *gradient, void *user)
{
    (void)user;
    return kn_mul_scalar(gradient, 2);
}

/* `copied`: the parts are copied, so that their gradients have no place. *kept: of the second part. */
static kn_tensor *attend(kn_tensor *x, use_of_parts use, bool copied, kn_tensor **part_kept)
{
    kn_tensor *all = kn_reshape(kn_mul_scalar(x, 1), KN_SHAPE(BATCH, LENGTH, 3, HEADS, WIDTH)), *part[3];
    for (int i = 0; i < 3; i++) {
        part[i] = kn_transpose(kn_select(all, 2, i), 1, 2);
        part[i] = copied ? kn_clone(part[i]) : part[i];
    }
    *part_kept = part[1];
    if (use == KEPT)
        CHECK_OK(kn_retain_grad(part[1]));
    if (use == HOOKED)
        CHECK_OK(kn_register_hook(part[1], doubled, NULL));
    kn_tensor *key = use == ONE_OPERAND ? part[0] : part[1];
    kn_tensor *y = kn_sum(kn_square(kn_scaled_dot_product_attention(part[0], key, part[2])));
    if (use == TWICE)
        y = kn_add(y, kn_sum(kn_scaled_dot_product_attention(part[2], part[1], part[0])));
    if (use == USED_OTHERWISE)
        y = kn_add(y, kn_add(kn_sum(kn_square(part[1])), kn_sum(kn_square(kn_narrow(all, 1, 1, 2)))));
    return y;
}

TENSOR_TEST(attention_writes_gradients_in_their_places)
{
    for (use_of_parts use = PLAIN; use < USES_OF_PARTS; use++) {
        KN_SCOPE;
        kn_tensor *x[2], *part[2];
        for (int copied = 0; copied < 2; copied++) {
            x[copied] = random_tensor("x", 1, (const int64_t[]){ALL}, -1, false, KN_F32);
            CHECK_OK(kn_set_requires_grad(x[copied], true));
            for (int pass = 0; pass < 2; pass++)
                CHECK_OK(kn_backward(attend(x[copied], use, copied, &part[copied])));
        }
        check_tensors_close(kn_grad(x[0]), kn_grad(x[1]), LENGTH, use);
        if (use == KEPT)
            check_tensors_close(kn_grad(part[0]), kn_grad(part[1]), LENGTH, use);
    }
}

/* So that the heads can be joined without a copy. */
TENSOR_TEST(attentions_result_has_the_querys_order)
{
    kn_tensor *rows = kn_ones(KN_SHAPE(BATCH, LENGTH, HEADS, WIDTH)), *x = kn_transpose(rows, 1, 2),
              *y = kn_contiguous(x);
    assert_true(kn_is_contiguous(kn_transpose(kn_scaled_dot_product_attention(x, x, x), 1, 2)));
    assert_true(kn_is_contiguous(kn_scaled_dot_product_attention(y, x, x)));
}

/* Gradients that the caller asks for are its own: changing one changes no other. */
TENSOR_TEST(gradients_asked_for_are_separate)
{
    kn_tensor *x = random_tensor("x", 1, (const int64_t[]){ALL}, -1, false, KN_F32), *part, *found[2], *first;
    CHECK_OK(kn_set_requires_grad(x, true));
    kn_tensor *y = attend(x, PLAIN, false, &part), *inputs[] = {x, part};
    CHECK_OK(kn_autograd_grad(&y, 1, inputs, 2, &found[0], .retain_graph = true));
    CHECK_OK(kn_autograd_grad(&y, 1, &x, 1, &first));
    CHECK_TENSOR(kn_zero_(found[1]));
    check_tensors_close(found[0], first, LENGTH, PLAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(random_views_add_up),
        TEST(attention_writes_gradients_in_their_places),
        TEST(attentions_result_has_the_querys_order),
        TEST(gradients_asked_for_are_separate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

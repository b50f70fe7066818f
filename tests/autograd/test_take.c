/* test_take.c - normalisations add what other uses of their input have given its gradient (kn_grad_take): the same
 * gradients as where they have a copy of it, of which there is no other use. */
#include "support/check.h"

#include "support/values.h"

enum { ROWS = 5, COLUMNS = 67 };

typedef enum use_of_input {
    RESIDUAL,   /* x + norm(x) */
    OF_A_LEAF,  /* the same of a leaf */
    LATER,      /* norm(x) + x: the other use's gradient arrives in the other order */
    TWICE,      /* two normalisations */
    KEPT,       /* the gradient is kept */
    HOOKED,     /* and changed by a hook, once all of it has arrived */
    OF_A_PART,  /* the other use is of a part: the gradient so far is incomplete */
    TRANSPOSED, /* the other use's gradient is not contiguous */
    USES
} use_of_input;

static kn_tensor *norm(kn_tensor *x, bool rms, bool copied, kn_tensor *weight)
{
    x = copied ? kn_clone(x) : x;
    return rms ? kn_rms_norm(x, KN_SHAPE(COLUMNS), .weight = weight)
               : kn_layer_norm(x, KN_SHAPE(COLUMNS), .weight = weight);
}

static kn_tensor *doubled(kn_tensor *gradient, void *user)
{
    (void)user;
    return kn_mul_scalar(gradient, 2);
}

static kn_tensor *loss_of(kn_tensor *x, use_of_input use, bool rms, bool copied, kn_tensor *weight, kn_tensor **kept)
{
    kn_tensor *h = use == OF_A_LEAF ? x : kn_mul_scalar(x, 3), *y = norm(h, rms, copied, weight);
    *kept = h;
    if (use == KEPT)
        CHECK_OK(kn_retain_grad(h));
    if (use == HOOKED)
        CHECK_OK(kn_register_hook(h, doubled, NULL));
    if (use == LATER)
        return kn_sum(kn_square(kn_add(y, h)));
    if (use == OF_A_PART)
        return kn_add(kn_sum(kn_square(y)), kn_sum(kn_square(kn_narrow(h, 0, 1, 2))));
    if (use == TRANSPOSED)
        return kn_sum(kn_mul(kn_square(kn_t(h)), kn_t(y)));
    y = use == TWICE ? kn_mul(y, norm(h, !rms, copied, NULL)) : y;
    return kn_sum(kn_square(kn_add(h, y)));
}

/* Two passes, of which the second adds to the leaves' gradients. */
static void compare(use_of_input use, bool rms, bool with_weight)
{
    KN_SCOPE;
    kn_tensor *x[2], *weight[2] = {NULL, NULL}, *kept[2];
    for (int copied = 0; copied < 2; copied++) {
        x[copied] = random_tensor("x", 2, (const int64_t[]){ROWS, COLUMNS}, -1, false, KN_F32);
        CHECK_OK(kn_set_requires_grad(x[copied], true));
        if (with_weight) {
            weight[copied] = random_tensor("weight", 1, (const int64_t[]){COLUMNS}, -1, false, KN_F32);
            CHECK_OK(kn_set_requires_grad(weight[copied], true));
        }
        for (int pass = 0; pass < 2; pass++)
            CHECK_OK(kn_backward(loss_of(x[copied], use, rms, copied, weight[copied], &kept[copied])));
    }
    check_tensors_close(kn_grad(x[0]), kn_grad(x[1]), COLUMNS, use);
    if (with_weight)
        check_tensors_close(kn_grad(weight[0]), kn_grad(weight[1]), COLUMNS, use);
    if (use == KEPT)
        check_tensors_close(kn_grad(kept[0]), kn_grad(kept[1]), COLUMNS, use);
}

TENSOR_TEST(normalisations_add_to_the_gradient_so_far)
{
    for (use_of_input use = RESIDUAL; use < USES; use++)
        for (int i = 0; i < 4; i++)
            compare(use, i & 1, i & 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(normalisations_add_to_the_gradient_so_far)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

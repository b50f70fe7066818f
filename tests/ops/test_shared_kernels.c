/* test_shared_kernels.c - small products share a kernel, since each takes the compiler half a second: the layers of a
 * classifier, forward and backward. */
#include "support/check.h"

#include "rt/compile/rehearsal.h"
#include "rt/device/device.h"

enum { MOST = 64 };

/* Kernels that were asked for. */
typedef struct kernels {
    uint64_t seen[MOST];
    int count;
} kernels;

static bool note(uint64_t kernel, void *user)
{
    kernels *k = user;
    for (int i = 0; i < k->count; i++)
        if (k->seen[i] == kernel)
            return false;
    assert_true(k->count < MOST);
    k->seen[k->count++] = kernel;
    return false;
}

static kn_tensor *trained(kn_tensor *x)
{
    CHECK_OK(kn_set_requires_grad(x, true));
    return x;
}

/* A layer's step, without computing: how many kernels it needs that those before did not. */
static int new_kernels(kernels *k, int64_t batch, int64_t in, int64_t out)
{
    kn_tensor *x = trained(kn_ones(KN_SHAPE(batch, in))), *weight = trained(kn_ones(KN_SHAPE(out, in))),
              *bias = trained(kn_ones(KN_SHAPE(out))), *gradient = kn_ones(KN_SHAPE(batch, out));
    const int before = k->count;
    kn_rehearsal rehearsal = {.takes = note, .user = k};
    kn_rehearse(&rehearsal);
    kn_tensor *y = kn_linear(x, weight, bias);
    const kn_status status = y ? kn_backward_with(y, gradient, false) : kn_error_status();
    kn_rehearse(NULL);
    CHECK_OK(status);
    return k->count - before;
}

TENSOR_TEST(test_classifier)
{
    kernels k = {.count = 0};
    if (!kn_device_limits(kn_device_current())->is_cpu)
        skip();
    assert_true(new_kernels(&k, 128, 64, 32) > 0);
    assert_int_equal(new_kernels(&k, 128, 32, 10), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_classifier)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

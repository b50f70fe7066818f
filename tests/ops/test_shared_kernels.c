/* test_shared_kernels.c - kernels that are shared, since each takes the compiler a tenth to half a second: those of
 * small products, by the layers of a classifier, and those of Winograd's convolution, by both of its passes. */
#include "support/check.h"

#include "ops/dispatch/choice.h"
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
    assert_int_equal(new_kernels(&k, 128, 64, 32), 1); /* of the products; the bias's gradient comes with one */
    assert_int_equal(new_kernels(&k, 128, 32, 10), 0);
}

/* Without padding: as many tiles of 4 x 4 pixels in a row and column of dy as three, of dx four. */
TENSOR_TEST(test_passes_of_winograd)
{
    kernels k = {.count = 0};
    kn_rehearsal rehearsal = {.takes = note, .user = &k};
    if (!kn_device_limits(kn_device_current())->is_cpu)
        skip();
    kn_tensor *x = trained(kn_ones(KN_SHAPE(32, 32, 13, 13))), *weight = kn_ones(KN_SHAPE(64, 32, 5, 5));
    kn_force_implementation("conv2d", "winograd");
    kn_force_implementation("conv2d_backward_data", "winograd");
    kn_rehearse(&rehearsal);
    kn_tensor *y = kn_conv2d(x, weight, NULL, .padding = 0);
    const int forward = k.count;
    const kn_status status = y ? kn_backward_with(y, y, false) : kn_error_status();
    kn_rehearse(NULL);
    kn_force_implementation("conv2d", NULL);
    kn_force_implementation("conv2d_backward_data", NULL);
    CHECK_OK(status);
    assert_int_equal(forward, 2);           /* transformed weights, and the products */
    assert_int_equal(k.count - forward, 1); /* other products, whose weights are transformed by the same kernel */
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_classifier), TEST(test_passes_of_winograd)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

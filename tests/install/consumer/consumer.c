/* A user's program in C: one gradient on the best device. */
#include <koine/koine.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    double slope = 0;
    if (strcmp(kn_version(), KN_VERSION) != 0) {
        fprintf(stderr, "header %s, library %s\n", KN_VERSION, kn_version());
        return 1;
    }
    {
        KN_SCOPE;
        kn_tensor *x = kn_full(KN_SCALAR, 3, .requires_grad = true);
        kn_backward(kn_mul(x, x)); /* d(x^2)/dx = 2x */
        kn_item(kn_grad(x), &slope);
    }
    if (kn_error_status() != KN_OK) {
        fprintf(stderr, "%s\n", kn_error_message());
        return 1;
    }
    printf("C, Koine %s on %s: slope of x^2 at 3 is %g\n", kn_version(), kn_device_name(kn_device_current()), slope);
    return slope == 6 ? 0 : 1;
}

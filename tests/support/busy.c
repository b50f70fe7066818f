/* support/busy.c - products that keep a device busy. */
#include "support/busy.h"

#include <math.h>
#include <stdatomic.h>
#include <time.h>

enum { MILLISECONDS = 60, MAX_PRODUCTS = 400 };

static void multiply(kn_device *device, int times)
{
    KN_SCOPE;
    const int64_t n = kn_device_get_type(device) == KN_DEVICE_GPU ? 4096 : 192;
    kn_tensor *x = kn_full(KN_SHAPE(n, n), 1.0 / (double)n, .device = device);
    for (int i = 0; i < times; i++) {
        KN_SCOPE;
        kn_matmul(x, x);
    }
}

static double milliseconds_of(kn_device *device, int times)
{
    struct timespec start, end;
    kn_synchronize(device);
    clock_gettime(CLOCK_MONOTONIC, &start);
    multiply(device, times);
    kn_synchronize(device);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - start.tv_sec) * 1e3 + (double)(end.tv_nsec - start.tv_nsec) * 1e-6;
}

void keep_busy(kn_device *device)
{
    static atomic_int products;
    if (products == 0) {
        multiply(device, 1); /* compiles */
        const double one = fmin(milliseconds_of(device, 1), milliseconds_of(device, 3) / 3);
        products = (int)fmin(1 + MILLISECONDS / one, MAX_PRODUCTS);
    }
    multiply(device, products);
}

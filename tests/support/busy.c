/* support/busy.c - sums that keep a device busy. In place: with KOINE_GUARD=1 memory that is freed is waited for. */
#include "support/busy.h"

#include <math.h>
#include <stdatomic.h>
#include <time.h>

enum { MILLISECONDS = 60, MAX_SUMS = 400 };

static void add(kn_device *device, int times)
{
    KN_SCOPE;
    const int64_t n = (int64_t)1 << (kn_device_get_type(device) == KN_DEVICE_GPU ? 26 : 20);
    kn_tensor *x = kn_zeros(KN_SHAPE(n), .device = device);
    for (int i = 0; i < times; i++)
        kn_add_(x, x);
}

static double milliseconds_of(kn_device *device, int times)
{
    struct timespec start, end;
    kn_synchronize(device);
    clock_gettime(CLOCK_MONOTONIC, &start);
    add(device, times);
    kn_synchronize(device);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - start.tv_sec) * 1e3 + (double)(end.tv_nsec - start.tv_nsec) * 1e-6;
}

void keep_busy(kn_device *device)
{
    static atomic_int sums;
    if (sums == 0) {
        add(device, 1); /* compiles */
        const double one = fmin(milliseconds_of(device, 1), milliseconds_of(device, 3) / 3);
        sums = (int)fmin(1 + MILLISECONDS / one, MAX_SUMS);
    }
    add(device, sums);
}

/* dist/scale_measure.c - the figures of a link, measured between the ranks of a group. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "dist/scale.h"
#include "tensor/tensor.h"

#define REPETITIONS 15
#define SMALL 2
#define LARGE ((int64_t)1 << 20) /* elements */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

typedef kn_status (*action)(kn_group *group, kn_tensor *first, kn_tensor *second);

/* The median time of several, on this rank; `group` NULL: there is only this one. */
static kn_status time_of(action run, kn_group *group, kn_tensor *first, kn_tensor *second, double *median)
{
    double times[REPETITIONS];
    KN_TRY(run(group, first, second));
    for (int i = 0; i < REPETITIONS; i++) {
        if (group)
            KN_TRY(kn_group_barrier(group));
        const double began = kn_clock_seconds();
        KN_TRY(run(group, first, second));
        times[i] = kn_clock_seconds() - began;
    }
    qsort(times, REPETITIONS, sizeof times[0], by_value);
    *median = times[REPETITIONS / 2];
    return KN_OK;
}

static kn_status all_reduce(kn_group *group, kn_tensor *first, kn_tensor *second)
{
    (void)second;
    return kn_group_all_reduce(group, first, .op = KN_REDUCE_MEAN);
}

/* From rank 0 to the last one and back; the others do nothing. */
static kn_status ping_pong(kn_group *group, kn_tensor *first, kn_tensor *second)
{
    const int rank = kn_group_rank(group), last = kn_group_size(group) - 1;
    (void)second;
    if (rank == 0) {
        KN_TRY(kn_group_send(group, first, last));
        return kn_group_receive(group, first, last);
    }
    if (rank != last)
        return KN_OK;
    KN_TRY(kn_group_receive(group, first, 0));
    return kn_group_send(group, first, 0);
}

static kn_status copy_and_wait(kn_group *group, kn_tensor *first, kn_tensor *second)
{
    (void)group;
    KN_TRY(kn_tensor_copy(second, first));
    KN_TRY(kn_tensor_copy(first, second));
    return kn_synchronize(kn_device_of(first));
}

typedef struct tensors {
    kn_tensor *small, *large, *there, *pinned;
} tensors;

static kn_status make_tensors(tensors *t, kn_device *device)
{
    const int64_t small = SMALL, large = LARGE;
    KN_TRY(kn_tensor_new(&t->small, KN_F32, 1, &small, kn_device_host()));
    KN_TRY(kn_tensor_fill(t->small, 0));
    KN_TRY(kn_tensor_new(&t->large, KN_F32, 1, &large, kn_device_host()));
    KN_TRY(kn_tensor_fill(t->large, 0));
    if (kn_device_is_host(device) || kn_can_map(device)) /* nothing is copied */
        return KN_OK;
    KN_TRY(kn_tensor_new(&t->there, KN_F32, 1, &large, device));
    KN_TRY(kn_tensor_fill(t->there, 0));
    return kn_tensor_new_pinned(&t->pinned, KN_F32, 1, &large, device);
}

#define COPIED ((int64_t)8 << 20) /* elements */

static kn_status copy_on_device(kn_group *group, kn_tensor *first, kn_tensor *second)
{
    (void)group;
    KN_TRY(kn_tensor_copy(second, first));
    return kn_synchronize(kn_device_of(first));
}

kn_status kn_scale_measure_copies(kn_device *device, double *bytes_per_second)
{
    const int64_t count = COPIED;
    kn_tensor *first = NULL, *second = NULL;
    double time = 0;
    kn_status status = kn_tensor_new(&first, KN_F32, 1, &count, device);
    if (status == KN_OK)
        status = kn_tensor_new(&second, KN_F32, 1, &count, device);
    if (status == KN_OK)
        status = kn_tensor_fill(first, 0);
    if (status == KN_OK)
        status = time_of(copy_on_device, NULL, first, second, &time);
    kn_release(first);
    kn_release(second);
    *bytes_per_second = time > 0 ? COPIED * 4.0 / time : 0;
    return status;
}

/* The same on all ranks: rank 0's. */
static kn_status share(kn_group *group, kn_scale_link *link)
{
    const int64_t count = sizeof *link / sizeof(double);
    kn_tensor *figures;
    KN_TRY(kn_tensor_new(&figures, KN_F64, 1, &count, kn_device_host()));
    kn_scale_link *values = kn_data(figures);
    *values = *link;
    const kn_status status = kn_group_broadcast(group, figures, 0);
    *link = *values;
    kn_release(figures);
    return status;
}

static kn_status measure(kn_group *group, const tensors *t, kn_scale_link *link)
{
    const int size = kn_group_size(group);
    const double bytes = (double)(LARGE - SMALL) * 4;
    double small, large, there_and_back, copies = 0;
    KN_TRY(time_of(ping_pong, group, t->small, NULL, &there_and_back));
    KN_TRY(time_of(all_reduce, group, t->small, NULL, &small));
    KN_TRY(time_of(all_reduce, group, t->large, NULL, &large));
    if (t->there)
        KN_TRY(time_of(copy_and_wait, group, t->there, t->pinned, &copies));
    const double rounds = ceil(log2(size));
    link->latency = there_and_back / 2;
    link->call = fmax(small - 3 * rounds * link->latency, 0); /* of comparing the calls: one; of the reduction: two */
    link->bandwidth = 2 * bytes * (size - 1) / size / fmax(large - small, 1e-9);
    link->staging = copies > 0 ? 2.0 * (double)LARGE * 4 / copies : 0;
    return share(group, link);
}

kn_status kn_scale_measure_link(kn_group *group, kn_device *device, kn_scale_link *link)
{
    tensors t = {0};
    *link = (kn_scale_link){0};
    if (kn_group_size(group) < 2)
        return kn_fail(KN_ERR_STATE, "a link is measured between two or more ranks: mpirun -n 2");
    kn_status status = kn_device_is_host(device) ? KN_OK : kn_scale_measure_copies(device, &link->copies);
    if (status == KN_OK)
        status = make_tensors(&t, device);
    if (status == KN_OK)
        status = measure(group, &t, link);
    kn_release(t.small);
    kn_release(t.large);
    kn_release(t.there);
    kn_release(t.pinned);
    return status;
}

/* data/counted.h - a dataset that counts its calls and fails on request, and checks of its batches. */
#pragma once

#include <koine/data.h>
#include <koine/device.h>
#include <stdatomic.h>

#define WIDTH 33 /* sample size: odd, so that rows are not aligned */

typedef struct counted {
    int64_t length;
    int64_t bad;      /* this sample fails; -1: none */
    bool silent;      /* without a message */
    long nanoseconds; /* time per sample */
    atomic_int calls;
} counted;

/* Sample i: input float32 i, i + 1, ..., i + WIDTH - 1; target int64 -i. */
kn_dataset *counted_dataset(counted *data, int64_t length);

/* The devices to test: the host and, if available, an OpenCL device. find_devices is the group set-up. */
extern kn_device *devices[2];
extern int num_devices;
int find_devices(void **state);

/* kn_loader_next of a loader over counted_dataset; both NULL at the end of the epoch. */
kn_status next_pair(kn_loader *loader, kn_tensor **input, kn_tensor **target);

/* The batch holds the samples order[0 .. size - 1]. */
void assert_batch(kn_tensor *input, kn_tensor *target, const int64_t *order, int64_t size);

/* The order of a loader without a sampler. */
void expected_order(int64_t *order, int64_t length, bool shuffle, uint64_t seed, int64_t epoch);

/* Runs an epoch and compares it with the seed's order. */
void assert_epoch(kn_loader *loader, const kn_loader_params *params, int64_t length, int64_t epoch);

/* dist_case.h - networks and batches for the tests of data parallelism, and comparison of two runs. */
#pragma once

#include "support/check.h"

#define MAX_DEVICES 3

/* The first `count` devices; skips the test if there are fewer. Makes the first one current. */
kn_device *const *case_devices(int count);

/* The convolutional network of the seeds without its dropout, in `dtype`, from a fixed seed, on the current device. */
kn_module *case_network(kn_dtype dtype);

/* Equal numbers give equal images and classes. */
void case_batch(kn_tensor **images, kn_tensor **classes, int64_t size, kn_dtype dtype, int number);

/* One training step with cross entropy; returns the loss. */
double case_step(kn_module *net, kn_optim *optim, int64_t size, kn_dtype dtype, int number);

/* The largest difference of parameters / gradients of the two networks, relative to the largest value of each tensor.
 */
double case_parameters_differ(kn_module *a, kn_module *b);
double case_gradients_differ(kn_module *a, kn_module *b);

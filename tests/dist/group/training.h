/* training.h - a small network in float64, its batches and its steps, for the cases of distributed training. */
#pragma once

#include "dist/group/rank_case.h"

#define ROWS 4 /* of each rank's batch */
#define FEATURES 6

/* Numbers that depend on `seed` alone: generators are shared by threads. */
void fill(kn_tensor *tensor, double seed);

kn_module *network(double seed);

/* The joint batch of a step; `part`: this rank's rows of it. */
kn_tensor *batch(state *s, int columns, double seed, bool part);

/* Returns the loss; `optim` NULL: adds to the gradients only. */
double step(state *s, kn_module *net, kn_optim *optim, int number, bool part);

/* The largest of the parameters or of their gradients. */
double difference(kn_module *a, kn_module *b, bool gradients);

/* Distributed, with buckets of one or two tensors. */
kn_module *wrap_small(state *s, kn_module *net);

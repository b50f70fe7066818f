/* data/order.h - the random numbers of orders and of samples: functions of seed, epoch and index alone, independent of
 * threads and devices.
 *
 * All come from Philox4x32-10 (Salmon et al., SC 2011) with the seed as key and (index, epoch, purpose) as counter. */
#pragma once

#include <koine/common.h>

/* 64 random bits, number `index` of those for the epoch's order / as a whole number from 0 to limit - 1 / as a real
 * number above 0, at most 1. */
uint64_t kn_order_random(uint64_t seed, int64_t epoch, int64_t index);
int64_t kn_order_below(uint64_t seed, int64_t epoch, int64_t index, int64_t limit);
double kn_order_uniform(uint64_t seed, int64_t epoch, int64_t index);

/* Permutes `count` items by Fisher-Yates, with the numbers from `first` to first + count - 1. */
void kn_shuffle(int64_t *items, int64_t count, uint64_t seed, int64_t epoch, int64_t first);

/* The sample's own random number for augmentation. */
uint64_t kn_sample_random(uint64_t seed, int64_t epoch, int64_t index);

/* The batch's, for collate functions. */
uint64_t kn_batch_random(uint64_t seed, int64_t epoch, int64_t batch);

/* A number derived from `random`, practically independent of it. */
uint64_t kn_next_random(uint64_t random);

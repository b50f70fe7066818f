/* data/order.h - the order of samples and their random numbers: functions of seed, epoch and index alone, independent
 * of threads and devices.
 *
 * All come from Philox4x32-10 (Salmon et al., SC 2011) with the seed as key and (index, epoch, purpose) as counter. */
#pragma once

#include <koine/common.h>

/* order[i] = i, permuted by Fisher-Yates if `shuffle`. */
void kn_sample_order(int64_t *order, int64_t length, bool shuffle, uint64_t seed, int64_t epoch);

/* The sample's own random number for augmentation. */
uint64_t kn_sample_random(uint64_t seed, int64_t epoch, int64_t index);

/* The batch's, for collate functions. */
uint64_t kn_batch_random(uint64_t seed, int64_t epoch, int64_t batch);

/* A number derived from `random`, practically independent of it. */
uint64_t kn_next_random(uint64_t random);

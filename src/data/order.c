/* data/order.c - permutations and seeds drawn from Philox. */
#include "data/order.h"

#include "tensor/philox.h"

enum { PURPOSE_ORDER = 0, PURPOSE_SAMPLE = 1, PURPOSE_NEXT = 2, PURPOSE_BATCH = 3 };

/* 64 random bits for (seed, epoch, index). Epochs stay below 2^62: the counter's top two bits are the purpose. */
static uint64_t draw(uint64_t seed, uint64_t epoch, uint64_t index, uint32_t purpose)
{
    uint32_t words[4] = {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)epoch,
                         ((uint32_t)(epoch >> 32) & 0x3fffffffu) | purpose << 30};
    kn_philox4x32(words, (uint32_t)seed, (uint32_t)(seed >> 32));
    return (uint64_t)words[1] << 32 | words[0];
}

/* The high 64 bits of a * b. */
static uint64_t multiply_high(uint64_t a, uint64_t b)
{
    uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
    uint64_t other = a_low * b_high + (uint32_t)middle;
    return a_high * b_high + (middle >> 32) + (other >> 32);
}

void kn_sample_order(int64_t *order, int64_t length, bool shuffle, uint64_t seed, int64_t epoch)
{
    for (int64_t i = 0; i < length; i++)
        order[i] = i;
    if (!shuffle)
        return;
    for (int64_t i = length - 1; i > 0; i--) {
        /* floor(r (i + 1) / 2^64) is uniform on 0 .. i to within i / 2^64. */
        int64_t j = (int64_t)multiply_high(draw(seed, (uint64_t)epoch, (uint64_t)i, PURPOSE_ORDER), (uint64_t)i + 1);
        int64_t held = order[i];
        order[i] = order[j];
        order[j] = held;
    }
}

uint64_t kn_sample_random(uint64_t seed, int64_t epoch, int64_t index)
{
    return draw(seed, (uint64_t)epoch, (uint64_t)index, PURPOSE_SAMPLE);
}

uint64_t kn_batch_random(uint64_t seed, int64_t epoch, int64_t batch)
{
    return draw(seed, (uint64_t)epoch, (uint64_t)batch, PURPOSE_BATCH);
}

uint64_t kn_next_random(uint64_t random) { return draw(random, 0, 0, PURPOSE_NEXT); }

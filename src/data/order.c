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

uint64_t kn_order_random(uint64_t seed, int64_t epoch, int64_t index)
{
    return draw(seed, (uint64_t)epoch, (uint64_t)index, PURPOSE_ORDER);
}

/* floor(r limit / 2^64) is uniform to within limit / 2^64. */
int64_t kn_order_below(uint64_t seed, int64_t epoch, int64_t index, int64_t limit)
{
    return (int64_t)multiply_high(kn_order_random(seed, epoch, index), (uint64_t)limit);
}

double kn_order_uniform(uint64_t seed, int64_t epoch, int64_t index)
{
    return (double)((kn_order_random(seed, epoch, index) >> 11) + 1) * 0x1p-53;
}

void kn_shuffle(int64_t *items, int64_t count, uint64_t seed, int64_t epoch, int64_t first)
{
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = kn_order_below(seed, epoch, first + i, i + 1);
        const int64_t held = items[i];
        items[i] = items[j];
        items[j] = held;
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

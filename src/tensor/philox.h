/* tensor/philox.h - Philox4x32-10 (Salmon et al., SC 2011) on the host; the same bits as cl/common/philox.clh. */
#pragma once

#include <stdint.h>

static inline void kn_philox4x32(uint32_t counter[4], uint32_t key0, uint32_t key1)
{
    for (int round = 0; round < 10; round++) {
        const uint64_t product0 = (uint64_t)0xD2511F53u * counter[0], product1 = (uint64_t)0xCD9E8D57u * counter[2];
        const uint32_t x = (uint32_t)(product1 >> 32) ^ counter[1] ^ key0,
                       z = (uint32_t)(product0 >> 32) ^ counter[3] ^ key1;
        counter[0] = x;
        counter[1] = (uint32_t)product1;
        counter[2] = z;
        counter[3] = (uint32_t)product0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

/* The same for `count` blocks, with counters a, b, c, d. */
static inline void kn_philox_blocks(uint32_t *restrict a, uint32_t *restrict b, uint32_t *restrict c,
                                    uint32_t *restrict d, int count, uint64_t seed)
{
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u)
        for (int i = 0; i < count; i++) {
            const uint64_t product0 = (uint64_t)0xD2511F53u * a[i], product1 = (uint64_t)0xCD9E8D57u * c[i];
            a[i] = (uint32_t)(product1 >> 32) ^ b[i] ^ key0;
            b[i] = (uint32_t)product1;
            c[i] = (uint32_t)(product0 >> 32) ^ d[i] ^ key1;
            d[i] = (uint32_t)product0;
        }
}

/* The four words of one block of a draw. */
static inline void kn_philox_block(uint32_t words[4], uint64_t seed, uint64_t offset, uint64_t block)
{
    const uint64_t at = offset + block;
    words[0] = (uint32_t)at;
    words[1] = (uint32_t)(at >> 32);
    words[2] = words[3] = 0;
    kn_philox4x32(words, (uint32_t)seed, (uint32_t)(seed >> 32));
}

static inline float kn_uniform_f32(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }
static inline double kn_uniform_f64(uint32_t low, uint32_t high)
{
    return (double)((((uint64_t)high << 32) | low) >> 11) * 0x1p-53;
}

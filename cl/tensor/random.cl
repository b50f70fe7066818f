/* tensor/random.cl - fills with random numbers. T is float or double; one Philox block of four words per step
 * (common/philox.clh). Elements depend only on seed, offset and their index; src/tensor/random.c does the same for host
 * tensors, with fma on both sides so that the bits are the same. */
#include "common/koine.clh"
#include "common/philox.clh"

#ifdef KN_USE_F64
#define LANES 2 /* two words per element */
#define UNIFORM(words, lane) kn_uniform_f64((lane) ? words.z : words.x, (lane) ? words.w : words.y)
#define TWO_PI 6.283185307179586476925286766559
#define TINY 0x1p-53
#else
#define LANES 4
#ifndef MASK /* the bits of a word that count */
#define MASK 0xffffffffu
#endif
#define UNIFORM(words, lane)                                                                                           \
    kn_uniform_f32(MASK &((lane) == 0 ? words.x : (lane) == 1 ? words.y : (lane) == 2 ? words.z : words.w))
#define TWO_PI 6.283185307179586476925286766559f
#define TINY 0x1p-24f
#endif

/* low + u (high - low) */
kernel void uniform(KN_OUT(x), ulong seed, ulong offset, long n, T low, T range)
{
    KN_BIND_OUT(T, x);
    const long blocks = (n + LANES - 1) / LANES;
    KN_FOR (b, blocks) {
        const uint4 words = kn_philox_block(seed, offset, b);
        for (int lane = 0; lane < LANES && b * LANES + lane < n; lane++)
            x[b * LANES + lane] = fma(UNIFORM(words, lane), range, low);
    }
}

/* Box-Muller: sqrt(-2 ln u1) cos(2 pi u2) and ... sin(2 pi u2), u1 in (0, 1]. */
kernel void normal(KN_OUT(x), ulong seed, ulong offset, long n, T mean, T std)
{
    KN_BIND_OUT(T, x);
    const long blocks = (n + LANES - 1) / LANES;
    KN_FOR (b, blocks) {
        const uint4 words = kn_philox_block(seed, offset, b);
        for (int pair = 0; pair < LANES; pair += 2) {
            const T radius = sqrt((T)-2 * log(UNIFORM(words, pair) + TINY)),
                    angle = (T)TWO_PI * UNIFORM(words, pair + 1);
            const long i = b * LANES + pair;
            if (i < n)
                x[i] = fma(radius * cos(angle), std, mean);
            if (i + 1 < n)
                x[i + 1] = fma(radius * sin(angle), std, mean);
        }
    }
}

/* 1 with probability p, from 24 bits for every dtype of the result; B is its type. */
#ifdef B
kernel void bernoulli(KN_OUT(x), ulong seed, ulong offset, long n, float p)
{
    KN_BIND_OUT(B, x);
    const long blocks = (n + 3) / 4;
    KN_FOR (b, blocks) {
        const uint4 words = kn_philox_block(seed, offset, b);
        for (int lane = 0; lane < 4 && b * 4 + lane < n; lane++) {
            const uint word = lane == 0 ? words.x : lane == 1 ? words.y : lane == 2 ? words.z : words.w;
            x[b * 4 + lane] = (B)(kn_uniform_f32(word) < p);
        }
    }
}

/* low + floor(word64 * range / 2^64): biased by less than range / 2^64. */
kernel void randint(KN_OUT(x), ulong seed, ulong offset, long n, long low, ulong range)
{
    KN_BIND_OUT(B, x);
    const long blocks = (n + 1) / 2;
    KN_FOR (b, blocks) {
        const uint4 words = kn_philox_block(seed, offset, b);
        x[b * 2] = (B)(low + (long)mul_hi(((ulong)words.y << 32) | words.x, range));
        if (b * 2 + 1 < n)
            x[b * 2 + 1] = (B)(low + (long)mul_hi(((ulong)words.w << 32) | words.z, range));
    }
}
#endif

/* tensor/random.cl - fills with random numbers. T is float or double; one Philox block of four words per step
 * (common/philox.clh), on CPU devices sixteen, in vectors (common/philox16.clh). Elements depend only on seed, offset
 * and their index; src/tensor/random.c does the same for host tensors, with fma on both sides so that the bits are the
 * same. */
#include "common/koine.clh"
#include "common/philox.clh"
#include "common/philox16.clh"

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

#ifdef KN_CPU
/* In a loop over groups of 64 words: the words, the first element and the number of elements. */
#define GROUP(words, from, count, elements)                                                                            \
    uint16 words[4];                                                                                                   \
    philox_words(seed, offset + group * 16, words);                                                                    \
    const long from = group * (elements), count = min((long)(elements), n - from)

static void store_group(const private float16 *made, global float *x, const long count)
{
    if (count == 64) {
        for (int q = 0; q < 4; q++)
            vstore16(made[q], q, x);
        return;
    }
    for (long i = 0; i < count; i++)
        x[i] = ((const private float *)made)[i];
}
#endif

#ifndef B
/* low + u (high - low) */
KN_KERNEL_ONCE(uniform,
               (KN_ARG(x), seed, offset, n, low, range),
               KN_OUT(x), ulong seed, ulong offset, long n, T low, T range)
{
    KN_BIND_OUT(T, x);
#if defined KN_CPU && defined KN_USE_F64
    KN_FOR_ONCE(group, (n + 31) / 32) {
        GROUP(words, from, count, 32);
        const private uint *word = (const private uint *)words;
        for (long i = 0; i < count; i++)
            x[from + i] = fma(kn_uniform_f64(word[2 * i], word[2 * i + 1]), range, low);
    }
#elif defined KN_CPU
    KN_FOR_ONCE(group, (n + 63) / 64) {
        GROUP(words, from, count, 64);
        float16 made[4];
        for (int q = 0; q < 4; q++)
            made[q] = fma(convert_float16((words[q] & MASK) >> 8) * 0x1p-24f, (float16)range, (float16)low);
        store_group(made, x + from, count);
    }
#else
    const long blocks = (n + LANES - 1) / LANES;
    KN_FOR_ONCE(b, blocks) {
        const uint4 words = kn_philox_block(seed, offset, b);
        for (int lane = 0; lane < LANES && b * LANES + lane < n; lane++)
            x[b * LANES + lane] = fma(UNIFORM(words, lane), range, low);
    }
#endif
}

#ifdef LOG_NORMAL
#define OF_NORMAL(v) exp(v)
#else
#define OF_NORMAL(v) v
#endif

/* Box-Muller: sqrt(-2 ln u1) cos(2 pi u2) and ... sin(2 pi u2), u1 in (0, 1]. */
#if defined KN_CPU && !defined KN_USE_F64
/* Sixteen pairs at a time, also of elements that are not there: the functions of vectors round otherwise than those of
 * scalars, and an element must not depend on how many follow it. */
KN_KERNEL_ONCE(normal,
               (KN_ARG(x), seed, offset, n, mean, std),
               KN_OUT(x), ulong seed, ulong offset, long n, T mean, T std)
{
    KN_BIND_OUT(T, x);
    KN_FOR_ONCE(group, (n + 63) / 64) {
        GROUP(words, from, count, 64);
        float16 made[4];
        for (int q = 0; q < 4; q += 2) {
            const uint16 a = words[q], b = words[q + 1];
            const float16 u1 = convert_float16((uint16)(a.even, b.even) >> 8) * 0x1p-24f,
                          u2 = convert_float16((uint16)(a.odd, b.odd) >> 8) * 0x1p-24f;
            const float16 radius = sqrt(-2 * log(u1 + TINY)), angle = TWO_PI * u2;
            const float16 first = OF_NORMAL(fma(radius * cos(angle), (float16)std, (float16)mean)),
                          second = OF_NORMAL(fma(radius * sin(angle), (float16)std, (float16)mean));
            made[q].even = first.lo, made[q].odd = second.lo;
            made[q + 1].even = first.hi, made[q + 1].odd = second.hi;
        }
        store_group(made, x + from, count);
    }
}
#else
KN_KERNEL_ONCE(normal,
               (KN_ARG(x), seed, offset, n, mean, std),
               KN_OUT(x), ulong seed, ulong offset, long n, T mean, T std)
{
    KN_BIND_OUT(T, x);
    const long blocks = (n + LANES - 1) / LANES;
    KN_FOR_ONCE(b, blocks) {
        const uint4 words = kn_philox_block(seed, offset, b);
        for (int pair = 0; pair < LANES; pair += 2) {
            const T radius = sqrt((T)-2 * log(UNIFORM(words, pair) + TINY)),
                    angle = (T)TWO_PI * UNIFORM(words, pair + 1);
            const long i = b * LANES + pair;
            if (i < n)
                x[i] = OF_NORMAL(fma(radius * cos(angle), std, mean));
            if (i + 1 < n)
                x[i + 1] = OF_NORMAL(fma(radius * sin(angle), std, mean));
        }
    }
}
#endif

#else
/* 1 with probability p, from 24 bits for every dtype of the result; B is its type. */
KN_KERNEL_ONCE(bernoulli,
               (KN_ARG(x), seed, offset, n, p),
               KN_OUT(x), ulong seed, ulong offset, long n, float p)
{
    KN_BIND_OUT(B, x);
#ifdef KN_CPU
    KN_FOR_ONCE(group, (n + 63) / 64) {
        GROUP(words, from, count, 64);
        for (long i = 0; i < count; i++)
            x[from + i] = (B)(kn_uniform_f32(((const private uint *)words)[i]) < p);
    }
#else
    const long blocks = (n + 3) / 4;
    KN_FOR_ONCE(b, blocks) {
        const uint4 words = kn_philox_block(seed, offset, b);
        for (int lane = 0; lane < 4 && b * 4 + lane < n; lane++) {
            const uint word = lane == 0 ? words.x : lane == 1 ? words.y : lane == 2 ? words.z : words.w;
            x[b * 4 + lane] = (B)(kn_uniform_f32(word) < p);
        }
    }
#endif
}

/* low + floor(word64 * range / 2^64): biased by less than range / 2^64. */
KN_KERNEL_ONCE(randint,
               (KN_ARG(x), seed, offset, n, low, range),
               KN_OUT(x), ulong seed, ulong offset, long n, long low, ulong range)
{
    KN_BIND_OUT(B, x);
#ifdef KN_CPU
    KN_FOR_ONCE(group, (n + 31) / 32) {
        GROUP(words, from, count, 32);
        long8 made[4];
        for (int q = 0; q < 4; q++) {
            const ulong8 bits = as_ulong8(words[q]), lower = 0xffffffffUL;
            if (range >> 32)
                made[q] = low + as_long8(mul_hi(bits, (ulong8)range));
            else /* of 32 bits: two products of vectors */
                made[q] = low + as_long8(((bits >> 32) * range + ((bits & lower) * range >> 32)) >> 32);
        }
        for (long i = 0; i < count; i++)
            x[from + i] = (B)((const private long *)made)[i];
    }
#else
    const long blocks = (n + 1) / 2;
    KN_FOR_ONCE(b, blocks) {
        const uint4 words = kn_philox_block(seed, offset, b);
        x[b * 2] = (B)(low + (long)mul_hi(((ulong)words.y << 32) | words.x, range));
        if (b * 2 + 1 < n)
            x[b * 2 + 1] = (B)(low + (long)mul_hi(((ulong)words.w << 32) | words.z, range));
    }
#endif
}
#endif

/* --- functions of one uniform number u in (0, 1] --- */
#ifdef DEVIATE

/* The inverse of erf: Giles, "Approximating the erfinv function" (2010); in double with two of Newton's steps. */
static inline T erf_inverse(const T x)
{
    const float f = (float)x;
    float w = (float)(-log((T)(1 - x) * (T)(1 + x))), p;
    if (w < 5) {
        w -= 2.5f;
        p = 2.81022636e-08f;
        p = 3.43273939e-07f + p * w, p = -3.5233877e-06f + p * w, p = -4.39150654e-06f + p * w;
        p = 0.00021858087f + p * w, p = -0.00125372503f + p * w, p = -0.00417768164f + p * w;
        p = 0.246640727f + p * w, p = 1.50140941f + p * w;
    } else {
        w = sqrt(w) - 3;
        p = -0.000200214257f;
        p = 0.000100950558f + p * w, p = 0.00134934322f + p * w, p = -0.00367342844f + p * w;
        p = 0.00573950773f + p * w, p = -0.0076224613f + p * w, p = 0.00943887047f + p * w;
        p = 1.00167406f + p * w, p = 2.83297682f + p * w;
    }
    T y = p * f;
#ifdef KN_USE_F64
    for (int i = 0; i < 2; i++)
        y -= (erf(y) - x) / ((T)1.1283791670955126 * exp(-y * y));
#endif
    return y;
}

/* DEVIATE: 0 exponential(rate a), 1 geometric(log(1 - p) = a), 2 cauchy(median a, sigma b), 3 normal(a, b) with u
 * scaled to low .. low + range of its distribution, and clamped to least .. most: far from the mean the distribution is
 * 0 or 1, and its inverse infinite or NaN. */
KN_KERNEL_ONCE(deviate,
               (KN_ARG(x), seed, offset, n, a, b, low, range, least, most),
               KN_OUT(x), ulong seed, ulong offset, long n, T a, T b, T low, T range, T least, T most)
{
    KN_BIND_OUT(T, x);
#if defined KN_CPU && !defined KN_USE_F64 && DEVIATE < 3
    /* Sixteen at a time, as normal. */
    KN_FOR_ONCE(group, (n + 63) / 64) {
        GROUP(words, from, count, 64);
        float16 made[4];
        for (int q = 0; q < 4; q++) {
            const float16 u = convert_float16(words[q] >> 8) * 0x1p-24f + TINY;
#if DEVIATE == 0
            made[q] = -log(u) / a;
#elif DEVIATE == 1
            made[q] = fmax(ceil(log(u) / a), 1.0f);
#else
            made[q] = a + b * tan(TWO_PI / 2 * (u - 0.5f));
#endif
        }
        store_group(made, x + from, count);
    }
#else
    const long blocks = (n + LANES - 1) / LANES;
    KN_FOR_ONCE(block, blocks) {
        const uint4 words = kn_philox_block(seed, offset, block);
        for (int lane = 0; lane < LANES && block * LANES + lane < n; lane++) {
            const T u = UNIFORM(words, lane) + TINY;
#if DEVIATE == 0
            const T v = -log(u) / a;
#elif DEVIATE == 1
            const T v = fmax(ceil(log(u) / a), (T)1);
#elif DEVIATE == 2
            const T v = a + b * tan((T)TWO_PI / 2 * (u - (T)0.5));
#else
            const T at = a + b * (T)1.4142135623730951 * erf_inverse(2 * (low + u * range) - 1);
            const T v = fmin(fmax(at, least), most);
#endif
            x[block * LANES + lane] = v;
        }
    }
#endif
}
#endif

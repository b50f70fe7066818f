/* tensor/draws.cl - random numbers with parameters in tensors. An element or row has its own counters: words of block
 * (offset + index, sub), so it depends only on seed, offset and its index. */
#include "common/koine.clh"
#include "common/philox.clh"
#include "common/philox16.clh"

static inline uint4 block_of(const ulong seed, const ulong offset, const ulong index, const uint sub)
{
    const ulong at = offset + index;
    return kn_philox4x32((uint4)((uint)at, (uint)(at >> 32), sub, 1), (uint2)((uint)seed, (uint)(seed >> 32)));
}

/* Blocks (at, 0) to (at + GROUP - 1, 0), in one go. */
#ifdef KN_CPU
#define GROUP 16
static inline void first_blocks(const ulong seed, const ulong at, uint4 blocks[GROUP])
{
    uint16 words[4];
    philox_sixteen(seed, at, (uint2)(0, 1), words);
    for (int i = 0; i < GROUP; i++)
        blocks[i] = (uint4)(((const private uint *)&words[0])[i], ((const private uint *)&words[1])[i],
                            ((const private uint *)&words[2])[i], ((const private uint *)&words[3])[i]);
}
#else
#define GROUP 1
static inline void first_blocks(const ulong seed, const ulong at, uint4 blocks[GROUP])
{
    blocks[0] = block_of(seed, at, 0, 0);
}
#endif

static inline float open_uniform(const uint word) { return (float)(word >> 8) * 0x1p-24f + 0x1p-25f; } /* (0, 1) */

KN_KERNEL_ONCE(bernoulli_of, (KN_ARG(p), KN_ARG(x), seed, offset, n),
               KN_IN(p), KN_OUT(x), ulong seed, ulong offset, long n)
{
    KN_BIND_IN(T, p);
    KN_BIND_OUT(T, x);
#ifdef KN_CPU
    KN_FOR_ONCE (group, (n + 63) / 64) {
        uint16 words[4];
        philox_words(seed, offset + group * 16, words);
        const private uint *word = (const private uint *)words;
        const long from = group * 64, count = min(64L, n - from);
        for (long i = 0; i < count; i++)
            x[from + i] = (T)(kn_uniform_f32(word[i]) < p[from + i]);
    }
#else
    const long blocks = (n + 3) / 4;
    KN_FOR_ONCE (b, blocks) {
        const uint4 words = kn_philox_block(seed, offset, b);
        for (int lane = 0; lane < 4 && b * 4 + lane < n; lane++) {
            const uint word = lane == 0 ? words.x : lane == 1 ? words.y : lane == 2 ? words.z : words.w;
            x[b * 4 + lane] = (T)(kn_uniform_f32(word) < p[b * 4 + lane]);
        }
    }
#endif
}

/* log(k!), by Stirling's series from 10 on. */
static float log_factorial(const float k)
{
    float shift = 0, x = k + 1;
    for (; x < 10; x += 1)
        shift += log(x);
    return (x - 0.5f) * log(x) - x + 0.9189385332046727f + 1 / (12 * x) - 1 / (360 * x * x * x) - shift;
}

static uint word_of(const uint4 words, const uint lane)
{
    return lane == 0 ? words.x : lane == 1 ? words.y : lane == 2 ? words.z : words.w;
}

/* Small rates: products of uniform numbers (Knuth); others: Hoermann's PTRS (1993). words: the element's block 0. */
static float poisson_of_rate(const float rate, uint4 words, const ulong seed, const ulong offset, const ulong index)
{
    if (!(rate > 0))
        return rate == 0 ? 0 : NAN;
    if (rate < 10) {
        const float limit = exp(-rate);
        float product = 1;
        for (uint block = 0;; words = block_of(seed, offset, index, ++block))
            for (uint lane = 0; lane < 4; lane++) {
                product *= open_uniform(word_of(words, lane));
                if (product <= limit)
                    return 4 * block + lane;
            }
    }
    const float b = 0.931f + 2.53f * sqrt(rate), a = -0.059f + 0.02483f * b;
    const float inverse = 1.1239f + 1.1328f / (b - 3.4f), edge = 0.9277f - 3.6224f / (b - 2);
    for (uint k = 0;; words = block_of(seed, offset, index, ++k)) {
        const float u = open_uniform(words.x) - 0.5f, v = open_uniform(words.y), us = 0.5f - fabs(u);
        const float count = floor((2 * a / us + b) * u + rate + 0.43f);
        if ((us >= 0.07f && v <= edge) || k > 1000)
            return fmax(count, 0.0f);
        if (count < 0 || (us < 0.013f && v > us))
            continue;
        if (log(v * inverse / (a / (us * us) + b)) <= count * log(rate) - rate - log_factorial(count))
            return count;
    }
}

KN_KERNEL_ONCE(poisson, (KN_ARG(rates), KN_ARG(x), seed, offset, n),
               KN_IN(rates), KN_OUT(x), ulong seed, ulong offset, long n)
{
    KN_BIND_IN(T, rates);
    KN_BIND_OUT(T, x);
    KN_FOR_ONCE (group, (n + GROUP - 1) / GROUP) {
        uint4 first[GROUP];
        first_blocks(seed, offset + group * GROUP, first);
        for (long i = group * GROUP; i < min(n, (group + 1) * GROUP); i++)
            x[i] = (T)poisson_of_rate((float)rates[i], first[i % GROUP], seed, offset, i);
    }
}

/* What Stirling's formula lacks of log(k!). */
static float stirling_rest(const float k)
{
    const float x = k + 1, z = 1 / (x * x);
    float product = 1;
    if (k > 9)
        return (1.0f / 12 - (1.0f / 360 - z / 1260) * z) / x;
    for (float i = 2; i <= k; i += 1)
        product *= i;
    return log(product) - ((k + 0.5f) * log(x) - x + 0.9189385332046727f);
}

/* Few successes: the trials up to each one (Devroye); others: Hoermann's BTRS (1993). p up to 1/2. words: block 0. */
static float binomial_of(const float n, const float p, uint4 words, const ulong seed, const ulong offset,
                         const ulong index)
{
    if (n * p < 10) {
        const float logarithm = log1p(-p);
        float trials = 0;
        for (uint block = 0;; words = block_of(seed, offset, index, ++block))
            for (uint lane = 0; lane < 4; lane++) {
                trials += ceil(log(open_uniform(word_of(words, lane))) / logarithm);
                if (!(trials <= n))
                    return 4 * block + lane;
            }
    }
    const float deviation = sqrt(n * p * (1 - p)), b = 1.15f + 2.53f * deviation;
    const float a = -0.0873f + 0.0248f * b + 0.01f * p;
    const float edge = 0.92f - 4.2f / b, odds = p / (1 - p), scale = (2.83f + 5.1f / b) * deviation;
    const float mode = floor((n + 1) * p);
    for (uint k = 0;; words = block_of(seed, offset, index, ++k)) {
        const float u = open_uniform(words.x) - 0.5f, v = open_uniform(words.y), us = 0.5f - fabs(u);
        const float count = floor((2 * a / us + b) * u + n * p + 0.5f), left = n - count;
        if (k > 1000)
            return clamp(count, 0.0f, n);
        if (count < 0 || left < 0)
            continue;
        if (us >= 0.07f && v <= edge)
            return count;
        const float limit = (mode + 0.5f) * log((mode + 1) / (odds * (n - mode + 1))) +
                            (n + 1) * log((n - mode + 1) / (left + 1)) +
                            (count + 0.5f) * log(odds * (left + 1) / (count + 1)) + stirling_rest(mode) +
                            stirling_rest(n - mode) - stirling_rest(count) - stirling_rest(left);
        if (log(v * scale / (a / (us * us) + b)) <= limit)
            return count;
    }
}

KN_KERNEL_ONCE(binomial, (KN_ARG(count), KN_ARG(x), seed, offset, KN_ARG(p), n),
               KN_IN(count), KN_OUT(x), ulong seed, ulong offset, KN_IN(p), long n)
{
    KN_BIND_IN(T, count);
    KN_BIND_IN(T, p);
    KN_BIND_OUT(T, x);
    KN_FOR_ONCE (group, (n + GROUP - 1) / GROUP) {
        uint4 first[GROUP];
        first_blocks(seed, offset + group * GROUP, first);
        for (long i = group * GROUP; i < min(n, (group + 1) * GROUP); i++) {
            const float trials = (float)count[i], chance = (float)p[i];
            const uint4 words = first[i % GROUP];
            if (trials != trials || chance != chance)
                x[i] = (T)NAN;
            else if (trials <= 0 || chance <= 0)
                x[i] = 0;
            else if (chance >= 1)
                x[i] = (T)trials;
            else if (chance <= 0.5f)
                x[i] = (T)binomial_of(trials, chance, words, seed, offset, i);
            else
                x[i] = (T)(trials - binomial_of(trials, 1 - chance, words, seed, offset, i));
        }
    }
}

#if defined KN_CPU && !defined KN_USE_F64
/* Each index of x [rows][samples]: the first whose sum of weights exceeds a uniform part of the total. Sixteen samples
 * of a row at a time. */
KN_KERNEL_ONCE(multinomial_with, (KN_ARG(weights), KN_ARG(x), seed, offset, categories, samples, n),
               KN_IN(weights), KN_OUT(x), ulong seed, ulong offset, long categories, long samples, long n)
{
    KN_BIND_IN(T, weights);
    KN_BIND_OUT(long, x);
    const long parts = (samples + 15) / 16;
    KN_FOR_ONCE (part, n / samples * parts) {
        const long first = part / parts * samples + part % parts * 16;
        const long count = min(16L, samples - part % parts * 16);
        const global float *row = weights + part / parts * categories;
        float total = 0, sum = 0;
        for (long c = 0; c < categories; c++)
            total += row[c];
        uint16 words[4];
        philox_sixteen(seed, offset + first, (uint2)(0, 1), words);
        const float16 target =
            total * (convert_float16(words[0]) * 0x1p-32f + convert_float16(words[1]) * 0x1p-64f);
        int16 found = 0;
        for (long c = 0; c < categories; c++) {
            const int16 is_open = ~((float16)sum > target);
            if (!any(is_open))
                break;
            sum += row[c];
            found = row[c] > 0 ? select(found, (int16)(int)c, is_open) : found;
        }
        for (long i = 0; i < count; i++)
            x[first + i] = total - total == 0 ? ((const private int *)&found)[i] : 0;
    }
}

/* Without replacement: the categories with the largest weight / exponential deviate, in that order, which draws one
 * after the other by weight among those left (Efraimidis and Spirakis 2006). The best KEPT in each pass. */
#define KEPT 32
KN_KERNEL_ONCE(multinomial_without, (KN_ARG(weights), KN_ARG(x), seed, offset, categories, samples, rows),
               KN_IN(weights), KN_OUT(x), ulong seed, ulong offset, long categories, long samples, long rows)
{
    KN_BIND_IN(T, weights);
    KN_BIND_OUT(long, x);
    KN_FOR_ONCE (r, rows) {
        const global float *row = weights + r * categories;
        float last = INFINITY;
        long last_index = -1;
        for (long s = 0; s < samples; s += KEPT) {
            const int wanted = (int)min((long)KEPT, samples - s);
            float best[KEPT];
            long index[KEPT];
            for (int k = 0; k < wanted; k++)
                best[k] = -1, index[k] = 0;
            for (long c = 0; c < categories; c += 16) {
                const int count = (int)min(16L, categories - c);
                float16 weight = 0;
                if (count == 16)
                    weight = vload16(0, row + c);
                else
                    for (int i = 0; i < count; i++)
                        ((private float *)&weight)[i] = row[c + i];
                uint16 words[4];
                philox_sixteen(seed, offset + r * categories + c, (uint2)(0, 1), words);
                const float16 key = weight / -log(convert_float16(words[0]) * 0x1p-32f + 0x1p-33f);
                if (!any(key > (float16)best[wanted - 1]))
                    continue;
                for (int i = 0; i < count; i++) {
                    const float one = ((const private float *)&key)[i];
                    if (!(one < last || (one == last && c + i > last_index)) || !(one > best[wanted - 1]))
                        continue;
                    int at = wanted - 1;
                    for (; at > 0 && one > best[at - 1]; at--)
                        best[at] = best[at - 1], index[at] = index[at - 1];
                    best[at] = one, index[at] = c + i;
                }
            }
            for (int k = 0; k < wanted; k++)
                x[r * samples + s + k] = index[k];
            last = best[wanted - 1], last_index = index[wanted - 1];
        }
    }
}
#else
/* Each index of x [rows][samples]: the first whose sum of weights exceeds a uniform part of the total. */
KN_KERNEL_ONCE(multinomial_with, (KN_ARG(weights), KN_ARG(x), seed, offset, categories, samples, n),
               KN_IN(weights), KN_OUT(x), ulong seed, ulong offset, long categories, long samples, long n)
{
    KN_BIND_IN(T, weights);
    KN_BIND_OUT(long, x);
    KN_FOR_ONCE (i, n) {
        const global T *row = weights + i / samples * categories;
        T total = 0, sum = 0;
        for (long c = 0; c < categories; c++)
            total += row[c];
        const uint4 words = block_of(seed, offset, i, 0);
        const T target = total * ((T)words.x * (T)0x1p-32f + (T)words.y * (T)0x1p-64f);
        long found = 0;
        for (long c = 0; c < categories && !(sum > target); c++) {
            sum += row[c];
            found = row[c] > 0 ? c : found;
        }
        x[i] = total - total == 0 ? found : 0;
    }
}

/* Without replacement: the categories with the largest weight / exponential deviate, in that order, which draws one
 * after the other by weight among those left (Efraimidis and Spirakis 2006). */
KN_KERNEL_ONCE(multinomial_without, (KN_ARG(weights), KN_ARG(x), seed, offset, categories, samples, rows),
               KN_IN(weights), KN_OUT(x), ulong seed, ulong offset, long categories, long samples, long rows)
{
    KN_BIND_IN(T, weights);
    KN_BIND_OUT(long, x);
    KN_FOR_ONCE (r, rows) {
        const global T *row = weights + r * categories;
        T last = INFINITY;
        long last_index = -1;
        for (long s = 0; s < samples; s++) {
            T best = -1;
            long best_index = 0;
            for (long c = 0; c < categories; c++) {
                const uint4 words = block_of(seed, offset, r * categories + c, 0);
                const T u = (T)words.x * (T)0x1p-32f + (T)0x1p-33f, key = row[c] / -log(u);
                const int is_left = key < last || (key == last && c > last_index);
                if (is_left && key > best)
                    best = key, best_index = c;
            }
            x[r * samples + s] = best_index;
            last = best, last_index = best_index;
        }
    }
}
#endif

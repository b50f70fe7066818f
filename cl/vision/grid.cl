/* vision/grid.cl - sampling at the places of a grid.
 *
 * Along each dimension a place has TAPS elements with weights: 1 nearest, 2 linear, 4 cubic; a value is the sum over
 * all combinations of them, PLACES in DIMS dimensions. Places are taken in blocks, whose sums over channels vectorise
 * on CPU devices. The input's gradient is not scattered: a work-item owns some channels of a strip of a sample, goes
 * through all places in order, and adds what falls into its strip.
 *
 * Values are of type V. With LANES > 1 they are vectors of so many channels, and `channels` counts vectors: a tap is
 * one load then, instead of one element in each of many cache lines. */
#include "common/koine.clh"
#include "common/lanes.clh"
#include "common/rounding.clh"
#include "vision/grid.h"

#if DIMS == 3
#define PLACES (TAPS * TAPS * TAPS)
#else
#define PLACES (TAPS * TAPS)
#endif

#ifndef KN_CPU
#define BLOCK 1
#elif LANES > 1
#define BLOCK 16
#else
#define BLOCK 32
#endif

#if LANES > 1
#define V KN_JOIN(T, LANES)
static T total_of(V v)
{
#if LANES > 8
    const KN_JOIN(T, 8) eight = v.lo + v.hi;
#else
    const V eight = v;
#endif
    const KN_JOIN(T, 4) four = eight.lo + eight.hi;
    const KN_JOIN(T, 2) two = four.lo + four.hi;
    return two.x + two.y;
}
#else
#define V T
static T total_of(T v) { return v; }
#endif

/* The elements of a place along one dimension, -1 outside; their weights; the weights' derivatives by the place. */
typedef struct taps {
    int at[TAPS];
    T weight[TAPS], slope[TAPS];
} taps;

/* A coordinate brought inside, with its derivative. */
static T clip(T x, int size, T *slope)
{
    *slope = x > 0 && x < size - 1 ? *slope : (T)0;
    return x >= size - 1 ? (T)(size - 1) : x > 0 ? x : (T)0; /* NaN: 0 */
}

/* Of x >= 0 and y > 0. fmod takes ten times as long, and its loop makes no vectors: the quotient of one that is not
 * far, rounded, is at most 1 off, and the remainder is exact where fma is. */
static T remainder_of(T x, T y, bool far)
{
    if (far)
        return fmod(x, y);
    const T rest = fma(-kn_trunc(x / y), y, x);
    return rest < 0 ? rest + y : rest >= y ? rest - y : rest;
}

/* With a span of 0 all is at 0. */
static T reflect(T x, int size, int align_corners, bool far, T *slope)
{
    const T low = align_corners ? (T)0 : (T)-0.5f, span = align_corners ? (T)(size - 1) : (T)size;
    const T twice = remainder_of(fabs(x - low), 2 * max(span, (T)1), far);
    const bool turned = twice >= span;
    const T rest = turned ? span - (twice - span) : twice;
    *slope = span == 0 ? 0 : (x < low) != turned ? -*slope : *slope;
    return span == 0 ? (T)0 : rest + low;
}

static T bring_inside(const kn_grid_geometry *p, T x, int size, bool far, T *slope)
{
    if (PADDING == KN_GRID_PADS_REFLECTION)
        x = reflect(x, size, p->align_corners, far, slope);
    return PADDING == KN_GRID_PADS_ZEROS ? x : clip(x, size, slope);
}

/* NaN and what does not fit an int are outside. */
static int index_of(T x, int size) { return x >= 0 && x <= size - 1 ? (int)x : -1; }

#if TAPS == 4
static T cubic(T s)
{
    const T c = (T)-0.75f;
    s = fabs(s);
    return s <= 1 ? ((c + 2) * s - (c + 3)) * s * s + 1 : ((c * s - 5 * c) * s + 8 * c) * s - 4 * c;
}

static T cubic_slope(T s)
{
    const T c = (T)-0.75f, a = fabs(s);
    const T slope = a <= 1 ? (3 * (c + 2) * a - 2 * (c + 3)) * a : (3 * c * a - 10 * c) * a + 8 * c;
    return s < 0 ? -slope : slope;
}
#endif

static void find_taps(const kn_grid_geometry *p, int size, T place, bool far, taps *t)
{
    T slope = p->align_corners ? (T)(size - 1) / 2 : (T)size / 2;
    T x = p->align_corners ? (place + 1) / 2 * (size - 1) : ((place + 1) * size - 1) / 2;
#if TAPS == 4
    const T left = kn_floor(x), rest = x - left;
    for (int k = 0; k < 4; k++) {
        T ignored = 1;
        t->at[k] = index_of(bring_inside(p, left - 1 + k, size, far, &ignored), size);
        t->weight[k] = cubic(rest + 1 - k);
        t->slope[k] = slope * cubic_slope(rest + 1 - k);
    }
#else
    x = bring_inside(p, x, size, far, &slope);
#if TAPS == 2
    const T left = kn_floor(x);
    t->at[0] = index_of(left, size);
    t->at[1] = index_of(left + 1, size);
    t->weight[1] = x - left;
    t->weight[0] = left + 1 - x;
    t->slope[0] = -slope;
    t->slope[1] = slope;
#else
    t->at[0] = index_of(kn_round(x), size);
    t->weight[0] = 1;
    t->slope[0] = 0;
#endif
#endif
}

/* The grid lists coordinates from the last dimension on: (x, y, z). */
static void find_all_taps(const kn_grid_geometry *p, const global T *place, bool far, taps t[3])
{
    find_taps(p, p->size[2], place[0], far, &t[2]);
    find_taps(p, p->size[1], place[1], far, &t[1]);
#if DIMS == 3
    find_taps(p, p->size[0], place[2], far, &t[0]);
#else
    t[0].at[0] = 0;
    t[0].weight[0] = 1;
#endif
}

static void find_places(const kn_grid_geometry *p, const global T *grid, int count, bool far, int at[PLACES][BLOCK],
                        T weight[PLACES][BLOCK], T (*slope)[PLACES][BLOCK])
{
    for (int b = 0; b < count; b++) {
        taps t[3];
        find_all_taps(p, grid + b * DIMS, far, t);
#pragma unroll
        for (int k = 0; k < PLACES; k++) {
            const int i = k % TAPS, j = k / TAPS % TAPS, l = k / (TAPS * TAPS);
            const bool inside = t[2].at[i] >= 0 && t[1].at[j] >= 0 && t[0].at[l] >= 0;
            at[k][b] = inside ? (t[0].at[l] * p->size[1] + t[1].at[j]) * p->size[2] + t[2].at[i] : -1;
            weight[k][b] = t[2].weight[i] * t[1].weight[j] * t[0].weight[l];
            if (!slope)
                continue;
            slope[0][k][b] = t[2].slope[i] * t[1].weight[j] * t[0].weight[l];
            slope[1][k][b] = t[2].weight[i] * t[1].slope[j] * t[0].weight[l];
#if DIMS == 3
            slope[2][k][b] = t[2].weight[i] * t[1].weight[j] * t[0].slope[l];
#endif
        }
    }
}

/* Is a place so far outside, or no number, that its quotient by the size may be off by more than 1? */
static bool are_far(const global T *grid, int count)
{
    int far = 0;
    for (int i = 0; i < count * DIMS; i++)
        far |= !(fabs(grid[i]) < 4194304);
    return far;
}

/* For each of the `count` places of a block, the elements that it takes, as offsets in a volume or -1, their weights,
 * and (NULL: not wanted) the weights' derivatives by the place's coordinates. */
static void find_block(const kn_grid_geometry *p, const global T *grid, int count, int at[PLACES][BLOCK],
                       T weight[PLACES][BLOCK], T (*slope)[PLACES][BLOCK])
{
    if (PADDING == KN_GRID_PADS_REFLECTION && are_far(grid, count))
        find_places(p, grid, count, true, at, weight, slope);
    else
        find_places(p, grid, count, false, at, weight, slope);
    for (int b = count; b < BLOCK; b++)
        for (int k = 0; k < PLACES; k++) {
            at[k][b] = -1;
            weight[k][b] = 0;
        }
}

static long volume_of(const kn_grid_geometry *p) { return (long)p->size[0] * p->size[1] * p->size[2]; }

KN_KERNEL_ONCE(grid_sample, (KN_ARG(x), KN_ARG(grid), KN_ARG(y), p),
               KN_IN(x), KN_IN(grid), KN_OUT(y), const kn_grid_geometry p)
{
    KN_BIND_IN(V, x);
    KN_BIND_IN(T, grid);
    KN_BIND_OUT(V, y);
    const long blocks = (p.points + BLOCK - 1) / BLOCK, volume = volume_of(&p);
    KN_FOR_ONCE(i, p.batch * blocks)
    {
        const long sample = i / blocks, first = (i - sample * blocks) * BLOCK;
        const int count = (int)min((long)BLOCK, p.points - first);
        int at[PLACES][BLOCK];
        T weight[PLACES][BLOCK];
        find_block(&p, grid + (sample * p.points + first) * DIMS, count, at, weight, NULL);
        for (long c = sample * p.channels; c < (sample + 1) * p.channels; c++) {
            const global V *from = x + c * volume;
            V sum[BLOCK];
            for (int b = 0; b < BLOCK; b++) {
                V s = 0;
#pragma unroll
                for (int k = 0; k < PLACES; k++) {
                    const V v = from[max(at[k][b], 0)];
                    s += weight[k][b] * (at[k][b] >= 0 ? v : (V)0);
                }
                sum[b] = s;
            }
            for (int b = 0; b < count; b++)
                y[c * p.points + first + b] = sum[b];
        }
    }
}

/* Strips are of whole rows of the first dimension that has more than one. */
KN_KERNEL_ONCE(grid_sample_backward, (KN_ARG(gradient), KN_ARG(grid), KN_ARG(out), p),
               KN_IN(gradient), KN_IN(grid), KN_OUT(out), const kn_grid_geometry p)
{
    KN_BIND_IN(V, gradient);
    KN_BIND_IN(T, grid);
    KN_BIND_OUT(V, out);
    const long volume = volume_of(&p), length = (volume + p.strips - 1) / p.strips;
    const long channels = (p.channels + p.parts - 1) / p.parts;
    KN_FOR_ONCE(i, p.batch * p.parts * p.strips)
    {
        const long strip = i % p.strips, part = i / p.strips % p.parts, sample = i / p.strips / p.parts;
        const int low = (int)min(strip * length, volume), high = (int)min(low + length, volume);
        const long first_channel = sample * p.channels + min(part * channels, p.channels);
        const long end_channel = sample * p.channels + min((part + 1) * channels, p.channels);
        for (long c = first_channel; c < end_channel; c++)
            for (int e = low; e < high; e++)
                out[c * volume + e] = 0;
        for (long first = 0; first < p.points; first += BLOCK) {
            const int count = (int)min((long)BLOCK, p.points - first);
            int at[PLACES][BLOCK];
            T weight[PLACES][BLOCK];
            find_block(&p, grid + (sample * p.points + first) * DIMS, count, at, weight, NULL);
            for (long c = first_channel; c < end_channel; c++) {
                const global V *g = gradient + c * p.points + first;
                global V *to = out + c * volume;
                for (int b = 0; b < count; b++)
                    for (int k = 0; k < PLACES; k++)
                        if (at[k][b] >= low && at[k][b] < high)
                            to[at[k][b]] += weight[k][b] * g[b];
            }
        }
    }
}

/* The sums over channels of gradient times value, for each element that a place takes; then the coordinates'. */
KN_KERNEL_ONCE(grid_sample_places, (KN_ARG(gradient), KN_ARG(x), KN_ARG(grid), KN_ARG(out), p),
               KN_IN(gradient), KN_IN(x), KN_IN(grid), KN_OUT(out), const kn_grid_geometry p)
{
    KN_BIND_IN(V, gradient);
    KN_BIND_IN(V, x);
    KN_BIND_IN(T, grid);
    KN_BIND_OUT(T, out);
    const long blocks = (p.points + BLOCK - 1) / BLOCK, volume = volume_of(&p);
    KN_FOR_ONCE(i, p.batch * blocks)
    {
        const long sample = i / blocks, first = (i - sample * blocks) * BLOCK;
        const int count = (int)min((long)BLOCK, p.points - first);
        const global T *places = grid + (sample * p.points + first) * DIMS;
        int at[PLACES][BLOCK];
        T ignored[PLACES][BLOCK], slope[DIMS][PLACES][BLOCK], result[DIMS][BLOCK];
        V sum[PLACES][BLOCK];
        find_block(&p, places, count, at, ignored, slope);
        for (int k = 0; k < PLACES; k++)
            for (int b = 0; b < count; b++)
                sum[k][b] = 0;
        for (long c = sample * p.channels; c < (sample + 1) * p.channels; c++) {
            const global V *from = x + c * volume, *g = gradient + c * p.points + first;
            for (int k = 0; k < PLACES; k++)
                for (int b = 0; b < count; b++) {
                    const V v = from[max(at[k][b], 0)];
                    sum[k][b] += g[b] * (at[k][b] >= 0 ? v : (V)0);
                }
        }
        for (int d = 0; d < DIMS; d++)
            for (int b = 0; b < count; b++)
                result[d][b] = 0;
        for (int k = 0; k < PLACES; k++)
            for (int b = 0; b < count; b++) {
                const T total = total_of(sum[k][b]);
                for (int d = 0; d < DIMS; d++)
                    result[d][b] += total * slope[d][k][b];
            }
        for (int b = 0; b < count; b++)
            for (int d = 0; d < DIMS; d++)
                out[(sample * p.points + first + b) * DIMS + d] = result[d][b];
    }
}

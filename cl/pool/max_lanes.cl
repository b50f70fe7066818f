/* pool/max_lanes.cl - max pooling by vectors, on CPU devices: of the channels of images whose channels are innermost,
 * into such images, or of small planes. INDEX is that of pool/max.cl.
 *
 * Compile-time: PLANES. */
#include "pool/pool.clh"
#include "common/all.clh"
#include "common/real_lanes.clh"
#ifdef PLANES
#include "pool/planes.clh"
#else
#include "pool/channels.clh"
#endif

/* The elements of a window in dimension d that are inside the input: kernel positions from first to end, exclusive. */
typedef struct span {
    int start, first, end;
} span;

static span cut_window(const kn_pool_geometry *p, int d, int output)
{
    const int step = p->dilation[d], start = output * p->stride[d] - p->padding[d], left = p->size[d] - start;
    const int before = start >= 0 ? 0 : step == 1 ? -start : (step - 1 - start) / step;
    const int until = left <= 0 ? 0 : step == 1 ? left : (left + step - 1) / step;
    return (span){start, before, min(p->kernel_size[d], until)};
}

/* The maxima of an output's window in a vector of channels, and their places in the window. */
typedef struct maxima {
    TV values;
    lane_number places, nans; /* nans: not 0 where there was NaN */
} maxima;

/* Without `nans` the values may miss NaN, and take half the time: they do not wait for comparisons. */
KN_INLINE maxima find_maxima(const kn_pool_geometry *p, pixels x, const span s, const span r, const span c,
                             long channel, const bool nans)
{
    /* the first place if all are minus infinity */
    maxima m = {-INFINITY, (s.first * p->kernel_size[1] + r.first) * p->kernel_size[2] + c.first, 0};

    for (int i = s.first; i < s.end; i++)
        for (int j = r.first; j < r.end; j++) {
            const int d = SLICE(s.start + i * p->dilation[0]), h = r.start + j * p->dilation[1];
            const long line = ((long)d * p->size[1] + h) * p->size[2] + c.start;
            const int place = (i * p->kernel_size[1] + j) * p->kernel_size[2];
            KN_NOT_UNROLLED
            for (int k = c.first; k < c.end; k++) {
                const TV v = load_channels(x, line + k * p->dilation[2], channel);
                const lane_number is_nan = v != v, takes = nans ? (v > m.values) | is_nan : v > m.values;
                m.values = nans ? select(m.values, v, takes) : v > m.values ? v : m.values;
                m.places = select(m.places, (lane_number)(place + k), takes);
                m.nans |= is_nan;
            }
        }
    return m;
}

/* NaN wins. Clamped; places -1: none. */
static TV window_maxima(const kn_pool_geometry *p, pixels x, int slice, int row, int column, long channel, T low,
                        T high, lane_number *places)
{
    const span r = cut_window(p, 1, row), c = cut_window(p, 2, column);
#if VOLUME
    const span s = cut_window(p, 0, slice);
#else
    const span s = {0, 0, 1};
#endif
    maxima m = find_maxima(p, x, s, r, c, channel, false);
    if (!KN_ALL(m.nans == (lane_number)0))
        m = find_maxima(p, x, s, r, c, channel, true);
    *places = select(m.places, (lane_number)-1, (m.values <= (TV)low) | (m.values >= (TV)high));
    return KN_CLAMP(m.values, (TV)low, (TV)high);
}

static void store_places(lane_number places, global INDEX *index, long count)
{
    if (count >= 16) {
        vstore16(KN_JOIN(convert_, KN_JOIN(INDEX, 16))(places), 0, index);
        return;
    }
    int each[16];
    vstore16(convert_int16(places), 0, each);
    for (int k = 0; k < count; k++)
        index[k] = (INDEX)each[k];
}

#ifndef PLANES

KN_KERNEL_ONCE(max_pool_channels,
               (KN_ARG(x), KN_ARG(y), KN_ARG(index), given, save, low, high, channels), KN_IN(x), KN_OUT(y),
               KN_OUT(index), const kn_pool_geometry given, const int save, const T low, const T high,
               const long channels)
{
    const kn_pool_geometry p = given;
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(INDEX, index);
    const long size = volume_of(&p) * channels;
    KN_FOR_ONCE(line, output_lines(&p))
    {
        const output_line l = find_output_line(&p, line);
        const pixels image = {x + l.plane * size, (p.planes - l.plane) * size, channels};
        for (int column = 0; column < p.out_size[2]; column++) {
            const long to = (line * p.out_size[2] + column) * channels;
            for (long c = 0; c < channels; c += 16) {
                lane_number places;
                store_part(window_maxima(&p, image, l.slice, l.row, column, c, low, high, &places), y + to + c,
                           channels - c);
                if (save)
                    store_places(places, index + to + c, channels - c);
            }
        }
    }
}

#else

/* Numbers as elements, whose bits they are. */
#define AS_ELEMENTS KN_JOIN(as_, TV)
#ifdef KN_USE_F64
#define AS_NUMBERS as_long16
#else
#define AS_NUMBERS as_int16
#endif

static void write_places(const TV *image, global INDEX *index, long size, long planes)
{
    FOR_TILES(at, size)
    {
        TV rows[VW];
        take_tile(rows, image, at);
        for (long k = 0; k < min((long)VW, planes); k++)
            store_places(AS_NUMBERS(rows[k]), index + k * size + at, size);
    }
}

KN_KERNEL_ONCE(max_pool_planes, (KN_ARG(x), KN_ARG(y), KN_ARG(index), given, save, low, high), KN_IN(x), KN_OUT(y),
               KN_OUT(index), const kn_pool_geometry given, const int save, const T low, const T high)
{
    const kn_pool_geometry p = given;
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(INDEX, index);
    TV image[KN_POOL_MOST_PIXELS], values[KN_POOL_MOST_PIXELS], places[KN_POOL_MOST_PIXELS];
    const long size = volume_of(&p), out_size = out_volume_of(&p);
    KN_FOR_ONCE(group, (p.planes + VW - 1) / VW)
    {
        const long first = group * VW, planes = p.planes - first;
        read_planes(image, x + first * size, size, planes);
        const pixels pixels = {image, 16};
        FOR_OUTPUTS(&p, slice, row, column, to)
        {
            lane_number at;
            values[to] = window_maxima(&p, pixels, slice, row, column, 0, low, high, &at);
            places[to] = AS_ELEMENTS(at);
        }
        write_planes(values, y + first * out_size, out_size, planes);
        if (save)
            write_places(places, index + first * out_size, out_size, planes);
    }
}

#endif

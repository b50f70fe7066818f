/* conv/any/slices.cl - copies between volumes [N][C][D][H][W] and images that have slices of them as channels,
 * [N * slices][C][taps][H][W] (conv/any/slices.h), on any device.
 *
 * Compiled in: T. */
#include "common/koine.clh"
#include "conv/any/slices.h"

/* The plane of the volumes that is tap u of a line, a channel of an image; -1: outside the volume. */
static inline long find_plane(const kn_conv_slices *s, long line, long u)
{
    const long image = s->first + line / s->channels, slice = s->origin + image % s->slices * s->step + u * s->distance;
    return slice < 0 || slice >= s->depth
               ? -1
               : image / s->slices * s->volume + line % s->channels * s->depth + slice;
}

/* What is not there is 0. */
static inline void copy_plane(global T *restrict to, const global T *restrict from, long n, bool is_there)
{
    if (is_there)
        for (long i = 0; i < n; i++)
            to[i] = from[i];
    else
        for (long i = 0; i < n; i++)
            to[i] = 0;
}

/* Planes outside the volume become 0. CPU devices copy a plane at a time, others an element. */
KN_KERNEL_ONCE(conv_unfold_slices, (KN_ARG(volumes), KN_ARG(images), s),
               KN_IN(volumes), KN_OUT(images), kn_conv_slices s)
{
    KN_BIND_IN(T, volumes);
    KN_BIND_OUT(T, images);
#ifdef KN_CPU
    KN_FOR_ONCE (line, s.images * s.channels)
        for (long u = 0; u < s.taps; u++) {
            const long plane = find_plane(&s, line, u);
            const global T *restrict from = volumes + max(plane, 0L) * s.plane;
            global T *restrict to = images + (line * s.taps + u) * s.plane;
            copy_plane(to, from, s.plane, plane >= 0);
        }
#else
    KN_FOR_ONCE (i, s.images * s.channels * s.taps * s.plane) {
        const long at = i / s.plane, plane = find_plane(&s, at / s.taps, at % s.taps);
        images[i] = plane < 0 ? (T)0 : volumes[plane * s.plane + i % s.plane];
    }
#endif
}

/* The inverse, with one tap, of which no plane is outside; without taps the volumes' planes become 0. */
KN_KERNEL_ONCE(conv_fold_slices, (KN_ARG(images), KN_ARG(volumes), s), KN_IN(images), KN_OUT(volumes), kn_conv_slices s)
{
    KN_BIND_IN(T, images);
    KN_BIND_OUT(T, volumes);
#ifdef KN_CPU
    KN_FOR_ONCE (line, s.images * s.channels) {
        const global T *restrict from = images + line * s.plane;
        global T *restrict to = volumes + find_plane(&s, line, 0) * s.plane;
        copy_plane(to, from, s.plane, s.taps > 0);
    }
#else
    KN_FOR_ONCE (i, s.images * s.channels * s.plane)
        volumes[find_plane(&s, i / s.plane, 0) * s.plane + i % s.plane] = s.taps > 0 ? images[i] : (T)0;
#endif
}

/* pool/max.cl - max pooling. The index stored for backward is the maximum's position in its window, in row-major order,
 * as INDEX (uchar if windows have at most 255 elements, otherwise int); a maximum that the activation clamped has
 * NO_PLACE. With FLAT it is the index in the plane, as the operators with indices return it (INDEX: long), which CPU
 * devices write at once; others convert (pool/max_indices.cl). In backward no two work-items write the same element: on
 * CPU devices a work-item owns whole planes and adds in the order of the outputs; on others each input element gathers
 * from the windows that cover it.
 *
 * Compile-time, on CPU devices: PAIRS, adjacent windows of 2 x 2 elements only, or LONG, windows of long lines
 * (kn_pool_has_long_lines). The former are the most usual ones, and a program compiles in proportion to its code. */
#include "common/lanes.clh"
#include "pool/pool.clh"

#define NO_PLACE ((INDEX)-1)
#ifndef FLAT
#define FLAT 0
#endif

#ifdef KN_CPU

#ifdef KN_USE_F64
#define LANE_INT long
#else
#define LANE_INT int
#endif

#define VEC(type, n) KN_JOIN(type, n)
#define ASCENDING_4 ((VEC(LANE_INT, 4))(0, 1, 2, 3))
#define ASCENDING_8 ((VEC(LANE_INT, 8))(ASCENDING_4, ASCENDING_4 + 4))
#define ASCENDING_16 ((VEC(LANE_INT, 16))(ASCENDING_8, ASCENDING_8 + 8))

/* row_forward: a row of outputs, of which y and index have the first, from a plane; `room` elements of it and after it
 * exist. plane_backward: the gradient of a plane. */
#ifdef PAIRS
#include "pool/max_pairs.clh"
#else
#ifdef LONG
#include "pool/max_long.clh"
#else
#include "pool/max_any.clh"
#endif
#include "pool/max_scatter.clh"
#endif

KN_KERNEL_ONCE(max_pool_forward, (KN_ARG(x), KN_ARG(y), KN_ARG(index), given, save, low, high), KN_IN(x), KN_OUT(y),
               KN_OUT(index), const kn_pool_geometry given, const int save, const T low, const T high)
{
    const kn_pool_geometry p = given;
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(INDEX, index);
    const long size = volume_of(&p);
    KN_FOR_ONCE(line, output_lines(&p))
    {
        const output_line l = find_output_line(&p, line);
        const long to = line * p.out_size[2], room = (p.planes - l.plane) * size;
        row_forward(&p, x + l.plane * size, room, l.slice, l.row, y + to, index + to, save, low, high);
    }
}

KN_KERNEL_ONCE(max_pool_backward, (KN_ARG(gradient), KN_ARG(index), KN_ARG(out), given), KN_IN(gradient),
               KN_IN(index), KN_OUT(out), const kn_pool_geometry given)
{
    const kn_pool_geometry p = given;
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(INDEX, index);
    KN_BIND_OUT(T, out);
    KN_FOR_ONCE(i, p.planes)
        plane_backward(&p, gradient + i * out_volume_of(&p), index + i * out_volume_of(&p), out + i * volume_of(&p));
}

#else
#include "pool/max_windows.clh"
#endif

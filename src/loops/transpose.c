/* loops/transpose.c - see transpose.h. Square tiles, which read and write whole cache lines: copying along the rows of
 * either side would use one element of each cache line of the other. */
#include "loops/transpose.h"

#include <stdio.h>

#include "base/divisor.h"
#include "base/integer.h"
#include "tensor/transpose.h"

/* The elements of a task along the source's dense dimension; a multiple of every LANES. */
#define LENGTH 256

/* SIDE and LINES of the GPU kernel. If either dimension is shorter than half a tile, the plain copy already reads long
 * enough runs. */
enum { SIDE = 32, LINES = 4, MIN_SIDE = SIDE / 2 };
#define LONGEST (1 << 30) /* indices in a tiled dimension are 32-bit */

/* The least size of both dimensions for tiling: on CPU devices the elements of a vector register; 0: no tiling. */
static int lanes_of(const kn_limits *limits, size_t element_size)
{
    const int lanes = element_size == 8 ? limits->vector_width_f64 : limits->vector_width_f32;

    if (!limits->is_cpu)
        return limits->max_work_group_size >= (size_t)SIDE * LINES ? MIN_SIDE : 0;
    return lanes < 2 ? 0 : lanes < 4 ? 4 : lanes > 16 ? 16 : lanes;
}

int kn_transposed_dim(const kn_limits *limits, const kn_layout *layout, kn_dtype dtype)
{
    const int last = layout->ndim - 1, lanes = lanes_of(limits, kn_dtype_size(dtype));

    if (lanes == 0 || layout->strides[KN_TO][last] != 1 || layout->shape[last] < lanes || layout->shape[last] > LONGEST)
        return -1;
    if (layout->strides[KN_FROM][last] == 0) /* each row is one element, repeated */
        return -1;
    for (int d = 0; d < last; d++)
        if (layout->strides[KN_FROM][d] == 1 && layout->shape[d] >= lanes && layout->shape[d] <= LONGEST)
            return d;
    return -1;
}

static kn_transpose_outer without(const kn_layout *layout, int dim)
{
    kn_transpose_outer o = {.ndim = 0};

    for (int d = 0; d < layout->ndim - 1; d++) {
        if (d == dim)
            continue;
        o.shape[o.ndim] = layout->shape[d];
        o.source[o.ndim] = layout->strides[KN_FROM][d];
        o.destination[o.ndim++] = layout->strides[KN_TO][d];
    }
    return o;
}

static int64_t count_of(const kn_transpose_outer *o)
{
    int64_t count = 1;
    for (int d = 0; d < o->ndim; d++)
        count *= o->shape[d];
    return count;
}

const char *kn_bits_type(kn_dtype dtype)
{
    static const char *const types[9] = {[1] = "uchar", [2] = "ushort", [4] = "uint", [8] = "ulong"};
    return types[kn_dtype_size(dtype)];
}

static kn_status transpose_on_cpu(kn_stream *stream, const kn_limits *limits, const kn_layout *layout, int dim,
                                  const kn_operand *to, const kn_operand *from)
{
    const int last = layout->ndim - 1;
    const int lanes = (int)kn_max_i64(1, lanes_of(limits, kn_dtype_size(from->dtype)));
    const kn_transpose_outer o = without(layout, dim);
    const int64_t ps = layout->shape[dim], qs = layout->shape[last], count = count_of(&o);
    const int64_t tasks = count * kn_div_up(ps, LENGTH) * kn_div_up(qs, 4 * lanes);
    const size_t items = kn_work_items(limits, count * ps * qs, 4096);
    char options[64];

    snprintf(options, sizeof options, "-DE=%s -DVW=%d", kn_bits_type(from->dtype), lanes);
    return kn_run(stream, .source = "tensor/transpose.cl", .options = options, .kernel = "transpose",
                  .operation = "copy", .dims = 1, .global = {(int64_t)items < tasks ? items : (size_t)tasks},
                  KN_ARGS(kn_operand_argument(from), kn_operand_argument(to), kn_arg_struct(&o, sizeof o),
                          kn_arg_i64(count), kn_arg_i64(ps), kn_arg_i64(qs), kn_arg_i64(layout->strides[KN_FROM][last]),
                          kn_arg_i64(layout->strides[KN_TO][dim]), kn_arg_i64(LENGTH)));
}

static kn_status transpose_on_gpu(kn_stream *stream, const kn_layout *layout, int dim, const kn_operand *to,
                                  const kn_operand *from)
{
    const int last = layout->ndim - 1;
    const kn_transpose_outer o = without(layout, dim);
    const int64_t along_p = kn_div_up(layout->shape[dim], SIDE), along_q = kn_div_up(layout->shape[last], SIDE);
    kn_transpose_tiles t = {.step_s = layout->strides[KN_FROM][last],
                            .step_d = layout->strides[KN_TO][dim],
                            .along_p = kn_divisor_of(along_p),
                            .along_q = kn_divisor_of(along_q),
                            .ps = (int32_t)layout->shape[dim],
                            .qs = (int32_t)layout->shape[last],
                            .ndim = o.ndim};
    char options[64];

    for (int k = 0; k < o.ndim; k++) {
        const int d = o.ndim - 1 - k;
        t.shape[k] = kn_divisor_of(o.shape[d]);
        t.source[k] = o.source[d];
        t.destination[k] = o.destination[d];
    }
    snprintf(options, sizeof options, "-DE=%s", kn_bits_type(from->dtype));
    return kn_run(stream, .source = "tensor/transpose.cl", .options = options, .kernel = "transpose",
                  .operation = "copy", .dims = 2, .global = {(size_t)(count_of(&o) * along_p * along_q * SIDE), LINES},
                  .local = {SIDE, LINES},
                  KN_ARGS(kn_operand_argument(from), kn_operand_argument(to), kn_arg_struct(&t, sizeof t)));
}

kn_status kn_copy_transposed(kn_stream *stream, const kn_layout *layout, int dim, const kn_operand *to,
                             const kn_operand *from)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    return limits->is_cpu ? transpose_on_cpu(stream, limits, layout, dim, to, from)
                          : transpose_on_gpu(stream, layout, dim, to, from);
}

/* tensor/copy_transposed.c - copies between layouts whose dense dimensions differ, on CPU devices: in square tiles,
 * which read and write whole cache lines. A walk along either side's rows would use one element of each line of the
 * other. */
#include <stdio.h>
#include <string.h>

#include "tensor/copy.h"

/* How far a task goes along the source's dense dimension; a multiple of every LANES. */
#define LENGTH 256

/* As `outer` in cl/tensor/transpose.cl: the dimensions that are dense on neither side. */
typedef struct outer {
    int64_t shape[KN_MAX_DIMS], source[KN_MAX_DIMS], destination[KN_MAX_DIMS];
    int32_t ndim, unused;
} outer;

/* Elements of a vector register; 0: no tiles on this device. */
static int lanes_of(const kn_limits *limits, size_t element_size)
{
    const int lanes = element_size == 8 ? limits->vector_width_f64 : limits->vector_width_f32;

    if (!limits->is_cpu || lanes < 2)
        return 0;
    return lanes < 4 ? 4 : lanes > 16 ? 16 : lanes;
}

int kn_copy_transposed_dim(const kn_limits *limits, const kn_copy_layout *layout, size_t element_size)
{
    const int last = layout->ndim - 1, lanes = lanes_of(limits, element_size);

    if (lanes == 0 || layout->destination[last] != 1 || layout->shape[last] < lanes)
        return -1;
    for (int d = 0; d < last; d++)
        if (layout->source[d] == 1 && layout->shape[d] >= lanes)
            return d;
    return -1;
}

static outer without(const kn_copy_layout *layout, int dim)
{
    outer o = {.ndim = 0};

    for (int d = 0; d < layout->ndim - 1; d++) {
        if (d == dim)
            continue;
        o.shape[o.ndim] = layout->shape[d];
        o.source[o.ndim] = layout->source[d];
        o.destination[o.ndim++] = layout->destination[d];
    }
    return o;
}

kn_status kn_copy_transposed(kn_stream *stream, const kn_copy_layout *layout, int dim, kn_tensor *destination,
                             const kn_tensor *source)
{
    static const char *const types[9] = {[1] = "uchar", [2] = "ushort", [4] = "uint", [8] = "ulong"};
    const kn_limits *limits = kn_tensor_limits(source);
    const size_t size = kn_tensor_element_size(source);
    const int last = layout->ndim - 1, lanes = lanes_of(limits, size);
    const outer o = without(layout, dim);
    const int64_t ps = layout->shape[dim], qs = layout->shape[last], count = kn_shape_numel(o.ndim, o.shape);
    const int64_t tasks = count * ((ps + LENGTH - 1) / LENGTH) * ((qs + 4 * lanes - 1) / (4 * lanes));
    const size_t items = kn_work_items(limits, count * ps * qs, 4096);
    char options[64];

    snprintf(options, sizeof options, "-DE=%s -DLANES=%d", types[size], lanes);
    return kn_run(stream, .source = "tensor/transpose.cl", .options = options, .kernel = "transpose",
                  .operation = "copy", .dims = 1, .global = {(int64_t)items < tasks ? items : (size_t)tasks},
                  KN_ARGS(kn_arg_tensor(source), kn_arg_tensor(destination), kn_arg_struct(&o, sizeof o),
                          kn_arg_i64(count), kn_arg_i64(ps), kn_arg_i64(qs), kn_arg_i64(layout->source[last]),
                          kn_arg_i64(layout->destination[dim]), kn_arg_i64(LENGTH)));
}

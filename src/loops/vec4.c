/* loops/vec4.c - plans elementwise kernels on GPUs: whether four elements form a vector, the divisors for index
 * arithmetic, and splitting of launches too large for 32-bit indices. See vec4.h. */
#include "loops/vec4.h"

#include <string.h>

#include "base/divisor.h"
#include "base/error.h"

#define MAX_ELEMENTS 0x7fffff00 /* per launch: indices are 32 bits, rounded up to whole groups */
#define SPACING 32              /* KN_VEC4_SPACING of the kernels */
#define ITEMS_PER_UNIT 8192     /* four times what runs concurrently: few long loops and no long tail */

/* kn_vec4_plan of cl/pointwise/vec4.clh, whose rows are as long as there are lanes; its size is a multiple of 8. */
typedef struct vec4_plan {
    size_t size;
    _Alignas(8) uint8_t bytes[40 * KN_LAYOUT_LANES + 104];
} vec4_plan;

static void put(vec4_plan *plan, const void *value, size_t size)
{
    memcpy(plan->bytes + plan->size, value, size);
    plan->size += size;
}

/* Do all offsets from the start fit 32 bits? */
static bool fits(const kn_layout *l)
{
    if (kn_layout_count(l) > MAX_ELEMENTS)
        return false;
    for (int n = 0; n < l->lanes; n++) {
        int64_t extent = 0;
        for (int d = 0; d < l->ndim; d++)
            extent += (l->shape[d] - 1) * (l->strides[n][d] < 0 ? -l->strides[n][d] : l->strides[n][d]);
        if (extent > MAX_ELEMENTS)
            return false;
    }
    return true;
}

/* Do any four neighbours form a vector? */
static bool is_in_line(const kn_vec4_plan *quads)
{
    const kn_layout *l = &quads->layout;
    const int last = l->ndim - 1;
    if (l->strides[0][last] != 1 || (l->ndim > 1 && l->shape[last] % 4 != 0))
        return false;
    for (int n = 0; n < l->lanes; n++) {
        if (l->strides[n][last] == 0)
            continue;
        bool whole = l->strides[n][last] == 1 && quads->aligned[n] && quads->start[n] % 4 == 0;
        for (int d = 0; d < last && whole; d++)
            whole = l->strides[n][d] % 4 == 0;
        if (!whole)
            return false;
    }
    return true;
}

static uint32_t in_line_bits(const kn_vec4_plan *quads)
{
    const kn_layout *l = &quads->layout;
    uint32_t bits = 1;
    if (!is_in_line(quads))
        return 0;
    for (int n = 0; n < l->lanes; n++)
        bits |= l->strides[n][l->ndim - 1] == 0 ? 2u << n : 0;
    return bits;
}

static uint32_t tasks(const kn_layout *l, bool in_line)
{
    const int64_t count = kn_layout_count(l), spread = 4 * SPACING;
    return (uint32_t)(in_line ? (count + 3) / 4 : (count + spread - 1) / spread * SPACING);
}

/* Strides of dimension d for a kernel; zeros for d < 0. */
static void put_strides(vec4_plan *plan, const kn_layout *l, int d, bool in_line)
{
    const int64_t times = in_line && d == l->ndim - 1 ? 4 : 1;
    for (int n = 0; n < l->lanes; n++) {
        const int32_t stride = d >= 0 ? (int32_t)(l->strides[n][d] * times) : 0;
        put(plan, &stride, sizeof stride);
    }
}

static vec4_plan make_plan(const kn_vec4_plan *quads)
{
    const kn_layout *l = &quads->layout;
    const uint32_t bits = in_line_bits(quads), unused = 0;
    const uint32_t numbers[] = {(uint32_t)kn_layout_count(l), tasks(l, bits != 0), (uint32_t)l->ndim, bits};
    const int last = l->ndim - 1;
    vec4_plan plan = {0};

    for (int n = 0; n < l->lanes; n++)
        put(&plan, &quads->start[n], sizeof quads->start[n]);
    put(&plan, numbers, sizeof numbers);
    for (int k = 0; k < KN_MAX_DIMS - 1; k++) {
        const int64_t size = k < last ? l->shape[last - k] / (bits && k == 0 ? 4 : 1) : 1;
        const kn_divisor divisor = kn_divisor_of(size);
        put(&plan, &divisor, sizeof divisor);
    }
    put_strides(&plan, l, 0, bits != 0);
    for (int k = 0; k < KN_MAX_DIMS - 1; k++)
        put_strides(&plan, l, k < last ? last - k : -1, bits != 0);
    put(&plan, &unused, sizeof unused);
    return plan;
}

static kn_status launch_part(kn_stream *stream, const kn_limits *limits, const kn_launch_params *params, int at,
                             const kn_vec4_plan *quads)
{
    const vec4_plan plan = make_plan(quads);
    const size_t items = tasks(&quads->layout, in_line_bits(quads) != 0);
    const size_t most = (size_t)limits->compute_units * ITEMS_PER_UNIT;
    kn_launch_params part = *params;
    kn_arg args[64];
    size_t local = 256;

    while (local > limits->max_work_group_size)
        local /= 2;
    memcpy(args, params->args, (size_t)params->num_args * sizeof *args);
    args[at] = kn_arg_struct(plan.bytes, plan.size);
    part.args = args;
    part.dims = 1;
    part.local[0] = local;
    part.global[0] = ((items < most ? items : most) + local - 1) / local * local;
    return kn_launch(stream, &part);
}

/* Moves the first half of the largest dimension to `first`. Does not split groups of four. */
static void halve(kn_vec4_plan *quads, kn_vec4_plan *first)
{
    kn_layout *l = &quads->layout;
    int d = 0;
    for (int k = 1; k < l->ndim; k++)
        if (l->shape[k] > l->shape[d])
            d = k;
    *first = *quads;
    first->layout.shape[d] = l->shape[d] > 8 ? l->shape[d] / 8 * 4 : l->shape[d] / 2;
    l->shape[d] -= first->layout.shape[d];
    for (int n = 0; n < l->lanes; n++)
        quads->start[n] += first->layout.shape[d] * l->strides[n][d];
}

kn_status kn_launch_vec4(kn_stream *stream, const kn_limits *limits, const kn_launch_params *params, int plan,
                         const kn_vec4_plan *quads)
{
    kn_vec4_plan rest = *quads, first;
    while (!fits(&rest.layout)) {
        halve(&rest, &first);
        KN_TRY(kn_launch_vec4(stream, limits, params, plan, &first));
    }
    return launch_part(stream, limits, params, plan, &rest);
}

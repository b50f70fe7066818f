/* loops/vec4.c - plans elementwise kernels on GPUs: whether four elements form a vector, the divisors for index
 * arithmetic, and splitting of launches too large for 32-bit indices. See vec4.h. */
#include "loops/vec4.h"

#include <string.h>

#include "base/divisor.h"
#include "base/error.h"

#define MAX_ELEMENTS 0x7fffff00 /* per launch: indices are 32 bits, rounded up to whole groups */
#define SPACING 32              /* KN_VEC4_SPACING of the kernels */
#define ITEMS_PER_UNIT 8192     /* four times what runs concurrently: few long loops and no long tail */

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
static bool is_in_line(const kn_vec4_operands *operands)
{
    const kn_layout *l = &operands->layout;
    const int last = l->ndim - 1;
    if (l->strides[0][last] != 1 || (l->ndim > 1 && l->shape[last] % 4 != 0))
        return false;
    for (int n = 0; n < l->lanes; n++) {
        if (l->strides[n][last] == 0)
            continue;
        bool whole = l->strides[n][last] == 1 && operands->aligned[n] && operands->start[n] % 4 == 0;
        for (int d = 0; d < last && whole; d++)
            whole = l->strides[n][d] % 4 == 0;
        if (!whole)
            return false;
    }
    return true;
}

static uint32_t in_line_bits(const kn_vec4_operands *operands)
{
    const kn_layout *l = &operands->layout;
    uint32_t bits = 1;
    if (!is_in_line(operands))
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

/* Strides of dimension d for a kernel. */
static void set_strides(kn_int strides[KN_LAYOUT_LANES], const kn_layout *l, int d, bool in_line)
{
    const int64_t times = in_line && d == l->ndim - 1 ? 4 : 1;
    for (int n = 0; n < l->lanes; n++)
        strides[n] = (kn_int)(l->strides[n][d] * times);
}

static kn_vec4_plan make_plan(const kn_vec4_operands *operands)
{
    const kn_layout *l = &operands->layout;
    const uint32_t bits = in_line_bits(operands);
    const int last = l->ndim - 1;
    kn_vec4_plan plan = {
        .count = (kn_uint)kn_layout_count(l), .fours = tasks(l, bits != 0), .dims = (kn_uint)l->ndim, .in_line = bits};

    memcpy(plan.start, operands->start, sizeof plan.start);
    set_strides(plan.lead, l, 0, bits != 0);
    for (int k = 0; k < KN_MAX_DIMS - 1; k++) {
        const int64_t size = k < last ? l->shape[last - k] / (bits && k == 0 ? 4 : 1) : 1;
        plan.size[k] = kn_divisor_of(size);
        if (k < last)
            set_strides(plan.stride[k], l, last - k, bits != 0);
    }
    return plan;
}

static kn_status launch_part(kn_stream *stream, const kn_limits *limits, const kn_launch_params *params, int at,
                             const kn_vec4_operands *operands)
{
    const kn_vec4_plan plan = make_plan(operands);
    const size_t items = tasks(&operands->layout, in_line_bits(operands) != 0);
    const size_t most = (size_t)limits->compute_units * ITEMS_PER_UNIT;
    kn_launch_params part = *params;
    kn_arg args[64];
    size_t local = 256;

    while (local > limits->max_work_group_size)
        local /= 2;
    memcpy(args, params->args, (size_t)params->num_args * sizeof *args);
    args[at] = kn_arg_struct(&plan, sizeof plan);
    part.args = args;
    part.dims = 1;
    part.local[0] = local;
    part.global[0] = ((items < most ? items : most) + local - 1) / local * local;
    return kn_launch(stream, &part);
}

/* Moves the first half of the largest dimension to `first`. Does not split groups of four. */
static void halve(kn_vec4_operands *operands, kn_vec4_operands *first)
{
    kn_layout *l = &operands->layout;
    int d = 0;
    for (int k = 1; k < l->ndim; k++)
        if (l->shape[k] > l->shape[d])
            d = k;
    *first = *operands;
    first->layout.shape[d] = l->shape[d] > 8 ? l->shape[d] / 8 * 4 : l->shape[d] / 2;
    l->shape[d] -= first->layout.shape[d];
    for (int n = 0; n < l->lanes; n++)
        operands->start[n] += first->layout.shape[d] * l->strides[n][d];
}

kn_status kn_launch_vec4(kn_stream *stream, const kn_limits *limits, const kn_launch_params *params, int plan,
                         const kn_vec4_operands *operands)
{
    kn_vec4_operands rest = *operands, first;
    while (!fits(&rest.layout)) {
        halve(&rest, &first);
        KN_TRY(kn_launch_vec4(stream, limits, params, plan, &first));
    }
    return launch_part(stream, limits, params, plan, &rest);
}

/* loops/pointwise_turned.c - see pointwise_turned.h. */
#include "loops/pointwise_turned.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "loops/transpose.h"

/* Of fewer elements the copy's launch takes longer than the accesses. */
enum { FEWEST = 1 << 14 };

/* Does dimension a change faster than b in the output's memory? */
static bool is_inside(const kn_operand *output, int a, int b)
{
    const int64_t step_a = llabs(output->strides[a]), step_b = llabs(output->strides[b]);
    return step_a != step_b ? step_a < step_b : a > b;
}

/* Strides of the input's elements, without what is broadcast, in the order of the output's memory; their number. */
static int64_t pack(int64_t strides[KN_MAX_DIMS], const kn_pointwise_problem *p, const kn_operand *input)
{
    const kn_operand *output = kn_pointwise_first_output(p);
    int64_t count = 1;
    memset(strides, 0, KN_MAX_DIMS * sizeof *strides);
    for (int d = 0; d < p->ndim; d++) {
        if (input->strides[d] == 0)
            continue;
        strides[d] = 1;
        count *= p->shape[d];
        for (int e = 0; e < p->ndim; e++)
            if (e != d && input->strides[e] != 0 && is_inside(output, e, d))
                strides[d] *= p->shape[e];
    }
    return count;
}

/* The copy of an input: its strides, without signs, its number of elements, and how it is made. */
typedef struct turn {
    int64_t strides[KN_MAX_DIMS], count;
    kn_layout layout;
    int dim; /* -1: it is not worth copying */
} turn;

static turn turn_of(const kn_limits *limits, const kn_pointwise_problem *p, const kn_operand *input)
{
    turn t = {.layout = {.lanes = 2}, .dim = -1};
    if (!input->dtype || kn_strides_match(input->strides, kn_pointwise_first_output(p)->strides, p->ndim, p->shape))
        return t;
    t.count = pack(t.strides, p, input);
    if (t.count < FEWEST)
        return t;
    for (int d = 0; d < p->ndim; d++) {
        if (input->strides[d] == 0)
            continue;
        t.layout.shape[t.layout.ndim] = p->shape[d];
        t.layout.strides[KN_TO][t.layout.ndim] = t.strides[d];
        t.layout.strides[KN_FROM][t.layout.ndim++] = llabs(input->strides[d]);
    }
    kn_layout_sort(&t.layout);
    kn_layout_collapse(&t.layout);
    t.dim = kn_transposed_dim(limits, &t.layout, input->dtype);
    return t;
}

bool kn_pointwise_turns(const kn_limits *limits, const kn_pointwise_problem *p)
{
    for (int i = 0; i < p->num_inputs; i++)
        if (turn_of(limits, p, &p->inputs[i]).dim >= 0)
            return true;
    return false;
}

/* Makes `input` the copy, and `from` what it is a copy of: both begin at their lowest element, while an operand with
 * negative strides begins at another. */
static void replace(kn_operand *input, kn_operand *from, const turn *t, const kn_pointwise_problem *p)
{
    *from = *input;
    input->offset = 0;
    for (int d = 0; d < p->ndim; d++) {
        const bool is_backwards = input->strides[d] < 0;
        if (is_backwards) {
            from->offset += (p->shape[d] - 1) * input->strides[d];
            input->offset += (p->shape[d] - 1) * t->strides[d];
        }
        input->strides[d] = is_backwards ? -t->strides[d] : t->strides[d];
    }
}

kn_status kn_turned_begin(kn_turned *turned, kn_stream *stream, const kn_pointwise_problem *problem)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    turned->p = *problem;
    memset(turned->copies, 0, sizeof turned->copies);
    for (int i = 0; i < problem->num_inputs; i++) {
        kn_operand *input = &turned->p.inputs[i];
        const turn t = turn_of(limits, problem, input);
        if (t.dim < 0)
            continue;
        KN_TRY(kn_buffer_alloc(&turned->copies[i], stream, (size_t)t.count * kn_dtype_size(input->dtype)));
        kn_operand from, to = {.buffer = turned->copies[i], .dtype = input->dtype};
        replace(input, &from, &t, problem);
        input->buffer = to.buffer;
        KN_TRY(kn_copy_transposed(stream, &t.layout, t.dim, &to, &from));
    }
    return KN_OK;
}

void kn_turned_end(kn_turned *turned)
{
    for (int i = 0; i < KN_POINTWISE_INPUTS; i++)
        kn_buffer_free(turned->copies[i]);
}

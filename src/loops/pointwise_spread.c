/* loops/pointwise_spread.c - see pointwise_spread.h. */
#include "loops/pointwise_spread.h"

#include <string.h>

#include "base/dtype.h"
#include "base/error.h"

/* Elements from which on the second launch is worth it, if each is the same as so many others. */
enum { FEWEST = 1 << 16, ALIKE = 16 };

/* Is the dimension one along which all inputs are broadcast? */
static bool is_spread(const kn_pointwise_problem *p, int dim)
{
    for (int i = 0; i < p->num_inputs; i++)
        if (p->inputs[i].dtype && p->inputs[i].strides[dim] != 0)
            return false;
    return true;
}

static bool has_one_output(const kn_pointwise_problem *p)
{
    int wanted = 0;
    for (int i = 0; i < p->num_outputs; i++)
        wanted += p->outputs[i].dtype != 0;
    return wanted == 1;
}

bool kn_pointwise_spreads(const kn_limits *limits, const kn_pointwise_problem *p)
{
    int64_t count = 1, distinct = 1;
    if (!limits->is_cpu || p->num_inputs == 0 || p->code == &kn_copying || !has_one_output(p))
        return false;
    for (int d = 0; d < p->ndim; d++) {
        count *= p->shape[d];
        distinct *= is_spread(p, d) ? 1 : p->shape[d];
    }
    return count >= FEWEST && distinct <= count / ALIKE;
}

kn_status kn_spread_begin(kn_spread *spread, kn_stream *stream, const kn_pointwise_problem *problem)
{
    kn_pointwise_problem *distinct = &spread->distinct, *copy = &spread->copy;
    const kn_operand *output = kn_pointwise_first_output(problem);
    kn_operand *results = &distinct->outputs[output - problem->outputs];
    int64_t count = 1;

    spread->results = NULL;
    *distinct = *problem;
    for (int d = problem->ndim - 1; d >= 0; d--) {
        if (is_spread(problem, d))
            distinct->shape[d] = 1;
        results->strides[d] = distinct->shape[d] == 1 ? 0 : count;
        count *= distinct->shape[d];
    }
    *copy = (kn_pointwise_problem){.code = &kn_copying,
                                   .operation = problem->operation,
                                   .compute = kn_compute_type(output->dtype),
                                   .ndim = problem->ndim,
                                   .outputs = {*output},
                                   .num_outputs = 1,
                                   .num_inputs = 1};
    memcpy(copy->shape, problem->shape, sizeof copy->shape);
    KN_TRY(kn_buffer_alloc(&spread->results, stream, (size_t)count * kn_dtype_size(output->dtype)));
    results->buffer = spread->results;
    results->offset = 0;
    copy->inputs[0] = *results;
    return KN_OK;
}

void kn_spread_end(kn_spread *spread) { kn_buffer_free(spread->results); }

/* loops/fusion_graph.c - the noted problems as a graph: walks over it, which places meet, and what is dropped. */
#include <string.h>

#include "loops/fusion_parts.h"

/* A value is computed again rather than written if that takes so few operations and reads so few operands. */
#define CHEAP_MEMBERS 12
#define CHEAP_INPUTS 2

/* --- places ------------------------------------------------------------------------------------------------------- */

bool kn_fusion_same_shape(const kn_pointwise_problem *a, const kn_pointwise_problem *b)
{
    return a->ndim == b->ndim && memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

static void range_of(const kn_operand *operand, const kn_pointwise_problem *p, int64_t range[2])
{
    int64_t low = operand->offset, high = operand->offset;
    for (int d = 0; d < p->ndim; d++) {
        const int64_t reach = (p->shape[d] - 1) * operand->strides[d];
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    range[0] = low * (int64_t)kn_dtype_size(operand->dtype);
    range[1] = (high + 1) * (int64_t)kn_dtype_size(operand->dtype);
}

bool kn_fusion_overlap(const kn_operand *a, const kn_pointwise_problem *of_a, const kn_operand *b,
                       const kn_pointwise_problem *of_b)
{
    int64_t first[2], second[2];
    if (a->buffer != b->buffer)
        return false;
    range_of(a, of_a, first);
    range_of(b, of_b, second);
    return first[0] < second[1] && second[0] < first[1];
}

bool kn_fusion_is_one_place(const kn_operand *a, const kn_pointwise_problem *of_a, const kn_operand *b,
                            const kn_pointwise_problem *of_b)
{
    return kn_fusion_same_shape(of_a, of_b) && kn_operand_is_same(a, b, of_a->ndim, of_a->shape);
}

/* --- walks -------------------------------------------------------------------------------------------------------- */

static void unmark(kn_fusion *f)
{
    for (int n = 0; n <= f->count; n++)
        if (kn_fusion_part(f, n))
            kn_fusion_part(f, n)->marked = false;
}

/* Calls `visit` for the part and all that it is computed from, but those that are marked, until it returns true. A part
 * is passed once: there may be very many ways to it. */
typedef bool part_visit(kn_part *part, void *context);
static bool walk(kn_part *part, part_visit *visit, void *context)
{
    if (part->marked)
        return false;
    part->marked = true;
    if (visit && visit(part, context))
        return true;
    for (int i = 0; i < part->p.num_inputs; i++)
        if (part->from[i].part && walk(part->from[i].part, visit, context))
            return true;
    return false;
}

static bool add_member(kn_part *part, void *context)
{
    (void)context;
    part->member = true;
    return false;
}

void kn_fusion_add_member(kn_fusion *f, kn_part *part)
{
    unmark(f);
    walk(part, add_member, NULL);
}

typedef struct cone_size {
    int members, inputs;
} cone_size;

static bool count_part(kn_part *part, void *context)
{
    cone_size *size = context;
    size->members++;
    for (int i = 0; i < part->p.num_inputs; i++)
        size->inputs += kn_part_reads_memory(part, i);
    return false;
}

bool kn_fusion_is_cheap(kn_fusion *f, kn_part *part)
{
    cone_size size = {0, 0};
    unmark(f);
    walk(part, count_part, &size);
    return size.members <= CHEAP_MEMBERS && size.inputs <= CHEAP_INPUTS;
}

typedef struct read_place {
    const kn_operand *operand;
    const kn_pointwise_problem *p; /* NULL: anywhere in its buffer */
} read_place;

static bool reads_place(kn_part *part, void *context)
{
    const read_place *place = context;
    for (int i = 0; i < part->p.num_inputs; i++)
        if (kn_part_reads_memory(part, i) && part->p.inputs[i].buffer == place->operand->buffer &&
            (!place->p || kn_fusion_overlap(&part->p.inputs[i], &part->p, place->operand, place->p)))
            return true;
    return false;
}

bool kn_fusion_reads(kn_fusion *f, kn_part *part, const kn_operand *operand, const kn_pointwise_problem *p)
{
    read_place place = {operand, p};
    unmark(f);
    return walk(part, reads_place, &place);
}

/* --- dropping ----------------------------------------------------------------------------------------------------- */

static bool refers(const kn_part *part, const kn_buffer *buffer)
{
    for (int i = 0; i < part->p.num_outputs; i++)
        if (part->p.outputs[i].dtype && part->p.outputs[i].buffer == buffer)
            return true;
    for (int i = 0; i < part->p.num_inputs; i++)
        if (kn_part_reads_memory(part, i) && part->p.inputs[i].buffer == buffer)
            return true;
    return false;
}

/* Forgets the buffers that no part refers to any more, and frees those whose owners have. */
static void drop_claims(kn_fusion *f)
{
    int kept = 0;
    for (int c = 0; c < f->num_claims; c++) {
        const kn_claim claim = f->claims[c];
        bool used = false;
        for (int n = 0; n <= f->count && !used; n++)
            used = kn_fusion_part(f, n) && refers(kn_fusion_part(f, n), claim.buffer);
        if (used) {
            f->claims[kept++] = claim;
            continue;
        }
        kn_buffer_unclaim(claim.buffer);
        if (claim.freed)
            kn_buffer_free(claim.buffer);
    }
    f->num_claims = kept;
}

void kn_fusion_prune(kn_fusion *f)
{
    int kept = 0;
    unmark(f);
    for (int n = 0; n < f->count; n++)
        if (kn_fusion_any(f->parts[n]->wanted))
            walk(f->parts[n], NULL, NULL);
    if (f->fresh)
        walk(f->fresh, NULL, NULL);
    for (int n = 0; n < f->count; n++)
        if (f->parts[n]->marked)
            f->parts[kept++] = f->parts[n];
        else
            kn_free(f->parts[n]);
    f->count = kept;
    drop_claims(f);
    kn_stream_set_pending(f->stream, f->count);
}

void kn_fusion_drop(kn_fusion *f)
{
    for (int n = 0; n < f->count; n++)
        kn_free(f->parts[n]);
    f->count = 0;
    kn_free(f->fresh);
    f->fresh = NULL;
    drop_claims(f);
    kn_stream_set_pending(f->stream, 0);
}

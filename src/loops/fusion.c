/* loops/fusion.c - which problems are noted, and when which of them are run.
 *
 * Invariants: an input that is not linked is in memory, and stays there until the part has run or is dropped, because
 * whoever would overwrite it has the values that read it written first. No noted output overlaps one, except that an
 * output may be the very place that its own part, or those that it is computed from, read. So wanted values can be
 * computed in any order and by any kernels. */
#include "loops/fusion.h"

#include <koine/flags.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "loops/fusion_parts.h"

/* A value is computed again rather than written if that takes so few operations and reads so few operands. */
#define CHEAP_MEMBERS 12
#define CHEAP_INPUTS 2

/* --- places ------------------------------------------------------------------------------------------------------- */

static bool same_shape(const kn_pointwise_problem *a, const kn_pointwise_problem *b)
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

/* May they share memory? */
static bool overlap(const kn_operand *a, const kn_pointwise_problem *of_a, const kn_operand *b,
                    const kn_pointwise_problem *of_b)
{
    int64_t first[2], second[2];
    if (a->buffer != b->buffer)
        return false;
    range_of(a, of_a, first);
    range_of(b, of_b, second);
    return first[0] < second[1] && second[0] < first[1];
}

static bool is_one_place(const kn_operand *a, const kn_pointwise_problem *of_a, const kn_operand *b,
                         const kn_pointwise_problem *of_b)
{
    return same_shape(of_a, of_b) && kn_operand_is_same(a, b, of_a->ndim, of_a->shape);
}

static bool is_memory(const kn_part *part, int input) { return part->p.inputs[input].dtype && !part->from[input].part; }

/* --- the graph ---------------------------------------------------------------------------------------------------- */

static void add_member(kn_part *part)
{
    if (part->member)
        return;
    part->member = true;
    for (int i = 0; i < part->p.num_inputs; i++)
        if (part->from[i].part)
            add_member(part->from[i].part);
}

static kn_part *part_at(const kn_fusion *f, int n) { return n < f->count ? f->parts[n] : f->fresh; }

static void begin_kernel(kn_fusion *f)
{
    for (int n = 0; n <= f->count; n++)
        if (part_at(f, n)) {
            part_at(f, n)->member = false;
            memset(part_at(f, n)->stores, 0, sizeof part_at(f, n)->stores);
        }
}

static bool any_of(const bool values[KN_POINTWISE_OUTPUTS])
{
    return memchr(values, true, KN_POINTWISE_OUTPUTS * sizeof *values) != NULL;
}

/* Before each walk over the graph, which passes a part once: there may be very many ways to it. */
static void clear_marks(kn_fusion *f)
{
    for (int n = 0; n <= f->count; n++)
        if (part_at(f, n))
            part_at(f, n)->marked = false;
}

static void mark(kn_part *part)
{
    if (part->marked)
        return;
    part->marked = true;
    for (int i = 0; i < part->p.num_inputs; i++)
        if (part->from[i].part)
            mark(part->from[i].part);
}

static bool refers(const kn_part *part, const kn_buffer *buffer)
{
    for (int i = 0; i < part->p.num_outputs; i++)
        if (part->p.outputs[i].dtype && part->p.outputs[i].buffer == buffer)
            return true;
    for (int i = 0; i < part->p.num_inputs; i++)
        if (is_memory(part, i) && part->p.inputs[i].buffer == buffer)
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
            used = part_at(f, n) && refers(part_at(f, n), claim.buffer);
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

/* Drops the parts that no wanted value needs. */
static void prune(kn_fusion *f)
{
    int kept = 0;
    clear_marks(f);
    for (int n = 0; n < f->count; n++)
        if (any_of(f->parts[n]->wanted))
            mark(f->parts[n]);
    if (f->fresh)
        mark(f->fresh);
    for (int n = 0; n < f->count; n++)
        if (f->parts[n]->marked)
            f->parts[kept++] = f->parts[n];
        else
            kn_free(f->parts[n]);
    f->count = kept;
    drop_claims(f);
    kn_stream_set_pending(f->stream, f->count);
}

/* After a failure nothing stays noted: what was to be written has no values, as after a launch that failed. */
static void drop_all(kn_fusion *f)
{
    for (int n = 0; n < f->count; n++)
        kn_free(f->parts[n]);
    f->count = 0;
    kn_free(f->fresh);
    f->fresh = NULL;
    drop_claims(f);
    kn_stream_set_pending(f->stream, 0);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

/* The values that the kernel wrote are memory from now on. */
static void note_stored(kn_fusion *f)
{
    for (int n = 0; n <= f->count; n++) {
        kn_part *part = part_at(f, n);
        for (int i = 0; part && i < part->p.num_inputs; i++)
            if (part->from[i].part && part->from[i].part->stores[part->from[i].output])
                part->from[i].part = NULL;
    }
    for (int n = 0; n < f->count; n++) {
        kn_part *part = f->parts[n];
        part->runs += part->member;
        for (int i = 0; i < part->p.num_outputs; i++)
            if (part->stores[i])
                part->wanted[i] = part->chosen[i] = false;
    }
}

/* Adds a part with the values that it is to write to the kernel, if they fit. */
static bool try_member(kn_fusion *f, kn_part *part, const bool stores[KN_POINTWISE_OUTPUTS])
{
    bool members[KN_FUSION_PARTS], before[KN_POINTWISE_OUTPUTS];
    for (int n = 0; n < f->count; n++)
        members[n] = f->parts[n]->member;
    memcpy(before, part->stores, sizeof before);
    add_member(part);
    memcpy(part->stores, stores, sizeof before);
    if (kn_fusion_fits(f))
        return true;
    for (int n = 0; n < f->count; n++)
        f->parts[n]->member = members[n];
    memcpy(part->stores, before, sizeof before);
    return false;
}

static void count_cone(kn_part *part, int *members, int *inputs)
{
    if (part->marked)
        return;
    part->marked = true;
    ++*members;
    for (int i = 0; i < part->p.num_inputs; i++) {
        *inputs += is_memory(part, i);
        if (part->from[i].part)
            count_cone(part->from[i].part, members, inputs);
    }
}

static bool is_cheap(kn_fusion *f, kn_part *part)
{
    int members = 0, inputs = 0;
    clear_marks(f);
    count_cone(part, &members, &inputs);
    return members <= CHEAP_MEMBERS && inputs <= CHEAP_INPUTS;
}

/* Other values that the kernel computes, and not for the first time, are written too, unless they are cheap. */
static void keep_expensive(kn_fusion *f)
{
    for (int n = 0; n < f->count; n++) {
        kn_part *part = f->parts[n];
        bool all[KN_POINTWISE_OUTPUTS];
        if (!part->member || part->runs == 0 || !any_of(part->wanted) || is_cheap(f, part))
            continue;
        for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
            all[i] = part->stores[i] || part->wanted[i];
        try_member(f, part, all);
    }
}

/* Runs one kernel, for the first part with a chosen value and as many others as fit. */
static kn_status run_one(kn_fusion *f)
{
    const kn_part *first = NULL;
    begin_kernel(f);
    for (int n = 0; n < f->count; n++) {
        kn_part *part = f->parts[n];
        if (any_of(part->chosen) &&
            (!first || (same_shape(&first->p, &part->p) && first->p.compute == part->p.compute)) &&
            try_member(f, part, part->chosen) && !first)
            first = part;
    }
    if (!first)
        return kn_fail(KN_ERR_INTERNAL, "a fused operation exceeds the limits of a kernel");
    keep_expensive(f);
    return kn_fusion_run(f);
}

static bool has_chosen(const kn_fusion *f)
{
    for (int n = 0; n < f->count; n++)
        if (any_of(f->parts[n]->chosen))
            return true;
    return false;
}

/* Writes the chosen values. */
static kn_status run_chosen(kn_fusion *f)
{
    kn_status status = KN_OK;
    if (!has_chosen(f))
        return KN_OK;
    atomic_store(&f->runner, pthread_self());
    atomic_store(&f->is_running, true);
    while (status == KN_OK && has_chosen(f)) {
        status = run_one(f);
        if (status == KN_OK)
            note_stored(f);
    }
    atomic_store(&f->is_running, false);
    if (status == KN_OK)
        prune(f);
    else
        drop_all(f);
    return status;
}

static kn_status run_all(kn_fusion *f)
{
    for (int n = 0; n < f->count; n++)
        memcpy(f->parts[n]->chosen, f->parts[n]->wanted, sizeof f->parts[n]->chosen);
    return run_chosen(f);
}

static bool cone_reads(kn_part *part, const kn_operand *operand, const kn_pointwise_problem *p)
{
    if (part->marked)
        return false;
    part->marked = true;
    for (int i = 0; i < part->p.num_inputs; i++) {
        if (part->from[i].part && cone_reads(part->from[i].part, operand, p))
            return true;
        if (is_memory(part, i) && part->p.inputs[i].buffer == operand->buffer &&
            (!p || overlap(&part->p.inputs[i], &part->p, operand, p)))
            return true;
    }
    return false;
}

/* Does the computation of its values read memory that overlaps the operand? NULL `p`: that is in its buffer. */
static bool reads(kn_fusion *f, kn_part *part, const kn_operand *operand, const kn_pointwise_problem *p)
{
    clear_marks(f);
    return cone_reads(part, operand, p);
}

/* Chooses what must be written before a command that may read and write the buffer. */
static void choose_for(kn_fusion *f, const kn_buffer *buffer)
{
    const kn_operand anywhere = {.buffer = buffer};
    if (kn_buffer_claimant(buffer) != f->stream)
        return;
    for (int n = 0; n < f->count; n++) {
        kn_part *part = f->parts[n];
        const bool danger = any_of(part->wanted) && reads(f, part, &anywhere, NULL);
        for (int i = 0; i < part->p.num_outputs; i++)
            part->chosen[i] |= part->wanted[i] && (danger || part->p.outputs[i].buffer == buffer);
    }
}

static bool runs_here(kn_fusion *f)
{
    return atomic_load(&f->is_running) && pthread_equal(atomic_load(&f->runner), pthread_self());
}

static kn_status enqueue(kn_deferral *deferral, const kn_buffer *const *used, int count)
{
    kn_fusion *f = (kn_fusion *)deferral;
    if (runs_here(f))
        return KN_OK;
    kn_lock(&f->lock);
    for (int i = 0; i < count; i++)
        if (used[i])
            choose_for(f, used[i]);
    const kn_status status = count < 0 ? run_all(f) : run_chosen(f);
    kn_unlock(&f->lock);
    return kn_capture_fail(f->stream, status);
}

/* --- buffers ------------------------------------------------------------------------------------------------------ */

static bool keeps(kn_deferral *deferral, kn_buffer *freed)
{
    kn_fusion *f = (kn_fusion *)deferral;
    bool kept = false;
    if (runs_here(f))
        return false;
    kn_lock(&f->lock);
    for (int n = 0; n < f->count; n++)
        for (int i = 0; i < f->parts[n]->p.num_outputs; i++)
            if (f->parts[n]->p.outputs[i].buffer == freed) {
                f->parts[n]->p.outputs[i].buffer = NULL;
                f->parts[n]->wanted[i] = false;
            }
    prune(f);
    for (int c = 0; c < f->num_claims; c++)
        if (f->claims[c].buffer == freed)
            kept = f->claims[c].freed = true;
    kn_unlock(&f->lock);
    return kept;
}

static bool claim(kn_fusion *f, const kn_operand *operand)
{
    kn_buffer *buffer = (kn_buffer *)(uintptr_t)operand->buffer;
    if (!operand->dtype)
        return true;
    if (!buffer)
        return false;
    for (int c = 0; c < f->num_claims; c++)
        if (f->claims[c].buffer == buffer)
            return true;
    if (KN_GROW(f->claims, f->num_claims, f->claims_capacity) != KN_OK || !kn_buffer_claim(buffer, f->stream))
        return false;
    f->claims[f->num_claims++] = (kn_claim){.buffer = buffer};
    return true;
}

static bool claim_all(kn_fusion *f, const kn_pointwise_problem *p)
{
    for (int i = 0; i < p->num_outputs; i++)
        if (!claim(f, &p->outputs[i]))
            return false;
    for (int i = 0; i < p->num_inputs; i++)
        if (!claim(f, &p->inputs[i]))
            return false;
    return true;
}

/* --- noting a problem --------------------------------------------------------------------------------------------- */

/* Links an input to the value that it is to read, or has values written that it reads in another way. */
static void link_input(kn_fusion *f, kn_part *fresh, int input)
{
    const kn_operand *operand = &fresh->p.inputs[input];
    for (int n = f->count - 1; n >= 0; n--) {
        kn_part *part = f->parts[n];
        for (int i = 0; i < part->p.num_outputs; i++) {
            const kn_operand *place = &part->p.outputs[i];
            if (!part->wanted[i] || place->buffer != operand->buffer)
                continue;
            if (part->p.compute == fresh->p.compute && is_one_place(place, &part->p, operand, &fresh->p))
                fresh->from[input] = (kn_part_link){part, i};
            else if (overlap(place, &part->p, operand, &fresh->p))
                part->chosen[i] = true;
        }
    }
}

static void choose_links(kn_part *fresh)
{
    for (int i = 0; i < fresh->p.num_inputs; i++)
        if (fresh->from[i].part)
            fresh->from[i].part->chosen[fresh->from[i].output] = true;
}

/* Can one kernel compute the new part, with all that it is computed from? */
static bool fits(kn_fusion *f)
{
    begin_kernel(f);
    add_member(f->fresh);
    for (int i = 0; i < f->fresh->p.num_outputs; i++)
        f->fresh->stores[i] = f->fresh->p.outputs[i].dtype != 0;
    return kn_fusion_fits(f);
}

/* An output takes a place: of the values noted for it before, and of those that are computed from what is there. */
static void take_place(kn_fusion *f, const kn_operand *output)
{
    const kn_pointwise_problem *p = &f->fresh->p;
    for (int n = 0; n < f->count; n++) {
        kn_part *part = f->parts[n];
        for (int i = 0; i < part->p.num_outputs; i++) {
            if (!part->wanted[i] || !overlap(&part->p.outputs[i], &part->p, output, p))
                continue;
            if (is_one_place(&part->p.outputs[i], &part->p, output, p))
                part->wanted[i] = part->chosen[i] = false;
            else
                part->chosen[i] = true;
        }
    }
    for (int n = 0; n < f->count; n++)
        if (any_of(f->parts[n]->wanted) && reads(f, f->parts[n], output, p))
            for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
                f->parts[n]->chosen[i] |= f->parts[n]->wanted[i];
}

static kn_status note(kn_fusion *f, bool *deferred)
{
    kn_part *fresh = f->fresh;
    if (!claim_all(f, &fresh->p))
        return KN_OK;
    for (int i = 0; i < fresh->p.num_inputs; i++)
        if (fresh->p.inputs[i].dtype)
            link_input(f, fresh, i);
    KN_TRY(run_chosen(f));
    if (!fits(f)) {
        choose_links(fresh);
        KN_TRY(run_chosen(f));
        if (!fits(f))
            return KN_OK;
    }
    for (int i = 0; i < fresh->p.num_outputs; i++)
        if (fresh->p.outputs[i].dtype)
            take_place(f, &fresh->p.outputs[i]);
    KN_TRY(run_chosen(f));
    for (int i = 0; i < fresh->p.num_outputs; i++)
        fresh->wanted[i] = fresh->p.outputs[i].dtype != 0;
    f->parts[f->count++] = fresh;
    f->fresh = NULL;
    *deferred = true;
    return KN_OK;
}

static kn_status take(kn_fusion *f, const kn_pointwise_problem *problem, bool *deferred)
{
    if (f->count == KN_FUSION_PARTS)
        KN_TRY(run_all(f));
    f->fresh = kn_calloc(1, sizeof *f->fresh);
    if (!f->fresh)
        return KN_ERR_MEMORY;
    f->fresh->p = *problem;
    f->fresh->style = kn_pointwise_style(kn_device_limits(kn_stream_device(f->stream)), problem);
    const kn_status status = note(f, deferred);
    kn_free(f->fresh);
    f->fresh = NULL;
    prune(f);
    return status;
}

/* --- when --------------------------------------------------------------------------------------------------------- */

/* The thread's blocks: 0 outside of any, when only captures fuse. */
static _Thread_local enum { BY_CAPTURE, FUSE, DO_NOT_FUSE } mode;
static _Thread_local kn_stream *last;
static _Thread_local uint64_t last_id;

static bool is_on(const kn_stream *stream)
{
    if (mode == DO_NOT_FUSE || (mode == BY_CAPTURE && !(kn_get_fusion() && kn_stream_captured_here(stream))))
        return false;
    return kn_stream_may_defer(stream);
}

/* Not a user's code, which may define macros; not float64 beside another compute type, for which kernels are built with
 * other functions. */
static bool is_suitable(const kn_pointwise_problem *p)
{
    bool f64 = false;
    for (int i = 0; i < p->num_outputs; i++)
        f64 |= p->outputs[i].dtype == KN_F64;
    for (int i = 0; i < p->num_inputs; i++)
        f64 |= p->inputs[i].dtype == KN_F64;
    return !p->code->has_user_code && (!f64 || p->compute == KN_F64);
}

static kn_status fusion_of(kn_fusion **f, kn_stream *stream)
{
    *f = (kn_fusion *)kn_stream_deferral(stream);
    if (*f)
        return KN_OK;
    kn_fusion *made = kn_calloc(1, sizeof *made);
    if (!made)
        return KN_ERR_MEMORY;
    made->deferral = (kn_deferral){.enqueue = enqueue, .keeps = keeps};
    made->stream = stream;
    kn_mutex_init(&made->lock);
    if (!kn_stream_set_deferral(stream, &made->deferral)) {
        kn_mutex_destroy(&made->lock);
        kn_free(made);
    }
    *f = (kn_fusion *)kn_stream_deferral(stream);
    return KN_OK;
}

/* A thread has pending launches on one stream only. */
static kn_status leave_last(const kn_stream *stream)
{
    if (!last || last == stream || kn_stream_id(last) != last_id)
        return KN_OK;
    kn_stream *left = last;
    last = NULL;
    return kn_stream_is_capturing(left) ? KN_OK : kn_stream_enqueue_deferred(left);
}

kn_status kn_fusion_take(kn_stream *stream, const kn_pointwise_problem *problem, bool *deferred)
{
    kn_fusion *f;
    *deferred = false;
    if (!is_on(stream) || !is_suitable(problem))
        return KN_OK;
    KN_TRY(fusion_of(&f, stream));
    if (runs_here(f))
        return KN_OK;
    KN_TRY(leave_last(stream));
    kn_lock(&f->lock);
    const kn_status status = take(f, problem, deferred);
    kn_unlock(&f->lock);
    last = stream;
    last_id = kn_stream_id(stream);
    return kn_capture_fail(stream, status);
}

int kn_fuse_enter(bool enabled)
{
    const int before = (int)mode;
    mode = enabled ? FUSE : DO_NOT_FUSE;
    return before;
}

void kn_fuse_leave(int before)
{
    mode = before;
    if (mode != FUSE && leave_last(NULL) != KN_OK)
        kn_error_make_sticky();
}

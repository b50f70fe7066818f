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

/* --- buffers ------------------------------------------------------------------------------------------------------ */

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
            if (part->p.compute == fresh->p.compute && kn_fusion_is_one_place(place, &part->p, operand, &fresh->p))
                fresh->from[input] = (kn_part_link){part, i};
            else if (kn_fusion_overlap(place, &part->p, operand, &fresh->p))
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
    kn_fusion_begin_kernel(f);
    kn_fusion_add_member(f, f->fresh);
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
            if (!part->wanted[i] || !kn_fusion_overlap(&part->p.outputs[i], &part->p, output, p))
                continue;
            if (kn_fusion_is_one_place(&part->p.outputs[i], &part->p, output, p))
                part->wanted[i] = part->chosen[i] = false;
            else
                part->chosen[i] = true;
        }
    }
    for (int n = 0; n < f->count; n++)
        if (kn_fusion_any(f->parts[n]->wanted) && kn_fusion_reads(f, f->parts[n], output, p))
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
    KN_TRY(kn_fusion_run_chosen(f));
    if (!fits(f)) {
        choose_links(fresh);
        KN_TRY(kn_fusion_run_chosen(f));
        if (!fits(f))
            return KN_OK;
    }
    for (int i = 0; i < fresh->p.num_outputs; i++)
        if (fresh->p.outputs[i].dtype)
            take_place(f, &fresh->p.outputs[i]);
    KN_TRY(kn_fusion_run_chosen(f));
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
        KN_TRY(kn_fusion_run_all(f));
    f->fresh = kn_calloc(1, sizeof *f->fresh);
    if (!f->fresh)
        return KN_ERR_MEMORY;
    f->fresh->p = *problem;
    f->fresh->style = kn_pointwise_style(kn_device_limits(kn_stream_device(f->stream)), problem);
    const kn_status status = note(f, deferred);
    kn_free(f->fresh);
    f->fresh = NULL;
    kn_fusion_prune(f);
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
    made->deferral = (kn_deferral){.enqueue = kn_fusion_enqueue, .keeps = kn_fusion_keeps};
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
    if (kn_fusion_runs_here(f))
        return KN_OK;
    KN_TRY(leave_last(stream));
    kn_lock(&f->lock);
    const bool may = kn_stream_may_defer(stream); /* a capture may have begun; see kn_stream_has_deferred */
    const kn_status status = may ? take(f, problem, deferred) : KN_OK;
    kn_unlock(&f->lock);
    if (!may)
        return KN_OK;
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

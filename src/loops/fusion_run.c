/* loops/fusion_run.c - runs noted problems: which values a kernel computes, and what must be written before a command
 * that uses a buffer. */
#include <string.h>

#include "base/error.h"
#include "loops/fusion_parts.h"

/* --- kernels ------------------------------------------------------------------------------------------------------ */

void kn_fusion_begin_kernel(kn_fusion *f)
{
    for (int n = 0; n <= f->count; n++)
        if (kn_fusion_part(f, n)) {
            kn_fusion_part(f, n)->member = false;
            memset(kn_fusion_part(f, n)->stores, 0, sizeof kn_fusion_part(f, n)->stores);
        }
}

/* The values that the kernel wrote are memory from now on. */
static void note_stored(kn_fusion *f)
{
    for (int n = 0; n <= f->count; n++) {
        kn_part *part = kn_fusion_part(f, n);
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
    kn_fusion_add_member(f, part);
    memcpy(part->stores, stores, sizeof before);
    if (kn_fusion_fits(f))
        return true;
    for (int n = 0; n < f->count; n++)
        f->parts[n]->member = members[n];
    memcpy(part->stores, before, sizeof before);
    return false;
}

/* Other values that the kernel computes, and not for the first time, are written too, unless they are cheap. */
static void keep_expensive(kn_fusion *f)
{
    for (int n = 0; n < f->count; n++) {
        kn_part *part = f->parts[n];
        bool all[KN_POINTWISE_OUTPUTS];
        if (!part->member || part->runs == 0 || !kn_fusion_any(part->wanted) || kn_fusion_is_cheap(f, part))
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
    kn_fusion_begin_kernel(f);
    for (int n = 0; n < f->count; n++) {
        kn_part *part = f->parts[n];
        if (kn_fusion_any(part->chosen) &&
            (!first || (kn_fusion_same_shape(&first->p, &part->p) && first->p.compute == part->p.compute)) &&
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
        if (kn_fusion_any(f->parts[n]->chosen))
            return true;
    return false;
}

kn_status kn_fusion_run_chosen(kn_fusion *f)
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
        kn_fusion_prune(f);
    else
        kn_fusion_drop(f);
    return status;
}

kn_status kn_fusion_run_all(kn_fusion *f)
{
    for (int n = 0; n < f->count; n++)
        memcpy(f->parts[n]->chosen, f->parts[n]->wanted, sizeof f->parts[n]->chosen);
    return kn_fusion_run_chosen(f);
}

/* --- what a command needs ----------------------------------------------------------------------------------------- */

/* Chooses what must be written before a command that may read and write the buffer. */
static void choose_for(kn_fusion *f, const kn_buffer *buffer)
{
    const kn_operand anywhere = {.buffer = buffer};
    if (kn_buffer_claimant(buffer) != f->stream)
        return;
    for (int n = 0; n < f->count; n++) {
        kn_part *part = f->parts[n];
        const bool danger = kn_fusion_any(part->wanted) && kn_fusion_reads(f, part, &anywhere, NULL);
        for (int i = 0; i < part->p.num_outputs; i++)
            part->chosen[i] |= part->wanted[i] && (danger || part->p.outputs[i].buffer == buffer);
    }
}

bool kn_fusion_runs_here(kn_fusion *f)
{
    return atomic_load(&f->is_running) && pthread_equal(atomic_load(&f->runner), pthread_self());
}

kn_status kn_fusion_enqueue(kn_deferral *deferral, const kn_buffer *const *used, int count)
{
    kn_fusion *f = (kn_fusion *)deferral;
    if (kn_fusion_runs_here(f))
        return KN_OK;
    kn_lock(&f->lock);
    if (kn_stream_captured_elsewhere(f->stream)) { /* with the lock: whoever captures notes its launches with it */
        kn_unlock(&f->lock);
        return KN_OK;
    }
    for (int i = 0; i < count; i++)
        if (used[i])
            choose_for(f, used[i]);
    const kn_status status = count < 0 ? kn_fusion_run_all(f) : kn_fusion_run_chosen(f);
    kn_unlock(&f->lock);
    return kn_capture_fail(f->stream, status);
}

bool kn_fusion_keeps(kn_deferral *deferral, kn_buffer *freed)
{
    kn_fusion *f = (kn_fusion *)deferral;
    bool kept = false;
    if (kn_fusion_runs_here(f))
        return false;
    kn_lock(&f->lock);
    for (int n = 0; n < f->count; n++)
        for (int i = 0; i < f->parts[n]->p.num_outputs; i++)
            if (f->parts[n]->p.outputs[i].buffer == freed) {
                f->parts[n]->p.outputs[i].buffer = NULL;
                f->parts[n]->wanted[i] = false;
            }
    kn_fusion_prune(f);
    for (int c = 0; c < f->num_claims; c++)
        if (f->claims[c].buffer == freed)
            kept = f->claims[c].freed = true;
    kn_unlock(&f->lock);
    return kept;
}

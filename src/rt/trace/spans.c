/* rt/trace/spans.c - see rt/trace/spans.h. */
#include "rt/trace/spans.h"

#include <stdio.h>

#include "rt/device/device_struct.h"
#include "rt/memory/pool.h"
#include "rt/trace/profile.h"
#include "rt/trace/range_tools.h"

/* The thread's state; if it is from another session, no span is open. */
static _Thread_local struct {
    uint64_t session;
    int64_t innermost;
} here;

int kn_profile_thread(void)
{
    static atomic_int threads;
    static _Thread_local int number;
    if (number == 0)
        number = atomic_fetch_add(&threads, 1) + 1;
    return number;
}

int64_t kn_profile_innermost(const kn_profile *profile)
{
    return here.session == profile->session ? here.innermost : -1;
}

/* --- beginning and ending; the lock is held --------------------------------------------------- */

typedef struct memory_now {
    uint64_t allocated, reserved; /* bytes */
} memory_now;

static void sample_memory(kn_profile *profile, kn_device *device, const memory_now *memory, int64_t now)
{
    size_t *place = &profile->last_memory[device->slot];
    const kn_memory_record *last = *place ? &profile->memory[*place - 1] : NULL;
    if (last && last->allocated == memory->allocated && last->reserved == memory->reserved)
        return;
    if (!KN_PROFILE_RESERVE(profile, memory))
        return;
    profile->memory[profile->num_memory++] = (kn_memory_record){now, device, memory->allocated, memory->reserved};
    *place = profile->num_memory;
}

static const char *keep(kn_profile *profile, const char *text)
{
    return text ? kn_intern(&profile->names, text) : NULL;
}

static kn_span append(kn_profile *profile, const kn_span_info *info)
{
    const char *kept = keep(profile, info->name);
    if (!kept || !KN_PROFILE_RESERVE(profile, spans)) {
        profile->dropped += !kept;
        return KN_NO_SPAN;
    }
    int64_t index = (int64_t)profile->num_spans++, now = kn_clock_now();
    profile->spans[index] = (kn_span_record){.kind = info->kind,
                                             .is_open = info->kind != KN_SPAN_MARK,
                                             .thread = kn_profile_thread(),
                                             .parent = kn_profile_innermost(profile),
                                             .name = kept,
                                             .shapes = keep(profile, info->shapes),
                                             .dtypes = keep(profile, info->dtypes),
                                             .start = now,
                                             .end = now};
    if (kn_span_nests(info->kind)) {
        here.session = profile->session;
        here.innermost = index;
    }
    return (kn_span){.session = profile->session, .index = index};
}

/* Closes the span and any span still open inside it (ranges that a callback did not pop), so that the records always
 * nest. */
static void close_down_to(kn_profile *profile, int64_t index, int64_t now)
{
    int64_t at = kn_profile_innermost(profile);
    while (at > index) {
        kn_span_record *inner = &profile->spans[at];
        inner->is_open = false;
        inner->was_cut = true;
        inner->end = now;
        profile->cut++;
        at = inner->parent;
    }
    kn_span_record *span = &profile->spans[index];
    if (!span->is_open)
        return; /* the enclosing span has already closed it */
    span->is_open = false;
    span->end = now;
    if (at == index)
        here.innermost = span->parent;
}

void kn_profile_close_open_spans(kn_profile *profile, int64_t now)
{
    for (size_t i = 0; i < profile->num_spans; i++) {
        kn_span_record *span = &profile->spans[i];
        if (!span->is_open)
            continue;
        span->is_open = false;
        span->was_cut = true;
        span->end = now;
        profile->cut++;
    }
}

/* --- the interface ---------------------------------------------------------------------------- */

/* Called without the profile's lock: the pool's lock must not be taken inside it. */
static kn_device *look_at_memory(kn_device *device, memory_now *memory)
{
    if (!device || kn_device_is_host(device) || !kn_profiler_wants(KN_WANTS_MEMORY))
        return NULL;
    kn_pool_figures figures = kn_pool_read_figures(device); /* both of one moment */
    *memory = (memory_now){(uint64_t)figures.stats[KN_STAT_ALLOCATED_BYTES][KN_PART_ALL].current,
                           (uint64_t)figures.stats[KN_STAT_RESERVED_BYTES][KN_PART_ALL].current};
    return device;
}

/* Named as by torch.autograd.profiler.emit_nvtx. */
static bool emit(const kn_span_info *info)
{
    char name[512];
    if (info->kind != KN_SPAN_OP || !kn_profiler_wants(KN_WANTS_RANGES) || !kn_has_range_tools())
        return false;
    snprintf(name, sizeof name, "%s%s%s", info->name, info->shapes ? ", sizes = " : "",
             info->shapes ? info->shapes : "");
    kn_range_tools_push(name);
    return true;
}

kn_span kn_span_begin(const kn_span_info *info)
{
    kn_profile *profile = &kn_the_profile;
    memory_now memory;
    kn_span span = KN_NO_SPAN;
    bool is_emitted = emit(info);
    kn_device *device = look_at_memory(info->device, &memory);
    kn_lock(&kn_profile_lock);
    if (kn_profile_records(profile))
        span = append(profile, info);
    if (span.session && device) {
        span.device = device;
        profile->spans[span.index].memory_before = memory.allocated;
        sample_memory(profile, device, &memory, profile->spans[span.index].start);
    }
    kn_unlock(&kn_profile_lock);
    span.is_emitted = is_emitted;
    return span;
}

void kn_span_end(kn_span span, const kn_span_work *work)
{
    kn_profile *profile = &kn_the_profile;
    memory_now memory;
    if (span.is_emitted)
        kn_range_tools_pop();
    if (span.session == 0)
        return;
    kn_device *device = look_at_memory(span.device, &memory);
    int64_t now = kn_clock_now();
    kn_lock(&kn_profile_lock);
    if (span.session == profile->session && profile->spans[span.index].is_open) {
        kn_span_record *record = &profile->spans[span.index];
        if (work)
            record->work = *work;
        if (device) {
            record->memory = (int64_t)(memory.allocated - record->memory_before);
            sample_memory(profile, device, &memory, now);
        }
        if (kn_span_nests(record->kind))
            close_down_to(profile, span.index, now);
        record->is_open = false;
        record->end = now;
    }
    kn_unlock(&kn_profile_lock);
}

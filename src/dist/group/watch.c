/* dist/group/watch.c - a group's calls, for the profiler. */
#include "base/clock.h"
#include "dist/group/call.h"

kn_span kn_call_span(const kn_work *work)
{
    return kn_is_watched() ? kn_span_begin(&(kn_span_info){.kind = KN_SPAN_CALL, .name = work->kind->name})
                           : KN_NO_SPAN;
}

static double bytes_of(const kn_tensor *tensor) { return (double)kn_numel(tensor) * kn_dtype_size(tensor->dtype); }

/* As NCCL's tests count them: of a block per rank, all blocks. */
static double bytes_of_call(const kn_group *group, const kn_work *work)
{
    double bytes = 0;
    if (work->kind->pairs) /* whose tensor may be released by now */
        return (double)work->message.bytes;
    if (work->tensor)
        return bytes_of(work->tensor) *
               (work->kind->rounds == 1 && !work->kind->has_all_blocks ? group->transport->size : 1);
    for (kn_tensor *const *t = work->inputs; t && *t; t++)
        bytes += bytes_of(*t);
    return bytes;
}

void kn_call_span_end(kn_span span, const kn_group *group, const kn_work *work)
{
    if (!kn_span_is_open(span))
        return;
    const double size = group->transport->size, bytes = bytes_of_call(group, work);
    const double crossing = work->kind->rounds ? work->kind->rounds * (size - 1) / size : 1;
    kn_span_end(span, &(kn_span_work){.bytes = bytes, .bus_bytes = crossing * bytes});
}

/* --- waiting for others ------------------------------------------------------------------------------------------- */

static _Thread_local int64_t waited;

kn_waiting kn_waiting_begin(const char *part) { return (kn_waiting){kn_part_begin(part), kn_clock_now()}; }

void kn_waiting_end(const kn_waiting *waiting)
{
    waited += kn_clock_now() - waiting->began;
    kn_part_end(&waiting->span);
}

void kn_waiting_note(kn_group *group)
{
    atomic_fetch_add(&group->waited, waited);
    waited = 0;
}

double kn_group_waited(const kn_group *group) { return group ? 1e-9 * (double)atomic_load(&group->waited) : 0; }

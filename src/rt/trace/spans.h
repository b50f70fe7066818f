/* rt/trace/spans.h - for the layers above: reports to the profiler what the host is doing.
 *
 * A span is a named interval of a thread's time: an operation, or a user range. Spans nest; a command enqueued while
 * one is open belongs to it. If the profiler is off, the cost is the relaxed load of kn_is_watched. */
#pragma once

#include <koine/common.h>
#include <stdint.h>

#include "rt/trace/watching.h"

typedef enum kn_span_kind {
    KN_SPAN_OP,    /* an operation, an optimizer's step */
    KN_SPAN_RANGE, /* the user's, or a phase such as the backward pass */
    KN_SPAN_ASYNC, /* of kn_range_start: may end on another thread */
    KN_SPAN_MARK   /* a point in time */
} kn_span_kind;

typedef struct kn_span {
    uint64_t session; /* 0: not recorded */
    int64_t index;
    kn_device *device; /* whose memory use is read again at the end */
    bool is_emitted;   /* also open as a range of NVTX or ITT */
} kn_span;
#define KN_NO_SPAN ((kn_span){0, 0, NULL, false})
static inline bool kn_span_is_open(kn_span span) { return span.session != 0 || span.is_emitted; }

/* Strings are copied; all but the name may be NULL. */
typedef struct kn_span_info {
    kn_span_kind kind;
    const char *name;
    const char *shapes, *dtypes; /* of an operation's inputs: "[[2, 3], [3]]", "[float32, float32]" */
    kn_device *device;           /* whose memory use is read; the host: none */
} kn_span_info;

/* How much an operation does; known at its end. */
typedef struct kn_span_work {
    double flops, bytes;
    double multiply_adds; /* of products and convolutions, which are among the flops */
    bool is_f64;          /* which arithmetic peak it is compared with */
} kn_span_work;

/* Opens a span on the calling thread. Each span begun must be ended, on the same thread unless it is KN_SPAN_ASYNC. */
kn_span kn_span_begin(const kn_span_info *info);
void kn_span_end(kn_span span, const kn_span_work *work); /* NULL: not known */

/* A phase of the library's own, such as the backward pass. */
static inline kn_span kn_phase_span(const char *name)
{
    return kn_is_watched() ? kn_span_begin(&(kn_span_info){.kind = KN_SPAN_RANGE, .name = name}) : KN_NO_SPAN;
}

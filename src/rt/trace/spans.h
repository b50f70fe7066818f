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
    KN_SPAN_MARK,  /* a point in time */
    KN_SPAN_CALL,  /* a collective or message of a group, on the group's thread */
    KN_SPAN_PART   /* of such a call, by the following names */
} kn_span_kind;

static inline bool kn_span_nests(kn_span_kind kind) { return kind != KN_SPAN_ASYNC && kind != KN_SPAN_MARK; }

/* The parts of a group's call: until all ranks have come and the inputs are computed; from the device; between the
 * ranks; to the device. */
#define KN_PART_WAIT "wait"
#define KN_PART_COPY_DOWN "copy down"
#define KN_PART_EXCHANGE "exchange"
#define KN_PART_COPY_UP "copy up"

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
    double bus_bytes;     /* of a group's call: what crosses each rank's link */
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

/* The rest of the block is a part of a group's call: KN_PART(KN_PART_EXCHANGE); */
#define KN_PART(name) KN_GUARD(kn_span, kn_part_guard_, kn_part_begin(name), kn_part_end)
static inline kn_span kn_part_begin(const char *name)
{
    return kn_is_watched() ? kn_span_begin(&(kn_span_info){.kind = KN_SPAN_PART, .name = name}) : KN_NO_SPAN;
}
static inline void kn_part_end(const kn_span *span)
{
    if (kn_span_is_open(*span))
        kn_span_end(*span, NULL);
}

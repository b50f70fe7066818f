/* rt/stream/fault.h - faults that kernels report: each stream has a record that a kernel writes instead of accessing
 * memory out of bounds, and that the host reads once the stream's work is done. */
#pragma once

#include "rt/stream/stream_struct.h"

#define KN_FAULT_BYTES 16 /* code, value, limit, operation */

/* The record, made with the stream; after it a word that nobody reads (rt/stream/timing.c). */
kn_status kn_fault_record_new(kn_stream *stream, kn_device *device);
void kn_fault_record_free(kn_stream *stream);

/* A small number that represents an operation's name in records. The pointer is kept: the name is a constant. */
int kn_operation_number(const char *name);

/* May a launch so far have found a fault? Call before waiting: launches that other threads enqueue meanwhile are not
 * waited for and left to the next check. */
static inline bool kn_stream_take_armed(kn_stream *stream) { return atomic_exchange(&stream->fault_armed, false); }

/* Reports a fault found by kernels of the stream, or of a stream whose values it received; its work so far must be
 * done. Costs nothing if no launch could have found one. */
kn_status kn_stream_check_fault(kn_stream *stream, bool armed);

/* `to` received values of `from`: if kernels of `from` may have found a fault, the next check of `to` also reports
 * it. */
void kn_stream_collect_faults(kn_stream *to, kn_stream *from);

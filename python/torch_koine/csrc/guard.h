// guard.h - PyTorch's streams as Koine's.
#pragma once

#include <koine/stream.h>

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

namespace koine
{

kn_stream *stream_of(const c10::Stream &stream);
c10::Stream current_stream(c10::Device device);
c10::Stream default_stream(c10::Device device);
c10::Stream new_stream(c10::Device device, bool is_high_priority);

// Keeps the memory from being reused before the stream's work so far is done.
void record_stream(const c10::DataPtr &pointer, const c10::Stream &stream);

} // namespace koine

// guard.cpp - current devices and streams, streams and events.
//
// A c10::Stream has only a number. The default stream is number 0. As with CUDA, others come from a pool, 32 of each
// priority and device, taken in turn: a c10::Stream has no end, so streams made for each would never be freed.
#include "guard.h"

#include "error.h"
#include "storage.h"
#include "tensor.h"

#include <koine/native.h>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <memory>
#include <mutex>
#include <vector>

namespace koine
{

// --- streams ---------------------------------------------------------------------------------------------------------

static constexpr int pool_size = 32;

// Streams by their numbers, [1, 32] of ordinary and [33, 64] of high priority.
struct Pool {
    std::mutex lock;
    std::array<kn_stream *, 1 + 2 * pool_size> streams{};
    int next[2] = {0, 0};
};

static Pool &pool_of(c10::Device device)
{
    static std::vector<std::unique_ptr<Pool>> *const pools = [] { // never freed, as the devices
        auto *const all = new std::vector<std::unique_ptr<Pool>>;
        for (int i = 0; i < device_count(); i++)
            all->push_back(std::make_unique<Pool>());
        return all;
    }();
    device_of(device); // or says that there is none
    return *(*pools)[device.index()];
}

static c10::Device with_index(c10::Device device)
{
    return device.has_index() ? device : c10::Device(c10::kPrivateUse1, current_device());
}

static c10::Stream numbered(c10::Device device, c10::StreamId id)
{
    return c10::Stream(c10::Stream::UNSAFE, device, id);
}

kn_stream *stream_of(const c10::Stream &stream)
{
    if (stream.id() == 0)
        return check(kn_stream_default(device_of(stream.device())));
    Pool &pool = pool_of(stream.device());
    const std::lock_guard<std::mutex> hold(pool.lock);
    TORCH_CHECK(stream.id() > 0 && stream.id() <= 2 * pool_size && pool.streams[stream.id()] != nullptr,
                "there is no stream ", stream.id(), " of ", stream.device());
    return pool.streams[stream.id()];
}

c10::Stream default_stream(c10::Device device) { return numbered(with_index(device), 0); }

c10::Stream current_stream(c10::Device of)
{
    const c10::Device device = with_index(of);
    kn_device *const its = device_of(device);
    kn_stream *const current = check(kn_stream_current(its));
    if (current == kn_stream_default(its))
        return default_stream(device);
    Pool &pool = pool_of(device);
    const std::lock_guard<std::mutex> hold(pool.lock);
    for (int id = 1; id <= 2 * pool_size; id++)
        if (pool.streams[id] == current)
            return numbered(device, id);
    TORCH_CHECK(false, "the current stream of ", device, " was not made by PyTorch");
}

c10::Stream new_stream(c10::Device of, bool is_high_priority)
{
    const c10::Device device = with_index(of);
    Pool &pool = pool_of(device);
    const std::lock_guard<std::mutex> hold(pool.lock);
    int &next = pool.next[is_high_priority];
    const int id = 1 + is_high_priority * pool_size + next;
    if (pool.streams[id] == nullptr)
        pool.streams[id] = check(kn_stream_new_with_priority(device_of(device), is_high_priority ? -1 : 0));
    next = (next + 1) % pool_size;
    return numbered(device, id);
}

void record_stream(const c10::DataPtr &pointer, const c10::Stream &stream)
{
    if (pointer.get() == nullptr)
        return;
    size_t offset = 0;
    const Memory memory = memory_at(pointer, &offset);
    const int64_t one = 1;
    const Tensor byte(check(kn_tensor_from_storage(memory.get(), KN_U8, 1, &one, nullptr, 0)));
    check(kn_record_stream(byte.get(), stream_of(stream)));
}

// --- the guard -------------------------------------------------------------------------------------------------------

static kn_event *event_of(void *event) { return static_cast<kn_event *>(event); }

class Guard final : public c10::impl::DeviceGuardImplInterface
{
  public:
    c10::DeviceType type() const override { return c10::kPrivateUse1; }
    c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }

    c10::Device getDevice() const override { return {c10::kPrivateUse1, current_device()}; }
    void setDevice(c10::Device device) const override { set_current_device(device.index()); }
    c10::Device exchangeDevice(c10::Device device) const override
    {
        const c10::Device before = getDevice();
        if (device.has_index() && device != before)
            setDevice(device);
        return before;
    }
    void uncheckedSetDevice(c10::Device device) const noexcept override
    {
        try {
            setDevice(device);
        } catch (...) { // in a destructor
        }
    }

    c10::Stream getStream(c10::Device device) const override { return current_stream(device); }
    c10::Stream getDefaultStream(c10::Device device) const override { return default_stream(device); }
    c10::Stream getStreamFromGlobalPool(c10::Device device, bool is_high_priority) const override
    {
        return new_stream(device, is_high_priority);
    }
    c10::Stream getNewStream(c10::Device device, int priority) const override
    {
        return new_stream(device, priority < 0);
    }
    c10::Stream exchangeStream(c10::Stream stream) const override
    {
        const c10::Stream before = current_stream(stream.device());
        if (stream != before)
            check(kn_stream_set_current(stream_of(stream)));
        return before;
    }
    void *getStreamNativeHandle(const c10::Stream stream) const override
    {
        return check(kn_native_queue(stream_of(stream)));
    }
    bool queryStream(const c10::Stream &stream) const override
    {
        bool is_done = false;
        check(kn_stream_query(stream_of(stream), &is_done));
        return is_done;
    }
    void synchronizeStream(const c10::Stream &stream) const override
    {
        check(kn_stream_synchronize(stream_of(stream)));
    }
    void synchronizeDevice(const c10::DeviceIndex index) const override
    {
        check(kn_synchronize(device_of(c10::Device(c10::kPrivateUse1, index))));
    }
    void recordDataPtrOnStream(const c10::DataPtr &pointer, const c10::Stream &stream) const override
    {
        record_stream(pointer, stream);
    }

    // Events are made when they are first recorded. BACKEND_DEFAULT asks for times.
    void record(void **event, const c10::Stream &stream, const c10::DeviceIndex index,
                const c10::EventFlag flag) const override
    {
        TORCH_CHECK(index == -1 || index == stream.device_index(), "an event of device ", static_cast<int>(index),
                    " cannot be recorded on a stream of device ", static_cast<int>(stream.device_index()));
        if (*event == nullptr) {
            kn_device *const device = device_of(stream.device());
            *event = check(flag == c10::EventFlag::BACKEND_DEFAULT ? kn_event_new(device)
                                                                   : kn_event_new_without_timing(device));
        }
        check(kn_event_record(event_of(*event), stream_of(stream)));
    }
    void block(void *event, const c10::Stream &stream) const override
    {
        if (event != nullptr)
            check(kn_stream_wait_event(stream_of(stream), event_of(event)));
    }
    bool queryEvent(void *event) const override
    {
        bool is_done = true;
        if (event != nullptr)
            check(kn_event_query(event_of(event), &is_done));
        return is_done;
    }
    void synchronizeEvent(void *event) const override
    {
        if (event != nullptr)
            check(kn_event_synchronize(event_of(event)));
    }
    void destroyEvent(void *event, const c10::DeviceIndex) const noexcept override { kn_event_free(event_of(event)); }
    double elapsedTime(void *start, void *end, const c10::DeviceIndex) const override
    {
        TORCH_CHECK(start != nullptr && end != nullptr, "both events must be recorded before their times are known");
        double milliseconds = 0;
        check(kn_event_elapsed_time(event_of(start), event_of(end), &milliseconds));
        return milliseconds;
    }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

} // namespace koine

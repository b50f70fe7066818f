// allocator.cpp - Koine's pool as PyTorch's allocator of the device, with torch.accelerator's figures.
#include "error.h"
#include "storage.h"
#include "tensor.h"

#include <koine/memory.h>

#include <c10/core/CachingDeviceAllocator.h>

#include <cstring>
#include <string>

#include "guard.h"

namespace koine
{

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingDeviceAllocator::DeviceStats;

static int64_t figure(kn_device *device, const std::string &key)
{
    int64_t value = 0;
    check(kn_memory_stat(device, key.c_str(), &value));
    return value;
}

// The two sides have the same keys: WHAT.POOL.METRIC.
static StatArray figures(kn_device *device, const char *what)
{
    static const char *const pools[] = {"all", "small_pool", "large_pool"};
    StatArray all;
    for (size_t i = 0; i < all.size(); i++) {
        const std::string prefix = std::string(what) + "." + pools[i] + ".";
        all[i].current = figure(device, prefix + "current");
        all[i].peak = figure(device, prefix + "peak");
        all[i].allocated = figure(device, prefix + "allocated");
        all[i].freed = figure(device, prefix + "freed");
    }
    return all;
}

class Allocator final : public c10::DeviceAllocator
{
  public:
    c10::DataPtr allocate(size_t bytes) override
    {
        return koine::allocate(bytes, c10::Device(c10::kPrivateUse1, current_device()));
    }
    void copy_data(void *destination, const void *source, std::size_t bytes) const override
    {
        const c10::Device device(c10::kPrivateUse1, current_device()); // where they are matters to nobody
        const auto pointer = [device](const void *address) {
            return c10::DataPtr(const_cast<void *>(address), device);
        };
        copy_bytes(pointer(destination), pointer(source), bytes);
    }

    bool initialized() override { return kn_is_initialized(); }
    void emptyCache(c10::MempoolId_t) override
    {
        for (c10::DeviceIndex i = 0; i < device_count(); i++)
            check(kn_empty_cache(device(i)));
    }
    void recordStream(const c10::DataPtr &pointer, c10::Stream stream) override { record_stream(pointer, stream); }

    DeviceStats getDeviceStats(c10::DeviceIndex index) override
    {
        kn_device *const of = device(index);
        DeviceStats stats;
        stats.allocation = figures(of, "allocation");
        stats.segment = figures(of, "segment");
        stats.active = figures(of, "active");
        stats.inactive_split = figures(of, "inactive_split");
        stats.allocated_bytes = figures(of, "allocated_bytes");
        stats.reserved_bytes = figures(of, "reserved_bytes");
        stats.active_bytes = figures(of, "active_bytes");
        stats.inactive_split_bytes = figures(of, "inactive_split_bytes");
        stats.requested_bytes = figures(of, "requested_bytes");
        stats.num_alloc_retries = figure(of, "num_alloc_retries");
        stats.num_ooms = figure(of, "num_ooms");
        stats.num_sync_all_streams = figure(of, "num_sync_all_streams");
        stats.num_device_alloc = figure(of, "num_device_alloc");
        stats.num_device_free = figure(of, "num_device_free");
        stats.max_split_size = figure(of, "max_split_size");
        return stats;
    }
    void resetAccumulatedStats(c10::DeviceIndex index) override { kn_reset_accumulated_memory_stats(device(index)); }
    void resetPeakStats(c10::DeviceIndex index) override { kn_reset_peak_memory_stats(device(index)); }
    std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override
    {
        uint64_t free = 0, total = 0;
        check(kn_mem_get_info(device(index), &free, &total));
        return {free, total};
    }

  private:
    static kn_device *device(c10::DeviceIndex index) { return device_of(c10::Device(c10::kPrivateUse1, index)); }
};

c10::Allocator *device_allocator()
{
    static Allocator *const allocator = new Allocator; // tensors may outlive the statics
    return allocator;
}

static const bool is_registered = (c10::SetAllocator(c10::kPrivateUse1, device_allocator()), true);

} // namespace koine

// device.cpp - the devices by PyTorch's numbers.
#include "tensor.h"

#include <koine/device.h>
#include <koine/random.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

namespace koine
{

// --- seeding before the devices are known ----------------------------------------------------------------------------

static struct {
    std::mutex lock;
    std::optional<uint64_t> seed;
} pending;

static void apply_pending_seed()
{
    const std::lock_guard<std::mutex> hold(pending.lock);
    if (pending.seed)
        kn_manual_seed(*pending.seed);
    pending.seed.reset();
}

void seed_all_devices(uint64_t seed)
{
    {
        const std::lock_guard<std::mutex> hold(pending.lock);
        pending.seed = seed;
    }
    if (kn_is_initialized())
        apply_pending_seed();
}

// --- devices ---------------------------------------------------------------------------------------------------------

// All devices, in the order of tensor.h. They are searched for once; none is an error of each use.
static const std::vector<kn_device *> &devices()
{
    static const std::vector<kn_device *> all = [] {
        std::vector<kn_device *> found;
        const auto add = [&found](kn_device *device) {
            if (device != nullptr && std::find(found.begin(), found.end(), device) == found.end())
                found.push_back(device);
        };
        const int count = kn_device_count();
        if (count > 0)
            add(kn_device_open("auto"));
        for (int gpu = 0; gpu < kn_gpu_count(); gpu++)
            add(kn_try_gpu(gpu));
        for (int i = 0; i < count; i++)
            add(kn_device_at(i));
        kn_error_clear();
        apply_pending_seed();
        return found;
    }();
    return all;
}

c10::DeviceIndex device_count() noexcept
{
    try {
        return static_cast<c10::DeviceIndex>(std::min<size_t>(devices().size(), 127));
    } catch (...) {
        return 0;
    }
}

kn_device *device_of(c10::Device device)
{
    TORCH_CHECK(device.is_privateuseone(), "expected a device koine, not ", device);
    if (!device.has_index())
        return check(kn_device_current());
    if (C10_UNLIKELY(device.index() < 0 || device.index() >= device_count())) {
        check(kn_init()); // says why there is none
        TORCH_CHECK(false, "there is no ", device, "; the number of devices is ", static_cast<int>(device_count()));
    }
    return devices()[device.index()];
}

c10::Device device_of(const kn_device *device)
{
    const auto &all = devices();
    const auto place = std::find(all.begin(), all.end(), device);
    TORCH_CHECK(place != all.end(), "the result is on ", kn_device_string(device), ", which is no device koine");
    return {c10::kPrivateUse1, static_cast<c10::DeviceIndex>(place - all.begin())};
}

c10::DeviceIndex current_device() { return device_of(check(kn_device_current())).index(); }

void set_current_device(c10::DeviceIndex index)
{
    check(kn_device_set_current(device_of(c10::Device(c10::kPrivateUse1, index))));
}

} // namespace koine

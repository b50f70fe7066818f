// hooks.cpp - what PyTorch asks of a device outside of operators.
#include "generator.h"
#include "storage.h"
#include "tensor.h"

#include <koine/device.h>

#include <ATen/detail/PrivateUse1HooksInterface.h>

namespace koine
{

class PinnedAllocator final : public c10::Allocator
{
  public:
    c10::DataPtr allocate(size_t bytes) override { return allocate_pinned(bytes); }
    void copy_data(void *destination, const void *source, std::size_t bytes) const override
    {
        default_copy_data(destination, source, bytes);
    }
};

class Hooks final : public at::PrivateUse1HooksInterface
{
  public:
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return device_count() > 0; }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return kn_is_initialized(); }
    void init() const override { check(kn_init()); }

    c10::DeviceIndex deviceCount() const override { return device_count(); }
    c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
    void setCurrentDevice(c10::DeviceIndex index) const override { set_current_device(index); }
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override
    {
        const c10::DeviceIndex before = current_device();
        if (index >= 0 && index != before)
            set_current_device(index);
        return before;
    }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return exchangeDevice(index); }

    const at::Generator &getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
    at::Generator getNewGenerator(c10::DeviceIndex index) const override { return new_generator(index); }

    c10::Allocator *getPinnedMemoryAllocator() const override
    {
        static PinnedAllocator *const allocator = new PinnedAllocator;
        return allocator;
    }
    bool isPinnedPtr(const void *pointer) const override
    {
        size_t offset = 0;
        const Memory memory = memory_at(c10::DataPtr(const_cast<void *>(pointer), c10::kCPU), &offset);
        return memory.get() != nullptr && kn_storage_device(memory.get()) == kn_device_host();
    }
    at::Device getDeviceFromPtr(void *pointer) const override
    {
        const c10::Device current(c10::kPrivateUse1, current_device());
        size_t offset = 0;
        const Memory memory = memory_at(c10::DataPtr(pointer, current), &offset);
        TORCH_CHECK(memory.get() != nullptr, pointer, " is no address of a tensor on the device koine");
        return device_of(kn_storage_device(memory.get()));
    }
    void resizePrivateUse1Bytes(const c10::Storage &storage, size_t bytes) const override
    {
        resize(storage.unsafeGetStorageImpl(), bytes);
    }
};

static const bool is_registered = (at::RegisterPrivateUse1HooksInterface(new Hooks), true);

} // namespace koine

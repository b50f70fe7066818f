#include "storage.h"

#include "error.h"
#include "tensor.h"

#include <koine/device.h>
#include <koine/memory.h>

#include <algorithm>

namespace koine
{

static void *address_of(kn_storage *memory)
{
    return reinterpret_cast<void *>(static_cast<uintptr_t>(kn_storage_address(memory)));
}

// For torch.profiler's column of memory. Memory of the host has no index, and none of Koine's figures.
static void report_memory(kn_storage *memory, int64_t change)
{
    kn_device *const device = kn_storage_device(memory);
    if (kn_device_index(device) >= 0)
        c10::reportMemoryUsageToProfiler(address_of(memory), change, kn_memory_allocated(device),
                                         kn_memory_reserved(device), device_of(device));
}

static void release_memory(void *memory)
{
    kn_storage *const released = static_cast<kn_storage *>(memory);
    if (C10_UNLIKELY(c10::memoryProfilingEnabled()))
        report_memory(released, -static_cast<int64_t>(kn_storage_bytes(released)));
    kn_storage_release(released);
}

c10::DataPtr data_ptr_of(Memory &&memory, c10::Device device)
{
    void *address = address_of(memory.get());
    if (C10_UNLIKELY(c10::memoryProfilingEnabled()))
        report_memory(memory.get(), static_cast<int64_t>(kn_storage_bytes(memory.get())));
    return {address, memory.release(), release_memory, device};
}

c10::DataPtr allocate(size_t bytes, c10::Device device)
{
    if (bytes == 0)
        return {nullptr, device};
    return data_ptr_of(Memory(check(kn_storage_new(bytes, device_of(device)))), device);
}

c10::DataPtr allocate_pinned(size_t bytes)
{
    if (bytes == 0)
        return {nullptr, c10::kCPU};
    const int64_t shape = static_cast<int64_t>(bytes);
    kn_tensor_options options = kn_tensor_options_init();
    options.dtype = KN_U8;
    options.pin_memory = true;
    const Tensor tensor(check(kn_empty_with(1, &shape, &options)));
    return data_ptr_of(Memory(check(kn_storage_of(tensor.get()))), c10::kCPU);
}

Memory memory_at(const c10::DataPtr &pointer, size_t *byte_offset)
{
    *byte_offset = 0;
    if (pointer.get_deleter() == release_memory)
        return Memory(kn_storage_retain(static_cast<kn_storage *>(pointer.get_context())));
    if (pointer.get() == nullptr)
        return Memory(pointer.device().is_cpu() ? nullptr : check(kn_storage_new(0, device_of(pointer.device()))));
    return Memory(kn_storage_at_address(reinterpret_cast<uintptr_t>(pointer.get()), byte_offset));
}

static Tensor bytes_of(const c10::DataPtr &pointer, int64_t bytes)
{
    size_t offset = 0;
    const Memory memory = memory_at(pointer, &offset);
    return Tensor(check(kn_tensor_from_storage(memory.get(), KN_U8, 1, &bytes, nullptr, static_cast<int64_t>(offset))));
}

void copy_bytes(const c10::DataPtr &destination, const c10::DataPtr &source, size_t bytes)
{
    if (bytes == 0)
        return;
    const int64_t count = static_cast<int64_t>(bytes);
    check(kn_copy_(bytes_of(destination, count).get(), bytes_of(source, count).get()));
}

void resize(c10::StorageImpl *storage, size_t bytes)
{
    TORCH_CHECK(storage->resizable(), "the storage cannot be resized");
    c10::DataPtr memory = allocate(bytes, storage->device());
    copy_bytes(memory, storage->data_ptr(), std::min(bytes, storage->nbytes()));
    storage->set_data_ptr_noswap(std::move(memory));
    storage->set_nbytes(bytes);
}

} // namespace koine

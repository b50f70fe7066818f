// storage.h - PyTorch's storages of Koine's memory.
//
// The data pointer of a storage is its address, and its context the kn_storage. Slices of storages and memory from
// DLPack have another context, so that their memory is found by the address. Empty storages have no memory: NULL.
#pragma once

#include <koine/storage.h>

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#include <utility>

namespace koine
{

// A reference to a kn_storage.
class Memory
{
  public:
    explicit Memory(kn_storage *owned) : handle(owned) {}
    Memory(Memory &&other) noexcept : handle(other.release()) {}
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    ~Memory() { kn_storage_release(handle); }
    kn_storage *get() const { return handle; }
    kn_storage *release() { return std::exchange(handle, nullptr); }

  private:
    kn_storage *handle;
};

// `bytes` uninitialised bytes of a device, or pinned ones of the host.
c10::DataPtr allocate(size_t bytes, c10::Device device);
c10::DataPtr allocate_pinned(size_t bytes);
c10::DataPtr data_ptr_of(Memory &&memory, c10::Device device);

// Koine's memory behind a data pointer of the device koine, or of pinned memory, and the pointer's place in it. None
// for other memory of the host.
Memory memory_at(const c10::DataPtr &pointer, size_t *byte_offset);

// Copies as many bytes as both have.
void copy_bytes(const c10::DataPtr &destination, const c10::DataPtr &source, size_t bytes);

// For torch.UntypedStorage.resize_ and for tensors that grow: new memory with the old contents.
void resize(c10::StorageImpl *storage, size_t bytes);

// The allocator of the device koine, as PyTorch knows it.
c10::Allocator *device_allocator();

} // namespace koine

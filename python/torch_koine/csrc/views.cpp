// views.cpp - new tensors, and tensors on the memory of others.
#include "guard.h"
#include "storage.h"
#include "tensor.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/TensorOptions.h>
#include <torch/library.h>

namespace koine
{

// torch.utils.deterministic.fill_uninitialized_memory
static bool fills_new_memory()
{
    const at::Context &context = at::globalContext();
    return C10_UNLIKELY(context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory());
}

static c10::Device device_or_current(std::optional<c10::Device> device)
{
    if (device.has_value() && device->has_index())
        return *device;
    return {c10::kPrivateUse1, current_device()};
}

static at::Tensor empty_memory_format(at::IntArrayRef sizes, std::optional<at::ScalarType> type,
                                      std::optional<at::Layout>, std::optional<c10::Device> device,
                                      std::optional<bool> pin_memory, std::optional<at::MemoryFormat> format)
{
    TORCH_CHECK(!pin_memory.value_or(false), "only tensors on the CPU can be pinned");
    at::detail::check_size_nonnegative(sizes);
    at::Tensor result = empty(sizes, c10::dtype_or_default(type), device_or_current(device));
    if (format.has_value() && *format != at::MemoryFormat::Contiguous)
        result.unsafeGetTensorImpl()->empty_tensor_restride(*format);
    if (fills_new_memory())
        at::native::fill_empty_deterministic_(result);
    return result;
}

static at::Tensor empty_strided_on_device(at::IntArrayRef sizes, at::IntArrayRef strides,
                                          std::optional<at::ScalarType> type, std::optional<at::Layout>,
                                          std::optional<c10::Device> device, std::optional<bool> pin_memory)
{
    TORCH_CHECK(!pin_memory.value_or(false), "only tensors on the CPU can be pinned");
    at::detail::check_size_nonnegative(sizes);
    at::Tensor result = empty_strided(sizes, strides, c10::dtype_or_default(type), device_or_current(device));
    if (fills_new_memory())
        at::native::fill_empty_deterministic_(result);
    return result;
}

static const at::Tensor &resize_(const at::Tensor &self, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format)
{
    c10::TensorImpl *const tensor = self.unsafeGetTensorImpl();
    c10::StorageImpl *const storage = tensor->unsafe_storage().unsafeGetStorageImpl();
    const size_t before = storage->nbytes();
    if (self.sizes() != sizes) {
        at::detail::check_size_nonnegative(sizes);
        tensor->set_sizes_contiguous(sizes);
    }
    if (format.has_value()) {
        TORCH_CHECK(*format != at::MemoryFormat::Preserve, "unsupported memory format ", *format);
        tensor->empty_tensor_restride(*format);
    }
    const size_t needed =
        at::detail::computeStorageNbytes(self.sizes(), self.strides(), self.element_size(), self.storage_offset());
    if (self.numel() > 0 && needed > before)
        resize(storage, needed);
    if (fills_new_memory() && needed > before)
        at::native::fill_resize_deterministic_(self, static_cast<int64_t>(before / self.element_size()));
    return self;
}

static at::Tensor &set_source_storage(at::Tensor &self, c10::Storage source)
{
    const auto count = static_cast<int64_t>(source.nbytes() / self.element_size());
    return at::native::set_storage_cpu_(self, std::move(source), 0, {count}, {});
}

static at::Tensor &set_nothing(at::Tensor &self)
{
    c10::Storage storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), 0,
                                                               allocate(0, self.device()), device_allocator(), true));
    return at::native::set_storage_cpu_(self, std::move(storage), 0, {0}, {});
}

static void record_tensor_on_stream(at::Tensor &self, c10::Stream stream)
{
    record_stream(self.storage().data_ptr(), stream);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    m.impl("empty.memory_format", empty_memory_format);
    m.impl("empty_strided", empty_strided_on_device);
    m.impl("resize_", resize_);
    m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
    m.impl("view", TORCH_FN(at::native::view));
    m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
    m.impl("unfold", TORCH_FN(at::native::unfold));
    m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
    m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
    m.impl("is_set_to", TORCH_FN(at::native::is_set_to));
    m.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
    m.impl("set_.source_Storage_storage_offset", TORCH_FN(at::native::set_storage_cpu_));
    m.impl("set_.source_Storage", set_source_storage);
    m.impl("set_", set_nothing);
    m.impl("record_stream", record_tensor_on_stream);
}

} // namespace koine

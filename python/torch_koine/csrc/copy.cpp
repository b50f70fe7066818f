// copy.cpp - copies between tensors on the device, on other devices and on the CPU.
//
// Koine's devices copy among themselves, with conversion and broadcasting. A copy from or to the CPU is of contiguous
// memory of one dtype: it is converted where that makes it smaller. Copies from and to pinned memory with non_blocking
// are enqueued only; as with CUDA, the values are there after a synchronisation.
#include "storage.h"
#include "tensor.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

namespace koine
{

// --- the bits of any dtype -------------------------------------------------------------------------------------------

// The tensor as one of a dtype that Koine has, of the same size; complex128 is two elements along a further dimension.
static Tensor bits_of(const at::Tensor &tensor)
{
    if (has_dtype(tensor.scalar_type()))
        return as_koine(tensor);
    c10::SmallVector<int64_t, KN_MAX_DIMS> sizes(tensor.sizes().begin(), tensor.sizes().end());
    c10::SmallVector<int64_t, KN_MAX_DIMS> strides(tensor.strides().begin(), tensor.strides().end());
    int64_t offset = tensor.storage_offset();
    kn_dtype dtype = KN_U8;
    switch (tensor.element_size()) {
    case 1:
        break;
    case 2:
        dtype = KN_I16;
        break;
    case 4:
        dtype = KN_I32;
        break;
    case 8:
        dtype = KN_I64;
        break;
    case 16:
        dtype = KN_I64;
        for (int64_t &stride : strides)
            stride *= 2;
        offset *= 2;
        sizes.push_back(2);
        strides.push_back(1);
        break;
    default:
        TORCH_CHECK_TYPE(false, "the device koine cannot hold ", tensor.scalar_type());
    }
    return as_koine(tensor, dtype, sizes, strides, offset);
}

// Does copying need only the bits, or a conversion that Koine has?
static bool can_convert(const at::Tensor &a, const at::Tensor &b)
{
    return a.scalar_type() == b.scalar_type() || (has_dtype(a.scalar_type()) && has_dtype(b.scalar_type()));
}

static void copy_on_devices(const at::Tensor &destination, const at::Tensor &source, bool non_blocking)
{
    const kn_copy_params params = {.non_blocking = non_blocking};
    check(kn_copy_with(bits_of(destination).get(), bits_of(source).get(), &params));
}

// --- from and to the CPU ---------------------------------------------------------------------------------------------

static bool is_pinned(const at::Tensor &tensor)
{
    size_t offset = 0;
    return memory_at(tensor.storage().data_ptr(), &offset).get() != nullptr;
}

static at::Tensor on_cpu(const at::Tensor &tensor, at::ScalarType type)
{
    return at::empty(tensor.sizes(), tensor.options().dtype(type).device(at::kCPU));
}

static void copy_from_cpu(const at::Tensor &destination, const at::Tensor &source, bool non_blocking)
{
    const bool converts_here = source.element_size() >= destination.element_size() || !can_convert(destination, source);
    const at::Tensor values =
        (converts_here ? source.to(destination.scalar_type()) : source).expand_as(destination).contiguous();
    if (values.scalar_type() != destination.scalar_type()) {
        const at::Tensor copy = empty(values.sizes(), values.scalar_type(), destination.device());
        copy_from_cpu(copy, values, non_blocking);
        copy_on_devices(destination, copy, false);
    } else if (non_blocking && destination.is_contiguous() && is_pinned(values)) {
        copy_on_devices(destination, values, true);
    } else {
        check(kn_write(bits_of(destination).get(), values.const_data_ptr(), values.nbytes()));
    }
}

static void copy_to_cpu(const at::Tensor &destination, const at::Tensor &source, bool non_blocking)
{
    const bool converts_there = destination.element_size() <= source.element_size() && can_convert(destination, source);
    if (converts_there && destination.scalar_type() != source.scalar_type()) {
        const at::Tensor values = empty(destination.sizes(), destination.scalar_type(), source.device());
        copy_on_devices(values, source, false);
        copy_to_cpu(destination, values, non_blocking);
    } else if (destination.scalar_type() != source.scalar_type() || destination.sizes() != source.sizes() ||
               !destination.is_contiguous()) {
        const at::Tensor values = on_cpu(source, source.scalar_type());
        copy_to_cpu(values, source, false);
        destination.copy_(values);
    } else if (non_blocking && source.is_contiguous() && is_pinned(destination)) {
        copy_on_devices(destination, source, true);
    } else if (destination.numel() > 0) {
        check(kn_read(bits_of(source).get(), destination.mutable_data_ptr(), destination.nbytes()));
    }
}

// --- lazy conjugates and negatives -----------------------------------------------------------------------------------

static void copy(const at::Tensor &destination, const at::Tensor &source, bool non_blocking);

// x.conj() and x.conj().imag have the memory of x and a bit that says how to read it. Copies the memory without the
// bit, then computes what it stands for. False: neither has such a bit.
static bool copy_lazy(const at::Tensor &destination, const at::Tensor &source)
{
    if (destination.is_conj()) {
        copy(destination.conj(), source.conj(), false);
    } else if (destination.is_neg()) {
        copy(at::_neg_view(destination), at::_neg_view(source), false);
    } else if (source.is_conj() && destination.is_cpu()) {
        copy(destination, source.conj(), false);
        destination.conj_physical_();
    } else if (source.is_conj()) {
        const at::Tensor values = on_cpu(source, source.scalar_type());
        copy(values, source, false);
        copy(destination, values, false);
    } else if (source.is_neg()) {
        copy(destination, at::_neg_view(source), false);
        destination.neg_();
    } else {
        return false;
    }
    return true;
}

// --- the operators ---------------------------------------------------------------------------------------------------

static void copy(const at::Tensor &destination, const at::Tensor &source, bool non_blocking)
{
    if (destination.numel() == 0 || copy_lazy(destination, source))
        return;
    if (destination.dim() > KN_MAX_DIMS || source.dim() > KN_MAX_DIMS) { // slice by slice
        const at::Tensor values = source.expand_as(destination);
        for (int64_t i = 0; i < destination.size(0); i++)
            copy(destination.select(0, i), values.select(0, i), non_blocking);
    } else if (source.is_cpu()) {
        copy_from_cpu(destination, source, non_blocking);
    } else if (destination.is_cpu()) {
        copy_to_cpu(destination, source, non_blocking);
    } else if (can_convert(destination, source)) {
        const bool is_expanded = source.sizes() != destination.sizes();
        copy_on_devices(destination, is_expanded ? source.expand_as(destination) : source, non_blocking);
    } else {
        const at::Tensor values = on_cpu(source, source.scalar_type());
        copy(values, source, false);
        copy(destination, values, false);
    }
}

static at::Tensor copy_from(const at::Tensor &self, const at::Tensor &destination, bool non_blocking)
{
    TORCH_CHECK((self.is_cpu() || self.is_privateuseone()) && (destination.is_cpu() || destination.is_privateuseone()),
                "there is no copy from ", self.device(), " to ", destination.device(), "; copy to the CPU first");
    if (self.is_same(destination))
        return destination;
    at::assert_no_internal_overlap(destination);
    at::assert_no_partial_overlap(destination, self);
    copy(destination, self, non_blocking);
    return destination;
}

static at::Tensor copy_from_and_resize(const at::Tensor &self, const at::Tensor &destination)
{
    destination.resize_(self.sizes());
    return copy_from(self, destination, false);
}

static at::Scalar local_scalar_dense(const at::Tensor &self)
{
    const at::Tensor value = on_cpu(self, self.scalar_type());
    check(kn_read(bits_of(self).get(), value.mutable_data_ptr(), value.nbytes()));
    return at::_local_scalar_dense(value);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    m.impl("_copy_from", copy_from);
    m.impl("_copy_from_and_resize", copy_from_and_resize);
    m.impl("_local_scalar_dense", local_scalar_dense);
}

// Otherwise PyTorch would resolve the bits by a clone, which is a copy.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

} // namespace koine

#include "tensor.h"

#include "storage.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/TensorImpl.h>

namespace koine
{

// --- dtypes and numbers ----------------------------------------------------------------------------------------------

static kn_dtype find_dtype(at::ScalarType type)
{
    switch (type) {
    case at::kDouble:
        return KN_F64;
    case at::kFloat:
        return KN_F32;
    case at::kHalf:
        return KN_F16;
    case at::kBFloat16:
        return KN_BF16;
    case at::kLong:
        return KN_I64;
    case at::kInt:
        return KN_I32;
    case at::kShort:
        return KN_I16;
    case at::kChar:
        return KN_I8;
    case at::kByte:
        return KN_U8;
    case at::kBool:
        return KN_BOOL;
    default:
        return KN_DTYPE_DEFAULT;
    }
}

bool has_dtype(at::ScalarType type) { return find_dtype(type) != KN_DTYPE_DEFAULT; }

kn_dtype dtype_of(at::ScalarType type)
{
    const kn_dtype dtype = find_dtype(type);
    TORCH_CHECK_TYPE(dtype != KN_DTYPE_DEFAULT, "the device koine does not compute with ", type,
                     "; convert the tensor to another dtype, or move it to the CPU");
    return dtype;
}

at::ScalarType scalar_type(kn_dtype dtype)
{
    switch (dtype) {
    case KN_F64:
        return at::kDouble;
    case KN_F16:
        return at::kHalf;
    case KN_BF16:
        return at::kBFloat16;
    case KN_I64:
        return at::kLong;
    case KN_I32:
        return at::kInt;
    case KN_I16:
        return at::kShort;
    case KN_I8:
        return at::kChar;
    case KN_U8:
        return at::kByte;
    case KN_BOOL:
        return at::kBool;
    default:
        return at::kFloat;
    }
}

kn_scalar scalar_of(const at::Scalar &number)
{
    TORCH_CHECK_TYPE(!number.isComplex(), "the device koine has no complex numbers");
    return number.isFloatingPoint() ? kn_scalar_real(number.toDouble()) : kn_scalar_int(number.toLong());
}

kn_ints ints_of(at::IntArrayRef values)
{
    TORCH_CHECK(values.size() <= KN_MAX_DIMS, "the device koine has at most ", KN_MAX_DIMS, " dimensions, not ",
                values.size());
    kn_ints ints = {};
    for (const int64_t value : values)
        ints.values[ints.count++] = value;
    return ints;
}

// --- to Koine --------------------------------------------------------------------------------------------------------

static Memory memory_of(const at::Tensor &tensor, size_t *byte_offset)
{
    Memory memory = memory_at(tensor.unsafeGetTensorImpl()->unsafe_storage().data_ptr(), byte_offset);
    TORCH_CHECK(memory.get() != nullptr, "expected all tensors on the device koine, but one is on ", tensor.device());
    return memory;
}

Tensor as_koine(const at::Tensor &tensor, kn_dtype dtype, at::IntArrayRef sizes, at::IntArrayRef strides,
                int64_t offset)
{
    size_t byte_offset = 0;
    const Memory memory = memory_of(tensor, &byte_offset);
    if (C10_UNLIKELY(byte_offset != 0)) {
        TORCH_CHECK(byte_offset % kn_dtype_size(dtype) == 0, "the storage starts ", byte_offset,
                    " bytes into its memory, which is no multiple of the size of ", kn_dtype_name(dtype));
        offset += static_cast<int64_t>(byte_offset / kn_dtype_size(dtype));
    }
    return Tensor(check(kn_tensor_from_storage(memory.get(), dtype, static_cast<int>(sizes.size()), sizes.data(),
                                               strides.data(), offset)));
}

Tensor as_koine(const at::Tensor &tensor)
{
    if (!tensor.defined())
        return Tensor();
    TORCH_CHECK(!tensor.is_neg(), "the device koine needs tensor.resolve_neg()");
    // A view without elements may begin beyond the storage's end.
    const int64_t offset = tensor.numel() > 0 ? tensor.storage_offset() : 0;
    return as_koine(tensor, dtype_of(tensor.scalar_type()), tensor.sizes(), tensor.strides(), offset);
}

// --- to PyTorch ------------------------------------------------------------------------------------------------------

static at::Tensor make_tensor(c10::DataPtr &&memory, size_t bytes, at::ScalarType type)
{
    c10::Storage storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                               std::move(memory), device_allocator(), true));
    return at::detail::make_tensor<c10::TensorImpl>(
        std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(type));
}

at::Tensor from_koine(kn_tensor *owned)
{
    const Tensor result(check(owned));
    int64_t strides[KN_MAX_DIMS];
    const int ndim = kn_ndim(owned);
    for (int d = 0; d < ndim; d++)
        strides[d] = kn_stride(owned, d);
    Memory memory(check(kn_storage_of(owned)));
    const size_t bytes = kn_storage_bytes(memory.get());
    const c10::Device device = device_of(kn_device_of(owned));
    at::Tensor tensor = make_tensor(bytes > 0 ? data_ptr_of(std::move(memory), device) : allocate(0, device), bytes,
                                    scalar_type(kn_dtype_of(owned)));
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(at::IntArrayRef(kn_shape(owned), ndim),
                                                        at::IntArrayRef(strides, ndim), kn_storage_offset(owned));
    return tensor;
}

at::Tensor empty(at::IntArrayRef sizes, at::ScalarType type, c10::Device device)
{
    const size_t bytes = at::detail::computeStorageNbytesContiguous(sizes, c10::elementSize(type));
    at::Tensor tensor = make_tensor(allocate(bytes, device), bytes, type);
    tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
    return tensor;
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type, c10::Device device)
{
    const size_t bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(type));
    at::Tensor tensor = make_tensor(allocate(bytes, device), bytes, type);
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
    return tensor;
}

// --- operators -------------------------------------------------------------------------------------------------------

const kn_op *find_op(const char *name)
{
    const kn_op *op = kn_op_find(name);
    TORCH_CHECK(op != nullptr, "libkoine has no operator ", name, "; torch_koine needs the version it was built with");
    return op;
}

at::Tensor call(const kn_op *op, Tensors &&arguments, const void *params)
{
    kn_tensor *result = nullptr;
    check(kn_op_call(op, arguments.data(), arguments.size(), params, &result, 1));
    return from_koine(result);
}

} // namespace koine

// tensor.h - PyTorch's tensors as Koine's, and back.
//
//     const kn_op *const softmax = find_op("softmax");
//
//     at::Tensor &softmax_out(const at::Tensor &x, int64_t dim, at::Tensor &result)
//     {
//         kn_softmax_params params = defaults<kn_softmax_params>(softmax);
//         params.dim = static_cast<int>(dim);
//         call(softmax, {x}, &params, {result});
//         return result;
//     }
//
// The storage of a tensor on the device `koine` holds a kn_storage. Its data pointer is the storage's address, a number
// that must not be dereferenced. A kn_tensor is made for each use of an at::Tensor; it takes 0.1 microseconds. It
// requires no gradient, so Koine records nothing: kernels are below autograd, and derivatives are PyTorch's.
#pragma once

#include <koine/operators.h>
#include <koine/storage.h>
#include <koine/tensor.h>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <initializer_list>
#include <optional>
#include <utility>

#include "error.h"

namespace koine
{

// --- dtypes, numbers, devices ----------------------------------------------------------------------------------------

// Raises TypeError for a dtype that Koine does not have (complex64, uint16, ...).
kn_dtype dtype_of(at::ScalarType type);
at::ScalarType scalar_type(kn_dtype dtype);
bool has_dtype(at::ScalarType type);

kn_scalar scalar_of(const at::Scalar &number);
kn_ints ints_of(at::IntArrayRef values); // an error beyond KN_MAX_DIMS

// koine:0 is Koine's "auto" (the environment variable KOINE_DEVICE, else the best GPU, else a CPU device); the other
// GPUs follow, best first, then the other devices. Without an index: the current device.
kn_device *device_of(c10::Device device);
c10::Device device_of(const kn_device *device);
c10::DeviceIndex device_count() noexcept;
c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex index);
void seed_all_devices(uint64_t seed); // does not search for devices

// The generator's, or the default one of the device. Valid as long as `generator`.
kn_generator *generator_of(const std::optional<at::Generator> &generator, c10::Device device);

// --- tensors ---------------------------------------------------------------------------------------------------------

// A reference to a kn_tensor, or to none.
class Tensor
{
  public:
    Tensor() = default;
    explicit Tensor(kn_tensor *owned) : handle(owned) {}
    Tensor(Tensor &&other) noexcept : handle(other.release()) {}
    Tensor &operator=(Tensor &&other) noexcept
    {
        std::swap(handle, other.handle);
        return *this;
    }
    Tensor(const Tensor &) = delete;
    Tensor &operator=(const Tensor &) = delete;
    ~Tensor() { kn_release(handle); }

    kn_tensor *get() const { return handle; }
    kn_tensor *release() { return std::exchange(handle, nullptr); }
    explicit operator bool() const { return handle != nullptr; }

  private:
    kn_tensor *handle = nullptr;
};

// A tensor on the same memory: of a tensor on the device koine, or in host memory pinned for it. None for an undefined
// one. Tensors elsewhere, and dtypes that Koine does not have, raise an error.
Tensor as_koine(const at::Tensor &tensor);
inline Tensor as_koine(const std::optional<at::Tensor> &tensor) { return tensor ? as_koine(*tensor) : Tensor(); }

// The same with another layout or dtype, whose strides and offset count elements of that dtype. For copies of dtypes
// that Koine does not have, and for collapsing dimensions.
Tensor as_koine(const at::Tensor &tensor, kn_dtype dtype, at::IntArrayRef sizes, at::IntArrayRef strides,
                int64_t offset);

// Takes what a Koine function returned (NULL raises its error), without a copy. The result must have memory of its own:
// a view of an argument would be one memory under two storages of PyTorch; make views with PyTorch's functions.
at::Tensor from_koine(kn_tensor *owned);
inline at::Tensor from_koine(Tensor &&tensor) { return from_koine(tensor.release()); }

// Uninitialised memory on the device, contiguous or with the given strides; faster than at::empty.
at::Tensor empty(at::IntArrayRef sizes, at::ScalarType type, c10::Device device);
at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type, c10::Device device);

// --- operators -------------------------------------------------------------------------------------------------------

// Arguments or results of an operator, in its order. Constructed from tensors, optional tensors and lists of them; what
// is undefined is NULL.
class Tensors
{
  public:
    Tensors() = default;
    Tensors(const Tensors &) = delete;
    Tensors &operator=(const Tensors &) = delete;
    template <class... Each> Tensors(const Each &...each) { (add(each), ...); }
    ~Tensors()
    {
        for (kn_tensor *tensor : handles)
            if (tensor != KN_SKIP_OUTPUT)
                kn_release(tensor);
    }

    void add(const at::Tensor &tensor) { add(as_koine(tensor)); }
    void add(const std::optional<at::Tensor> &tensor) { add(as_koine(tensor)); }
    void add(at::ArrayRef<at::Tensor> list)
    {
        for (const at::Tensor &tensor : list)
            add(tensor);
    }
    void add(Tensor &&tensor)
    {
        handles.push_back(tensor.get());
        tensor.release();
    }
    void skip() { handles.push_back(KN_SKIP_OUTPUT); } // a result that is not needed

    kn_tensor **data() { return handles.data(); }
    int size() const { return static_cast<int>(handles.size()); }
    Tensor take(int index) { return Tensor(std::exchange(handles[index], nullptr)); }
    void replace(int index, Tensor &&tensor) { kn_release(std::exchange(handles[index], tensor.release())); }

  private:
    c10::SmallVector<kn_tensor *, 8> handles;
};

// The operator of that name in koine/operators.h; raises if there is none. Keep it in a static constant.
const kn_op *find_op(const char *name);

template <class Params> Params defaults(const kn_op *op)
{
    Params params;
    kn_op_params_init(op, &params);
    return params;
}

// Computes into `results`, which have the shape and dtype of the operator's; those that are undefined are allocated:
// results.take(i). `params` NULL: the defaults.
inline void call(const kn_op *op, Tensors &&arguments, const void *params, Tensors &results)
{
    check(kn_op_call(op, arguments.data(), arguments.size(), params, results.data(), results.size()));
}
inline void call(const kn_op *op, Tensors &&arguments, const void *params, Tensors &&results)
{
    call(op, std::move(arguments), params, results);
}

// The first result, newly allocated.
at::Tensor call(const kn_op *op, Tensors &&arguments, const void *params = nullptr);

} // namespace koine

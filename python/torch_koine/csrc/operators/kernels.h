// kernels.h - registering kernels. With tensors of dtypes that Koine does not have, complex ones among them, or has not
// for this operator, such as products of matrices of whole numbers, the operator runs on the CPU instead.
//
//     KOINE_KERNELS(m)
//     {
//         m.impl("lerp.Tensor_out", lerp_out);
//     }
#pragma once

#include "../fallback.h"
#include "../tensor.h"

#include <ATen/core/IListRef.h>
#include <ATen/core/boxing/impl/boxing.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <string>
#include <utility>

namespace koine
{

// --- is there a tensor of another dtype? -----------------------------------------------------------------------------

template <class Value> bool is_foreign(const Value &) { return false; }
inline bool is_foreign(const at::Tensor &tensor) { return tensor.defined() && !has_dtype(tensor.scalar_type()); }
inline bool is_foreign(const std::optional<at::Tensor> &tensor) { return tensor && is_foreign(*tensor); }
inline bool is_foreign(at::TensorList tensors)
{
    for (const at::Tensor &tensor : tensors)
        if (is_foreign(tensor))
            return true;
    return false;
}
inline bool is_foreign(const at::ITensorListRef &tensors)
{
    for (const at::Tensor &tensor : tensors)
        if (is_foreign(tensor))
            return true;
    return false;
}
inline bool is_foreign(const c10::List<std::optional<at::Tensor>> &tensors)
{
    for (const std::optional<at::Tensor> tensor : tensors)
        if (is_foreign(tensor))
            return true;
    return false;
}

// --- kernels ---------------------------------------------------------------------------------------------------------

c10::OperatorHandle find_operator(const std::string &name); // "lerp.Tensor_out"

template <class Function> class OrOnCpu;
template <class Result, class... Arguments> class OrOnCpu<Result(Arguments...)>
{
  public:
    OrOnCpu(const char *its_name, Result (*its_kernel)(Arguments...)) : name(its_name), kernel(its_kernel) {}

    Result operator()(Arguments... arguments) const
    {
        if (C10_LIKELY(!(is_foreign(arguments) || ...)))
            try {
                return kernel(arguments...);
            } catch (const Unsupported &) {
            }
        return c10::impl::BoxedKernelWrapper<Result(Arguments...)>::call(
            c10::BoxedKernel::makeFromFunction<&run_on_cpu>(), find_operator(name),
            c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), std::forward<Arguments>(arguments)...);
    }

  private:
    const char *name;
    Result (*kernel)(Arguments...);
};

class Kernels
{
  public:
    explicit Kernels(torch::Library &the_library) : library(the_library) {}

    template <class Result, class... Arguments> void impl(const char *name, Result (*kernel)(Arguments...))
    {
        library.impl(name, torch::CppFunction(OrOnCpu<Result(Arguments...)>(name, kernel)));
    }

  private:
    torch::Library &library;
};

#define KOINE_KERNELS(m)                                                                                               \
    static void register_kernels(koine::Kernels &m);                                                                   \
    TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)                                                                     \
    {                                                                                                                  \
        koine::Kernels kernels(library);                                                                               \
        register_kernels(kernels);                                                                                     \
    }                                                                                                                  \
    static void register_kernels(koine::Kernels &m)

} // namespace koine

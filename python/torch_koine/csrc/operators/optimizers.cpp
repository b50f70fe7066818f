// optimizers.cpp - steps of Adam, AdamW and SGD on all parameters at once.
#include "compute.h"

#include <koine/fused_optim.h>
#include <torch/library.h>

namespace koine {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

// One launch updates parameters of one device and dtype; the library divides the list.
void adam(at::TensorList parameters, at::TensorList gradients, at::TensorList averages, at::TensorList squares,
          at::TensorList max_squares, at::TensorList steps, kn_fused_adam_params params, const OptionalTensor &grad_scale,
          const OptionalTensor &found_inf)
{
    Tensors p(parameters), g(gradients), a(averages), s(squares), m(max_squares), t(steps);
    const Tensor scale = as_koine(grad_scale), found = as_koine(found_inf);
    params.grad_scale = scale.get();
    params.found_inf = found.get();
    check(kn_fused_adam_with(p.data(), g.data(), a.data(), s.data(), params.amsgrad ? m.data() : nullptr, t.data(),
                             p.size(), &params));
}

template <bool decoupled>
void fused_adam(at::TensorList parameters, at::TensorList gradients, at::TensorList averages, at::TensorList squares,
                at::TensorList max_squares, at::TensorList steps, double lr, double beta1, double beta2,
                double weight_decay, double eps, bool amsgrad, bool maximize, const OptionalTensor &grad_scale,
                const OptionalTensor &found_inf)
{
    const kn_fused_adam_params params = {lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, decoupled, nullptr, nullptr};
    adam(parameters, gradients, averages, squares, max_squares, steps, params, grad_scale, found_inf);
}

template <bool decoupled>
void fused_adam_tensor_lr(at::TensorList parameters, at::TensorList gradients, at::TensorList averages,
                          at::TensorList squares, at::TensorList max_squares, at::TensorList steps, const at::Tensor &lr,
                          double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                          const OptionalTensor &grad_scale, const OptionalTensor &found_inf)
{
    fused_adam<decoupled>(parameters, gradients, averages, squares, max_squares, steps, lr.item<double>(), beta1, beta2,
                          weight_decay, eps, amsgrad, maximize, grad_scale, found_inf);
}

void fused_sgd(at::TensorList parameters, at::TensorList gradients, at::TensorList buffers, double weight_decay,
               double momentum, double lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
               const OptionalTensor &grad_scale, const OptionalTensor &found_inf)
{
    Tensors p(parameters), g(gradients), b(buffers);
    const Tensor scale = as_koine(grad_scale), found = as_koine(found_inf);
    const kn_fused_sgd_params params = {lr,       momentum,      dampening,   weight_decay, nesterov,
                                        maximize, is_first_step, scale.get(), found.get()};
    check(kn_fused_sgd_with(p.data(), g.data(), momentum != 0 ? b.data() : nullptr, p.size(), &params));
}

void fused_sgd_tensor_lr(at::TensorList parameters, at::TensorList gradients, at::TensorList buffers,
                         double weight_decay, double momentum, const at::Tensor &lr, double dampening, bool nesterov,
                         bool maximize, bool is_first_step, const OptionalTensor &grad_scale,
                         const OptionalTensor &found_inf)
{
    fused_sgd(parameters, gradients, buffers, weight_decay, momentum, lr.item<double>(), dampening, nesterov, maximize,
              is_first_step, grad_scale, found_inf);
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    m.impl("_fused_adam_", fused_adam<false>);
    m.impl("_fused_adam_.tensor_lr", fused_adam_tensor_lr<false>);
    m.impl("_fused_adamw_", fused_adam<true>);
    m.impl("_fused_adamw_.tensor_lr", fused_adam_tensor_lr<true>);
    m.impl("_fused_sgd_", fused_sgd);
    m.impl("_fused_sgd_.tensor_lr", fused_sgd_tensor_lr);
}

} // namespace koine

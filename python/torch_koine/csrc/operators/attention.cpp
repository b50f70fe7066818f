// attention.cpp - scaled dot-product attention without a matrix of scores.
#include "compute.h"

#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <koine/attention.h>
#include <torch/library.h>

namespace koine
{
namespace
{

using OptionalTensor = std::optional<at::Tensor>;

bool is_defined(const OptionalTensor &tensor) { return tensor && tensor->defined(); }

// Koine's operator, but with dropout, whose draw backward would have to repeat, and where a mask needs a gradient,
// PyTorch's composition.
int64_t choose(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value, const OptionalTensor &mask,
               double dropout, bool is_causal, std::optional<double>, bool)
{
    const bool fits = query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && dropout == 0 &&
                      at::isFloatingType(query.scalar_type()) && query.scalar_type() == key.scalar_type() &&
                      query.scalar_type() == value.scalar_type() && query.numel() > 0 && key.numel() > 0 &&
                      value.numel() > 0 && !(is_defined(mask) && (mask->requires_grad() || is_causal));
    return static_cast<int64_t>(fits ? sdp::SDPBackend::overrideable : sdp::SDPBackend::math);
}

kn_attention_args args_of(const kn_op *op, const at::Tensor &query, const at::Tensor &key, bool is_causal,
                          std::optional<double> scale)
{
    kn_attention_args args = defaults<kn_attention_args>(op);
    args.is_causal = is_causal;
    args.scale = scale.value_or(0);
    args.enable_gqa = query.size(1) != key.size(1);
    return args;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor, at::Tensor, at::Tensor>
attention(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value, const OptionalTensor &mask,
          double dropout, bool is_causal, bool, std::optional<double> scale)
{
    static const Op op("scaled_dot_product_attention");
    TORCH_CHECK(dropout == 0, "the device koine has no fused attention with dropout");
    const kn_attention_args args = args_of(op, query, key, is_causal, scale);
    Tensors results;
    for (int i = 0; i < 2; i++)
        results.add(Tensor());
    call(op, Tensors(query, key, value, mask), &args, results);
    at::Tensor result = from_koine(results.take(0)), logsumexp = from_koine(results.take(1));
    const at::Tensor none, draw = at::empty({0}, query.options().dtype(at::kLong)); // torch.compile wants tensors
    return {result, logsumexp, none, none, query.size(2), key.size(2), draw, draw, none};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>
attention_backward(const at::Tensor &grad, const at::Tensor &query, const at::Tensor &key, const at::Tensor &value,
                   const at::Tensor &mask, std::array<bool, 4> wanted, const at::Tensor &result,
                   const at::Tensor &logsumexp, const at::Tensor &, const at::Tensor &, c10::SymInt, c10::SymInt,
                   double, bool is_causal, const at::Tensor &, const at::Tensor &, std::optional<double> scale)
{
    static const Op op("scaled_dot_product_attention_backward");
    const kn_attention_args args = args_of(op, query, key, is_causal, scale);
    // In the order of the operands in memory, so that the gradients of views of one product need no copy.
    std::array<at::Tensor, 3> gradients;
    const at::Tensor *const operands[] = {&query, &key, &value};
    Tensors results;
    for (int i = 0; i < 3; i++) {
        if (wanted[i])
            results.add(gradients[i] = at::empty_like(*operands[i]));
        else
            results.skip();
    }
    call(op, Tensors(grad, query, key, value, mask, result, logsumexp), &args, results);
    return {gradients[0], gradients[1], gradients[2], at::Tensor()};
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    m.impl("_fused_sdp_choice", choose);
    m.impl("_scaled_dot_product_fused_attention_overrideable", attention);
    m.impl("_scaled_dot_product_fused_attention_overrideable_backward", attention_backward);
}

} // namespace koine

// F.scaled_dot_product_attention does not ask the operator _fused_sdp_choice, but this table.
namespace at::native
{
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &koine::choose)
}

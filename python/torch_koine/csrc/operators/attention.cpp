// attention.cpp - scaled dot-product attention without a matrix of scores.
#include "compute.h"
#include "kernels.h"

#include <ATen/Context.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/TensorWrapper.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <koine/attention.h>

#include <algorithm>

namespace koine
{
namespace
{

using OptionalTensor = std::optional<at::Tensor>;

bool is_defined(const OptionalTensor &tensor) { return tensor && tensor->defined(); }

// As far as torch.compile knows.
bool is_empty(const at::Tensor &tensor)
{
    return !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides() && tensor.numel() == 0;
}

// At which levels of differentiation a tensor takes part: bit 0 for autograd, the others for torch.func's, which wrap
// tensors as vmap does. All for a derivative forwards.
uint64_t levels_of(at::Tensor tensor)
{
    uint64_t levels = 0;
    while (tensor.defined()) {
        if (tensor._fw_grad(0).defined())
            return ~uint64_t(0);
        const at::functorch::TensorWrapper *const wrapper = at::functorch::maybeGetTensorWrapper(tensor);
        if (tensor.requires_grad())
            levels |= uint64_t(1) << (wrapper ? wrapper->level().value_or(0) : 0);
        const at::functorch::BatchedTensorImpl *const batched = at::functorch::maybeGetBatchedImpl(tensor);
        tensor = wrapper ? at::Tensor(wrapper->value()) : batched ? at::Tensor(batched->value()) : at::Tensor();
    }
    return levels;
}

// The operator has a gradient, but the gradient none.
bool are_differentiable(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value,
                        const OptionalTensor &mask)
{
    const uint64_t levels = levels_of(query) | levels_of(key) | levels_of(value);
    return (levels & (levels - 1)) == 0 && !(is_defined(mask) && levels_of(*mask) != 0);
}

// torch.nn.attention.sdpa_kernel: Koine's operator is what other devices call by these names.
bool allows_fused()
{
    const at::Context &context = at::globalContext();
    return context.userEnabledOverrideableSDP() || context.userEnabledFlashSDP() ||
           context.userEnabledMemEfficientSDP() || context.userEnabledCuDNNSDP();
}

// Batches and heads that PyTorch would broadcast have no gradients in Koine's operator.
bool match(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value, bool has_groups)
{
    return query.sym_size(0) == key.sym_size(0) && key.sym_size(0) == value.sym_size(0) &&
           key.sym_size(1) == value.sym_size(1) && (has_groups || query.sym_size(1) == key.sym_size(1));
}

// Koine's operator, but with dropout, whose draw backward would have to repeat, where a mask needs a gradient, and for
// gradients of gradients, PyTorch's composition. A scale of 0 is Koine's default.
int64_t choose(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value, const OptionalTensor &mask,
               double dropout, bool is_causal, std::optional<double> scale, bool has_groups)
{
    const bool fits = allows_fused() && query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && dropout == 0 &&
                      at::isFloatingType(query.scalar_type()) && query.scalar_type() == key.scalar_type() &&
                      query.scalar_type() == value.scalar_type() && !is_empty(query) && !is_empty(key) &&
                      !is_empty(value) && !(is_defined(mask) && is_causal) && scale.value_or(1) != 0 &&
                      match(query, key, value, has_groups) && are_differentiable(query, key, value, mask);
    const sdp::SDPBackend otherwise =
        at::globalContext().userEnabledMathSDP() ? sdp::SDPBackend::math : sdp::SDPBackend::error;
    return static_cast<int64_t>(fits ? sdp::SDPBackend::overrideable : otherwise);
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

// The order of the query's dimensions, which PyTorch expects of results.
std::pair<at::DimVector, at::DimVector> layout_of(const at::Tensor &query, int64_t width)
{
    at::DimVector sizes(query.sizes()), strides(query.dim()), order{0, 1, 2, 3};
    sizes.back() = width;
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return query.stride(a) > query.stride(b); });
    int64_t stride = 1;
    for (auto d = order.rbegin(); d != order.rend(); ++d) {
        strides[*d] = stride;
        stride *= sizes[*d];
    }
    return {sizes, strides};
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
    const auto [sizes, strides] = layout_of(query, value.size(3));
    if (result.strides() != at::IntArrayRef(strides))
        result = empty_strided(sizes, strides, result.scalar_type(), result.device()).copy_(result);
    const at::Tensor none;
    const at::Tensor seed = empty({0}, at::kLong, query.device()); // torch.compile saves it
    return {result, logsumexp, none, none, query.size(2), key.size(2), seed, seed, none};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>
attention_backward(const at::Tensor &grad, const at::Tensor &query, const at::Tensor &key, const at::Tensor &value,
                   const at::Tensor &mask, std::array<bool, 4> wanted, const at::Tensor &result,
                   const at::Tensor &logsumexp, const at::Tensor &, const at::Tensor &, c10::SymInt, c10::SymInt,
                   double, bool is_causal, const at::Tensor &, const at::Tensor &, std::optional<double> scale)
{
    static const Op op("scaled_dot_product_attention_backward");
    const kn_attention_args args = args_of(op, query, key, is_causal, scale);
    Tensors results;
    at::Tensor found[3];
    const at::Tensor *const of[3] = {&query, &key, &value};
    for (int i = 0; i < 3; i++) {
        if (wanted[i])
            results.add(found[i] = at::empty_like(*of[i]));
        else
            results.skip();
    }
    call(op, Tensors(grad, query, key, value, mask, result, logsumexp), &args, results);
    return {found[0], found[1], found[2], at::Tensor()};
}

// Whether nn.TransformerEncoder may drop padding by nested tensors, which the device does not have.
bool is_left_aligned(const at::Tensor &, const at::Tensor &) { return false; }

} // namespace

KOINE_KERNELS(m)
{
    m.impl("_nested_tensor_from_mask_left_aligned", is_left_aligned);
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

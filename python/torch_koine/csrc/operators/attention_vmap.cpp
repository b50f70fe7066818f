// attention_vmap.cpp - scaled dot-product attention inside torch.vmap, gradients per sample among others: the samples
// become further batches of one call.
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/PlumbingHelper.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_backward.h>
#include <torch/library.h>

#include <initializer_list>

namespace koine
{
namespace
{

using OptionalTensor = std::optional<at::Tensor>;

// The samples of the innermost vmap.
class Samples
{
  public:
    explicit Samples(std::initializer_list<const at::Tensor *> tensors)
    {
        for (const at::Tensor *tensor : tensors) {
            const auto [value, dim] = opened(*tensor);
            if (dim)
                count = value.sym_size(*dim);
        }
    }

    // [batch, ...] of each sample as [samples * batch, ...].
    at::Tensor fold(const at::Tensor &tensor) const
    {
        return tensor.defined() ? with_samples(tensor).flatten(0, 1) : tensor;
    }

    // A mask may have fewer dimensions, or 1 for the batch. One for all samples and batches stays as it is.
    at::Tensor fold_mask(const at::Tensor &mask, const c10::SymInt &batch) const
    {
        if (!mask.defined())
            return mask;
        const auto [value, dim] = opened(mask);
        if (!dim && (mask.dim() < 4 || mask.sym_size(0) == 1))
            return mask;
        at::Tensor masks = with_samples(mask);
        while (masks.dim() < 5)
            masks = masks.unsqueeze(1);
        return masks.expand_symint({count, batch, -1, -1, -1}).flatten(0, 1);
    }

    // Results and gradients that are not wanted are undefined.
    at::Tensor unfold(const at::Tensor &result, const c10::SymInt &batch) const
    {
        if (!result.defined())
            return result;
        return at::functorch::makeBatched(result.unflatten_symint(0, {count, batch}), 0, level);
    }

  private:
    std::tuple<at::Tensor, std::optional<int64_t>> opened(const at::Tensor &tensor) const
    {
        return at::functorch::unwrapTensorAtLevel(tensor, level);
    }

    at::Tensor with_samples(const at::Tensor &tensor) const
    {
        const auto [value, dim] = opened(tensor);
        if (dim)
            return value.movedim(*dim, 0);
        c10::SymDimVector sizes(value.sym_sizes());
        sizes.insert(sizes.begin(), count);
        return value.unsqueeze(0).expand_symint(sizes);
    }

    int64_t level = at::functorch::maybeCurrentDynamicLayer()->layerId();
    c10::SymInt count = 1;
};

using OutsideVmap = c10::impl::ExcludeDispatchKeyGuard;

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor, at::Tensor, at::Tensor>
attention(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value, const OptionalTensor &mask,
          double dropout, bool is_causal, bool returns_mask, std::optional<double> scale)
{
    const OutsideVmap guard(c10::DispatchKey::FuncTorchBatched);
    const at::Tensor the_mask = mask.value_or(at::Tensor());
    const Samples samples{&query, &key, &value, &the_mask};
    const c10::SymInt batch = query.sym_size(0);
    const at::Tensor folded_mask = samples.fold_mask(the_mask, batch);
    auto results = at::_scaled_dot_product_fused_attention_overrideable(
        samples.fold(query), samples.fold(key), samples.fold(value),
        folded_mask.defined() ? OptionalTensor(folded_mask) : std::nullopt, dropout, is_causal, returns_mask, scale);
    std::get<0>(results) = samples.unfold(std::get<0>(results), batch);
    std::get<1>(results) = samples.unfold(std::get<1>(results), batch);
    return results;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>
attention_backward(const at::Tensor &grad, const at::Tensor &query, const at::Tensor &key, const at::Tensor &value,
                   const at::Tensor &mask, std::array<bool, 4> wanted, const at::Tensor &result,
                   const at::Tensor &logsumexp, const at::Tensor &sequences_q, const at::Tensor &sequences_k,
                   c10::SymInt max_q, c10::SymInt max_k, double dropout, bool is_causal, const at::Tensor &seed,
                   const at::Tensor &offset, std::optional<double> scale)
{
    const OutsideVmap guard(c10::DispatchKey::FuncTorchBatched);
    const Samples samples{&grad, &query, &key, &value, &mask, &result, &logsumexp};
    const c10::SymInt batch = query.sym_size(0);
    const auto [of_query, of_key, of_value, of_mask] =
        at::_scaled_dot_product_fused_attention_overrideable_backward_symint(
            samples.fold(grad), samples.fold(query), samples.fold(key), samples.fold(value),
            samples.fold_mask(mask, batch), wanted, samples.fold(result), samples.fold(logsumexp), sequences_q,
            sequences_k, std::move(max_q), std::move(max_k), dropout, is_causal, seed, offset, scale);
    return {samples.unfold(of_query, batch), samples.unfold(of_key, batch), samples.unfold(of_value, batch),
            samples.unfold(of_mask, batch)};
}

} // namespace

TORCH_LIBRARY_IMPL(aten, FuncTorchBatched, m)
{
    m.impl("_scaled_dot_product_fused_attention_overrideable", attention);
    m.impl("_scaled_dot_product_fused_attention_overrideable_backward", attention_backward);
}

} // namespace koine

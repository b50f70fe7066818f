// autocast.cpp - torch.autocast('koine'): PyTorch's lists of operators that run in float16 or bfloat16, in float32, and
// in the widest dtype of their arguments.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace at::autocast
{

static Tensor refuse_binary_cross_entropy(const Tensor &, const Tensor &, const std::optional<Tensor> &, int64_t)
{
    TORCH_CHECK(false, "binary_cross_entropy and BCELoss are unsafe to autocast: use binary_cross_entropy_with_logits "
                       "or BCEWithLogitsLoss, or switch autocast off around the loss");
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m)
{
#define LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FLOAT32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FLOAT32_BY_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define FLOAT32_APPENDED(...) KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE(__VA_ARGS__)
#define WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
    AT_FORALL_LOWER_PRECISION_FP(LOWER_PRECISION)
    AT_FORALL_FP32(FLOAT32)
    AT_FORALL_FP32_SET_OPT_DTYPE(FLOAT32_BY_DTYPE)
    AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(FLOAT32_APPENDED)
    AT_FORALL_PROMOTE(WIDEST)
    WIDEST(stack)
    WIDEST(cat)
    m.impl("binary_cross_entropy", refuse_binary_cross_entropy);
}

} // namespace at::autocast

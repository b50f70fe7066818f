// composed.cpp - operators of Koine that are no single kernel, or several of PyTorch's together.
#include "compute.h"
#include "kernels.h"

#include <ATen/ops/bitwise_left_shift.h>
#include <ATen/ops/bitwise_right_shift.h>
#include <koine/distance.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>

namespace koine
{
namespace
{

// --- shifts by the operators << and >> -------------------------------------------------------------------------------

at::Tensor shift_left(const at::Tensor &a, const at::Tensor &b) { return at::bitwise_left_shift(a, b); }
at::Tensor shift_left_by(const at::Tensor &a, const at::Scalar &b) { return at::bitwise_left_shift(a, b); }
at::Tensor shift_right(const at::Tensor &a, const at::Tensor &b) { return at::bitwise_right_shift(a, b); }
at::Tensor shift_right_by(const at::Tensor &a, const at::Scalar &b) { return at::bitwise_right_shift(a, b); }
at::Tensor &shift_left_(at::Tensor &a, const at::Tensor &b) { return at::bitwise_left_shift_out(a, a, b); }
at::Tensor &shift_left_by_(at::Tensor &a, const at::Scalar &b) { return at::bitwise_left_shift_out(a, a, b); }
at::Tensor &shift_right_(at::Tensor &a, const at::Tensor &b) { return at::bitwise_right_shift_out(a, a, b); }
at::Tensor &shift_right_by_(at::Tensor &a, const at::Scalar &b) { return at::bitwise_right_shift_out(a, a, b); }

// --- mantissa and exponent -------------------------------------------------------------------------------------------

std::tuple<at::Tensor &, at::Tensor &> frexp_out(const at::Tensor &x, at::Tensor &mantissa, at::Tensor &exponent)
{
    kn_tensor *power = nullptr;
    const at::Tensor fraction = from_koine(kn_frexp(as_koine(x).get(), &power));
    exponent.resize_(x.sizes()).copy_(from_koine(power));
    mantissa.resize_(x.sizes()).copy_(fraction);
    return {mantissa, exponent};
}

// --- rows of a largest norm, channels in another order ---------------------------------------------------------------

at::Tensor &renorm_out(const at::Tensor &x, const at::Scalar &p, int64_t dim, const at::Scalar &maxnorm,
                       at::Tensor &out)
{
    const int axis = static_cast<int>(dim);
    return out.copy_(from_koine(kn_renorm(as_koine(x).get(), p.toDouble(), axis, maxnorm.toDouble())));
}

at::Tensor channel_shuffle(const at::Tensor &x, int64_t groups)
{
    TORCH_CHECK(x.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", x.sizes());
    TORCH_CHECK(groups > 0, "Number of groups to divide channels in must be positive. Value of groups:", groups);
    TORCH_CHECK(x.size(1) % groups == 0, "Number of channels must be divisible by groups. Got ", x.size(1),
                " channels and ", groups, " groups.");
    return x.unflatten(1, {groups, x.size(1) / groups})
        .transpose(1, 2)
        .flatten(1, 2)
        .contiguous(x.suggest_memory_format());
}

// --- distances of rows -----------------------------------------------------------------------------------------------

// Of many rows Euclidean distances are taken from products, unless the caller forbids it.
at::Tensor cdist(const at::Tensor &a, const at::Tensor &b, double p, std::optional<int64_t> mode)
{
    if (p == 2 && mode && *mode != 0)
        raise_unsupported("the device koine chooses itself how it computes cdist");
    return from_koine(kn_cdist(as_koine(a).get(), as_koine(b).get(), p));
}

at::Tensor pdist(const at::Tensor &x, double p) { return from_koine(kn_pdist(as_koine(x).get(), p)); }

} // namespace

KOINE_KERNELS(m)
{
    m.impl("_cdist_forward", cdist);
    m.impl("_pdist_forward", pdist);
    m.impl("__lshift__.Tensor", shift_left);
    m.impl("__lshift__.Scalar", shift_left_by);
    m.impl("__rshift__.Tensor", shift_right);
    m.impl("__rshift__.Scalar", shift_right_by);
    m.impl("__ilshift__.Tensor", shift_left_);
    m.impl("__ilshift__.Scalar", shift_left_by_);
    m.impl("__irshift__.Tensor", shift_right_);
    m.impl("__irshift__.Scalar", shift_right_by_);
    m.impl("frexp.Tensor_out", frexp_out);
    m.impl("renorm.out", renorm_out);
    m.impl("channel_shuffle", channel_shuffle);
}

} // namespace koine

// pointwise.cpp - elementwise operators of one or two tensors whose cost per call matters, or whose operands may be
// numbers. Those of three are in ternary.cpp, others in table.inc.
#include "compute.h"
#include "kernels.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/TensorBody.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sub.h>

#include <string>

namespace koine
{
namespace
{

// --- one operand -----------------------------------------------------------------------------------------------------

// clang-format off
#define UNARY_OPERATORS(X)                                                                                             \
    X(abs) X(acos) X(acosh) X(asin) X(asinh) X(atan) X(atanh) X(bitwise_not) X(ceil) X(cos) X(cosh) X(digamma)         \
    X(erf) X(erfc) X(erfinv) X(exp) X(exp2) X(expm1) X(floor) X(frac) X(hardsigmoid) X(hardswish) X(i0) X(isneginf)    \
    X(isposinf) X(lgamma) X(log) X(log10) X(log1p) X(log2) X(logical_not) X(mish) X(neg) X(reciprocal) X(round)        \
    X(rsqrt) X(sgn) X(sigmoid) X(sign) X(signbit) X(silu) X(sin) X(sinc) X(sinh) X(sqrt) X(tan) X(tanh) X(trunc)
// clang-format on

namespace unary_names
{
#define NAME(name) name,
enum Unary { UNARY_OPERATORS(NAME) };
#undef NAME
} // namespace unary_names
using unary_names::Unary;

#define NAME(name) Op(#name),
const Op &unary_op(Unary which)
{
    static const Op ops[] = {UNARY_OPERATORS(NAME)};
    return ops[which];
}
#undef NAME

template <Unary which> at::Tensor &unary_out(const at::Tensor &x, at::Tensor &out)
{
    compute_elements(unary_op(which), Tensors(x), nullptr, out);
    return out;
}

at::Tensor relu(const at::Tensor &x)
{
    static const Op op("relu");
    return elements_of(op, Tensors(x));
}

at::Tensor &relu_(at::Tensor &x)
{
    static const Op op("relu");
    compute_elements(op, Tensors(x), nullptr, x);
    return x;
}

at::Tensor isnan(const at::Tensor &x)
{
    static const Op op("isnan");
    return elements_of(op, Tensors(x));
}

at::Tensor hardswish(const at::Tensor &x) { return elements_of(unary_op(unary_names::hardswish), Tensors(x)); }

at::Tensor &hardswish_(at::Tensor &x)
{
    compute_elements(unary_op(unary_names::hardswish), Tensors(x), nullptr, x);
    return x;
}

// --- two operands ----------------------------------------------------------------------------------------------------

// The forms for a number as second or first operand are NULL where Koine has none: the number becomes a tensor.
struct Binary {
    explicit Binary(const char *name)
        : tensors(find_op(name)), number(kn_op_find((std::string(name) + "_scalar").c_str())),
          number_first(kn_op_find(("r" + std::string(name) + "_scalar").c_str())), is_real(std::string(name) == "div")
    {
    }
    const kn_op *tensors, *number, *number_first;
    bool is_real; // of whole numbers too
};

// clang-format off
#define BINARY_OPERATORS(X)                                                                                            \
    X(add, "") X(sub, "") X(mul, "out") X(div, "out") X(pow, "Tensor_Tensor_out") X(maximum, "out")                    \
    X(minimum, "out") X(fmax, "out") X(fmin, "out") X(atan2, "out") X(hypot, "out") X(copysign, "out")                 \
    X(logaddexp, "out") X(logaddexp2, "out") X(fmod, "Tensor_out") X(remainder, "Tensor_out") X(floor_divide, "out")   \
    X(gcd, "out") X(lcm, "out") X(igamma, "out") X(igammac, "out") X(nextafter, "out") X(heaviside, "out")             \
    X(xlogy, "OutTensor") X(logical_and, "out") X(logical_or, "out") X(logical_xor, "out")                             \
    X(bitwise_and, "Tensor_out") X(bitwise_or, "Tensor_out") X(bitwise_xor, "Tensor_out")                              \
    X(bitwise_left_shift, "Tensor_out") X(bitwise_right_shift, "Tensor_out") X(eq, "Tensor_out") X(ne, "Tensor_out")   \
    X(lt, "Tensor_out") X(le, "Tensor_out") X(gt, "Tensor_out") X(ge, "Tensor_out")
// clang-format on
#define COMPARISONS(X) X(eq) X(ne) X(lt) X(le) X(gt) X(ge)

namespace binary_names
{
#define NAME(name, overload) name,
enum Which { BINARY_OPERATORS(NAME) };
#undef NAME
} // namespace binary_names
using binary_names::Which;

const Binary &binary_op(Which which)
{
#define NAME(name, overload) Binary(#name),
    static const Binary ops[] = {BINARY_OPERATORS(NAME)};
#undef NAME
    return ops[which];
}

void apply_number(const Binary &op, const at::Tensor &a, kn_scalar number, const at::Tensor &out)
{
    const kn_scalar_args args = {{number}};
    compute_elements(op.number, Tensors(a), &args, out);
}

// Tensors of several dtypes are converted first, by PyTorch's rules, which Koine's differ from where an operand has no
// dimensions.
void apply_tensors(const kn_op *op, const at::Tensor &a, const at::Tensor &b, const at::Tensor &out)
{
    const c10::Device device = out.device();
    if (C10_LIKELY(a.scalar_type() == b.scalar_type() && !a.is_cpu() && !b.is_cpu()))
        return compute_elements(op, Tensors(a, b), nullptr, out);
    const at::ScalarType common = at::result_type(a, b);
    compute_elements(op, Tensors(a.to(device, common), b.to(device, common)), nullptr, out);
}

// Of two operands without dimensions a number has a say in the dtype, unless it was one in Python.
bool yields(const at::Tensor &number, const at::Tensor &other)
{
    return other.dim() > 0 || number.unsafeGetTensorImpl()->is_wrapped_number();
}

// In the joint dtype: whole numbers become real with the number's digits, truth values whole. Undefined if both are
// truth values, which Koine's numbers are not.
at::Tensor beside_number(const at::Tensor &x, const at::Tensor &number)
{
    if (C10_LIKELY(at::isFloatingType(x.scalar_type())))
        return x;
    const at::ScalarType common = at::result_type(x, number);
    return common == at::kBool ? at::Tensor() : common == x.scalar_type() ? x : x.to(common);
}

// A whole number is converted to the dtype of the whole numbers beside it, and wraps around: 300 is 44 in uint8.
kn_scalar wrapped(kn_scalar number, at::ScalarType type)
{
    if (!number.is_whole)
        return number;
    switch (type) {
    case at::kByte:
        return kn_scalar_int(static_cast<uint8_t>(number.whole));
    case at::kChar:
        return kn_scalar_int(static_cast<int8_t>(number.whole));
    case at::kShort:
        return kn_scalar_int(static_cast<int16_t>(number.whole));
    case at::kInt:
        return kn_scalar_int(static_cast<int32_t>(number.whole));
    default:
        return number;
    }
}

void binary(const Binary &op, const at::Tensor &a, const at::Tensor &b, const at::Tensor &out)
{
    const auto number_beside = [&](const at::Tensor &number, const at::Tensor &x) {
        return op.is_real ? number_of(number) : wrapped(number_of(number), x.scalar_type());
    };
    if (op.number && is_number(b) && !a.is_cpu() && yields(b, a))
        if (const at::Tensor x = beside_number(a, b); x.defined())
            return apply_number(op, x, number_beside(b, x), out);
    if (op.number_first && is_number(a) && !b.is_cpu() && yields(a, b))
        if (const at::Tensor x = beside_number(b, a); x.defined()) {
            const kn_scalar_args args = {{number_beside(a, x)}};
            return compute_elements(op.number_first, Tensors(x), &args, out);
        }
    apply_tensors(op.tensors, a, b, out);
}

template <Which which> at::Tensor &binary_out(const at::Tensor &a, const at::Tensor &b, at::Tensor &out)
{
    binary(binary_op(which), a, b, out);
    return out;
}

template <Which which> at::Tensor &binary_number_out(const at::Tensor &a, const at::Scalar &b, at::Tensor &out)
{
    apply_number(binary_op(which), a, wrapped(scalar_of(b), a.scalar_type()), out);
    return out;
}

// New results lie where the operands do that are no numbers.
template <Which which> at::Tensor binary_new(const at::Tensor &a, const at::Tensor &b)
{
    const c10::Device device = is_number(a) ? b.device() : a.device();
    at::Tensor out = at::empty({0}, at::TensorOptions().dtype(at::kBool).device(device));
    return binary_out<which>(a, b, out);
}

// mul and the like commute.
at::Tensor &mul_out(const at::Tensor &a, const at::Tensor &b, at::Tensor &out)
{
    const bool swapped = is_number(a) && !is_number(b);
    binary(binary_op(binary_names::mul), swapped ? b : a, swapped ? a : b, out);
    return out;
}

// --- a + alpha b -----------------------------------------------------------------------------------------------------

kn_scalar times(kn_scalar a, const at::Scalar &b)
{
    const kn_scalar factor = scalar_of(b);
    return a.is_whole && factor.is_whole ? kn_scalar_int(a.whole * factor.whole) : kn_scalar_real(a.real * factor.real);
}

at::Tensor &add_scaled(Which which, const at::Tensor &a, const at::Tensor &b, const at::Scalar &alpha, at::Tensor &out)
{
    const Binary &op = binary_op(which);
    if (C10_LIKELY(alpha.equal(1))) {
        const bool swapped = which == binary_names::add && is_number(a) && !is_number(b);
        binary(op, swapped ? b : a, swapped ? a : b, out);
        return out;
    }
    const bool adds_number = is_number(b) && !a.is_cpu() && yields(b, a);
    if (const at::Tensor x = adds_number ? beside_number(a, b) : at::Tensor(); x.defined()) {
        apply_number(op, x, times(number_of(b), alpha), out);
        return out;
    }
    const at::ScalarType common = at::result_type(a, b);
    if (common == at::kBool) { // so is alpha
        if (!alpha.toBool())
            return out.copy_(a);
        apply_tensors(op.tensors, a, b, out);
        return out;
    }
    const kn_scalar_args args = {{scalar_of(alpha)}};
    Tensors scaled;
    scaled.add(Tensor());
    call(binary_op(binary_names::mul).number, Tensors(b.to(out.device(), common)), &args, scaled);
    Tensors operands(a.to(out.device(), common));
    operands.add(scaled.take(0));
    compute_elements(op.tensors, operands, nullptr, out);
    return out;
}

at::Tensor &add_out(const at::Tensor &a, const at::Tensor &b, const at::Scalar &alpha, at::Tensor &out)
{
    return add_scaled(binary_names::add, a, b, alpha, out);
}

at::Tensor &sub_out(const at::Tensor &a, const at::Tensor &b, const at::Scalar &alpha, at::Tensor &out)
{
    return add_scaled(binary_names::sub, a, b, alpha, out);
}

at::Tensor rsub(const at::Tensor &a, const at::Tensor &b, const at::Scalar &alpha) { return at::sub(b, a, alpha); }

// --- quotients and powers --------------------------------------------------------------------------------------------

at::Tensor &div_mode_out(const at::Tensor &a, const at::Tensor &b, std::optional<std::string_view> mode,
                         at::Tensor &out)
{
    static const Op op("div_mode");
    const at::ScalarType common = at::result_type(a, b);
    const kn_rounding rounding = !mode ? KN_ROUNDING_NONE : *mode == "trunc" ? KN_ROUNDING_TRUNC : KN_ROUNDING_FLOOR;
    const kn_rounding_args args = {rounding};
    compute_elements(op, Tensors(a.to(out.device(), common), b.to(out.device(), common)), &args, out);
    return out;
}

at::Tensor floor_divide(const at::Tensor &a, const at::Tensor &b)
{
    at::Tensor out =
        at::empty({0}, a.options().dtype(at::result_type(a, b)).device(a.is_cpu() ? b.device() : a.device()));
    binary(binary_op(binary_names::floor_divide), a, b, out);
    return out;
}

at::Tensor &floor_divide_(at::Tensor &a, const at::Tensor &b)
{
    at::assert_no_partial_overlap(a, b);
    binary(binary_op(binary_names::floor_divide), a, b, a);
    return a;
}

at::Tensor &pow_number_out(const at::Tensor &a, const at::Scalar &exponent, at::Tensor &out)
{
    if (out.scalar_type() == at::kBool) // both are truth values
        return exponent.toBool() ? out.copy_(a) : out.fill_(true);
    apply_number(binary_op(binary_names::pow), a, scalar_of(exponent), out);
    return out;
}

at::Tensor &pow_of_number_out(const at::Scalar &a, const at::Tensor &exponent, at::Tensor &out)
{
    const kn_scalar_args args = {{wrapped(scalar_of(a), out.scalar_type())}};
    compute_elements(binary_op(binary_names::pow).number_first, Tensors(exponent), &args, out);
    return out;
}

at::Tensor remainder_of_number(const at::Scalar &a, const at::Tensor &b)
{
    return at::remainder(at::scalar_tensor(a, b.options().dtype(at::result_type(a, b))), b);
}

} // namespace

KOINE_KERNELS(m)
{
#define REGISTER(name) m.impl(#name ".out", unary_out<unary_names::name>);
    UNARY_OPERATORS(REGISTER)
#undef REGISTER
    m.impl("relu", relu);
    m.impl("relu_", relu_);
    m.impl("isnan", isnan);
    m.impl("hardswish", hardswish);
    m.impl("hardswish_", hardswish_);

    m.impl("add.out", add_out);
    m.impl("sub.out", sub_out);
    m.impl("rsub.Tensor", rsub);
    m.impl("mul.out", mul_out);
#define REGISTER(name) m.impl(#name ".Scalar_out", binary_number_out<binary_names::name>);
    COMPARISONS(REGISTER)
#undef REGISTER
#define REGISTER(name, overload)                                                                                       \
    if (*overload && binary_names::name != binary_names::mul)                                                          \
        m.impl(#name "." overload, binary_out<binary_names::name>);
    BINARY_OPERATORS(REGISTER)
#undef REGISTER
    m.impl("logical_and", binary_new<binary_names::logical_and>);
    m.impl("logical_or", binary_new<binary_names::logical_or>);
    m.impl("logical_xor", binary_new<binary_names::logical_xor>);
    m.impl("div.out_mode", div_mode_out);
    m.impl("floor_divide", floor_divide);
    m.impl("floor_divide_.Tensor", floor_divide_);
    m.impl("pow.Tensor_Scalar_out", pow_number_out);
    m.impl("pow.Scalar_out", pow_of_number_out);
    m.impl("remainder.Scalar_Tensor", remainder_of_number);
}

} // namespace koine

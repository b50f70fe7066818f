// plain.cpp - the common case of elementwise operators whose cost per call matters: contiguous tensors of the same
// shape and floating dtype, or one of them and a number.
//
// New results and in-place forms of structured operators come from PyTorch's code for them, which finds the result's
// shape and dtype, allocates it, and calls the out-variant in pointwise.cpp. That takes a microsecond and has nothing
// to find out here. All other cases take it.
#include "compute.h"
#include "kernels.h"

#include <ATen/CompositeExplicitAutogradNonFunctionalFunctions.h>
#include <c10/core/ScalarType.h>

#include <string>

namespace koine
{
namespace
{

namespace general = at::compositeexplicitautogradnonfunctional;

bool is_plain(const at::Tensor &x)
{
    return x.defined() && x.is_privateuseone() && x.is_contiguous() && at::isFloatingType(x.scalar_type()) &&
           !x.is_neg();
}

bool are_plain(const at::Tensor &a, const at::Tensor &b)
{
    return is_plain(a) && is_plain(b) && a.scalar_type() == b.scalar_type() && a.device() == b.device() &&
           a.sizes() == b.sizes();
}

// One of Python's, which leaves the dtype of a plain tensor as it is.
bool is_plain_number(const at::Tensor &x)
{
    return x.is_cpu() && x.unsafeGetTensorImpl()->is_wrapped_number() &&
           (x.scalar_type() == at::kDouble || x.scalar_type() == at::kLong);
}

// --- one operand -----------------------------------------------------------------------------------------------------

using Unary = at::Tensor(const at::Tensor &);
using UnaryInPlace = at::Tensor &(at::Tensor &);

template <const char *name, Unary *otherwise> at::Tensor unary(const at::Tensor &x)
{
    static const Op op(name);
    return C10_LIKELY(is_plain(x)) ? result_of(op, Tensors(x)) : otherwise(x);
}

template <const char *name, UnaryInPlace *otherwise> at::Tensor &unary_(at::Tensor &x)
{
    static const Op op(name);
    if (C10_UNLIKELY(!is_plain(x)))
        return otherwise(x);
    compute(op, Tensors(x), nullptr, x);
    return x;
}

// --- two operands ----------------------------------------------------------------------------------------------------

struct Binary {
    explicit Binary(const std::string &name) : tensors(name.c_str()), number((name + "_scalar").c_str()) {}
    const Op tensors, number;
};

// Undefined: it is another case.
at::Tensor result(const Binary &op, const at::Tensor &a, const at::Tensor &b)
{
    if (are_plain(a, b))
        return result_of(op.tensors, Tensors(a, b));
    if (!is_plain(a) || !is_plain_number(b))
        return {};
    const kn_scalar_args args = {{number_of(b)}};
    return result_of(op.number, Tensors(a), &args);
}

// False: it is another case. Where `b` shares the memory of `a`, PyTorch's code looks how.
bool apply(const Binary &op, const at::Tensor &a, const at::Tensor &b)
{
    if (is_plain(a) && is_plain_number(b)) {
        const kn_scalar_args args = {{number_of(b)}};
        compute(op.number, Tensors(a), &args, a);
        return true;
    }
    if (!are_plain(a, b) || (a.is_alias_of(b) && !a.is_same(b)))
        return false;
    compute(op.tensors, Tensors(a, b), nullptr, a);
    return true;
}

using Product = at::Tensor(const at::Tensor &, const at::Tensor &);
using ProductInPlace = at::Tensor &(at::Tensor &, const at::Tensor &);
using Sum = at::Tensor(const at::Tensor &, const at::Tensor &, const at::Scalar &);
using SumInPlace = at::Tensor &(at::Tensor &, const at::Tensor &, const at::Scalar &);

template <const char *name, Product *otherwise> at::Tensor product(const at::Tensor &a, const at::Tensor &b)
{
    static const Binary op(name);
    at::Tensor made = result(op, a, b);
    return C10_LIKELY(made.defined()) ? made : otherwise(a, b);
}

template <const char *name, ProductInPlace *otherwise> at::Tensor &product_(at::Tensor &a, const at::Tensor &b)
{
    static const Binary op(name);
    return C10_LIKELY(apply(op, a, b)) ? a : otherwise(a, b);
}

// a + alpha b
template <const char *name, Sum *otherwise>
at::Tensor sum(const at::Tensor &a, const at::Tensor &b, const at::Scalar &alpha)
{
    static const Binary op(name);
    at::Tensor made = alpha.equal(1) ? result(op, a, b) : at::Tensor();
    return C10_LIKELY(made.defined()) ? made : otherwise(a, b, alpha);
}

template <const char *name, SumInPlace *otherwise>
at::Tensor &sum_(at::Tensor &a, const at::Tensor &b, const at::Scalar &alpha)
{
    static const Binary op(name);
    return C10_LIKELY(alpha.equal(1) && apply(op, a, b)) ? a : otherwise(a, b, alpha);
}

// --- names -----------------------------------------------------------------------------------------------------------

#define EACH_UNARY(X) X(cos) X(exp) X(log) X(neg) X(reciprocal) X(rsqrt) X(sigmoid) X(silu) X(sin) X(sqrt) X(tanh)
#define EACH_BINARY(X) X(add, sum) X(sub, sum) X(mul, product) X(div, product)

namespace names
{
#define NAME(name, ...) constexpr char name[] = #name;
EACH_UNARY(NAME)
EACH_BINARY(NAME)
#undef NAME
} // namespace names

} // namespace

KOINE_KERNELS(m)
{
#define REGISTER(name)                                                                                                 \
    m.impl(#name, unary<names::name, general::name>);                                                                  \
    m.impl(#name "_", unary_<names::name, general::name##_>);
    EACH_UNARY(REGISTER)
#undef REGISTER
#define REGISTER(name, kind)                                                                                           \
    m.impl(#name ".Tensor", kind<names::name, general::name>);                                                         \
    m.impl(#name "_.Tensor", kind##_<names::name, general::name##_>);
    EACH_BINARY(REGISTER)
#undef REGISTER
}

} // namespace koine

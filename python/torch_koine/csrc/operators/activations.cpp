// activations.cpp - activations whose arguments differ from Koine's, gradients of activations, dropout.
#include "elements.h"
#include "kernels.h"

#include <ATen/ops/clamp.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <koine/random.h>

namespace koine
{
namespace
{

#define SIGMOID "T sigmoid(T x) { return (T)1 / ((T)1 + exp(-x)); }\n"

// --- between bounds --------------------------------------------------------------------------------------------------

// Those of whole numbers are whole, and so are the results.
at::Tensor &hardtanh_out(const at::Tensor &x, const at::Scalar &min, const at::Scalar &max, at::Tensor &out)
{
    static const Op op("hardtanh");
    if (at::isIntegralType(x.scalar_type(), false))
        return at::clamp_out(out, x, min.toLong(), max.toLong());
    const kn_scalar_args args = {{kn_scalar_real(min.toDouble()), kn_scalar_real(max.toDouble())}};
    compute_elements(op, Tensors(x), &args, out);
    return out;
}

at::Tensor hardtanh(const at::Tensor &x, const at::Scalar &min, const at::Scalar &max)
{
    at::Tensor out = at::empty({0}, x.options());
    return hardtanh_out(x, min, max, out);
}

at::Tensor &hardtanh_(at::Tensor &x, const at::Scalar &min, const at::Scalar &max)
{
    return hardtanh_out(x, min, max, x);
}

// --- exponential below 0 ---------------------------------------------------------------------------------------------

at::Tensor elu(const at::Tensor &x, const at::Scalar &alpha, const at::Scalar &scale, const at::Scalar &input_scale)
{
    static const Elements code("T elu(T x, T low, T high, T inner)\n"
                               "{ return x > 0 ? x * high : low * expm1(x * inner); }",
                               {"low", "high", "inner"});
    const double outer = scale.toDouble();
    return code(Tensors(x), {alpha.toDouble() * outer, outer, input_scale.toDouble()});
}

at::Tensor elu_backward(const at::Tensor &g, const at::Scalar &alpha, const at::Scalar &scale,
                        const at::Scalar &input_scale, bool is_result, const at::Tensor &x)
{
    static const Elements of_input("T elu_slope(T g, T x, T low, T high, T inner)\n"
                                   "{ return x > 0 ? g * high : g * low * inner * exp(x * inner); }",
                                   {"low", "high", "inner"});
    static const Elements of_result("T elu_slope(T g, T y, T low, T high, T inner)\n"
                                    "{ return y > 0 ? g * high : g * inner * (y + low); }",
                                    {"low", "high", "inner"});
    const double outer = scale.toDouble();
    return (is_result ? of_result : of_input)(Tensors(g, x), {alpha.toDouble() * outer, outer, input_scale.toDouble()});
}

// --- gradients by the input ------------------------------------------------------------------------------------------

at::Tensor gelu_backward(const at::Tensor &g, const at::Tensor &x, std::string_view approximate)
{
    static const Op op("gelu_backward");
    const kn_gelu_params params = {approximate == "tanh" ? KN_GELU_TANH : KN_GELU_NONE};
    return elements_of(op, Tensors(g, x), &params);
}

at::Tensor &gelu_backward_out(const at::Tensor &g, const at::Tensor &x, std::string_view approximate, at::Tensor &out)
{
    return out.resize_(x.sizes()).copy_(gelu_backward(g, x, approximate));
}

at::Tensor silu_backward(const at::Tensor &g, const at::Tensor &x)
{
    static const Elements code(SIGMOID "T silu_slope(T g, T x)\n"
                                       "{ T s = sigmoid(x); return g * s * (1 + x * (1 - s)); }");
    return code(Tensors(g, x));
}

at::Tensor mish_backward(const at::Tensor &g, const at::Tensor &x)
{
    static const Elements code("T mish_slope(T g, T a)\n"
                               "{\n"
                               "    T x = fmin(a, (T)20), w = exp(x), n = w * (w + 2), m = 1 / (n + 2);\n"
                               "    return a != a ? a : g * m * (n + 4 * x * w * (w + 1) * m);\n"
                               "}");
    return code(Tensors(g, x));
}

at::Tensor leaky_relu_backward(const at::Tensor &g, const at::Tensor &x, const at::Scalar &slope, bool)
{
    static const Elements code("T leaky_slope(T x, T g, T p) { return x > 0 ? g : g * p; }", {"p"});
    return code(Tensors(x, g), {slope.toDouble()}); // the result has the layout of x, as PyTorch's
}

at::Tensor hardswish_backward(const at::Tensor &g, const at::Tensor &x)
{
    static const Elements code("T hardswish_slope(T g, T x)\n"
                               "{ return x <= -3 ? g * 0 : x < 3 ? g * (x / 3 + (T)0.5) : g; }");
    return code(Tensors(g, x));
}

at::Tensor hardsigmoid_backward(const at::Tensor &g, const at::Tensor &x)
{
    static const Elements code("T hardsigmoid_slope(T g, T x) { return x > -3 && x < 3 ? g / 6 : g * 0; }");
    return code(Tensors(g, x));
}

at::Tensor softplus_backward(const at::Tensor &g, const at::Tensor &x, const at::Scalar &beta,
                             const at::Scalar &threshold)
{
    static const Elements code(SIGMOID "T softplus_slope(T g, T x, T p, T q)\n"
                                       "{ return x * p > q ? g : g * sigmoid(x * p); }",
                               {"p", "q"});
    return code(Tensors(g, x), {beta.toDouble(), threshold.toDouble()});
}

// Of both hardshrink and softshrink.
at::Tensor shrink_backward(const at::Tensor &g, const at::Tensor &x, const at::Scalar &lambd)
{
    static const Elements code("T shrink_slope(T g, T x, T p) { return x >= -p && x <= p ? g * 0 : g; }", {"p"});
    return code(Tensors(g, x), {lambd.toDouble()});
}

at::Tensor logit_backward(const at::Tensor &g, const at::Tensor &x, std::optional<double> eps)
{
    static const Elements open("T logit_slope(T g, T x) { return x < 0 || x > 1 ? (T)NAN : g / (x * (1 - x)); }");
    static const Elements cut("T logit_slope(T g, T x, T p)\n"
                              "{ return x < p || x > 1 - p ? (T)0 : g / (x * (1 - x)); }",
                              {"p"});
    return eps ? cut(Tensors(g, x), {*eps}) : open(Tensors(g, x));
}

// --- log sigmoid -----------------------------------------------------------------------------------------------------

std::tuple<at::Tensor, at::Tensor> log_sigmoid_forward(const at::Tensor &x)
{
    static const Op op("logsigmoid");
    return {elements_of(op, Tensors(x)), empty({0}, x.scalar_type(), x.device())};
}

std::tuple<at::Tensor &, at::Tensor &> log_sigmoid_forward_out(const at::Tensor &x, at::Tensor &out, at::Tensor &buffer)
{
    static const Op op("logsigmoid");
    compute_elements(op, Tensors(x), nullptr, out);
    return {out, buffer};
}

at::Tensor log_sigmoid_backward(const at::Tensor &g, const at::Tensor &x, const at::Tensor &)
{
    static const Elements code("T log_sigmoid_slope(T g, T x) { return g * ((T)1 / ((T)1 + exp(x))); }");
    return code(Tensors(g, x));
}

at::Tensor &log_sigmoid_backward_out(const at::Tensor &g, const at::Tensor &x, const at::Tensor &buffer,
                                     at::Tensor &out)
{
    return out.copy_(log_sigmoid_backward(g, x, buffer));
}

// --- two tensors -----------------------------------------------------------------------------------------------------

at::Tensor prelu(const at::Tensor &x, const at::Tensor &weight)
{
    static const Elements code("T prelu(T x, T w) { return x > 0 ? x : x * w; }");
    return code(Tensors(x, weight));
}

std::tuple<at::Tensor, at::Tensor> prelu_backward(const at::Tensor &g, const at::Tensor &x, const at::Tensor &weight)
{
    static const Elements code("void prelu_slopes(T x, T w, T g, T *of_x, T *of_w)\n"
                               "{ *of_x = x > 0 ? g : g * w; *of_w = x > 0 ? g * 0 : g * x; }");
    auto slopes = code.all(Tensors(x, weight, g));
    return {std::move(slopes[0]), std::move(slopes[1])};
}

at::Tensor glu_backward(const at::Tensor &g, const at::Tensor &x, int64_t dim)
{
    static const Elements code(SIGMOID "void glu_slopes(T g, T a, T b, T *of_a, T *of_b)\n"
                                       "{ T s = sigmoid(b); *of_a = g * s; *of_b = g * a * s * (1 - s); }");
    const int64_t half = x.size(dim) / 2;
    auto slopes = code.all(Tensors(g, x.narrow(dim, 0, half), x.narrow(dim, half, half)));
    at::Tensor result = empty(x.sizes(), x.scalar_type(), x.device());
    result.narrow(dim, 0, half).copy_(slopes[0]);
    result.narrow(dim, half, half).copy_(slopes[1]);
    return result;
}

at::Tensor &glu_backward_out(const at::Tensor &g, const at::Tensor &x, int64_t dim, at::Tensor &out)
{
    return out.copy_(glu_backward(g, x, dim));
}

// --- dropout ---------------------------------------------------------------------------------------------------------

at::Tensor masked(const at::Tensor &x, const at::Tensor &mask, double scale)
{
    static const Elements code("T masked(T x, T mask, T scale) { return x * mask * scale; }", {"scale"});
    return code(Tensors(x, mask), {scale});
}

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor &x, double p, std::optional<bool> train)
{
    if (train && !*train)
        return {x.clone(), at::ones_like(x, x.options().dtype(at::kBool))};
    at::Tensor mask =
        x.is_contiguous() ? empty(x.sizes(), at::kBool, x.device()) : at::empty_like(x, x.options().dtype(at::kBool));
    kn_random_params params = kn_random_params_init();
    check(kn_bernoulli_with_(as_koine(mask).get(), 1 - p, &params));
    return {masked(x, mask, p < 1 ? 1 / (1 - p) : 0), mask};
}

at::Tensor native_dropout_backward(const at::Tensor &g, const at::Tensor &mask, double scale)
{
    return masked(g, mask, scale);
}

// --- random slopes ---------------------------------------------------------------------------------------------------

at::Tensor rrelu_with_noise(const at::Tensor &x, at::Tensor &noise, const at::Scalar &lower, const at::Scalar &upper,
                            bool training, std::optional<at::Generator> generator)
{
    if (!training) {
        static const Op op("leaky_relu");
        kn_leaky_relu_params params = {(lower.toDouble() + upper.toDouble()) / 2};
        return elements_of(op, Tensors(x), &params);
    }
    static const Elements code("T slope(T x, T drawn) { return x <= 0 ? drawn : (T)1; }");
    noise.uniform_(lower.toDouble(), upper.toDouble(), generator);
    noise.copy_(code(Tensors(x, noise)));
    return x.mul(noise);
}

at::Tensor &rrelu_with_noise_(at::Tensor &x, at::Tensor &noise, const at::Scalar &lower, const at::Scalar &upper,
                              bool training, std::optional<at::Generator> generator)
{
    return x.copy_(rrelu_with_noise(x, noise, lower, upper, training, generator));
}

} // namespace

KOINE_KERNELS(m)
{
    m.impl("hardtanh", hardtanh);
    m.impl("hardtanh.out", hardtanh_out);
    m.impl("hardtanh_", hardtanh_);
    m.impl("elu", elu);
    m.impl("elu_backward", elu_backward);
    m.impl("gelu_backward", gelu_backward);
    m.impl("gelu_backward.grad_input", gelu_backward_out);
    m.impl("silu_backward", silu_backward);
    m.impl("mish_backward", mish_backward);
    m.impl("leaky_relu_backward", leaky_relu_backward);
    m.impl("hardswish_backward", hardswish_backward);
    m.impl("hardsigmoid_backward", hardsigmoid_backward);
    m.impl("softplus_backward", softplus_backward);
    m.impl("hardshrink_backward", shrink_backward);
    m.impl("softshrink_backward", shrink_backward);
    m.impl("logit_backward", logit_backward);
    m.impl("log_sigmoid_forward", log_sigmoid_forward);
    m.impl("log_sigmoid_forward.output", log_sigmoid_forward_out);
    m.impl("log_sigmoid_backward", log_sigmoid_backward);
    m.impl("log_sigmoid_backward.grad_input", log_sigmoid_backward_out);
    m.impl("_prelu_kernel", prelu);
    m.impl("_prelu_kernel_backward", prelu_backward);
    m.impl("glu_backward", glu_backward);
    m.impl("glu_backward.grad_input", glu_backward_out);
    m.impl("native_dropout", native_dropout);
    m.impl("native_dropout_backward", native_dropout_backward);
    m.impl("rrelu_with_noise", rrelu_with_noise);
    m.impl("rrelu_with_noise_", rrelu_with_noise_);
}

} // namespace koine

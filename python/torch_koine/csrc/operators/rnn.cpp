// rnn.cpp - one step of LSTM and GRU: what follows the products of its matrices, in one launch, and its gradient.
#include "elements.h"
#include "kernels.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

namespace koine
{
namespace
{

using OptionalTensor = std::optional<at::Tensor>;

bool is_given(const OptionalTensor &tensor) { return tensor && tensor->defined(); }

at::Tensor gates_of(const at::Tensor &of_input, const at::Tensor &of_state, const OptionalTensor &input_bias,
                    const OptionalTensor &state_bias)
{
    at::Tensor gates = of_input.add(of_state);
    if (is_given(input_bias))
        gates.add_(*input_bias);
    if (is_given(state_bias))
        gates.add_(*state_bias);
    return gates;
}

// The workspace holds the four gates, for backward.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor &of_input, const at::Tensor &of_state,
                                                         const at::Tensor &cx, const OptionalTensor &input_bias,
                                                         const OptionalTensor &state_bias)
{
    static const Elements code(
        "T s(T x) { return (T)1 / ((T)1 + exp(-x)); }\n"
        "void lstm_step(T i, T f, T g, T o, T c, T *h_next, T *c_next, T *si, T *sf, T *sg, T *so)\n"
        "{\n"
        "    *si = s(i); *sf = s(f); *sg = tanh(g); *so = s(o);\n"
        "    T next = *sf * c + *si * *sg;\n"
        "    *c_next = next;\n"
        "    *h_next = *so * tanh(next);\n"
        "}");
    const auto gates = gates_of(of_input, of_state, input_bias, state_bias).chunk(4, 1);
    const auto results = code.all(Tensors(gates[0], gates[1], gates[2], gates[3], cx));
    return {results[0], results[1], at::cat({results[2], results[3], results[4], results[5]}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(const OptionalTensor &grad_hy,
                                                                  const OptionalTensor &grad_cy, const at::Tensor &cx,
                                                                  const at::Tensor &cy, const at::Tensor &workspace,
                                                                  bool has_bias)
{
    static const Elements code("void lstm_slopes(T dh, T dc, T c, T c_next, T i, T f, T g, T o,\n"
                               "                 T *di, T *df, T *dg, T *d_o, T *dcx)\n"
                               "{\n"
                               "    T t = tanh(c_next), d = dc + dh * o * (1 - t * t);\n"
                               "    *di = d * g * i * (1 - i);\n"
                               "    *df = d * c * f * (1 - f);\n"
                               "    *dg = d * i * (1 - g * g);\n"
                               "    *d_o = dh * t * o * (1 - o);\n"
                               "    *dcx = d * f;\n"
                               "}");
    if (!is_given(grad_hy) && !is_given(grad_cy))
        return {};
    const at::Tensor dh = is_given(grad_hy) ? *grad_hy : at::zeros_like(cx);
    const at::Tensor dc = is_given(grad_cy) ? *grad_cy : at::zeros_like(cx);
    const auto gates = workspace.chunk(4, 1);
    const auto results = code.all(Tensors(dh, dc, cx, cy, gates[0], gates[1], gates[2], gates[3]));
    at::Tensor grad_gates = at::cat({results[0], results[1], results[2], results[3]}, 1);
    return {grad_gates, results[4], has_bias ? grad_gates.sum(0) : at::Tensor()};
}

// The workspace holds r, z, n, the state, and n's part of it, for backward, as PyTorch's CUDA kernel does.
std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor &of_input, const at::Tensor &of_state,
                                            const at::Tensor &hx, const OptionalTensor &input_bias,
                                            const OptionalTensor &state_bias)
{
    static const Elements code("T s(T x) { return (T)1 / ((T)1 + exp(-x)); }\n"
                               "void gru_step(T ri, T rh, T zi, T zh, T ni, T nh, T h, T *next, T *r, T *z, T *n)\n"
                               "{\n"
                               "    *r = s(ri + rh); *z = s(zi + zh); *n = tanh(ni + *r * nh);\n"
                               "    *next = *n + *z * (h - *n);\n"
                               "}");
    const at::Tensor input = is_given(input_bias) ? of_input.add(*input_bias) : of_input;
    const at::Tensor state = is_given(state_bias) ? of_state.add(*state_bias) : of_state;
    const auto i = input.chunk(3, 1), h = state.chunk(3, 1);
    const auto results = code.all(Tensors(i[0], h[0], i[1], h[1], i[2], h[2], hx));
    return {results[0], at::cat({results[1], results[2], results[3], hx, h[2]}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>
gru_cell_backward(const at::Tensor &grad, const at::Tensor &workspace, bool has_bias)
{
    static const Elements code("void gru_slopes(T d, T r, T z, T n, T h, T nh, T *dr, T *dz, T *dni, T *dnh, T *dh)\n"
                               "{\n"
                               "    T inner = d * (1 - z) * (1 - n * n);\n"
                               "    *dr = inner * nh * r * (1 - r);\n"
                               "    *dz = d * (h - n) * z * (1 - z);\n"
                               "    *dni = inner;\n"
                               "    *dnh = inner * r;\n"
                               "    *dh = d * z;\n"
                               "}");
    const auto saved = workspace.chunk(5, 1);
    const auto results = code.all(Tensors(grad, saved[0], saved[1], saved[2], saved[3], saved[4]));
    const at::Tensor of_input = at::cat({results[0], results[1], results[2]}, 1);
    const at::Tensor of_state = at::cat({results[0], results[1], results[3]}, 1);
    return {of_input, of_state, results[4], has_bias ? of_input.sum(0) : at::Tensor(),
            has_bias ? of_state.sum(0) : at::Tensor()};
}

} // namespace

KOINE_KERNELS(m)
{
    m.impl("_thnn_fused_lstm_cell", lstm_cell);
    m.impl("_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward);
    m.impl("_thnn_fused_gru_cell", gru_cell);
    m.impl("_thnn_fused_gru_cell_backward", gru_cell_backward);
}

} // namespace koine

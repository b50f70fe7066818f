// elements.cpp - see elements.h.
#include "elements.h"

#include "order.h"

namespace koine
{

Elements::Elements(const char *code, std::initializer_list<const char *> scalars) : names(scalars)
{
    kn_jit_params params = kn_jit_params_init();
    for (size_t i = 0; i < names.size(); i++)
        params.scalars[i] = {names[i], 0};
    jit = check(kn_jit_elementwise_with(code, &params));
}

c10::SmallVector<at::Tensor, 4> Elements::all(Tensors &&inputs, std::initializer_list<double> scalars) const
{
    kn_tensor *more[8] = {};
    kn_jit_call_params params = kn_jit_call_params_init();
    size_t count = 0;
    for (double value : scalars) {
        params.scalars[count] = {names[count], value};
        count++;
    }
    params.more = more;
    const Order order(inputs);
    c10::SmallVector<at::Tensor, 4> results;
    results.push_back(order.restore(from_koine(kn_jit_call_with(jit, inputs.data(), inputs.size(), &params))));
    for (int i = 1; i < kn_jit_num_outputs(jit); i++)
        results.push_back(order.restore(from_koine(more[i - 1])));
    return results;
}

at::Tensor Elements::operator()(Tensors &&inputs, std::initializer_list<double> scalars) const
{
    return all(std::move(inputs), scalars)[0];
}

} // namespace koine

// random.cpp - random numbers, with the device's generator or a given one.
#include "compute.h"

#include <ATen/ops/empty.h>
#include <koine/random.h>
#include <torch/library.h>

#include <limits>

namespace koine {
namespace {

using Generator = std::optional<at::Generator>;

kn_random_params params_of(const at::Tensor &x, const Generator &generator)
{
    return {generator_of(generator, x.device())};
}

// One of the functions that fill a tensor with numbers of a distribution.
template <class Function, class... Numbers>
at::Tensor &draw(at::Tensor &x, const Generator &generator, Function function, Numbers... numbers)
{
    const kn_random_params params = params_of(x, generator);
    check(function(as_koine(x).get(), numbers..., &params));
    return x;
}

at::Tensor &uniform_(at::Tensor &x, double from, double to, Generator generator)
{
    return draw(x, generator, kn_uniform_with_, from, to);
}

at::Tensor &normal_(at::Tensor &x, double mean, double std, Generator generator)
{
    return draw(x, generator, kn_normal_with_, mean, std);
}

at::Tensor &log_normal_(at::Tensor &x, double mean, double std, Generator generator)
{
    return draw(x, generator, kn_log_normal_with_, mean, std);
}

at::Tensor &exponential_(at::Tensor &x, double lambd, Generator generator)
{
    return draw(x, generator, kn_exponential_with_, lambd);
}

at::Tensor &geometric_(at::Tensor &x, double p, Generator generator)
{
    return draw(x, generator, kn_geometric_with_, p);
}

at::Tensor &cauchy_(at::Tensor &x, double median, double sigma, Generator generator)
{
    return draw(x, generator, kn_cauchy_with_, median, sigma);
}

at::Tensor &bernoulli_(at::Tensor &x, double p, Generator generator)
{
    return draw(x, generator, kn_bernoulli_with_, p);
}

// --- integers --------------------------------------------------------------------------------------------------------

at::Tensor &random_from_(at::Tensor &x, int64_t from, std::optional<int64_t> to, Generator generator)
{
    return draw(x, generator, kn_random_with_, from, to ? *to : std::numeric_limits<int64_t>::max());
}

at::Tensor &random_to_(at::Tensor &x, int64_t to, Generator generator)
{
    return random_from_(x, 0, to, generator);
}

// All non-negative integers of the dtype, or all that a floating one represents exactly.
at::Tensor &random_(at::Tensor &x, Generator generator)
{
    switch (x.scalar_type()) {
    case at::kLong:
        return random_from_(x, 0, std::nullopt, generator);
    case at::kInt:
        return random_from_(x, 0, int64_t(1) << 31, generator);
    case at::kShort:
        return random_from_(x, 0, 1 << 15, generator);
    case at::kChar:
        return random_from_(x, 0, 1 << 7, generator);
    case at::kByte:
        return random_from_(x, 0, 1 << 8, generator);
    case at::kBool:
        return random_from_(x, 0, 2, generator);
    case at::kDouble:
        return random_from_(x, 0, (int64_t(1) << 53) + 1, generator);
    case at::kHalf:
        return random_from_(x, 0, (1 << 11) + 1, generator);
    case at::kBFloat16:
        return random_from_(x, 0, (1 << 8) + 1, generator);
    default:
        return random_from_(x, 0, (1 << 24) + 1, generator);
    }
}

at::Tensor &randperm_out(int64_t n, Generator generator, at::Tensor &out)
{
    kn_tensor_options options = kn_tensor_options_init();
    options.dtype = dtype_of(out.scalar_type());
    options.device = device_of(out.device());
    options.generator = generator_of(generator, out.device());
    out.resize_({n});
    return out.copy_(from_koine(kn_randperm_with(n, &options)));
}

// --- of parameters in tensors ----------------------------------------------------------------------------------------

at::Tensor &bernoulli_out(const at::Tensor &p, Generator generator, at::Tensor &out)
{
    const kn_random_params params = params_of(p, generator);
    out.resize_(p.sizes());
    return out.copy_(from_koine(kn_bernoulli_with(as_koine(p).get(), &params)));
}

at::Tensor &bernoulli_tensor_(at::Tensor &x, const at::Tensor &p, Generator generator)
{
    const kn_random_params params = params_of(x, generator);
    const at::Tensor rates = p.to(x.device()).expand_as(x).contiguous();
    return x.copy_(from_koine(kn_bernoulli_with(as_koine(rates).get(), &params)));
}

at::Tensor poisson(const at::Tensor &rates, Generator generator)
{
    const kn_random_params params = params_of(rates, generator);
    return from_koine(kn_poisson_with(as_koine(rates).get(), &params));
}

at::Tensor binomial(const at::Tensor &count, const at::Tensor &probability, Generator generator)
{
    const kn_random_params params = params_of(count, generator);
    return from_koine(kn_binomial_with(as_koine(count).get(), as_koine(probability).get(), &params));
}

at::Tensor multinomial(const at::Tensor &weights, int64_t count, bool replacement, Generator generator)
{
    kn_multinomial_params params = kn_multinomial_params_init();
    params.replacement = replacement;
    params.generator = generator_of(generator, weights.device());
    return from_koine(kn_multinomial_with(as_koine(weights).get(), count, &params));
}

at::Tensor normal_of_tensors(const at::Tensor &mean, const at::Tensor &std, Generator generator)
{
    const kn_random_params params = params_of(mean.is_cpu() ? std : mean, generator);
    const c10::Device device = mean.is_cpu() ? std.device() : mean.device();
    return from_koine(kn_normal_with(operand(mean, device).get(), operand(std, device).get(), &params));
}

at::Tensor normal_of_mean(const at::Tensor &mean, double std, Generator generator)
{
    at::Tensor noise = empty(mean.sizes(), mean.scalar_type(), mean.device());
    return normal_(noise, 0, std, generator).add_(mean);
}

at::Tensor normal_of_std(double mean, const at::Tensor &std, Generator generator)
{
    at::Tensor noise = empty(std.sizes(), std.scalar_type(), std.device());
    return normal_(noise, 0, 1, generator).mul_(std).add_(mean);
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    m.impl("uniform_", uniform_);
    m.impl("normal_", normal_);
    m.impl("log_normal_", log_normal_);
    m.impl("exponential_", exponential_);
    m.impl("geometric_", geometric_);
    m.impl("cauchy_", cauchy_);
    m.impl("bernoulli_.float", bernoulli_);
    m.impl("bernoulli_.Tensor", bernoulli_tensor_);
    m.impl("bernoulli.out", bernoulli_out);
    m.impl("random_", random_);
    m.impl("random_.from", random_from_);
    m.impl("random_.to", random_to_);
    m.impl("randperm.generator_out", randperm_out);
    m.impl("poisson", poisson);
    m.impl("binomial", binomial);
    m.impl("multinomial", multinomial);
    m.impl("normal.Tensor_Tensor", normal_of_tensors);
    m.impl("normal.Tensor_float", normal_of_mean);
    m.impl("normal.float_Tensor", normal_of_std);
}

} // namespace koine

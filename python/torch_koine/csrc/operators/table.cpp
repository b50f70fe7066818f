// table.cpp - operators whose arguments are those of Koine's operator: the rows of table.inc, which
// python/tools/match_operators.py writes. Each is a boxed kernel that knows where each argument goes.
#include "compute.h"
#include "kernels.h"
#include "order.h"

#include <ATen/core/stack.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <array>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace koine
{
namespace
{

struct Row {
    const char *name;      // ATen's, with the overload
    const char *operator_; // Koine's
    const char *places;    // "parameter=argument", "-argument" for one that is ignored, separated by commas
};

const Row rows[] = {
#include "table.inc"
};

// Operators whose new results PyTorch's code does not allocate: they have the order of the operands' dimensions, or the
// layout of the first. All others are contiguous.
const std::set<std::string> elementwise{"binary_cross_entropy", "binary_cross_entropy_backward", "hardtanh_backward",
                                        "huber_loss", "logit"};
const std::set<std::string> keeping_layout{"flip"};

// --- where each argument goes ----------------------------------------------------------------------------------------

enum class Place { input, output, both, param, dtype, ignored };

struct Argument {
    Place place;
    const kn_op_param *param;
};

// Names that differ in all of ATen.
const std::array<std::pair<const char *, const char *>, 6> renamed = {{{"dim", "dims"},
                                                                       {"kernel_size", "kernel_sizes"},
                                                                       {"stride", "strides"},
                                                                       {"padding", "paddings"},
                                                                       {"dilation", "dilations"},
                                                                       {"other", "value"}}};

const kn_op_param *find_param(const kn_op *op, const std::string &name)
{
    const int count = kn_op_describe(op).num_params;
    for (int i = 0; i < count; i++)
        if (name == kn_op_param_at(op, i)->name)
            return kn_op_param_at(op, i);
    return nullptr;
}

// The parameter of an argument: by the row, by the argument's name in the plural form, by its name.
const kn_op_param *param_of(const kn_op *op, const std::string &places, const std::string &name)
{
    const std::string row = "," + places + ",", wanted = "=" + name + ",";
    const size_t at = row.find(wanted);
    if (at != std::string::npos) {
        const size_t start = row.rfind(',', at) + 1;
        return find_param(op, row.substr(start, at - start));
    }
    for (const auto &[theirs, ours] : renamed)
        if (name == theirs && find_param(op, ours))
            return find_param(op, ours);
    return find_param(op, name);
}

bool is_tensor(const c10::Argument &argument)
{
    const c10::TypePtr &type = argument.type();
    return type->isSubtypeOf(*c10::TensorType::get()) ||
           type->isSubtypeOf(*c10::OptionalType::create(c10::TensorType::get()));
}

Argument argument_of(const kn_op *op, const std::string &places, const c10::Argument &argument, bool in_place)
{
    if (("," + places + ",").find(",-" + argument.name() + ",") != std::string::npos)
        return {Place::ignored, nullptr};
    const bool written = argument.alias_info() && argument.alias_info()->isWrite();
    if (is_tensor(argument))
        return {!written ? Place::input : in_place ? Place::both : Place::output, nullptr};
    if (const kn_op_param *param = param_of(op, places, argument.name()))
        return {Place::param, param};
    TORCH_CHECK(argument.name() == "dtype", "torch_koine: Koine's operator has no parameter for ", argument.name());
    return {Place::dtype, nullptr};
}

// --- values of parameters --------------------------------------------------------------------------------------------

int enum_of(const kn_op_param *param, const c10::IValue &value)
{
    static const char *const reductions[] = {"none", "mean", "sum"};
    const std::string name = value.isString() ? value.toStringRef() : reductions[value.toInt()];
    for (int i = 0; param->values[i]; i++)
        if (name == param->values[i])
            return i;
    TORCH_CHECK(false, param->name, " '", name, "' is not supported");
}

// One number stands for each dimension.
void set_list(char *place, const kn_op_param *param, const c10::List<int64_t> &values)
{
    const size_t count = param->size / sizeof(int64_t);
    int64_t *numbers = reinterpret_cast<int64_t *>(place);
    for (size_t i = 0; i < count && !values.empty(); i++)
        numbers[i] = values.size() == 1 ? values.get(0) : i < values.size() ? values.get(i) : numbers[i];
}

template <class Value> void set(char *place, Value value) { std::memcpy(place, &value, sizeof value); }

void set_param(char *params, const kn_op_param *param, const c10::IValue &value, c10::Device device)
{
    char *const place = params + param->offset;
    if (value.isNone() && param->kind != KN_PARAM_GENERATOR)
        return;
    switch (param->kind) {
    case KN_PARAM_BOOL:
        return set(place, value.toBool());
    case KN_PARAM_INT:
        return set(place, static_cast<int>(value.toInt()));
    case KN_PARAM_INT64:
        return value.isIntList() ? set_list(place, param, value.toIntList()) : set(place, value.toInt());
    case KN_PARAM_DOUBLE:
        return set(place, value.toScalar().toDouble());
    case KN_PARAM_SCALAR:
        return set(place, scalar_of(value.toScalar()));
    case KN_PARAM_DTYPE:
        return set(place, dtype_of(value.toScalarType()));
    case KN_PARAM_ENUM:
        return set(place, enum_of(param, value));
    case KN_PARAM_INTS:
        return set(place, value.isInt() ? ints_of({value.toInt()}) : ints_of(value.toDimVector()));
    case KN_PARAM_GENERATOR:
        return set(place, generator_of(value.toOptional<at::Generator>(), device));
    }
}

// --- a kernel --------------------------------------------------------------------------------------------------------

class Kernel : public c10::OperatorKernel
{
  public:
    explicit Kernel(const Row &row) : op(find_op(row.operator_))
    {
        const c10::OperatorHandle handle = find_operator(row.name);
        const c10::FunctionSchema &schema = handle.schema();
        for (const c10::Argument &argument : schema.arguments())
            arguments.push_back(
                argument_of(op, row.places, argument, !argument.kwarg_only() && &argument == &schema.arguments()[0]));
        for (const Argument &argument : arguments)
            allocates &= argument.place != Place::output && argument.place != Place::both;
        const std::string name = schema.operator_name().name.substr(std::strlen("aten::"));
        by_element = elementwise.count(name) > 0;
        keeps_layout = keeping_layout.count(name) > 0;
        returns = schema.returns().size();
        params_size = kn_op_describe(op).params_size;
    }

    void operator()(const c10::OperatorHandle &handle, c10::DispatchKeySet, torch::jit::Stack *stack)
    {
        const size_t first = stack->size() - arguments.size();
        for (size_t i = first; i < stack->size(); i++)
            if (C10_UNLIKELY((*stack)[i].isTensor() && is_foreign((*stack)[i].toTensor())))
                return run_on_cpu(handle, stack);
        try {
            run(stack, first);
        } catch (const Unsupported &) {
            run_on_cpu(handle, stack);
        }
    }

  private:
    static constexpr size_t max_params = 512;

    void run(torch::jit::Stack *stack, size_t first)
    {
        const c10::Device device = device_in(*stack, first);
        alignas(16) char params[max_params];
        TORCH_INTERNAL_ASSERT(params_size <= max_params);
        kn_op_params_init(op, params);
        std::optional<at::ScalarType> dtype;
        for (size_t i = 0; i < arguments.size(); i++) {
            const c10::IValue &value = (*stack)[first + i];
            if (arguments[i].place == Place::param)
                set_param(params, arguments[i].param, value, device);
            else if (arguments[i].place == Place::dtype && !value.isNone())
                dtype = value.toScalarType();
        }
        if (dtype == at::kBool)
            raise_unsupported("the device koine has no sums and products of truth values that are such a value");
        Tensors inputs;
        c10::SmallVector<at::Tensor, 4> outputs;
        for (size_t i = 0; i < arguments.size(); i++)
            sort_tensor((*stack)[first + i], arguments[i].place, dtype, device, inputs, outputs);
        if (keeps_layout && !(*stack)[first].toTensor().is_contiguous())
            outputs.push_back(at::empty_like((*stack)[first].toTensor()));
        finish(inputs, params, outputs, stack);
    }

    c10::Device device_in(const torch::jit::Stack &stack, size_t first) const
    {
        for (size_t i = first; i < stack.size(); i++)
            if (stack[i].isTensor() && stack[i].toTensor().defined() && !stack[i].toTensor().is_cpu())
                return stack[i].toTensor().device();
        TORCH_CHECK(false, "expected a tensor on the device koine");
    }

    static void sort_tensor(const c10::IValue &value, Place place, std::optional<at::ScalarType> dtype,
                            c10::Device device, Tensors &inputs, c10::SmallVectorImpl<at::Tensor> &outputs)
    {
        if (place == Place::output || place == Place::both)
            outputs.push_back(value.toTensor());
        if (place != Place::input && place != Place::both)
            return;
        if (value.isNone() || !value.toTensor().defined())
            return inputs.add(Tensor());
        const at::Tensor &tensor = value.toTensor();
        inputs.add(dtype && tensor.scalar_type() != *dtype ? as_koine(tensor.to(device, *dtype))
                                                           : operand(tensor, device));
    }

    void finish(Tensors &inputs, const void *params, c10::SmallVectorImpl<at::Tensor> &outputs,
                torch::jit::Stack *stack)
    {
        if (allocates && outputs.empty())
            allocate(inputs, params, outputs);
        else if (by_element)
            compute_elements(op, inputs, params, outputs);
        else
            compute(op, inputs, params, outputs);
        torch::jit::drop(*stack, arguments.size());
        for (at::Tensor &output : outputs)
            torch::jit::push(*stack, std::move(output));
    }

    void allocate(Tensors &inputs, const void *params, c10::SmallVectorImpl<at::Tensor> &outputs)
    {
        const Order order = by_element ? Order(inputs) : Order();
        Tensors results;
        for (size_t i = 0; i < returns; i++)
            results.add(Tensor());
        check(kn_op_call(op, inputs.data(), inputs.size(), params, results.data(), results.size()));
        for (size_t i = 0; i < returns; i++)
            outputs.push_back(order.restore(from_koine(results.take(static_cast<int>(i)))));
    }

    const kn_op *op;
    std::vector<Argument> arguments;
    bool allocates = true, by_element, keeps_layout;
    size_t returns, params_size;
};

} // namespace

c10::OperatorHandle find_operator(const std::string &name)
{
    const size_t dot = name.find('.');
    const auto handle = c10::Dispatcher::singleton().findSchema(
        {"aten::" + name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)});
    TORCH_CHECK(handle, "torch_koine: PyTorch has no operator ", name);
    return *handle;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    for (const Row &row : rows)
        m.impl(row.name, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(row)));
}

} // namespace koine

// compute.cpp - see compute.h.
#include "compute.h"

#include "order.h"

#include <ATen/native/Resize.h>
#include <c10/core/ScalarType.h>

namespace koine
{

// --- results ---------------------------------------------------------------------------------------------------------

at::Tensor &set(at::Tensor &out, const at::Tensor &value)
{
    at::native::resize_output(out, value.sizes());
    return out.copy_(value);
}

at::Tensor &set(at::Tensor &out, kn_tensor *made) { return set(out, from_koine(made)); }

// `output` was made only to receive the result: it has no memory, and nothing else uses its storage.
static bool is_vacant(const at::Tensor &output)
{
    return output.dim() == 1 && output.numel() == 0 && output.storage().nbytes() == 0 &&
           output.storage().use_count() == 1;
}

static void deliver(const at::Tensor &value, const at::Tensor &output)
{
    TORCH_CHECK(at::canCast(value.scalar_type(), output.scalar_type()), "result type ", value.scalar_type(),
                " can't be cast to the desired output type ", output.scalar_type());
    if (is_vacant(output)) {
        const at::Tensor converted = value.to(output.scalar_type());
        output.unsafeGetTensorImpl()->set_storage_keep_dtype(converted.storage());
        output.unsafeGetTensorImpl()->set_sizes_and_strides(converted.sizes(), converted.strides());
        return;
    }
    at::native::resize_output(output, value.sizes());
    output.copy_(value);
}

static void compute_anew(const kn_op *op, Tensors &arguments, const void *params, at::TensorList outputs,
                         const Order &order)
{
    Tensors results;
    for (size_t i = 0; i < outputs.size(); i++)
        results.add(Tensor());
    check(kn_op_call(op, arguments.data(), arguments.size(), params, results.data(), results.size()));
    for (size_t i = 0; i < outputs.size(); i++)
        deliver(order.restore(from_koine(results.take(static_cast<int>(i)))), outputs[i]);
}

static void compute_into(const kn_op *op, Tensors &arguments, const void *params, at::TensorList outputs,
                         bool by_element)
{
    // An operator in place has no new result: it would return its argument, owned by `arguments`.
    if (is_vacant(outputs[0]) && !kn_op_describe(op).in_place)
        return compute_anew(op, arguments, params, outputs, by_element ? Order(arguments) : Order());
    Tensors results;
    for (const at::Tensor &output : outputs)
        results.add(output);
    const kn_status status = kn_op_call(op, arguments.data(), arguments.size(), params, results.data(), results.size());
    if (C10_LIKELY(status == KN_OK))
        return;
    if ((status != KN_ERR_SHAPE && status != KN_ERR_DTYPE) || kn_op_describe(op).in_place)
        raise_error();
    kn_error_clear();
    compute_anew(op, arguments, params, outputs, Order());
}

void compute(const kn_op *op, Tensors &arguments, const void *params, at::TensorList outputs)
{
    compute_into(op, arguments, params, outputs, false);
}

void compute_elements(const kn_op *op, Tensors &arguments, const void *params, at::TensorList outputs)
{
    compute_into(op, arguments, params, outputs, true);
}

at::Tensor result_of(const kn_op *op, Tensors &&arguments, const void *params)
{
    return call(op, std::move(arguments), params);
}

at::Tensor elements_of(const kn_op *op, Tensors &&arguments, const void *params)
{
    const Order order(arguments);
    return order.restore(call(op, std::move(arguments), params));
}

// --- numbers ---------------------------------------------------------------------------------------------------------

kn_scalar number_of(const at::Tensor &tensor)
{
    if (tensor.scalar_type() == at::kDouble)
        return kn_scalar_real(*tensor.const_data_ptr<double>());
    if (tensor.scalar_type() == at::kLong)
        return kn_scalar_int(*tensor.const_data_ptr<int64_t>());
    return scalar_of(tensor.item());
}

Tensor operand(const at::Tensor &tensor, c10::Device device)
{
    return is_number(tensor) ? as_koine(tensor.to(device)) : as_koine(tensor);
}

} // namespace koine

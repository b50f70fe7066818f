/* usage.c - compiled only, as C and C++, by every available compiler: the headers' macros give no warnings. */
#include <koine/koine.h>

void guards(kn_device *device, kn_stream *stream, kn_mem_pool *pool, kn_graph *graph);
void guards(kn_device *device, kn_stream *stream, kn_mem_pool *pool, kn_graph *graph)
{
    for (int i = 0; i < 2; i++) {
        KN_SCOPE;
        KN_NO_GRAD;
        KN_DEVICE(device);
        KN_STREAM(stream);
        KN_MEM_POOL(pool);
        KN_FORK_RNG;
        KN_RANGE("range");
        if (i == 1)
            break;
        {
            KN_GRAPH_CAPTURE(graph, stream);
        }
    }
}

/* An unbraced body, a nested loop, and a body that ignores the batch. */
kn_tensor *loops(kn_loader *loader, kn_loader *other);
kn_tensor *loops(kn_loader *loader, kn_loader *other)
{
    KN_FOR_BATCHES (batch, loader, 0)
        if (kn_batch_field(batch, "mask") == NULL)
            continue;
    KN_FOR_BATCHES (outer, loader, 1) {
        KN_FOR_BATCHES (inner, other, 1) {
            if (inner->size > outer->size)
                break;
        }
        return kn_retain(outer->input);
    }
    return NULL;
}

/* Modules with several inputs, without the macros. */
static kn_status swap(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    (void)module;
    outputs[0] = inputs[1];
    outputs[1] = inputs[0];
    return KN_OK;
}
kn_status several(kn_tensor *x);
kn_status several(kn_tensor *x)
{
    kn_module_new_many_params params = kn_module_new_many_params_init();
    params.num_inputs = params.num_outputs = 2;
    kn_module *module = kn_module_new_many_with("Swap", swap, &params);
    kn_tensor *values[] = {x, x};
    kn_status status = kn_forward_many(module, values, 2, values, 2);
    kn_module_free(module);
    return status;
}

#ifndef __cplusplus
void named_parameters(kn_tensor *x, kn_module *net, kn_loader **loader, kn_dataset *data, kn_jit *jit);
void named_parameters(kn_tensor *x, kn_module *net, kn_loader **loader, kn_dataset *data, kn_jit *jit)
{
    KN_PROFILE(.record_shapes = true);
    kn_zeros(KN_SHAPE(2, 3), .dtype = KN_F64, .requires_grad = true);
    kn_to_device(x, NULL, .device = kn_device_host(), .non_blocking = true);
    kn_copy(x, x, .non_blocking = true);
    kn_clamp(x, .min = 0);
    kn_dropout(kn_conv2d(x, x, NULL, .stride = 2), .p = 0.1);
    kn_conv_transpose1d(x, x, NULL, .stride = 2, .output_padding = 1);
    kn_max_pool3d(kn_conv3d(x, x, NULL, .strides = {2, 1, 1}, .paddings_after = {1, 0, 0}), .kernel_sizes = {1, 2, 2});
    kn_max_pool2d_with_indices(x, &x, .kernel_size = 2);
    kn_cross_entropy(x, x, .ignore_index = 0);
    kn_jit_call(jit, KN_JIT_INPUTS(x), .more = NULL);
    kn_nn_sequential(kn_nn_linear(.in_features = 2, .out_features = 2, .bias = false), kn_nn_dropout(.p = 0.2));
    kn_nn_conv_transpose2d(.in_channels = 2, .out_channels = 2, .kernel_sizes = {3, 2}, .padding = 1);
    kn_optim_adam(kn_module_parameters(net), .lr = 0.1);
    *loader = kn_loader_new(data, .batch_size = 2);
    data = kn_tensor_dataset(x, x, x);
    data = kn_tensor_dataset_of(KN_TENSORS(x, x), KN_NAMES("input", "mask"));
    data = kn_transform_dataset(data, NULL, NULL, .fields = KN_NAMES("mask"));
    kn_dataset_new(NULL, NULL, KN_FIELDS({.dtype = KN_F32, .ndim = 2, .shape = {2, 3}}, {.name = "y"}));
    kn_module_new_many("Attention", NULL, .num_inputs = 3, .num_optional = 1);
    kn_module_summary_with(net, &(kn_module_summary_params){.inputs = KN_TENSORS(x, x)});
}
#endif

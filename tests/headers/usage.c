/* usage.c - compiled only, as C and as C++, by every compiler there is: the macros of the headers give no warning. */
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
    kn_loader_new(loader, data, .batch_size = 2);
}
#endif

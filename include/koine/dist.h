/* koine/dist.h - devices of one process side by side: collectives (torch.cuda.comm) and data parallelism
 * (torch.nn.DataParallel).
 *
 * Lists of devices are arrays with their length. Values go between devices by way of the host's memory, but nothing
 * here makes the host wait for a device: every transfer is enqueued on the calling thread's current streams of the
 * devices it concerns, in their order. (Tensors on the host itself are copied at once.) Sums are taken in the order of
 * the list, always: equal inputs give equal bits. */
#ifndef KOINE_DIST_H
#define KOINE_DIST_H

#include <koine/common.h>
#include <koine/device.h>
#include <koine/module.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* --- collectives ------------------------------------------------------------------------------ *
 * Differentiable, kn_comm_all_reduce apart. Results are owned as any tensor expression's; `out` is left untouched on
 * failure. Errors: KN_ERR_ARGUMENT for no devices, a device twice, NULL; KN_ERR_DEVICE for the host where a device is
 * needed; KN_ERR_SHAPE and KN_ERR_DTYPE for tensors that do not fit together; each names the function and the values.
 */

/* A copy of `tensor`, which may be on the host, on each device: out[i] on devices[i]; the very same tensor on its own
 * device. It is read once, whatever the number of devices. */
KN_API kn_status kn_comm_broadcast(kn_tensor *tensor, kn_device *const *devices, int num_devices, kn_tensor **out);

/* The same for `count` tensors of one device, packed by dtype into buffers of at most `buffer_size` bytes (0: 10 MiB; a
 * larger tensor gets one of its own), each of which is one transfer: out[i * count + t] is tensor t on devices[i]. */
KN_API kn_status kn_comm_broadcast_coalesced(kn_tensor *const *tensors, int count, kn_device *const *devices,
                                             int num_devices, size_t buffer_size, kn_tensor **out);

/* inputs[0] + inputs[1] + ..., added in this order, on `destination` (NULL: the current device). Shapes and dtypes are
 * the same; devices are any, also one more than once. */
KN_API kn_tensor *kn_comm_reduce_add(kn_tensor *const *inputs, int num_inputs, kn_device *destination);

/* The same for `count` sums at once, packed as kn_comm_broadcast_coalesced packs: inputs[i * count + t] is what the
 * i-th of `num_inputs` devices gives to sum t, which becomes out[t]. The tensors of one i share a device. */
KN_API kn_status kn_comm_reduce_add_coalesced(kn_tensor *const *inputs, int num_inputs, int count,
                                              kn_device *destination, size_t buffer_size, kn_tensor **out);

/* `tensor`, which may be on the host, cut along `dim` (negative: from the end) into one chunk per device: out[i] on
 * devices[i], a view where that is its own device. chunk_sizes (num_devices of them) add up to the size; NULL: as
 * torch.chunk cuts, ceil(size / num_devices) each and a smaller last one, so that there may be fewer chunks than
 * devices: the rest of `out` is NULL then. A device may be given twice. */
KN_API kn_status kn_comm_scatter(kn_tensor *tensor, kn_device *const *devices, int num_devices,
                                 const int64_t *chunk_sizes, int dim, kn_tensor **out);

/* The tensors one after the other along `dim`, on `destination` (NULL: the current device; the host is allowed). Sizes
 * other than that of `dim`, and dtypes, are the same. Tensors of no dimensions make a vector. */
KN_API kn_tensor *kn_comm_gather(kn_tensor *const *tensors, int num_tensors, int dim, kn_device *destination);

typedef enum kn_reduce_op {
    KN_REDUCE_SUM = 0,
    KN_REDUCE_MEAN, /* floating dtypes */
    KN_REDUCE_MAX,  /* NaN propagates */
    KN_REDUCE_MIN
} kn_reduce_op;

/* Every tensor becomes the sum (mean, ...) of all, in place. One shape and dtype, each on a device of its own. Not
 * recorded: KN_ERR_STATE where one requires gradients, outside KN_NO_GRAD. */
KN_API kn_status kn_comm_all_reduce(kn_tensor *const *tensors, int num_tensors, kn_reduce_op op);

/* --- data parallelism ------------------------------------------------------------------------- */

/* Copies of the module for the devices, as torch.nn.parallel.replicate: see "replicas" in koine/module.h. replicas[i]
 * is for devices[i]; the caller frees each with kn_module_free. Parameters and buffers must be on devices[0]; there the
 * replica holds the very same tensors. Gradients of the replicas' parameters are summed onto the originals. */
KN_API kn_status kn_module_replicate(kn_module *module, kn_device *const *devices, int num_devices,
                                     kn_module **replicas);

/* A module that applies `module` to the parts of its input on several devices at once (torch.nn.DataParallel): the
 * input, on the first device or on the host, is scattered along `dim` in parts whose sizes differ by one at most;
 * parameters and buffers are copied to the other devices; all replicas run; the outputs are gathered along `dim` on the
 * output device. In the backward pass the replicas' gradients are summed onto the module's own parameters. Fewer
 * samples than devices: fewer replicas. If the module has several inputs or outputs, each of them is scattered or
 * gathered in this way; the inputs must have the same size along `dim`.
 *
 * The first device applies the module itself, so what it changes in its buffers or in itself stays; changes that a
 * replica makes in its buffers are lost, as in PyTorch. Dropout on a device draws from the generator of that device.
 *
 * Takes ownership of `module`, also on failure; it becomes the child "module", so parameters are named
 * "module.0.weight". kn_module_to moves it; its parameters must be on the first device when it is applied. */
typedef struct kn_data_parallel_params {
    kn_device *const *devices; /* default NULL: all GPUs, or the CPU device where there is none */
    int num_devices;
    kn_device *output_device; /* default NULL: the first of the devices; any device, or the host */
    int dim;                  /* default 0 */
} kn_data_parallel_params;
#define KN_DATA_PARALLEL_DEFAULTS .devices = NULL, .dim = 0
KN_API kn_data_parallel_params kn_data_parallel_params_init(void);
KN_API kn_module *kn_nn_data_parallel_with(kn_module *module, const kn_data_parallel_params *params);
#define kn_nn_data_parallel(module, ...)                                                                               \
    KN_CALL(kn_nn_data_parallel_with(module, &(kn_data_parallel_params){KN_DATA_PARALLEL_DEFAULTS, __VA_ARGS__}))

/* The module that a kn_nn_data_parallel wraps, borrowed; any other module itself. Its parameters have their own names:
 * kn_module_save(kn_data_parallel_inner(net), path) saves what a network that was never wrapped loads. */
KN_API kn_module *kn_data_parallel_inner(kn_module *module);

/* Takes the wrapper away: frees it and returns the module it wrapped, now the caller's; any other module itself. */
KN_API kn_module *kn_data_parallel_unwrap(kn_module *module);

KN_END_DECLS

#endif

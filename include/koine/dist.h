/* koine/dist.h - several devices in one process: collectives (torch.cuda.comm) and data parallelism
 * (torch.nn.DataParallel).
 *
 * Lists of devices are arrays with their length. Values move between devices through host memory, but the host never
 * waits for a device: each transfer is enqueued on the calling thread's current streams of both devices, in order.
 * (Tensors on the host are copied immediately.) Sums are always added in the order of the list: equal inputs give equal
 * bits. */
#ifndef KOINE_DIST_H
#define KOINE_DIST_H

#include <koine/common.h>
#include <koine/device.h>
#include <koine/group.h>
#include <koine/module.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* --- collectives ------------------------------------------------------------------------------ *
 * Differentiable, except kn_comm_all_reduce. Results are owned like those of any tensor expression; `out` is unchanged
 * on failure. Errors: KN_ERR_ARGUMENT for NULL, no devices or a duplicate device; KN_ERR_DEVICE for the host where a
 * device is needed; KN_ERR_SHAPE and KN_ERR_DTYPE for tensors that do not match. */

/* A copy of `tensor`, which may be on the host, on each device: out[i] on devices[i], or `tensor` itself on its own
 * device. It is read once, whatever the number of devices. */
KN_API kn_status kn_comm_broadcast(kn_tensor *tensor, kn_device *const *devices, int num_devices, kn_tensor **out);

/* The same for `count` tensors of one device, packed by dtype into buffers of at most `buffer_size` bytes (0: 10 MiB; a
 * larger tensor has its own buffer), one transfer per buffer: out[i * count + t] is tensor t on devices[i]. */
KN_API kn_status kn_comm_broadcast_coalesced(kn_tensor *const *tensors, int count, kn_device *const *devices,
                                             int num_devices, size_t buffer_size, kn_tensor **out);

/* inputs[0] + inputs[1] + ..., added in this order, on `destination` (NULL: the current device). Shapes and dtypes must
 * be equal; the inputs may be on any devices. */
KN_API kn_tensor *kn_comm_reduce_add(kn_tensor *const *inputs, int num_inputs, kn_device *destination);

/* `count` such sums at once, packed as by kn_comm_broadcast_coalesced: out[t] is the sum of inputs[i * count + t] over
 * the `num_inputs` devices i. The tensors of one i must be on one device. */
KN_API kn_status kn_comm_reduce_add_coalesced(kn_tensor *const *inputs, int num_inputs, int count,
                                              kn_device *destination, size_t buffer_size, kn_tensor **out);

/* `tensor`, which may be on the host, split along `dim` (negative: from the end) into one chunk per device: out[i] on
 * devices[i], a view if that is the tensor's own device. The num_devices chunk_sizes add up to the size; NULL splits
 * like torch.chunk, into ceil(size / num_devices) each and a smaller last one. That may give fewer chunks than devices;
 * the rest of `out` is then NULL. Duplicate devices are allowed. */
KN_API kn_status kn_comm_scatter(kn_tensor *tensor, kn_device *const *devices, int num_devices,
                                 const int64_t *chunk_sizes, int dim, kn_tensor **out);

/* The tensors one after another along `dim`, on `destination` (NULL: the current device; the host is allowed). Dtypes
 * and all sizes except that of `dim` must be equal. 0-dimensional tensors form a vector. */
KN_API kn_tensor *kn_comm_gather(kn_tensor *const *tensors, int num_tensors, int dim, kn_device *destination);

/* Replaces each tensor by the sum (mean, ...) of all, in place. Equal shapes and dtypes, each on a different device.
 * Not recorded: KN_ERR_STATE if one requires a gradient, outside KN_NO_GRAD. */
KN_API kn_status kn_comm_all_reduce(kn_tensor *const *tensors, int num_tensors, kn_reduce_op op);

/* --- data parallelism ------------------------------------------------------------------------- */

/* Copies of the module, replicas[i] for devices[i], as torch.nn.parallel.replicate: see "Replicas" in koine/module.h.
 * The caller frees each with kn_module_free. Parameters and buffers must be on devices[0], whose replica shares them.
 * Gradients of the replicas' parameters are added to those of the module. */
KN_API kn_status kn_module_replicate(kn_module *module, kn_device *const *devices, int num_devices,
                                     kn_module **replicas);

/* A module that applies `module` to parts of its input on several devices at once (torch.nn.DataParallel). The input,
 * on the first device or the host, is scattered along `dim` in parts whose sizes differ by at most 1; parameters and
 * buffers are copied to the other devices; all replicas run; the outputs are gathered along `dim` on the output device.
 * In the backward pass the replicas' gradients are added to those of the module. With fewer samples than devices there
 * are fewer replicas. If the module has several inputs or outputs, each is scattered or gathered; the inputs must have
 * the same size along `dim`.
 *
 * The first device applies the module itself, so its changes to buffers and to its own state persist; changes that
 * replicas make to their buffers are lost, as in PyTorch. Dropout draws from the generator of each device.
 *
 * Takes ownership of `module`, also on failure; it becomes the child "module", so parameters are named
 * "module.0.weight". kn_module_to moves it; its parameters must be on the first device when it is applied. */
typedef struct kn_data_parallel_params {
    kn_device *const *devices; /* default NULL: all GPUs, or the CPU device if there is none */
    int num_devices;
    kn_device *output_device; /* default NULL: the first of the devices; any device, or the host */
    int dim;                  /* default 0 */
} kn_data_parallel_params;
#define KN_DATA_PARALLEL_DEFAULTS .devices = NULL, .dim = 0
KN_API kn_data_parallel_params kn_data_parallel_params_init(void);
KN_API kn_module *kn_nn_data_parallel_with(kn_module *module, const kn_data_parallel_params *params);
#define kn_nn_data_parallel(module, ...)                                                                               \
    KN_CALL(kn_nn_data_parallel_with(module, &(kn_data_parallel_params){KN_DATA_PARALLEL_DEFAULTS, __VA_ARGS__}))

/* The module inside a kn_nn_data_parallel, borrowed; any other module is returned itself. Its parameters have their
 * names without "module.": kn_module_save(kn_data_parallel_inner(net), path) saves a file for the unwrapped network. */
KN_API kn_module *kn_data_parallel_inner(kn_module *module);

/* Frees the wrapper and returns the module inside, which the caller then owns; any other module is returned itself. */
KN_API kn_module *kn_data_parallel_unwrap(kn_module *module);

KN_END_DECLS

#endif

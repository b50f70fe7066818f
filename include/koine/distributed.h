/* koine/distributed.h - a module trained by all ranks of a group, each with its part of the data:
 * torch.nn.parallel.DistributedDataParallel.
 *
 *     kn_group *group = kn_group_open();
 *     kn_module *net = kn_nn_distributed(make_network(), group);
 *     kn_optim *optim = kn_optim_sgd(kn_module_parameters(net), .lr = 0.1);
 *     ... each rank: loss of its own batch, kn_backward, kn_optim_step ...
 *
 * Every rank makes the same module. At the start all get rank 0's parameters and buffers. In a backward pass gradients
 * are averaged over the ranks, so that equal optimizers keep the parameters equal: the gradient of a loss that is the
 * mean over a batch becomes that of the joint batch, if the ranks' batches have the same size. Gradients are packed
 * into buckets in the reverse order of the parameters; a bucket is sent as soon as its gradients are there, while the
 * backward pass goes on. When kn_backward returns, kn_grad is the average.
 *
 * Parameters that a pass does not use count as zeros on that rank; those that no rank uses keep the gradient that they
 * had, or none. (PyTorch asks for find_unused_parameters for that.) */
#ifndef KOINE_DISTRIBUTED_H
#define KOINE_DISTRIBUTED_H

#include <koine/common.h>
#include <koine/group.h>
#include <koine/module.h>

KN_BEGIN_DECLS

typedef struct kn_distributed_params {
    size_t bucket_bytes;       /* default 25 MiB */
    size_t first_bucket_bytes; /* of the first bucket, which should be sent early; default 1 MiB */
    bool broadcast_buffers;    /* default true: each forward pass in training mode starts from rank 0's buffers */
} kn_distributed_params;
#define KN_DISTRIBUTED_DEFAULTS                                                                                        \
    .bucket_bytes = (size_t)25 << 20, .first_bucket_bytes = (size_t)1 << 20, .broadcast_buffers = true
KN_API kn_distributed_params kn_distributed_params_init(void);

/* A collective call. Parameters and buffers must be on one device, and have the same names, shapes and dtypes on all
 * ranks: otherwise KN_ERR_STATE names the first rank that differs. The group is borrowed; it is freed after the module.
 *
 * Takes ownership of `module`, also on failure; it becomes the child "module". kn_module_save and the other functions
 * for states see the module inside, so files are those of the unwrapped network. */
KN_API kn_module *kn_nn_distributed_with(kn_module *module, kn_group *group, const kn_distributed_params *params);
#define kn_nn_distributed(module, group, ...)                                                                          \
    KN_CALL(kn_nn_distributed_with(module, group, &(kn_distributed_params){KN_DISTRIBUTED_DEFAULTS, __VA_ARGS__}))

/* To the end of the enclosing block backward passes only add to this rank's gradients; the first pass after it averages
 * what has been added (torch's no_sync, for accumulation over several batches). All ranks do the same. */
#define KN_NO_SYNC(module)                                                                                             \
    KN_GUARD(kn_no_sync_guard, kn_no_sync_, kn_distributed_enter_no_sync(module), kn_distributed_leave_no_sync)

/* The guard's functions: call one leave per enter. */
typedef struct kn_no_sync_guard {
    kn_module *module;
    bool before;
} kn_no_sync_guard;
KN_API kn_no_sync_guard kn_distributed_enter_no_sync(kn_module *module);
KN_API void kn_distributed_leave_no_sync(kn_no_sync_guard *guard);

/* The group of a module made by kn_nn_distributed; NULL, without an error, for another. Borrowed. */
KN_API kn_group *kn_distributed_group(const kn_module *module);

/* Do all ranks hold the same bits in parameters and buffers? A collective call; KN_ERR_STATE names a rank whose values
 * differ from rank 0's. */
KN_API kn_status kn_distributed_check(kn_module *module);

KN_END_DECLS

#endif

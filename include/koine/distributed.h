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
#include <koine/nn.h>
#include <koine/optim.h>

KN_BEGIN_DECLS

typedef struct kn_distributed_params {
    size_t bucket_bytes;       /* default 25 MiB */
    size_t first_bucket_bytes; /* of the first bucket, which should be sent early; default 1 MiB */
    bool broadcast_buffers;    /* default true: each forward pass in training mode starts from rank 0's buffers */
    /* KN_F16 or KN_BF16: gradients are sent in this dtype, PyTorch's fp16_compress_hook and bf16_compress_hook: rounded
     * to it, divided by the number of ranks, added in it, and converted back. Default KN_DTYPE_DEFAULT: as they are. */
    kn_dtype compress;
    /* Default 0: never. N: before every N-th pass the ranks compare their parameters' bits, by a number computed on the
     * device: kn_forward fails with KN_ERR_STATE and the name of a rank that differs from most. Not between
     * kn_distributed_join_begin and _end. */
    int check_every;
    /* Default 0. P, a multiple of the number of ranks: gradients do not depend on the number of ranks, to the bit. The
     * joint batch is always divided into P parts of equal size; a step has P / size passes, and in the k-th of them
     * rank r computes the loss of part k size + r. After the last one kn_grad is the mean of the P gradients, added in
     * the order of the parts; before, it is not to be used. Each pass sends all gradients. The forward pass must not
     * depend on the rank either: batch normalisation and dropout do. KN_NO_SYNC has no effect. */
    int parts;
} kn_distributed_params;
#define KN_DISTRIBUTED_DEFAULTS                                                                                        \
    .bucket_bytes = (size_t)25 << 20, .first_bucket_bytes = (size_t)1 << 20, .broadcast_buffers = true
KN_API kn_distributed_params kn_distributed_params_init(void);

/* A collective call. Parameters and buffers must be on one device, and have the same names, shapes and dtypes on all
 * ranks: otherwise KN_ERR_STATE names the first rank that differs. The group is borrowed; it is freed after the module.
 *
 * Takes ownership of `module`, also on failure; it becomes the child "module", and names become those of PyTorch's
 * wrapper, "module.0.weight": kn_module_save(kn_data_parallel_inner(net), path) saves a file for the network itself. */
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
 * differ from those of most. The bits are compared by a number that is computed on the device. */
KN_API kn_status kn_distributed_check(kn_module *module);

/* --- ranks with unequal numbers of batches ------------------------------------------------------------------------ *
 * torch.distributed.algorithms.Join: between these calls a rank may have fewer batches than others.
 *
 *     kn_distributed_join_begin(net, .optim = optim);
 *     ... the loop over this rank's batches ...
 *     kn_distributed_join_end(net);
 *
 * kn_distributed_join_end returns when all ranks have called it. Until then this rank answers the passes of the others
 * with zeros; in the end all get the parameters and buffers of the highest rank among those that had a batch last. Each
 * forward pass in training mode tells the others, by one small message more, and is followed by a backward pass.
 * Modules that make collective calls of their own, such as kn_nn_sync_batch_norm, cannot be used: PyTorch's neither. */
typedef struct kn_join_params {
    bool divide_by_initial_world_size; /* default true; false: averages over the ranks that have a batch */
    bool throw_on_early_termination;   /* default false; true: KN_ERR_STATE on all ranks once one has no batch */
    /* Default NULL: this rank's optimizer stands still while it answers. Else it makes a step with each pass of the
     * others, as theirs do, which keeps its state equal; kn_optim_zero needs that. */
    kn_optim *optim;
} kn_join_params;
#define KN_JOIN_DEFAULTS .divide_by_initial_world_size = true
KN_API kn_join_params kn_join_params_init(void);
/* KN_ERR_STATE if it has been called without the other, or with `parts`. */
KN_API kn_status kn_distributed_join_begin_with(kn_module *module, const kn_join_params *params);
#define kn_distributed_join_begin(module, ...)                                                                         \
    KN_CALL(kn_distributed_join_begin_with(module, &(kn_join_params){KN_JOIN_DEFAULTS, __VA_ARGS__}))
KN_API kn_status kn_distributed_join_end(kn_module *module);

/* --- batch normalisation over the joint batch --------------------------------------------------------------------- */

/* torch.nn.SyncBatchNorm for x [N, C] or [N, C, d...]: in training mode the statistics are those of the batches of all
 * ranks together, which may have different sizes, and so are the running estimates; the gradient of x takes all of them
 * into account, those of weight and bias are this rank's part, which kn_nn_distributed averages. KN_ERR_SHAPE if the
 * joint batch has one value per channel. In evaluation mode it is kn_nn_batch_norm2d. Forward and backward passes are
 * collective calls, which wait. The group is borrowed; it is freed after the module. */
KN_API kn_module *kn_nn_sync_batch_norm_with(kn_group *group, const kn_nn_batch_norm_params *params);
#define kn_nn_sync_batch_norm(group, ...)                                                                              \
    KN_CALL(kn_nn_sync_batch_norm_with(group, &(kn_nn_batch_norm_params){KN_NN_BATCH_NORM_DEFAULTS, __VA_ARGS__}))

/* Turns every batch normalisation of a module, in place, into the above (torch.nn.SyncBatchNorm.
 * convert_sync_batchnorm). Returns the module; NULL with a sticky error, also for NULL. */
KN_API kn_module *kn_convert_sync_batchnorm(kn_module *module, kn_group *group);

/* --- optimizers that share their state ---------------------------------------------------------------------------- *
 * torch.distributed.optim.ZeroRedundancyOptimizer, stage 1 of ZeRO: each rank keeps the state of some parameters and
 * steps these; after each step all ranks get all parameters. Parameters are not cut: the largest goes first, each to
 * the rank that has least. Results are those of the optimizer alone, to the bit.
 *
 *     kn_optim *optim = kn_optim_zero(kn_optim_adamw(kn_module_parameters(net), .lr = 1e-3), group);
 *
 * Gradients must be equal on all ranks, as kn_nn_distributed makes them. Steps are collective calls. A step that a
 * kn_grad_scaler skips on one rank is skipped on all. */

/* Divides an optimizer that has not been stepped; any but LBFGS. Returns it; on failure it is freed, and NULL is
 * returned with a sticky error. NULL for NULL. The group is borrowed; it is freed after the optimizer. A collective
 * call: KN_ERR_STATE if the ranks' optimizers differ. */
KN_API kn_optim *kn_optim_zero(kn_optim *optim, kn_group *group);

/* Files. kn_optim_save writes this rank's part, which kn_optim_zero_load reads together with the others'. Or all ranks
 * call kn_optim_zero_consolidate; then, until the next step, kn_optim_save on rank `to` writes the whole state, as the
 * undivided optimizer would. Either kind loads into any number of ranks, and into undivided optimizers: with
 * kn_optim_load the whole, with kn_optim_zero_load the parts, `count` files, one of each rank, in any order.
 * kn_optim_zero_consolidate (ZeroRedundancyOptimizer.consolidate_state_dict) takes host memory for the whole state on
 * rank `to`; for an undivided optimizer it does nothing. */
KN_API kn_status kn_optim_zero_consolidate(kn_optim *optim, int to);
KN_API kn_status kn_optim_zero_load(kn_optim *optim, const char *const *paths, int count);

KN_END_DECLS

#endif

/* koine/group.h - processes, or the devices of one process, that work together: torch.distributed.
 *
 * A group has kn_group_size members, its ranks 0, 1, ... Every rank makes the same calls in the same order:
 *
 *     kn_group *group = kn_group_open();            // under mpirun or srun all processes, else this one alone
 *     kn_group_broadcast(group, weight, 0);         // rank 0's values, on every rank
 *     kn_group_all_reduce(group, gradient);         // the sum over the ranks, on every rank
 *     kn_group_free(group);
 *
 * Tensors may be on any device or on the host, with any strides. Between processes values go through host memory:
 * large tensors in pieces, so that copying from the device, the network and copying to the device overlap. The memory
 * of CPU devices is exchanged itself. Processes that are all on one host exchange values in memory that they share.
 *
 * A call blocks until the result can be used; with `.work = &work` it only starts, and kn_work_wait waits:
 *
 *     kn_work *work;
 *     kn_group_all_reduce(group, gradient, .work = &work);
 *     ... work that does not use `gradient` ...
 *     kn_work_wait(work);
 *     kn_work_free(work);
 *
 * Collectives of a group run one at a time, in the order in which they were made, on a thread of the group; one that
 * blocks may run on the caller's thread. Messages that are only started are on their way meanwhile. Calls read what was
 * enqueued on the calling thread's current stream before the call, and kn_work_wait makes the then current stream wait
 * for the results. A tensor given to a call must not be used before its work has been waited for.
 *
 * Reductions of floating dtypes are made in the order of the ranks, ((x0 + x1) + x2) + ...: the same inputs on the same
 * number of ranks give the same bits, whatever the back end and wherever the ranks are, and every rank gets them.
 * Nothing here is recorded: KN_ERR_STATE if a tensor that is written requires a gradient, outside KN_NO_GRAD.
 *
 * Errors. What can be checked on one rank is checked when the call is made: KN_ERR_ARGUMENT, KN_ERR_SHAPE,
 * KN_ERR_DTYPE. Before each collective the ranks compare what they are about to do; if calls, dtypes or sizes differ
 * all ranks get KN_ERR_STATE, the message names both calls, no tensor changes, and the group can still be used. When a
 * rank is lost or does not answer in time, all calls that are under way and all later ones fail with KN_ERR_DEVICE and
 * the name of that rank; the tensors given to calls that were under way must not be used any more, as values may still
 * arrive. An unwaited call's error is reported by kn_work_wait.
 *
 * A group is used by one thread at a time. */
#ifndef KOINE_GROUP_H
#define KOINE_GROUP_H

#include <koine/common.h>
#include <koine/device.h>
#include <koine/status.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

typedef struct kn_group kn_group;
typedef struct kn_work kn_work; /* a call that has been started */

/* --- groups ------------------------------------------------------------------------------------------------------- */

typedef struct kn_group_params {
    /* "mpi", "local" (a group of this process alone), or NULL, the default: MPI if a launcher has started this process
     * (mpirun, mpiexec, srun with a PMI) and not as the only one, else local */
    const char *backend;
    double timeout;    /* seconds until a call that waits for other ranks fails; default 600 */
    double lost_after; /* seconds of silence after which another process counts as lost; default 10 */
    bool check_calls;  /* default true; false: calls are not compared, which saves one small message per call */
} kn_group_params;
#define KN_GROUP_DEFAULTS .backend = NULL, .timeout = 600, .lost_after = 10, .check_calls = true
KN_API kn_group_params kn_group_params_init(void);

/* The group of all processes that were started together. The caller frees it; NULL with an error. Starts MPI if the
 * program has not; MPI ends when the process exits after all its groups have been freed. */
KN_API kn_group *kn_group_open_with(const kn_group_params *params);
#define kn_group_open(...) KN_CALL(kn_group_open_with(&(kn_group_params){KN_GROUP_DEFAULTS, __VA_ARGS__}))

/* A group within this process: groups[i] is rank i, to be used by a thread of its own, typically with a device of its
 * own. The caller frees each. For several devices in one process, and for tests. */
KN_API kn_status kn_group_open_threads(int size, const kn_group_params *params, kn_group **groups);

/* MPI_Comm_split: the ranks that give the same `color` form a new group, ordered by `key` and then by rank. A negative
 * color takes no part and gets NULL in *part, without an error. A collective call. */
KN_API kn_status kn_group_split(kn_group *group, int color, int key, kn_group **part);

/* Waits for calls that have been started, unless the group has failed. NULL allowed. Processes that end without it are
 * failures to the launcher, which then ends the others. */
KN_API void kn_group_free(kn_group *group);

/* -1, 0 or NULL for NULL. */
KN_API int kn_group_rank(const kn_group *group);
KN_API int kn_group_size(const kn_group *group);
KN_API int kn_group_local_rank(const kn_group *group); /* among the ranks of this host: choose the device by it */
KN_API int kn_group_local_size(const kn_group *group);
KN_API const char *kn_group_backend(const kn_group *group);        /* "mpi", "local" or "threads" */
KN_API const char *kn_group_host(const kn_group *group, int rank); /* the name of its host; borrowed */

/* Seconds that the calls made so far have spent waiting for other ranks and exchanging values with them. A rank that
 * waits much less than the others is the slow one. */
KN_API double kn_group_waited(const kn_group *group);

/* Can this build load the back end `name`? If not, *reason (may be NULL) is a sentence that says why, valid until the
 * thread's next call. */
KN_API bool kn_group_backend_is_available(const char *name, const char **reason);

/* --- collectives -------------------------------------------------------------------------------------------------- */

typedef enum kn_reduce_op {
    KN_REDUCE_SUM = 0,
    KN_REDUCE_MEAN, /* floating dtypes */
    KN_REDUCE_MAX,  /* NaN propagates */
    KN_REDUCE_MIN,  /* NaN propagates */
    KN_REDUCE_PRODUCT,
    KN_REDUCE_AND, /* of bits; integers and bool */
    KN_REDUCE_OR,
    KN_REDUCE_XOR
} kn_reduce_op;

typedef struct kn_collective_params {
    kn_reduce_op op; /* of the reductions; default KN_REDUCE_SUM */
    kn_work **work;  /* default NULL: the call blocks; else receives the work, which the caller frees */
} kn_collective_params;
#define KN_COLLECTIVE_DEFAULTS .op = KN_REDUCE_SUM, .work = NULL
KN_API kn_collective_params kn_collective_params_init(void);

/* Replaces `tensor` by the reduction over all ranks. Sums of float16 and bfloat16 are rounded at each step. */
KN_API kn_status kn_group_all_reduce_with(kn_group *group, kn_tensor *tensor, const kn_collective_params *params);
/* The same on rank `root` only; elsewhere `tensor` keeps its values. */
KN_API kn_status kn_group_reduce_with(kn_group *group, kn_tensor *tensor, int root, const kn_collective_params *params);
/* Replaces `tensor` by rank `root`'s. */
KN_API kn_status kn_group_broadcast_with(kn_group *group, kn_tensor *tensor, int root,
                                         const kn_collective_params *params);
/* outputs[r] = rank r's `tensor`; kn_group_size outputs of the shape and dtype of `tensor`. */
KN_API kn_status kn_group_all_gather_with(kn_group *group, kn_tensor *const *outputs, kn_tensor *tensor,
                                          const kn_collective_params *params);
/* The same on rank `root` only; elsewhere `outputs` is NULL. */
KN_API kn_status kn_group_gather_with(kn_group *group, kn_tensor *const *outputs, kn_tensor *tensor, int root,
                                      const kn_collective_params *params);
/* `tensor` = rank root's inputs[r] on rank r; `inputs` is NULL on the others. */
KN_API kn_status kn_group_scatter_with(kn_group *group, kn_tensor *tensor, kn_tensor *const *inputs, int root,
                                       const kn_collective_params *params);
/* `tensor` = the reduction over all ranks of their inputs[r] on rank r. */
KN_API kn_status kn_group_reduce_scatter_with(kn_group *group, kn_tensor *tensor, kn_tensor *const *inputs,
                                              const kn_collective_params *params);
/* outputs[r] = rank r's inputs[this rank]. Sizes may differ from pair to pair, dtypes may not. */
KN_API kn_status kn_group_all_to_all_with(kn_group *group, kn_tensor *const *outputs, kn_tensor *const *inputs,
                                          const kn_collective_params *params);
/* Returns when all ranks have called it. */
KN_API kn_status kn_group_barrier_with(kn_group *group, const kn_collective_params *params);

#define KN_COLLECTIVE(...)                                                                                             \
    &(kn_collective_params) { KN_COLLECTIVE_DEFAULTS, __VA_ARGS__ }
#define kn_group_all_reduce(group, tensor, ...)                                                                        \
    KN_CALL(kn_group_all_reduce_with(group, tensor, KN_COLLECTIVE(__VA_ARGS__)))
#define kn_group_reduce(group, tensor, root, ...)                                                                      \
    KN_CALL(kn_group_reduce_with(group, tensor, root, KN_COLLECTIVE(__VA_ARGS__)))
#define kn_group_broadcast(group, tensor, root, ...)                                                                   \
    KN_CALL(kn_group_broadcast_with(group, tensor, root, KN_COLLECTIVE(__VA_ARGS__)))
#define kn_group_all_gather(group, outputs, tensor, ...)                                                               \
    KN_CALL(kn_group_all_gather_with(group, outputs, tensor, KN_COLLECTIVE(__VA_ARGS__)))
#define kn_group_gather(group, outputs, tensor, root, ...)                                                             \
    KN_CALL(kn_group_gather_with(group, outputs, tensor, root, KN_COLLECTIVE(__VA_ARGS__)))
#define kn_group_scatter(group, tensor, inputs, root, ...)                                                             \
    KN_CALL(kn_group_scatter_with(group, tensor, inputs, root, KN_COLLECTIVE(__VA_ARGS__)))
#define kn_group_reduce_scatter(group, tensor, inputs, ...)                                                            \
    KN_CALL(kn_group_reduce_scatter_with(group, tensor, inputs, KN_COLLECTIVE(__VA_ARGS__)))
#define kn_group_all_to_all(group, outputs, inputs, ...)                                                               \
    KN_CALL(kn_group_all_to_all_with(group, outputs, inputs, KN_COLLECTIVE(__VA_ARGS__)))
#define kn_group_barrier(group, ...) KN_CALL(kn_group_barrier_with(group, KN_COLLECTIVE(__VA_ARGS__)))

/* --- between two ranks -------------------------------------------------------------------------------------------- *
 * Blocking or started as above. A message is received by the first matching call, in the order in which it was sent.
 * Messages that are only started wait for no other call of their rank: two ranks may both start a send and then
 * receive, or start a receive and then send. A send that blocks may last until the message is received: of two ranks
 * that send to each other by such calls one receives first. Sizes must be equal: KN_ERR_SHAPE on the receiver. */
#define KN_ANY_RANK (-1)

typedef struct kn_message_params {
    int tag;        /* default 0; 0 ... 32767: messages are received only by calls with the same tag */
    int *sender;    /* default NULL; receives the rank that sent the message, once it is there */
    kn_work **work; /* default NULL: the call blocks */
} kn_message_params;
#define KN_MESSAGE_DEFAULTS .tag = 0, .work = NULL
KN_API kn_message_params kn_message_params_init(void);

KN_API kn_status kn_group_send_with(kn_group *group, kn_tensor *tensor, int to, const kn_message_params *params);
KN_API kn_status kn_group_receive_with(kn_group *group, kn_tensor *tensor, int from, /* or KN_ANY_RANK */
                                       const kn_message_params *params);
#define kn_group_send(group, tensor, to, ...)                                                                          \
    KN_CALL(kn_group_send_with(group, tensor, to, &(kn_message_params){KN_MESSAGE_DEFAULTS, __VA_ARGS__}))
#define kn_group_receive(group, tensor, from, ...)                                                                     \
    KN_CALL(kn_group_receive_with(group, tensor, from, &(kn_message_params){KN_MESSAGE_DEFAULTS, __VA_ARGS__}))

/* --- work --------------------------------------------------------------------------------------------------------- */

/* Blocks until the call is done on this rank, makes the current stream of its tensors' device wait for the results, and
 * returns the call's status. May be called again. */
KN_API kn_status kn_work_wait(kn_work *work);
KN_API bool kn_work_is_done(const kn_work *work); /* does not wait; true after a failure, and for NULL */
KN_API void kn_work_free(kn_work *work);          /* does not wait: the call goes on. NULL allowed */

/* --- profiling ---------------------------------------------------------------------------------------------------- */

/* Rank 0 writes to `path` one trace of all ranks' profiles (koine/profiler.h): a process for each rank, times on rank
 * 0's clock, to which the others' are compared by messages to and fro. A collective call after kn_profiler_stop, or
 * in on_trace_ready; if a rank has recorded nothing, or the file cannot be written, all get an error. */
KN_API kn_status kn_group_export_trace(kn_group *group, const char *path);

KN_END_DECLS

#endif

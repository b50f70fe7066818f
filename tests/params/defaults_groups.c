/* defaults_groups.c - groups of one rank, their collectives and messages. */
#include "defaults.h"

static kn_group *some_group(void)
{
    static kn_group *group;
    kn_group_free(group);
    return group = kn_group_open();
}

static char *show_group(kn_group *group)
{
    char text[64];
    if (!group)
        return show_error();
    snprintf(text, sizeof text, "%s %d", kn_group_backend(group), kn_group_size(group));
    kn_group_free(group);
    return strdup(text);
}

static char *opened_threads(const kn_group_params *params)
{
    kn_group *groups[1] = {NULL};
    return kn_group_open_threads(1, params, groups) == KN_OK ? show_group(groups[0]) : show_error();
}

CALLS(kn_group_open, kn_group_params, show_group, kn_group_open_with(params), kn_group_open())
CALLS(kn_group_open_threads, kn_group_params, opened_threads, params, NULL)

/* Tensors for a call: what it reads and what it writes. */
static kn_tensor *x, *y, *xs[1], *ys[1];
static kn_group *group;

static void prepare(void)
{
    KN_SCOPE;
    x = xs[0] = kn_retain(kn_arange(0, 3, 1, .dtype = KN_F32));
    y = ys[0] = kn_retain(kn_zeros(KN_SHAPE(3)));
    group = kn_group_open();
}

static char *written(kn_status status)
{
    char *text = status == KN_OK ? show_tensor(y) : show_error();
    kn_release(x);
    kn_release(y);
    kn_group_free(group);
    return text;
}

CALLS(kn_group_all_reduce, kn_collective_params, written, (prepare(), kn_group_all_reduce_with(group, y, params)),
      (prepare(), kn_group_all_reduce(group, y)))
CALLS(kn_group_reduce, kn_collective_params, written, (prepare(), kn_group_reduce_with(group, y, 0, params)),
      (prepare(), kn_group_reduce(group, y, 0)))
CALLS(kn_group_broadcast, kn_collective_params, written, (prepare(), kn_group_broadcast_with(group, y, 0, params)),
      (prepare(), kn_group_broadcast(group, y, 0)))
CALLS(kn_group_all_gather, kn_collective_params, written, (prepare(), kn_group_all_gather_with(group, ys, x, params)),
      (prepare(), kn_group_all_gather(group, ys, x)))
CALLS(kn_group_gather, kn_collective_params, written, (prepare(), kn_group_gather_with(group, ys, x, 0, params)),
      (prepare(), kn_group_gather(group, ys, x, 0)))
CALLS(kn_group_scatter, kn_collective_params, written, (prepare(), kn_group_scatter_with(group, y, xs, 0, params)),
      (prepare(), kn_group_scatter(group, y, xs, 0)))
CALLS(kn_group_reduce_scatter, kn_collective_params, written,
      (prepare(), kn_group_reduce_scatter_with(group, y, xs, params)),
      (prepare(), kn_group_reduce_scatter(group, y, xs)))
CALLS(kn_group_all_to_all, kn_collective_params, written, (prepare(), kn_group_all_to_all_with(group, ys, xs, params)),
      (prepare(), kn_group_all_to_all(group, ys, xs)))

static char *barrier(kn_status status) { return status == KN_OK ? strdup("done") : show_error(); }
CALLS(kn_group_barrier, kn_collective_params, barrier, kn_group_barrier_with(some_group(), params),
      kn_group_barrier(some_group()))

/* In a group of one there is nobody to send to: an error, the same each way. */
CALLS(kn_group_send, kn_message_params, barrier, kn_group_send_with(some_group(), kn_ones(KN_SHAPE(1)), 0, params),
      kn_group_send(some_group(), kn_ones(KN_SHAPE(1)), 0))
CALLS(kn_group_receive, kn_message_params, barrier,
      kn_group_receive_with(some_group(), kn_ones(KN_SHAPE(1)), 0, params),
      kn_group_receive(some_group(), kn_ones(KN_SHAPE(1)), 0))

static char *distributed(bool with, const kn_distributed_params *params)
{
    prepare();
    kn_module *net =
        with ? kn_nn_distributed_with(kn_nn_relu(), group, params) : kn_nn_distributed(kn_nn_relu(), group);
    char *text = net ? show_module(net) : show_error();
    kn_release(x);
    kn_release(y);
    kn_group_free(group);
    return text;
}
CALLS(kn_nn_distributed, kn_distributed_params, , distributed(true, params), distributed(false, NULL))

static char *joined(bool with, const kn_join_params *params)
{
    prepare();
    kn_module *net = kn_nn_distributed(kn_nn_linear(.in_features = 1, .out_features = 1), group);
    kn_status status = with ? kn_distributed_join_begin_with(net, params) : kn_distributed_join_begin(net);
    if (status == KN_OK)
        status = kn_distributed_join_end(net);
    char *text = barrier(status);
    kn_module_free(net);
    kn_release(x);
    kn_release(y);
    kn_group_free(group);
    return text;
}
CALLS(kn_distributed_join_begin, kn_join_params, , joined(true, params), joined(false, NULL))

static char *normalised(bool with, const kn_nn_batch_norm_params *params)
{
    prepare();
    kn_module *norm = with ? kn_nn_sync_batch_norm_with(group, params) : kn_nn_sync_batch_norm(group);
    char *text = norm ? show_module(norm) : show_error();
    kn_release(x);
    kn_release(y);
    kn_group_free(group);
    return text;
}
CALLS(kn_nn_sync_batch_norm, kn_nn_batch_norm_params, , normalised(true, params), normalised(false, NULL))

DEFAULTS(groups_defaults, ROW(kn_group_open), ROW(kn_group_open_threads), ROW(kn_group_all_reduce),
         ROW(kn_group_reduce), ROW(kn_group_broadcast), ROW(kn_group_all_gather), ROW(kn_group_gather),
         ROW(kn_group_scatter), ROW(kn_group_reduce_scatter), ROW(kn_group_all_to_all), ROW(kn_group_barrier),
         ROW(kn_nn_distributed), ROW(kn_distributed_join_begin), NEEDS(kn_nn_sync_batch_norm), NEEDS(kn_group_send),
         NEEDS(kn_group_receive))

/* ops/pool/lanes.c - pooling by vectors of channels, where these are innermost in memory, or of planes; see pool.h. */
#include "ops/pool/pool.h"

#include "pool/lanes.h"

/* Fewer do not fill a vector. */
enum { LEAST_CHANNELS = 8 };

/* The strides of a tensor [N, C, ...] or [C, ...] of that shape whose channels are innermost. */
static void set_strides(int64_t *strides, int ndim, const int64_t *shape, int channel)
{
    int64_t step = shape[channel];
    strides[channel] = 1;
    for (int d = ndim - 1; d >= 0; d--)
        if (d != channel) {
            strides[d] = step;
            step *= shape[d];
        }
}

static bool has_inner_channels(const kn_tensor *t, int channel)
{
    int64_t strides[KN_MAX_DIMS];
    set_strides(strides, t->ndim, t->shape, channel);
    for (int d = 0; d < t->ndim; d++)
        if (t->shape[d] != 1 && t->strides[d] != strides[d])
            return false;
    return true;
}

static int channel_of(const kn_call *call) { return call->inputs[0]->ndim - 1 - kn_pool_kind_of(call->op)->dims; }

static bool takes_channels(const kn_call *call)
{
    const kn_tensor *x = call->inputs[0];
    const int channel = channel_of(call);
    return kn_tensor_limits(x)->is_cpu && kn_numel(x) > 0 && x->shape[channel] >= LEAST_CHANNELS &&
           !kn_is_contiguous(x) && has_inner_channels(x, channel);
}

void kn_pool_arrange(const kn_call *call, kn_tensor *output)
{
    if (takes_channels(call))
        set_strides(output->strides, output->ndim, output->shape, channel_of(call));
}

bool kn_pool_has_inner_channels(const kn_call *call)
{
    return takes_channels(call) && has_inner_channels(call->outputs[0], channel_of(call));
}

kn_pool_geometry kn_pool_of_images(const kn_call *call, int64_t *channels)
{
    kn_pool_geometry g = kn_pool_of_call(call);
    *channels = call->inputs[0]->shape[channel_of(call)];
    g.planes /= *channels;
    return g;
}

kn_status kn_pool_average_channels(kn_call *call)
{
    kn_tensor *x = call->inputs[0], *y = call->outputs[0];
    int64_t channels;
    const kn_pool_geometry g = kn_pool_of_images(call, &channels);
    return kn_pool_launch(
        call->stream,
        &(kn_launch_params){.source = "pool/average_lanes.cl",
                            .options = kn_pool_kind_of(call->op)->adaptive ? " -DADAPTIVE" : "",
                            .kernel = "average_pool_channels",
                            .operation = call->op->name,
                            KN_ARGS(kn_arg_tensor(x), kn_arg_tensor(y), kn_arg_pool(&g), kn_arg_i64(channels))},
        &g, y, false, kn_numel(x) / 2);
}

/* --- small planes ------------------------------------------------------------------------------------------------- */

/* Planes that fill vectors; columns of outputs that do without. */
enum { LEAST_PLANES = 8, MANY_COLUMNS = 16 };

static int64_t volume_of(const int32_t size[3]) { return (int64_t)size[0] * size[1] * size[2]; }

bool kn_pool_has_small_planes(const kn_limits *limits, const kn_pool_geometry *g)
{
    const int64_t pixels = volume_of(g->size), outputs = volume_of(g->out_size);
    const int64_t least = g->out_size[2] < MANY_COLUMNS ? LEAST_PLANES : (int64_t)KN_POOL_LANES * limits->compute_units;
    return limits->is_cpu && g->planes >= least && pixels <= KN_POOL_MOST_PIXELS && outputs <= KN_POOL_MOST_PIXELS &&
           outputs > 1;
}

kn_status kn_pool_average_planes(kn_stream *stream, const kn_op *op, const kn_pool_geometry *g, const kn_tensor *from,
                                 kn_tensor *to, bool backward)
{
    return kn_pool_launch(
        stream,
        &(kn_launch_params){.source = "pool/average_lanes.cl",
                            .options = kn_pool_kind_of(op)->adaptive ? " -DPLANES -DADAPTIVE" : " -DPLANES",
                            .kernel = backward ? "average_pool_planes_backward" : "average_pool_planes",
                            .operation = op->name,
                            KN_ARGS(kn_arg_tensor(from), kn_arg_tensor(to), kn_arg_pool(g))},
        g, to, backward, kn_numel(backward ? to : from) / 2);
}

/* ops/pool/launch.c - work division of the pooling kernels: planes or rows of outputs on CPU devices, blocks of windows
 * on others (cl/pool/windows.clh). */
#include <stdio.h>
#include <string.h>

#include "base/divisor.h"
#include "base/integer.h"
#include "loops/work_size.h"
#include "ops/pool/pool.h"

/* Rows of windows per work-item if the window is a compile-time constant; maximum work-items per launch, for 32-bit
 * indices. */
enum { ROWS = 4, GROUP = 128, MAX_ITEMS = 1 << 30 };

static bool is_compiled_in(const kn_pool_geometry *g)
{
    const int32_t kernel = g->kernel_size[1], stride = g->stride[1];
    return kn_pool_is_image(g) && (kernel == 2 || kernel == 3) && g->kernel_size[2] == kernel && stride <= 2 &&
           g->stride[2] == stride && g->padding[1] == g->padding[2] && g->dilation[1] == 1 && g->dilation[2] == 1;
}

/* The further options of kernels for GPUs. */
static void append_windows(char *buffer, size_t size, const kn_pool_geometry *g, const kn_tensor *to)
{
    const size_t length = strlen(buffer);
    const int stride = g->stride[1];
    const bool paired = stride == 2 && g->size[2] % 2 == 0 && to->offset % 2 == 0;
    if (is_compiled_in(g))
        snprintf(buffer + length, size - length, " -DKERNEL=%d -DSTRIDE=%d -DLEFT=%d -DROWS=%d -DPAIRED=%d",
                 (int)g->kernel_size[1], stride, (int)g->padding[1], ROWS, paired);
    else
        snprintf(buffer + length, size - length, " -DKERNEL=0");
}

/* Work-items per plane: for each slice one per block of rows and column, or group of columns that a stride spans. */
static int64_t cut_plane(kn_pool_blocking *cut, const kn_pool_geometry *g, bool backward)
{
    const int64_t rows = is_compiled_in(g) ? ROWS : 1, times = is_compiled_in(g) && backward ? g->stride[1] : 1;
    const int32_t *size = backward ? g->size : g->out_size;
    const int64_t columns = kn_div_up(size[2], times), blocks = kn_div_up(size[1], times * rows);
    cut->columns = kn_divisor_of(columns);
    cut->blocks = kn_divisor_of(blocks);
    cut->slices = kn_divisor_of(size[0]);
    return columns * blocks * size[0];
}

static kn_status launch_blocks(kn_stream *stream, kn_launch_params params, const kn_pool_geometry *g,
                               const kn_tensor *to, bool backward)
{
    const size_t group = kn_tensor_limits(to)->max_work_group_size;
    kn_pool_blocking cut = {0};
    kn_arg args[12];
    const int64_t per_plane = cut_plane(&cut, g, backward);
    const int64_t most = per_plane > 0 ? kn_max_i64(1, MAX_ITEMS / per_plane) : g->planes;

    memcpy(args, params.args, (size_t)params.num_args * sizeof *args);
    args[params.num_args++] = kn_arg_struct(&cut, sizeof cut);
    params.args = args;
    params.local[0] = group < GROUP ? group : GROUP;
    for (; cut.first < g->planes; cut.first += most) {
        cut.items = (uint32_t)(kn_min_i64(most, g->planes - cut.first) * per_plane);
        params.global[0] = cut.items;
        KN_TRY(kn_launch(stream, &params));
    }
    return KN_OK;
}

kn_status kn_pool_launch(kn_stream *stream, const kn_launch_params *params, const kn_pool_geometry *g,
                         const kn_tensor *to, bool backward, int64_t count)
{
    kn_launch_params launch = *params;
    char options[192];

    snprintf(options, sizeof options, "%s -DVOLUME=%d%s", kn_dtype_options(to->dtype), !kn_pool_is_image(g),
             params->options);
    launch.options = options;
    launch.dims = 1;
    if (!kn_tensor_limits(to)->is_cpu) {
        append_windows(options, sizeof options, g, to);
        return launch_blocks(stream, launch, g, to, backward);
    }
    launch.global[0] = kn_work_for(kn_tensor_limits(to), count).global;
    return kn_launch(stream, &launch);
}

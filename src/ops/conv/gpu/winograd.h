/* ops/conv/gpu/winograd.h - shared by the passes of Winograd's convolution on GPUs (cl/conv/gpu/winograd.cl).
 *
 * The transformed tiles of the images are the columns of 36 matrices (48 with 5 x 5 kernels, in
 * backward-weights 64) per group, multiplied by
 * the transformed weights:
 *
 *     forward           m[p] = u[p] v[p]        v from x, y from m
 *     backward-data     m[p] = u[p]^T v[p]      v from dy, dx from m; kernels flipped
 *     backward-weights  m[p] = d[p] v[p]^T      v from x, d from dy, dw from m
 *
 * The products are one call of kn_gemm, never in TF32: the transforms would amplify its error six to eleven times. */
#pragma once

#include "base/divisor.h"
#include "conv/gpu/winograd.h"
#include "ops/conv/common/winograd.h"

/* The parameters of a pass depend on the shape alone, and so does the order of its sums. `windows` is the image read
 * in windows, with `inner` channels per group, `tiles` the one divided into tiles, with `outer`. */
typedef struct kn_winograd_plan {
    const kn_conv_problem *problem;
    kn_conv_side windows, tiles; /* x and y, or dy and dx */
    bool f64, data;              /* data: backward-data */
    int64_t element, groups, inner, outer;
    int64_t pairs; /* channel pairs of all groups, one kernel each */
    kn_winograd_tile tile;
    int64_t top, left;               /* start of the first tile's window in the first image */
    int64_t tile_rows, tile_columns; /* per image */
    int64_t images, chunk;           /* total, and per chunk */
    int64_t shares, share;           /* number and width of the shares of a chunk's tiles */
} kn_winograd_plan;

kn_winograd_plan kn_winograd_plan_of(const kn_conv_problem *problem);

/* Limits the calling thread's transformed tiles to `bytes`, but at least one image; returns the previous limit. For
 * tests. */
int64_t kn_winograd_limit_chunks(int64_t bytes);

/* Elements of a chunk's transformed tiles, with `channels` channels per group. */
int64_t kn_winograd_workspace(const kn_winograd_plan *plan, int64_t channels);

/* `images` images for the kernels: those read in windows, or those divided into tiles. */
kn_winograd_image kn_winograd_windows(const kn_winograd_plan *plan, int64_t images);
kn_winograd_image kn_winograd_tiles(const kn_winograd_plan *plan, int64_t images);

/* The same operands from image `first` on. */
kn_arg kn_winograd_windows_arg(const kn_winograd_plan *plan, int64_t first);
kn_arg kn_winograd_tiles_arg(const kn_winograd_plan *plan, int64_t first);

/* Build options; `buffer` has KN_CONV_OPTIONS bytes. Returns buffer. */
const char *kn_winograd_options(char *buffer, const kn_winograd_plan *plan);

/* Work-group size along the tiles. */
size_t kn_winograd_group(kn_stream *stream, int64_t most);

/* ops/conv/gpu/winograd.h - what the passes of Winograd's convolution on GPUs share (cl/conv/gpu/winograd.cl).
 *
 * Tiles of the images, transformed, are the columns of 36 matrices per group, and the transformed weights the other
 * factor:
 *
 *     forward           m[p] = u[p] v[p]        v from x, y from m
 *     backward-data     m[p] = u[p]^T v[p]      v from dy, dx from m; the kernels read from their ends
 *     backward-weights  m[p] = d[p] v[p]^T      v from x, d from dy, dw from m
 *
 * The products are one call of kn_gemm, never in TF32: the transforms make six to eleven times its error of it. */
#ifndef KN_OPS_CONV_GPU_WINOGRAD_H
#define KN_OPS_CONV_GPU_WINOGRAD_H

#include "base/divisor.h"
#include "ops/conv/common/conv.h"

enum { KN_WINOGRAD_VALUES = 36 }; /* of a transformed tile, or kernel */

typedef enum kn_winograd_pass { KN_WINOGRAD_FORWARD, KN_WINOGRAD_DATA, KN_WINOGRAD_WEIGHTS } kn_winograd_pass;

/* A pass in numbers that follow from the shape alone, so that the order of its sums does. Channels are those of one
 * group: `inner` of the image that is read in windows of 6 x 6, `outer` of the one that is cut into tiles. */
typedef struct kn_winograd_plan {
    bool f64;
    int64_t element, groups, inner, outer;
    int64_t pairs;                          /* of channels, of all groups: each has a kernel */
    int64_t kernel, tile;                   /* height and width of a kernel, of a tile */
    int64_t windows_size[2], tiles_size[2]; /* of the two images */
    int64_t top, left;                      /* where in the first one the first tile's window starts */
    int64_t tile_rows, tile_columns;        /* of an image */
    int64_t images, chunk;                  /* all, and those that go through the steps at a time */
    int64_t shares, share;                  /* of a chunk's tiles: how many, each how wide */
} kn_winograd_plan;

kn_winograd_plan kn_winograd_plan_of(const kn_conv_shape *shape, kn_winograd_pass pass);

/* The calling thread's transformed tiles take so many bytes at most, if more than one image's; returns what it was. For
 * tests. */
int64_t kn_winograd_limit_chunks(int64_t bytes);

/* Elements of the transformed tiles of a chunk with so many channels per group. */
int64_t kn_winograd_workspace(const kn_winograd_plan *plan, int64_t channels);

/* Mirror of struct winograd_image in cl/conv/gpu/winograd.cl. */
typedef struct kn_winograd_image {
    int64_t plane;
    int32_t height, width, top, left;
    uint32_t channels, tiles, places;
    kn_divisor share, columns, rows;
} kn_winograd_image;

/* `images` images as the kernels see them: those read in windows, or those cut into tiles. */
kn_winograd_image kn_winograd_windows(const kn_winograd_plan *plan, int64_t images);
kn_winograd_image kn_winograd_tiles(const kn_winograd_plan *plan, int64_t images);

/* The operand from image `first` on. */
kn_arg kn_winograd_windows_arg(const kn_winograd_plan *plan, kn_conv_operand operand, int64_t first);
kn_arg kn_winograd_tiles_arg(const kn_winograd_plan *plan, kn_conv_operand operand, int64_t first);

/* What is compiled in: "-DT=float -DWR=3 ..."; `buffer` is KN_WINOGRAD_OPTIONS long. Returns buffer. */
#define KN_WINOGRAD_OPTIONS 96
const char *kn_winograd_options(char *buffer, const kn_winograd_plan *plan, kn_conv_operand windows,
                                kn_conv_operand tiles);

/* Work-items of a group along the tiles. */
size_t kn_winograd_group(kn_stream *stream, int64_t most);

#endif

/* ops/conv/common/winograd.h - the tiles of Winograd's convolution (cl/conv/common/winograd.clh), on any device. */
#pragma once

#include "conv/common/winograd.h"
#include "ops/conv/common/conv.h"

typedef struct kn_winograd_tile {
    int64_t kernel_rows, kernel_columns;
    int64_t rows, columns;               /* of outputs; in backward-weights of dy */
    int64_t window_rows, window_columns; /* of the inputs that these read */
    int64_t values;                      /* of a transformed tile: the multiplications per channel */
} kn_winograd_tile;

/* The tile of the problem's pass. With a kernel of 5 x 5, tiles of 2 x 4 outputs have less than half the error of
 * 4 x 4, which gradients of weights can afford. A kernel of one row has tiles of one row, as signals have. */
static inline kn_winograd_tile kn_winograd_tile_of(const kn_conv_problem *problem)
{
    const int64_t rows = problem->shape.kernel_size[1], columns = problem->shape.kernel_size[2];
    kn_winograd_tile t = {.kernel_rows = rows, .kernel_columns = columns, .rows = 4, .columns = KN_WINOGRAD_COLUMNS};
    if (rows == 1)
        t.rows = 1;
    else if (rows == 5 && columns == 5 && problem->pass != KN_CONV_WEIGHTS)
        t.rows = 2;
    t.window_rows = KN_WINOGRAD_WINDOW(rows, t.rows);
    t.window_columns = KN_WINOGRAD_WINDOW(columns, t.columns);
    t.values = t.window_rows * t.window_columns;
    return t;
}

/* Is there a tile for the problem: stride and dilation 1, and a kernel of 1, 3 or 5 taps along each dimension? */
static inline bool kn_winograd_has_tile(const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    for (int d = 1; d < 3; d++)
        if (s->stride[d] != 1 || s->dilation[d] != 1 ||
            (s->kernel_size[d] != 1 && s->kernel_size[d] != 3 && s->kernel_size[d] != 5))
            return false;
    return kn_conv_is_flat(s) && s->kernel_size[1] * s->kernel_size[2] > 1;
}

/* `size`: of an image of y or dx. */
static inline int64_t kn_winograd_tiles_per_image(const kn_winograd_tile *t, const int64_t *size)
{
    return kn_div_up(size[1], t->rows) * kn_div_up(size[2], t->columns);
}

/* The ratio of multiplications of a direct convolution of the padded image to those here; partial tiles count in
 * full. */
static inline double kn_winograd_saving(const kn_winograd_tile *t, const int64_t *size)
{
    return (double)(t->kernel_rows * t->kernel_columns * size[1] * size[2]) /
           (double)(t->values * kn_max_i64(1, kn_winograd_tiles_per_image(t, size)));
}

/* Build options of the transforms. */
#define KN_WINOGRAD_OPTIONS " -DWRI=%d -DWRJ=%d -DWMI=%d"
#define KN_WINOGRAD_OPTION_VALUES(tile) (int)(tile)->kernel_rows, (int)(tile)->kernel_columns, (int)(tile)->rows

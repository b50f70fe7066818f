/* winograd_layer.h - the convolutions of test_winograd.c and test_winograd_weights.c. */
#pragma once

#include <stdint.h>

typedef struct layer {
    const char *name;
    int64_t images, in_channels, height, width, out_channels, kernel[2];
    int64_t padding; /* along dimensions of more than one tap */
    double low;      /* lower bound of x: 0 as after a ReLU, or -1 */
} layer;

static inline int64_t padding_of(const layer *l, int d) { return l->kernel[d] > 1 ? l->padding : 0; }
static inline int64_t outputs_of(const layer *l, int d)
{
    return (d == 0 ? l->height : l->width) + 2 * padding_of(l, d) - l->kernel[d] + 1;
}

/* ops/conv/cpu/bands.h - bands of rows, for the kernels of cl/conv/cpu/bands.cl. */
#pragma once

#include "conv/cpu/bands.h"

#include "ops/conv/common/correlation.h"

typedef struct kn_conv_bands {
    kn_conv_band_axis rows, columns;
    kn_conv_band_layout layout;
    int64_t length; /* elements from the first to the last pixel of a band, padded to whole tiles */
} kn_conv_bands;

/* Does the problem fit the bands' int fields? */
bool kn_conv_bands_fit(const kn_conv_problem *problem);

/* Sets all but the layout's sizes; a 1 x 1 kernel that reads all pixels treats each as a row of one. */
void kn_conv_describe_bands(kn_conv_bands *b, const kn_conv_problem *problem);

/* Chooses the rows per band for about `most` elements in tiles of `tile`, and sets the dependent sizes. */
void kn_conv_split_bands(kn_conv_bands *b, int64_t most, int64_t tile);

static inline int64_t kn_conv_band_planes(const kn_conv_bands *b) /* per channel */
{
    return (int64_t)b->rows.phases * b->columns.phases;
}

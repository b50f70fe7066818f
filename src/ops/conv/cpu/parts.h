/* ops/conv/cpu/parts.h - chooses the parts into which the kernels with vectors along the channels divide a
 * convolution's pixels (cl/conv/cpu/parts.clh). */
#pragma once

#include "ops/conv/common/slicing.h"

#include "conv/cpu/parts.h"

/* The rows (d = 1) of one residue class, or the columns (d = 2) of `classes` of them: backward-data; others have one.
 * The part is 1. */
kn_conv_axis kn_conv_axis_of(const kn_conv_problem *problem, int d, int64_t residue, int64_t classes, int64_t y_step);

/* Rows or columns of a part's copy. */
int64_t kn_conv_copied(const kn_conv_axis *axis);

/* What limits a unit, and what it costs. */
typedef struct kn_conv_unit_limits {
    int64_t pixels;     /* at most */
    int64_t elements;   /* of a channel's copy at most */
    int64_t least;      /* of a row's pixels, of which a part is a multiple */
    int64_t tile;       /* pixels are summed this many at a time */
    double pixel, part; /* cycles per input channel: for a pixel, and besides */
} kn_conv_unit_limits;

/* Sets the parts: whole rows if these are short enough, and whole images; counts the units. */
void kn_conv_choose_parts(kn_conv_parts *parts, const kn_conv_unit_limits *limits, int64_t block);
void kn_conv_count_units(kn_conv_parts *parts, int64_t block);

/* Sets the layout of the copy, or that of x itself if it is read in place: with `taps` per input channel, from `planes`
 * of x by turns. */
void kn_conv_lay_out_copy(kn_conv_parts *parts, int64_t taps, int64_t planes);

/* The vectors along the channels, and how many pixels or taps by these fit in registers (`columns`). */
kn_conv_tile kn_conv_choose_channel_tile(const kn_limits *limits, bool f64, int64_t channels);

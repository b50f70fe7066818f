/* ops/conv/cpu/winograd_divide.h - how Winograd convolutions are divided among the cores (winograd.c). */
#pragma once

#include <stdint.h>

/* One group's work. */
typedef struct kn_winograd_work {
    int64_t tiles; /* in all */
    int64_t inner; /* channels */
    int64_t outer; /* vectors of channels */
    int64_t groups, cores;
    int64_t register_tiles; /* in a register tile (MT) */
} kn_winograd_work;

/* Blocks of `tiles` tiles, a multiple of register_tiles, by parts of the output channels. */
typedef struct kn_winograd_division {
    int64_t tiles, parts;
    int64_t vectors; /* of output channels in a register tile (KV) */
} kn_winograd_division;

/* Of weights that were transformed before: blocks of two register tiles or one. Each part transforms its tiles. */
kn_winograd_division kn_winograd_divide_many(const kn_winograd_work *work, int64_t vectors);

/* Of tiles that were transformed before: blocks of at most `most` tiles, each of which transforms its weights. A part
 * has the vectors of a register tile: these or, where cores would be idle, two. */
kn_winograd_division kn_winograd_divide_few(const kn_winograd_work *work, int64_t vectors, int64_t most);

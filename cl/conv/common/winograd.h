/* conv/common/winograd.h - the sizes of Winograd's tiles (conv/common/winograd.clh), for kernels and their callers. */
#pragma once

#define KN_WINOGRAD_TILE 4                                           /* outputs of a tile, along each dimension */
#define KN_WINOGRAD_WINDOW(kernel) ((kernel) + KN_WINOGRAD_TILE - 1) /* inputs that it reads, and points */
#define KN_WINOGRAD_VALUES(kernel) (KN_WINOGRAD_WINDOW(kernel) * KN_WINOGRAD_WINDOW(kernel))

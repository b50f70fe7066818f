/* conv/common/winograd.h - the sizes of Winograd's tiles (conv/common/winograd.clh), for kernels and their callers. */
#pragma once

#define KN_WINOGRAD_COLUMNS 4 /* outputs of a row of a tile */

/* Inputs that a tile of so many outputs reads along a dimension of the kernel: as many as there are points. */
#define KN_WINOGRAD_WINDOW(kernel, outputs) ((kernel) + (outputs)-1)

/* loops/transpose.h - copies between layouts whose dense dimensions differ. */
#pragma once

#include "loops/layout.h"
#include "loops/operand.h"

/* The lanes of a copy's layout. */
enum { KN_TO, KN_FROM };

/* If the destination is dense in its last dimension and the source in another one, and the device has a tiled kernel
 * for it, that other dimension; else -1. */
int kn_transposed_dim(const kn_limits *limits, const kn_layout *layout, kn_dtype dtype);

/* Copies along these two, without converting the elements. Of the operands' strides the layout takes the place. */
kn_status kn_copy_transposed(kn_stream *stream, const kn_layout *layout, int dim, const kn_operand *to,
                             const kn_operand *from);

/* OpenCL's unsigned type that is as wide as the dtype: for kernels that only move elements. */
const char *kn_bits_type(kn_dtype dtype);

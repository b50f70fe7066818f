/* ops/conv/cpu/products.h - 1 x 1 convolutions as matrix products (products.c, pairs.c). */
#pragma once

#include "ops/conv/common/conv.h"
#include "ops/gemm/tile.h"

/* Forward or backward-data of a problem that reads each pixel once, as a product for each image; `gemm` is the caller's
 * storage. */
kn_tile_product kn_conv_product_of(kn_gemm_problem *gemm, const kn_conv_problem *problem);

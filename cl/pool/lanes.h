/* pool/lanes.h - small planes, which are pooled as the lanes of vectors (pool/planes.clh). */
#pragma once

#define KN_POOL_LANES 16
#define KN_POOL_MOST_PIXELS 1024 /* of an input or output plane */

/* tensor/quads.h - launches over operands with any strides on devices that are no CPUs: four elements per work-item and
 * step, as cl/pointwise/quads.clh finds them. */
#ifndef KN_TENSOR_QUADS_H
#define KN_TENSOR_QUADS_H

#include "rt/rt.h"
#include "tensor/tensor.h"

#define KN_QUAD_OPERANDS 9

/* What a kernel goes over. Number 0 is the output. The kernel knows `lanes` operands, of which `operands` are in use.
 */
typedef struct kn_quad_layout {
    int ndim, operands, lanes;
    int64_t shape[KN_MAX_DIMS];                     /* at least one dimension, none of size 0 */
    int64_t strides[KN_QUAD_OPERANDS][KN_MAX_DIMS]; /* in elements; 0 where broadcast */
    int64_t start[KN_QUAD_OPERANDS];                /* in elements, from where the kernel's pointer is */
    bool aligned[KN_QUAD_OPERANDS];                 /* four elements at a time may be read from that pointer on */
} kn_quad_layout;

/* Whether the tensor's first four elements lie as a vector does. */
static inline bool kn_quad_aligned(const kn_tensor *tensor) { return tensor->offset % 4 == 0; }

/* Launches `params`, whose argument number `plan` becomes the kn_quads of the kernel, and whose sizes are set here:
 * several times if there are 2^31 elements and more. */
kn_status kn_launch_quads(kn_stream *stream, const kn_limits *limits, const kn_launch_params *params, int plan,
                          const kn_quad_layout *layout);

#endif

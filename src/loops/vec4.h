/* loops/vec4.h - launches over operands with any strides on GPUs: four elements per work-item and step, as
 * cl/pointwise/vec4.clh finds them. */
#ifndef KN_LOOPS_VEC4_H
#define KN_LOOPS_VEC4_H

#include "loops/layout.h"
#include "rt/rt.h"

/* What a kernel goes over. Lane 0 is the outputs'. */
typedef struct kn_vec4_plan {
    kn_layout layout;
    int64_t start[KN_LAYOUT_LANES]; /* elements, from where the kernel's pointers are */
    bool aligned[KN_LAYOUT_LANES];  /* four elements at a time may be read from there on */
} kn_vec4_plan;

/* Launches `params`, whose argument number `plan` becomes the kn_vec4_plan of the kernel, and whose sizes are set here:
 * several times if there are 2^31 elements and more. */
kn_status kn_launch_vec4(kn_stream *stream, const kn_limits *limits, const kn_launch_params *params, int plan,
                         const kn_vec4_plan *quads);

#endif

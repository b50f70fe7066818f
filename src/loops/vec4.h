/* loops/vec4.h - launches over operands with any strides on GPUs: four elements per work-item and step
 * (cl/pointwise/vec4.clh). */
#pragma once

#include "loops/layout.h"
#include "rt/rt.h"

/* A kernel's iteration space. Lane 0 belongs to the outputs. */
typedef struct kn_vec4_operands {
    kn_layout layout;
    int64_t start[KN_LAYOUT_LANES]; /* elements, relative to the kernel's pointers */
    bool aligned[KN_LAYOUT_LANES];  /* aligned for loads of four elements */
} kn_vec4_operands;

/* Launches `params` with argument number `plan` set to the kernel's kn_vec4_plan and the sizes set here; several
 * launches for 2^31 elements or more. */
kn_status kn_launch_vec4(kn_stream *stream, const kn_limits *limits, const kn_launch_params *params, int plan,
                         const kn_vec4_operands *operands);

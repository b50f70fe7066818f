/* ops/pool/pool2d.h - the geometry of 2-d pooling, from the caller's parameters to the kernels' argument. */
#ifndef KN_OPS_POOL_POOL2D_H
#define KN_OPS_POOL_POOL2D_H

#include <koine/functional.h>

#include "autograd/op.h"

/* As `pool2d` in cl/pool/pool2d.clh; pairs are {height, width}. Also the parameters of every pooling op. */
typedef struct kn_pool2d_geometry {
    int64_t planes;
    int32_t height, width, out_height, out_width;
    int32_t kernel_size[2], stride[2], padding[2], dilation[2];
    int32_t count_include_pad;
    int32_t activation; /* kn_activation, for the host */
    int64_t divisor;
} kn_pool2d_geometry;

/* From x [N, C, H, W] or [C, H, W] and the parameters; fails as tensor expressions do. */
bool kn_pool2d_of(kn_pool2d_geometry *geometry, const char *function, const kn_tensor *x,
                  const kn_pool2d_params *params);
bool kn_pool2d_adaptive(kn_pool2d_geometry *geometry, const char *function, const kn_tensor *x, int64_t height,
                        int64_t width);

/* Shape rule: output 0 of a pooling op. */
kn_status kn_pool2d_shape(kn_call *call);

/* Work: a comparison or addition per element of a window; for averages the same in backward. */
kn_work kn_pool2d_work(const kn_call *call);
kn_work kn_pool2d_average_backward_work(const kn_grad_call *grad);
/* Adding a gradient where the maximum lay, once per output. */
kn_work kn_pool2d_max_backward_work(const kn_grad_call *grad);

/* A geometry as a kernel argument; must live until the launch returns. */
static inline kn_arg kn_arg_pool2d(const kn_pool2d_geometry *g) { return kn_arg_struct(g, sizeof *g); }

/* Launches a pooling kernel, whose options and arguments are given, and sets its sizes: on CPU devices those of `count`
 * pieces of work (kn_work_for), without argument number `cut`; on the others that becomes how the work is cut, and
 * options are added (cl/pool/windows.clh). Writes `to`: the outputs or, `backward`, the input's gradient. */
kn_status kn_pool2d_launch(kn_stream *stream, const kn_launch_params *params, int cut, const kn_pool2d_geometry *g,
                           const kn_tensor *to, bool backward, int64_t count);

#endif

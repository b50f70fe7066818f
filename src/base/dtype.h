/* base/dtype.h - what kernels are told of element types. */
#ifndef KN_BASE_DTYPE_H
#define KN_BASE_DTYPE_H

#include <koine/dtype.h>

/* OpenCL C's name of a dtype as it lies in memory ("float", "uchar"), and the options that define T as it (static
 * strings): "-DT=float", "-DT=double -DKN_USE_F64". */
const char *kn_dtype_cl(kn_dtype dtype);
const char *kn_dtype_options(kn_dtype dtype);

#endif

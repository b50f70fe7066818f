/* base/dtype.h - how kernels are told the element type. */
#ifndef KN_BASE_DTYPE_H
#define KN_BASE_DTYPE_H

#include <koine/dtype.h>

/* The OpenCL C type that stores a dtype ("float", "uchar"), and the build options that define T as it ("-DT=float",
 * "-DT=double -DKN_USE_F64"). Static strings. */
const char *kn_dtype_cl(kn_dtype dtype);
const char *kn_dtype_options(kn_dtype dtype);

/* Is it one of the dtypes, and not KN_DTYPE_DEFAULT? */
bool kn_dtype_is_valid(kn_dtype dtype);

#endif

/* common/shared.h - structs that the library fills in and kernels read. Headers of cl/ whose names end in .h are
 * included by both C and OpenCL C, so that each struct is defined once.
 *
 * Their members have the types below, which are the same in both languages, larger ones first, so that there is no
 * padding, which KN_SHARED_SIZE checks. */
#pragma once

#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__) /* compilers define one or both */
typedef int kn_int;
typedef uint kn_uint;
typedef long kn_long;
#else
#include <stdint.h>
typedef int32_t kn_int;
typedef uint32_t kn_uint;
typedef int64_t kn_long;
#endif

#ifndef KN_MAX_DIMS
#define KN_MAX_DIMS 8 /* as in koine/dtype.h */
#endif

#define KN_SHARED_SIZE(type, bytes) typedef char type##_has_no_padding[sizeof(type) == (bytes) ? 1 : -1]

/* base/dtype.h - what dtypes are to kernels and to the host. */
#pragma once

#include <koine/dtype.h>

/* The OpenCL C type that stores a dtype ("float", "uchar"; bfloat16 is stored as ushort), and the build options that
 * define T as it ("-DT=float", "-DT=double -DKN_USE_F64"). Static strings. */
const char *kn_dtype_cl(kn_dtype dtype);
const char *kn_dtype_options(kn_dtype dtype);
static inline const char *kn_options_f64_or_f32(bool f64) { return kn_dtype_options(f64 ? KN_F64 : KN_F32); }

/* The end of the names of the macros that load a dtype as what it is computed in (cl/pointwise/elements.clh): "PLAIN"
 * where that is how it is stored, "HALF", "BFLOAT". */
const char *kn_dtype_kind(kn_dtype dtype);

/* Is it one of the dtypes, and not KN_DTYPE_DEFAULT? */
bool kn_dtype_is_valid(kn_dtype dtype);

/* float16 and bfloat16, which are storage: arithmetic is in float32. */
bool kn_dtype_is_reduced(kn_dtype dtype);

/* The dtype that kernels compute `dtype` in: float32 for float16 and bfloat16, else itself. */
kn_dtype kn_compute_type(kn_dtype dtype);

/* The bounds of a whole dtype. */
int64_t kn_dtype_lowest(kn_dtype dtype);
int64_t kn_dtype_highest(kn_dtype dtype);

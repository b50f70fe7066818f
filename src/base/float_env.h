/* base/float_env.h - how the calling thread computes: it may round in another direction or take subnormal numbers for
 * zero, as programs linked with -ffast-math do. Kernels compute as the standard says, whichever thread runs them. */
#pragma once

#include <fenv.h>

#if defined(__x86_64__)

typedef unsigned kn_float_env;

/* Of MXCSR: all exceptions masked, rounding to nearest; and the flags of exceptions that have occurred. */
enum { KN_FLOAT_DEFAULT = 0x1f80, KN_FLOAT_FLAGS = 0x3f };

static inline kn_float_env kn_float_begin(void)
{
    const unsigned before = __builtin_ia32_stmxcsr();
    if ((before & ~(unsigned)KN_FLOAT_FLAGS) != KN_FLOAT_DEFAULT)
        __builtin_ia32_ldmxcsr(KN_FLOAT_DEFAULT);
    return before;
}

static inline void kn_float_end(kn_float_env before)
{
    if ((before & ~(unsigned)KN_FLOAT_FLAGS) != KN_FLOAT_DEFAULT)
        __builtin_ia32_ldmxcsr(before);
}

#else

typedef fenv_t kn_float_env;

static inline kn_float_env kn_float_begin(void)
{
    fenv_t before;
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    return before;
}

static inline void kn_float_end(kn_float_env before) { fesetenv(&before); }

#endif

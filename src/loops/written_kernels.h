/* loops/written_kernels.h - kernels that the engines write at run time, kept by what they were written for. */
#ifndef KN_LOOPS_WRITTEN_KERNELS_H
#define KN_LOOPS_WRITTEN_KERNELS_H

#include <stdatomic.h>

#include "rt/program/user_source.h"

typedef struct kn_written_kernel kn_written_kernel;

/* The kernels of one code. {0} is empty. Thread-safe. */
typedef struct kn_written_kernels {
    _Atomic(kn_written_kernel *) first;
} kn_written_kernels;

/* Appends the source of the kernel of `code` for `form`. */
typedef void (*kn_kernel_writer)(kn_text *out, const void *code, const void *form);

typedef struct kn_kernel_request {
    const char *prefix, *name; /* the kernel's name is both */
    const void *code, *form;
    size_t form_size; /* bytes, compared as such */
    kn_kernel_writer write;
} kn_kernel_request;

/* The kernel, written at the first request. Lives until kn_written_kernels_free. */
kn_status kn_written_kernel_get(const kn_user_source **kernel, kn_written_kernels *kernels,
                                const kn_kernel_request *request);

void kn_written_kernels_free(kn_written_kernels *kernels);

/* Options to build with: literals are single unless it is double that is computed in, so that they are as precise as
 * T and none that vectors of floats refuse. `uses_f64`: double is also read or written. */
const char *kn_written_kernel_options(bool computes_f64, bool uses_f64);

/* The end of the name of the macro (cl/pointwise/elements.clh) that stores values of dtype `compute` as `dtype`. */
const char *kn_store_kind(int compute, int dtype);

#endif

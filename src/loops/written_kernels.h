/* loops/written_kernels.h - cache of the kernels that the engines write at run time, keyed by form. */
#pragma once

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
    const char *prefix, *name; /* concatenated to the kernel's name */
    const void *code, *form;
    size_t form_size; /* bytes; compared bytewise */
    kn_kernel_writer write;
    bool has_user_code; /* there is code of the user's in it */
} kn_kernel_request;

/* The kernel, written on first request. Lives until kn_written_kernels_free. */
kn_status kn_written_kernel_get(const kn_user_source **kernel, kn_written_kernels *kernels,
                                const kn_kernel_request *request);

void kn_written_kernels_free(kn_written_kernels *kernels);

/* Build options: literals are single precision unless the compute type is double, because double literals do not mix
 * with float vectors. `uses_f64`: double is also read or written. */
const char *kn_written_kernel_options(bool computes_f64, bool uses_f64);

/* The end of the name of the macro (cl/pointwise/elements.clh) that stores values of dtype `compute` as `dtype`. */
const char *kn_store_kind(int compute, int dtype);

/* rt/program/kernel_sources.h - the kernel sources embedded in the library, by their path under cl/; made by
 * cmake/embed_kernels.cmake. */
#pragma once

typedef struct kn_kernel_source {
    const char *path;
    const char *const *lines; /* ended by NULL */
} kn_kernel_source;

extern const kn_kernel_source kn_kernel_sources[]; /* ended by a NULL path */

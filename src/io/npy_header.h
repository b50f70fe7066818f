/* io/npy_header.h - the header of a NumPy .npy file: a Python dictionary in text. */
#pragma once

#include <koine/tensor.h>

#include "io/elements.h"

typedef struct kn_npy_header {
    kn_element element;
    bool swap;          /* the byte order is not this machine's */
    bool fortran_order; /* column-major */
    int ndim;
    int64_t shape[KN_MAX_DIMS];
} kn_npy_header;

typedef struct kn_npy_error {
    size_t position;
    char expected[160];
} kn_npy_error;

/* Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }` and the spaces and newline after it. On failure
 * it returns false and sets *error to where and what was expected. */
bool kn_npy_parse_header(kn_npy_header *header, const char *text, size_t length, kn_npy_error *error);

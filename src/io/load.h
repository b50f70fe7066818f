/* io/load.h - shared by the readers: makes host tensors from stored elements. */
#ifndef KN_IO_LOAD_H
#define KN_IO_LOAD_H

#include "io/elements.h"
#include "io/source.h"
#include "tensor/tensor.h"

/* Makes a contiguous host tensor of the dtype that holds `element` from `stored`. `offset` is where the data starts in
 * the file, for the message about a uint64 that does not fit an int64 (KN_ERR_FORMAT). */
kn_status kn_tensor_from_stored(kn_tensor **tensor, const kn_source *source, uint64_t offset, const void *stored,
                                kn_element element, bool swap, int ndim, const int64_t *shape);

/* Passes an owned reference to the caller as public functions do: sets *result, or returns the scope's error. */
kn_status kn_return_tensor(kn_tensor **result, kn_tensor *owned);

#endif

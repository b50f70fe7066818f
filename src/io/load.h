/* io/load.h - what the readers share: making host tensors from stored elements. */
#ifndef KN_IO_LOAD_H
#define KN_IO_LOAD_H

#include "io/elements.h"
#include "io/source.h"
#include "tensor/tensor.h"

/* A contiguous host tensor of the dtype that holds `element`, filled from `stored`. `offset`: where in the file the
 * data starts, for the message about a uint64 that does not fit an int64 (KN_ERR_FORMAT). */
kn_status kn_tensor_from_stored(kn_tensor **tensor, const kn_source *source, uint64_t offset, const void *stored,
                                kn_element element, bool swap, int ndim, const int64_t *shape);

/* Hands an owned reference to the caller as public functions do: *result is set, or the scope's failure returned. */
kn_status kn_return_tensor(kn_tensor **result, kn_tensor *owned);

#endif

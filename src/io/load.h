/* io/load.h - shared by the readers: makes host tensors from stored elements. */
#pragma once

#include "io/elements.h"
#include "io/source.h"
#include "tensor/tensor.h"

/* Makes a contiguous host tensor of the dtype that holds `element` from `stored`. `offset` is where the data starts in
 * the file, for the message about a uint64 that does not fit an int64 (KN_ERR_FORMAT). */
kn_status kn_tensor_from_stored(kn_tensor **tensor, const kn_source *source, uint64_t offset, const void *stored,
                                kn_element element, bool swap, int ndim, const int64_t *shape);

/* A public function that loads one tensor: opens the file, reads it with `read`, which makes an owned reference, and
 * passes that to the caller's scope. NULL with a sticky error. */
kn_tensor *kn_load_tensor(const char *function, const char *path, bool may_be_gzipped,
                          kn_status (*read)(kn_tensor **tensor, kn_source *source));

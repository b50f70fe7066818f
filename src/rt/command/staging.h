/* rt/command/staging.h - pinned memory for small writes: the source may be reused at once, without waiting. */
#pragma once

#include <koine/status.h>

typedef struct kn_staging_block kn_staging_block;

/* A block of at least `bytes`, owned by the caller until kn_staging_release. NULL, without an error, if the write is
 * too large, all blocks are in use, or memory is short; the caller must then wait for the copy. */
kn_staging_block *kn_staging_acquire(kn_device *device, size_t bytes);
void *kn_staging_data(kn_staging_block *block);

/* Returns the block, which is reused once the work enqueued on the stream so far is done. */
void kn_staging_release(kn_device *device, kn_staging_block *block, kn_stream *stream);

/* rt/command/staging.h - pinned memory for small writes: the source may be reused at once, and nobody waits. */
#ifndef KN_RT_COMMAND_STAGING_H
#define KN_RT_COMMAND_STAGING_H

#include <koine/status.h>

typedef struct kn_staging_block kn_staging_block;

/* A block of at least `bytes`, the caller's until kn_staging_release. NULL without an error when there is none: the
 * write is too large, all blocks are in use by copies, or memory is short. The copy must wait then. */
kn_staging_block *kn_staging_acquire(kn_device *device, size_t bytes);
void *kn_staging_data(kn_staging_block *block);

/* Gives the block back: to be used again once the work enqueued on the stream so far has passed. */
void kn_staging_release(kn_device *device, kn_staging_block *block, kn_stream *stream);

#endif

/* io/source.h - the bytes of a file in order, plain or unpacked from gzip, with errors that tell the file and the
 * offset. */
#ifndef KN_IO_SOURCE_H
#define KN_IO_SOURCE_H

#include <koine/common.h>
#include <koine/status.h>

typedef struct kn_source kn_source;

/* A regular file: others would be waited for. Files of formats that are known and not read here, PyTorch's pickles say,
 * are an error that says what they are. With `allow_gzip`, a file that starts with gzip's magic bytes is unpacked as it
 * is read; offsets then count unpacked bytes. The path must outlive the source. */
kn_status kn_source_open(kn_source **source, const char *path, bool allow_gzip);
void kn_source_close(kn_source *source); /* NULL allowed */

uint64_t kn_source_size(const kn_source *source);   /* bytes of the file, packed where it is */
uint64_t kn_source_offset(const kn_source *source); /* bytes read so far */

/* Goes on reading at `offset`; not in gzip. */
void kn_source_seek(kn_source *source, uint64_t offset);

/* Reads up to `bytes`; fewer only at the end. Damaged or truncated gzip data is KN_ERR_FORMAT. */
kn_status kn_source_read(kn_source *source, void *destination, size_t bytes, size_t *got);

/* Reads exactly `bytes`; "expected N bytes of WHAT, found M" otherwise. */
kn_status kn_source_read_exactly(kn_source *source, void *destination, size_t bytes, const char *what);

/* The same into a block of its own, which the caller frees. More than the file can hold is refused at once, and out of
 * gzip the block grows as data arrives, so that a few bytes that claim a large size cost nothing. */
kn_status kn_source_read_block(kn_source *source, unsigned char **block, uint64_t bytes, const char *what);

/* Fails unless the end is reached (and, for gzip, its checksum holds). */
kn_status kn_source_expect_end(kn_source *source, const char *after_what);

/* KN_ERR_FORMAT: "'PATH', at byte OFFSET[ of the unpacked data]: ..." */
kn_status kn_source_fail(const kn_source *source, uint64_t offset, const char *format, ...) KN_PRINTF(3, 4);

#endif

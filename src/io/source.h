/* io/source.h - sequential reading of a file, plain or gzip; errors name the file and the offset. */
#pragma once

#include <koine/common.h>
#include <koine/status.h>

typedef struct kn_source kn_source;

/* Opens a regular file (others might block). A known format that Koine does not read, such as a PyTorch pickle, is an
 * error that names it. With `allow_gzip`, a file that starts with gzip's magic bytes is decompressed as it is read, and
 * offsets count decompressed bytes. The path must outlive the source. */
kn_status kn_source_open(kn_source **source, const char *path, bool allow_gzip);
void kn_source_close(kn_source *source); /* NULL allowed */

uint64_t kn_source_size(const kn_source *source);   /* bytes of the file, as stored */
uint64_t kn_source_offset(const kn_source *source); /* bytes read so far */

/* Continues reading at `offset`. Not for gzip. */
void kn_source_seek(kn_source *source, uint64_t offset);

/* Reads up to `bytes`; fewer only at the end. Damaged or truncated gzip data is KN_ERR_FORMAT. */
kn_status kn_source_read(kn_source *source, void *destination, size_t bytes, size_t *got);

/* Reads exactly `bytes`; "expected N bytes of WHAT, found M" otherwise. */
kn_status kn_source_read_exactly(kn_source *source, void *destination, size_t bytes, const char *what);

/* The same into a new block, which the caller frees. More than the file can hold is refused at once, and for gzip the
 * block grows as data arrives, so that a small file claiming a large size costs nothing. */
kn_status kn_source_read_block(kn_source *source, unsigned char **block, uint64_t bytes, const char *what);

/* A whole file, plain or gzipped, with a NUL after its `size` bytes; the caller frees it. */
kn_status kn_source_read_file(char **text, size_t *size, const char *path);

/* Fails unless the end is reached (and, for gzip, its checksum holds). */
kn_status kn_source_expect_end(kn_source *source, const char *after_what);

/* KN_ERR_FORMAT: "'PATH', at byte OFFSET[ of the decompressed data]: ..." */
kn_status kn_source_fail(const kn_source *source, uint64_t offset, const char *format, ...) KN_PRINTF(3, 4);

/* tests/io/files.h - files for tests: a folder removed at exit, reading and writing bytes, deterministic damage. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <koine/tensor.h>

/* A growing byte buffer; `append_*` exit if out of memory. Initialise with {0}; free with bytes_free. */
typedef struct byte_block {
    unsigned char *data;
    size_t size, capacity;
} byte_block;
void append(byte_block *to, const void *data, size_t size);
void append_text(byte_block *to, const char *text);
void append_little(byte_block *to, uint64_t value, int size); /* `size` bytes, little-endian */
void append_big(byte_block *to, uint64_t value, int size);
void bytes_free(byte_block *to);

/* NAME in this program's temporary folder; valid until four more calls. */
const char *temporary(const char *name);

void write_bytes(const char *path, const void *data, size_t size);
void write_gzip(const char *path, const void *data, size_t size);
byte_block bytes_of_file(const char *path);
bool file_is(const char *path, const void *data, size_t size);

/* A copy of `data` in host memory; fails the test if there is none. */
kn_tensor *host_tensor(kn_dtype dtype, const void *data, int ndim, const int64_t *shape);

/* The number of files in the folder of `path`, including itself: detects leftover temporary files. */
int count_files_beside(const char *path);

/* The n-th damaged copy of `original`, the same in every run: bytes changed, truncated, repeated or inserted. The
 * caller frees it. */
byte_block mutated(const byte_block *original, uint64_t n);

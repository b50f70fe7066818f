/* base/hash.h - 128-bit content hashes (XXH3) as 32 hexadecimal digits. Not cryptographic. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define KN_HASH_TEXT 33 /* 32 digits and a NUL */

typedef struct kn_hash {
    uint64_t high, low;
} kn_hash;

kn_hash kn_hash_bytes(const void *data, size_t size);
kn_hash kn_hash_text(const char *text);
uint32_t kn_hash_name(const char *name, uint64_t seed); /* for hash tables */
kn_hash kn_hash_combine(kn_hash a, kn_hash b);
const char *kn_hash_format(char buffer[KN_HASH_TEXT], kn_hash hash);

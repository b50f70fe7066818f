/* base/hash.c - content hashes, by header-only xxHash (no run-time dependency). */
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

kn_hash kn_hash_bytes(const void *data, size_t size)
{
    XXH128_hash_t hash = XXH3_128bits(data, size);
    return (kn_hash){.high = hash.high64, .low = hash.low64};
}

kn_hash kn_hash_text(const char *text) { return kn_hash_bytes(text, strlen(text)); }

uint32_t kn_hash_name(const char *name, uint64_t seed)
{
    return (uint32_t)XXH3_64bits_withSeed(name, strlen(name), seed);
}

/* The order matters: combine(a, b) != combine(b, a). Hashes the digits, not the structs' bytes, so that the result does
 * not depend on byte order. */
kn_hash kn_hash_combine(kn_hash a, kn_hash b)
{
    char digits[2 * KN_HASH_TEXT];
    kn_hash_format(digits, a);
    kn_hash_format(digits + KN_HASH_TEXT - 1, b);
    return kn_hash_bytes(digits, 2 * (KN_HASH_TEXT - 1));
}

const char *kn_hash_format(char buffer[KN_HASH_TEXT], kn_hash hash)
{
    snprintf(buffer, KN_HASH_TEXT, "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
    return buffer;
}

/* base/memory.c - host allocation that sets an error on failure, with fault injection for tests. */
#include "base/memory.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system.h"
#include "base/threads.h"

static atomic_long fail_after; /* counts down to the allocation that fails; 0: never */
static atomic_int fail_sticky;

void kn_fail_alloc_after(long n, int sticky)
{
    atomic_store(&fail_sticky, sticky);
    atomic_store(&fail_after, n);
}

static void read_environment(void)
{
    const char *n = kn_trusted_environment("KOINE_FAIL_ALLOC");
    if (n)
        atomic_store(&fail_after, strtol(n, NULL, 10));
}

static bool must_fail(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
    if (atomic_load_explicit(&fail_after, memory_order_relaxed) <= 0)
        return false;
    if (atomic_fetch_sub(&fail_after, 1) != 1)
        return false;
    if (atomic_load(&fail_sticky))
        atomic_store(&fail_after, 1);
    return true;
}

void *kn_malloc(size_t bytes)
{
    void *block = must_fail() ? NULL : malloc(bytes ? bytes : 1);
    if (!block)
        kn_fail_host_memory(bytes, "a host block");
    return block;
}

void *kn_calloc(size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size) {
        kn_fail_host_memory(SIZE_MAX, "a host block");
        return NULL;
    }
    void *block = kn_malloc(count * size);
    if (block)
        memset(block, 0, count * size);
    return block;
}

void *kn_realloc(void *block, size_t bytes)
{
    void *grown = must_fail() ? NULL : realloc(block, bytes ? bytes : 1);
    if (!grown)
        kn_fail_host_memory(bytes, "a host block");
    return grown;
}

kn_status kn_grow(void *items, int count, int *capacity, size_t element)
{
    void *block; /* copied, because `items` points to a pointer of another type */
    if (count < *capacity)
        return KN_OK;
    if (*capacity > INT_MAX / 2)
        return kn_fail_host_memory(SIZE_MAX, "a list");
    const int larger = *capacity ? 2 * *capacity : 16;
    memcpy(&block, items, sizeof block);
    block = kn_realloc(block, (size_t)larger * element);
    if (!block)
        return KN_ERR_MEMORY;
    memcpy(items, &block, sizeof block);
    *capacity = larger;
    return KN_OK;
}

char *kn_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = kn_malloc(bytes);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}

void kn_free(void *block) { free(block); }

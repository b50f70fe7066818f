/* base/memory.h - host allocation. Every allocation of the library goes through here, so that tests can make the n-th
 * one fail (KOINE_FAIL_ALLOC=n, or kn_fail_alloc_after). On failure the thread's error is set. */
#pragma once

#include <koine/status.h>
#include <stddef.h>

void *kn_malloc(size_t bytes);              /* NULL with an error; a size of 0 gives a valid block */
void *kn_calloc(size_t count, size_t size); /* zeroed; checks for overflow */
void *kn_realloc(void *block, size_t bytes);
char *kn_strdup(const char *text);

/* Makes room for at least one more element in an array of `count`: `items` is a pointer, `capacity` an int, both
 * lvalues, NULL and 0 at first. On KN_ERR_MEMORY they are unchanged. */
#define KN_GROW(items, count, capacity) kn_grow(&(items), count, &(capacity), sizeof *(items))
kn_status kn_grow(void *items, int count, int *capacity, size_t element);

/* Blocks are freed with kn_free (koine/status.h). */

/* Test hook: the n-th allocation from now fails, and if `sticky` every later one too; 0 turns it off. */
void kn_fail_alloc_after(long n, int sticky);

/* base/intern.c - a hash table with open addressing, never more than half full. */
#include "base/intern.h"

#include <string.h>

#include <koine/status.h>

#include "base/hash.h"
#include "base/memory.h"

/* The slot that holds `text`, or the empty one where it belongs. */
static char **find(char **slots, size_t capacity, const char *text)
{
    size_t at = (size_t)kn_hash_text(text).low & (capacity - 1);
    while (slots[at] && strcmp(slots[at], text) != 0)
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

static int grow(kn_intern_table *table)
{
    size_t capacity = table->capacity ? 2 * table->capacity : 256; /* a power of two */
    char **slots = kn_calloc(capacity, sizeof *slots);
    if (!slots)
        return 0;
    for (size_t i = 0; i < table->capacity; i++)
        if (table->slots[i])
            *find(slots, capacity, table->slots[i]) = table->slots[i];
    kn_free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
    return 1;
}

const char *kn_intern(kn_intern_table *table, const char *text)
{
    if (2 * (table->count + 1) > table->capacity && !grow(table))
        return NULL;
    char **slot = find(table->slots, table->capacity, text);
    if (!*slot) {
        *slot = kn_strdup(text);
        table->count += *slot != NULL;
    }
    return *slot;
}

void kn_intern_free(kn_intern_table *table)
{
    for (size_t i = 0; i < table->capacity; i++)
        kn_free(table->slots[i]);
    kn_free(table->slots);
    *table = (kn_intern_table){0};
}

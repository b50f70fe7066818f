/* base/name_index.c - a hash table with linear probing, at most half full. Names may come from a malicious file, so the
 * hash is randomly seeded: colliding names cannot be prepared. */
#include "base/name_index.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/threads.h"

typedef struct kn_name_slot {
    uint32_t hash;
    int position; /* plus one; 0: free */
} slot;

static uint64_t seed;

static void choose_seed(void)
{
    if (!kn_sys_random(&seed, sizeof seed))
        seed = (uint64_t)(uintptr_t)&seed;
}

static uint32_t hash_of(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose_seed);
    return kn_hash_name(name, seed);
}

int kn_name_index_find(const kn_name_index *index, const char *name, kn_name_at at, const void *list)
{
    const uint32_t hash = index->capacity > 0 ? hash_of(name) : 0;
    for (size_t i = hash; index->capacity > 0; i++) {
        const slot *s = &index->slots[i & (index->capacity - 1)];
        if (s->position == 0)
            break;
        if (s->hash == hash && strcmp(at(list, s->position - 1), name) == 0)
            return s->position - 1;
    }
    return -1;
}

static void put(slot *slots, size_t capacity, slot new)
{
    size_t i = new.hash;
    while (slots[i & (capacity - 1)].position != 0)
        i++;
    slots[i & (capacity - 1)] = new;
}

static kn_status grow(kn_name_index *index)
{
    const size_t capacity = index->capacity > 0 ? 2 * index->capacity : 32;
    slot *slots = kn_calloc(capacity, sizeof *slots);
    if (!slots)
        return KN_ERR_MEMORY;
    for (size_t i = 0; i < index->capacity; i++)
        if (index->slots[i].position != 0)
            put(slots, capacity, index->slots[i]);
    kn_free(index->slots);
    index->slots = slots;
    index->capacity = capacity;
    return KN_OK;
}

kn_status kn_name_index_add(kn_name_index *index, const char *name, int position)
{
    if (2 * (index->count + 1) > index->capacity && grow(index) != KN_OK)
        return KN_ERR_MEMORY;
    put(index->slots, index->capacity, (slot){hash_of(name), position + 1});
    index->count++;
    return KN_OK;
}

void kn_name_index_free(kn_name_index *index)
{
    kn_free(index->slots);
    *index = (kn_name_index){0};
}

/* rt/graph/variable.c - see rt/graph/variable.h. */
#include "rt/graph/variable.h"

#include <koine/status.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/memory.h"

typedef struct block {
    atomic_int references;
    size_t size;
    max_align_t values[];
} block;

static block *block_of(const void *variable) { return (block *)((uintptr_t)variable - offsetof(block, values)); }

void *kn_variable_new(size_t bytes)
{
    block *made = kn_calloc(1, sizeof *made + bytes);
    if (!made)
        return NULL;
    atomic_init(&made->references, 1);
    made->size = bytes;
    return made->values;
}

void kn_variable_keep(const void *variable)
{
    if (variable)
        atomic_fetch_add(&block_of(variable)->references, 1);
}

void kn_variable_drop(const void *variable)
{
    if (variable && atomic_fetch_sub(&block_of(variable)->references, 1) == 1)
        kn_free(block_of(variable));
}

size_t kn_variable_size(const void *variable) { return block_of(variable)->size; }

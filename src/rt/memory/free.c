/* rt/memory/free.c - the free blocks of a pool, ordered by stream, size and position, so that the best fit is found in
 * logarithmic time. Every choice depends on the requests alone. */
#include "rt/memory/blocks.h"

static kn_buffer *block_of(const kn_treap_node *node) { return KN_TREAP_OF(kn_buffer, place, node); }

static bool comes_before(const kn_treap_node *first, const kn_treap_node *second)
{
    const kn_buffer *a = block_of(first), *b = block_of(second);
    if (a->stream != b->stream)
        return (uintptr_t)a->stream < (uintptr_t)b->stream;
    if (a->size != b->size)
        return a->size < b->size;
    if (a->segment->address != b->segment->address)
        return a->segment->address < b->segment->address; /* so old segments fill up and new ones become empty */
    return a->offset < b->offset;
}

static kn_treap_node **root_of(kn_pool *pool, const kn_segment *segment)
{
    kn_free_blocks *blocks = segment->owner ? &segment->owner->free_blocks : &pool->free_blocks;
    return &blocks->roots[segment->small];
}

/* A free block with neighbours cannot be freed to the driver: PyTorch's "inactive split". */
static void count_split(kn_pool *pool, const kn_buffer *block, bool more)
{
    if (block->before || block->after)
        kn_pool_count_one(pool, block->segment, KN_STAT_INACTIVE_SPLIT, block->size, more);
}

void kn_free_insert(kn_pool *pool, kn_buffer *block)
{
    kn_treap_insert(root_of(pool, block->segment), &block->place,
                    (block->segment->address + block->offset) / KN_MIN_BLOCK, comes_before);
    block->is_free = true;
    count_split(pool, block, true);
}

void kn_free_remove(kn_pool *pool, kn_buffer *block)
{
    kn_treap_remove(root_of(pool, block->segment), &block->place, comes_before);
    block->is_free = false;
    count_split(pool, block, false);
}

kn_buffer *kn_free_best_fit(kn_pool *pool, const kn_stream *stream, const kn_mem_pool *owner, size_t size, bool small)
{
    const kn_free_blocks *blocks = owner ? &owner->free_blocks : &pool->free_blocks;
    kn_buffer *best = NULL;
    for (const kn_treap_node *node = blocks->roots[small]; node;) {
        kn_buffer *block = block_of(node);
        bool after = block->stream == stream ? block->size >= size : (uintptr_t)block->stream > (uintptr_t)stream;
        if (after)
            best = block;
        node = after ? node->left : node->right;
    }
    return best && best->stream == stream ? best : NULL;
}

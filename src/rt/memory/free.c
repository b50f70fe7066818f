/* rt/memory/free.c - the free blocks of a pool, ordered by stream, size and place, so that the best fit is found in
 * logarithmic time.
 *
 * A treap: a search tree by that order, and a heap by priorities that are hashes of the blocks' places. So its shape,
 * and with it every choice, depends on the requests alone; its depth stays near 2 ln n without rebalancing. The nodes
 * are the blocks themselves. */
#include "rt/memory/blocks.h"

static bool comes_before(const kn_buffer *a, const kn_buffer *b)
{
    if (a->stream != b->stream)
        return (uintptr_t)a->stream < (uintptr_t)b->stream;
    if (a->size != b->size)
        return a->size < b->size;
    if (a->segment->address != b->segment->address)
        return a->segment->address < b->segment->address; /* so old segments fill up and new ones become empty */
    return a->offset < b->offset;
}

/* A finaliser of 64-bit hashes (the multiply-xorshift of MurmurHash3). */
static uint32_t priority_of(const kn_buffer *block)
{
    uint64_t hash = (block->segment->address + block->offset) / KN_MIN_BLOCK;
    hash = (hash ^ (hash >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    hash = (hash ^ (hash >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (uint32_t)(hash >> 32);
}

static kn_buffer **root_of(kn_pool *pool, const kn_segment *segment)
{
    kn_free_blocks *blocks = segment->owner ? &segment->owner->free_blocks : &pool->free_blocks;
    return &blocks->roots[segment->small];
}

/* Splits the tree into what comes before `block` and what comes after. */
static void part(kn_buffer *tree, const kn_buffer *block, kn_buffer **low, kn_buffer **high)
{
    while (tree) {
        if (comes_before(tree, block)) {
            *low = tree;
            low = &tree->right;
            tree = tree->right;
        } else {
            *high = tree;
            high = &tree->left;
            tree = tree->left;
        }
    }
    *low = *high = NULL;
}

/* A free block with neighbours cannot go back to the driver: PyTorch's "inactive split". */
static void count_split(kn_pool *pool, const kn_buffer *block, bool more)
{
    if (block->before || block->after)
        (more ? kn_pool_count_in : kn_pool_count_out)(pool, block->segment, KN_STAT_INACTIVE_SPLIT, block->size);
}

void kn_free_insert(kn_pool *pool, kn_buffer *block)
{
    kn_buffer **link = root_of(pool, block->segment);
    block->priority = priority_of(block);
    while (*link && (*link)->priority >= block->priority)
        link = comes_before(*link, block) ? &(*link)->right : &(*link)->left;
    part(*link, block, &block->left, &block->right);
    *link = block;
    block->is_free = true;
    count_split(pool, block, true);
}

void kn_free_remove(kn_pool *pool, kn_buffer *block)
{
    kn_buffer **link = root_of(pool, block->segment);
    while (*link != block)
        link = comes_before(*link, block) ? &(*link)->right : &(*link)->left;
    kn_buffer *left = block->left, *right = block->right;
    while (left && right) {
        if (left->priority >= right->priority) {
            *link = left;
            link = &left->right;
            left = left->right;
        } else {
            *link = right;
            link = &right->left;
            right = right->left;
        }
    }
    *link = left ? left : right;
    block->left = block->right = NULL;
    block->is_free = false;
    count_split(pool, block, false);
}

kn_buffer *kn_free_best_fit(kn_pool *pool, const kn_stream *stream, const kn_mem_pool *owner, size_t size, bool small)
{
    const kn_free_blocks *blocks = owner ? &owner->free_blocks : &pool->free_blocks;
    kn_buffer *best = NULL;
    for (kn_buffer *block = blocks->roots[small]; block;) {
        bool after = block->stream == stream ? block->size >= size : (uintptr_t)block->stream > (uintptr_t)stream;
        if (after)
            best = block;
        block = after ? block->left : block->right;
    }
    return best && best->stream == stream ? best : NULL;
}

/* data/text/bpe.c - merges the bytes of a word: of all neighbours the pair of the lowest rank first, of equal pairs the
 * leftmost. A heap of candidates keeps long words from taking time in proportion to their square. */
#include "base/error.h"
#include "base/memory.h"
#include "data/text/tokenizer.h"

/* --- pairs -------------------------------------------------------------------------------------------------------- */

static size_t place_of(const kn_tokenizer *tokenizer, int32_t left, int32_t right)
{
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (tokenizer->table_size - 1);
}

/* Where the pair is, or would be. */
static kn_merge *find(const kn_tokenizer *tokenizer, int32_t left, int32_t right)
{
    size_t i = place_of(tokenizer, left, right);
    while (tokenizer->table[i].left >= 0 && (tokenizer->table[i].left != left || tokenizer->table[i].right != right))
        i = (i + 1) & (tokenizer->table_size - 1);
    return &tokenizer->table[i];
}

const kn_merge *kn_tokenizer_merge(const kn_tokenizer *tokenizer, int32_t left, int32_t right)
{
    const kn_merge *merge = find(tokenizer, left, right);
    return merge->left >= 0 ? merge : NULL;
}

kn_status kn_bpe_make_table(kn_tokenizer *tokenizer)
{
    size_t size = 16;
    while (size < 2 * (size_t)tokenizer->num_merges)
        size *= 2;
    if (!(tokenizer->table = kn_malloc(size * sizeof *tokenizer->table)))
        return KN_ERR_MEMORY;
    tokenizer->table_size = size;
    for (size_t i = 0; i < size; i++)
        tokenizer->table[i].left = -1;
    for (int64_t i = 0; i < tokenizer->num_merges; i++) {
        const kn_merge *merge = &tokenizer->merges[i];
        *find(tokenizer, merge->left, merge->right) = *merge; /* of equal pairs the last one counts */
    }
    return KN_OK;
}

/* --- the heap ----------------------------------------------------------------------------------------------------- */

/* A part of the word; `id` -1: merged into the one before it. */
typedef struct kn_bpe_symbol {
    int32_t id, before, after; /* neighbours; -1: none */
} kn_bpe_symbol;

typedef struct kn_bpe_candidate {
    int32_t rank, at; /* of the left symbol */
    int32_t left, right, id;
} kn_bpe_candidate;

static bool is_before(const kn_bpe_candidate *a, const kn_bpe_candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void push(kn_bpe_candidate *heap, size_t *count, kn_bpe_candidate candidate)
{
    size_t i = (*count)++;
    for (; i > 0 && is_before(&candidate, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = candidate;
}

static kn_bpe_candidate pop(kn_bpe_candidate *heap, size_t *count)
{
    const kn_bpe_candidate first = heap[0], last = heap[--*count];
    size_t i = 0;
    for (size_t child = 1; child < *count; child = 2 * i + 1) {
        if (child + 1 < *count && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return first;
}

/* --- a word ------------------------------------------------------------------------------------------------------- */

static kn_status reserve(kn_bpe_scratch *scratch, size_t length)
{
    if (length <= scratch->capacity)
        return KN_OK;
    if (length > INT32_MAX / 4)
        return kn_fail(KN_ERR_ARGUMENT, "tokenizer: a word of %zu bytes is too long", length);
    const size_t capacity = length < 64 ? 64 : length;
    kn_bpe_symbol *symbols = kn_realloc(scratch->symbols, capacity * sizeof *symbols);
    scratch->symbols = symbols ? symbols : scratch->symbols;
    kn_bpe_candidate *heap = symbols ? kn_realloc(scratch->heap, 3 * capacity * sizeof *heap) : NULL;
    scratch->heap = heap ? heap : scratch->heap;
    scratch->capacity = heap ? capacity : scratch->capacity;
    return heap ? KN_OK : KN_ERR_MEMORY;
}

void kn_bpe_scratch_free(kn_bpe_scratch *scratch)
{
    kn_free(scratch->symbols);
    kn_free(scratch->heap);
    *scratch = (kn_bpe_scratch){0};
}

static void consider(const kn_tokenizer *tokenizer, kn_bpe_scratch *scratch, size_t *count, int32_t at)
{
    const kn_bpe_symbol *left = &scratch->symbols[at];
    if (left->after < 0)
        return;
    const int32_t right = scratch->symbols[left->after].id;
    const kn_merge *merge = kn_tokenizer_merge(tokenizer, left->id, right);
    if (merge)
        push(scratch->heap, count, (kn_bpe_candidate){merge->rank, at, left->id, right, merge->id});
}

/* Merges the pair, unless one of its symbols has changed since it was considered. */
static void apply(const kn_tokenizer *tokenizer, kn_bpe_scratch *scratch, size_t *count, kn_bpe_candidate merge)
{
    kn_bpe_symbol *symbols = scratch->symbols, *left = &symbols[merge.at];
    if (left->id != merge.left || left->after < 0 || symbols[left->after].id != merge.right)
        return;
    kn_bpe_symbol *right = &symbols[left->after];
    left->id = merge.id;
    left->after = right->after;
    right->id = -1;
    if (left->after >= 0)
        symbols[left->after].before = merge.at;
    if (left->before >= 0)
        consider(tokenizer, scratch, count, left->before);
    consider(tokenizer, scratch, count, merge.at);
}

/* The bytes' symbols; returns their number. */
static int32_t begin(const kn_tokenizer *tokenizer, kn_bpe_symbol *symbols, const char *word, size_t length)
{
    int32_t count = 0;
    for (size_t i = 0; i < length; i++) {
        const int32_t known = tokenizer->bytes[(unsigned char)word[i]], id = known >= 0 ? known : tokenizer->unknown;
        if (id < 0)
            continue;
        symbols[count] = (kn_bpe_symbol){id, count - 1, count + 1};
        count++;
    }
    if (count > 0)
        symbols[count - 1].after = -1;
    return count;
}

int64_t kn_bpe_encode(const kn_tokenizer *tokenizer, kn_bpe_scratch *scratch, const char *word, size_t length,
                      int64_t *ids)
{
    if (reserve(scratch, length) != KN_OK)
        return -1;
    const int32_t symbols = begin(tokenizer, scratch->symbols, word, length);
    size_t candidates = 0;
    int64_t count = 0;
    for (int32_t at = 0; at < symbols; at++)
        consider(tokenizer, scratch, &candidates, at);
    while (candidates > 0)
        apply(tokenizer, scratch, &candidates, pop(scratch->heap, &candidates));
    for (int32_t at = symbols > 0 ? 0 : -1; at >= 0; at = scratch->symbols[at].after)
        ids[count++] = scratch->symbols[at].id;
    return count;
}

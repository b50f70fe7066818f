/* data/text/bpe_train.c - learns a byte-level BPE: counts the pairs of neighbours in the words of a text, merges the
 * most frequent one everywhere, and again. A heap holds the pairs by their counts, which may have fallen since: then
 * the pair goes back with its present count. */
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "data/text/tokenizer.h"

/* A word of the text, how often it occurs, and its tokens at present. */
typedef struct word {
    const char *text;
    size_t length;
    int64_t count;
    int32_t *ids;
    int64_t num_ids;
} word;

/* A pair of neighbours: how often it occurs, and the words that had it when they were last looked at. */
typedef struct pair {
    int32_t left, right;
    int64_t count;
    int32_t *words;
    int num_words, capacity;
    bool rose; /* since it was pushed */
} pair;

typedef struct entry {
    int64_t count;
    int32_t pair;
} entry;

typedef struct trainer {
    kn_tokenizer *tokenizer;
    word *words;
    int num_words, words_capacity;
    int32_t *word_table; /* hash table of numbers of words; -1: free */
    size_t word_places;
    int32_t *ids; /* of all words */
    pair *pairs;
    int num_pairs, pairs_capacity;
    int32_t *pair_table;
    size_t pair_places;
    int32_t *risen; /* the pairs whose counts rose */
    int num_risen, risen_capacity;
    entry *heap;
    int heap_count, heap_capacity;
    int merges_capacity;
} trainer;

static void free_trainer(trainer *t)
{
    for (int i = 0; i < t->num_pairs; i++)
        kn_free(t->pairs[i].words);
    kn_free(t->words);
    kn_free(t->word_table);
    kn_free(t->ids);
    kn_free(t->pairs);
    kn_free(t->pair_table);
    kn_free(t->risen);
    kn_free(t->heap);
}

/* A larger table of `places` free places; the caller enters again what was in the old one. */
static kn_status new_table(int32_t **table, size_t *places)
{
    const size_t larger = *places > 0 ? 2 * *places : 1024;
    int32_t *made = kn_malloc(larger * sizeof *made);
    if (!made)
        return KN_ERR_MEMORY;
    memset(made, 0xff, larger * sizeof *made);
    kn_free(*table);
    *table = made;
    *places = larger;
    return KN_OK;
}

/* --- words -------------------------------------------------------------------------------------------------------- */

static int32_t *word_place(const trainer *t, const char *text, size_t length)
{
    size_t i = kn_hash_bytes(text, length).low & (t->word_places - 1);
    for (; t->word_table[i] >= 0; i = (i + 1) & (t->word_places - 1)) {
        const word *there = &t->words[t->word_table[i]];
        if (there->length == length && memcmp(there->text, text, length) == 0)
            break;
    }
    return &t->word_table[i];
}

static kn_status count_word(trainer *t, const char *text, size_t length)
{
    if (2 * (size_t)t->num_words >= t->word_places) {
        KN_TRY(new_table(&t->word_table, &t->word_places));
        for (int i = 0; i < t->num_words; i++)
            *word_place(t, t->words[i].text, t->words[i].length) = i;
    }
    int32_t *place = word_place(t, text, length);
    if (*place < 0) {
        KN_TRY(KN_GROW(t->words, t->num_words, t->words_capacity));
        t->words[t->num_words] = (word){.text = text, .length = length};
        *place = t->num_words++;
    }
    word *counted = &t->words[*place];
    counted->count++;
    return KN_OK;
}

/* The bytes of the words as tokens. */
static kn_status count_words(trainer *t, const char *text, size_t size)
{
    size_t bytes = 0;
    for (size_t at = 0, length; at < size; at += length) {
        length = kn_split_word(KN_SPLIT_GPT2, text + at, size - at);
        KN_TRY(count_word(t, text + at, length));
    }
    for (int i = 0; i < t->num_words; i++)
        bytes += t->words[i].length;
    int32_t *ids = t->ids = kn_calloc(bytes, sizeof *ids);
    for (int i = 0; i < t->num_words && ids; i++) {
        word *w = &t->words[i];
        w->ids = ids;
        w->num_ids = (int64_t)w->length;
        for (size_t k = 0; k < w->length; k++)
            *ids++ = t->tokenizer->bytes[(unsigned char)w->text[k]];
    }
    return ids ? KN_OK : KN_ERR_MEMORY;
}

/* --- pairs -------------------------------------------------------------------------------------------------------- */

static int32_t *pair_place(const trainer *t, int32_t left, int32_t right)
{
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t i = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (t->pair_places - 1);
    for (; t->pair_table[i] >= 0; i = (i + 1) & (t->pair_places - 1)) {
        const pair *there = &t->pairs[t->pair_table[i]];
        if (there->left == left && there->right == right)
            break;
    }
    return &t->pair_table[i];
}

/* Adds to a pair's count, for an occurrence in the word. */
static kn_status count_pair(trainer *t, int32_t left, int32_t right, int64_t count, int32_t in_word)
{
    if (2 * (size_t)t->num_pairs >= t->pair_places) {
        KN_TRY(new_table(&t->pair_table, &t->pair_places));
        for (int i = 0; i < t->num_pairs; i++)
            *pair_place(t, t->pairs[i].left, t->pairs[i].right) = i;
    }
    int32_t *place = pair_place(t, left, right);
    if (*place < 0) {
        KN_TRY(KN_GROW(t->pairs, t->num_pairs, t->pairs_capacity));
        t->pairs[t->num_pairs] = (pair){.left = left, .right = right};
        *place = t->num_pairs++;
    }
    pair *p = &t->pairs[*place];
    p->count += count;
    if (count > 0 && !p->rose) {
        KN_TRY(KN_GROW(t->risen, t->num_risen, t->risen_capacity));
        t->risen[t->num_risen++] = *place;
        p->rose = true;
    }
    if (count > 0 && (p->num_words == 0 || p->words[p->num_words - 1] != in_word)) {
        KN_TRY(KN_GROW(p->words, p->num_words, p->capacity));
        p->words[p->num_words++] = in_word;
    }
    return KN_OK;
}

/* --- the heap: the most frequent first, of equal ones that of the lowest ids -------------------------------------- */

static bool is_before(const trainer *t, entry a, entry b)
{
    const pair *one = &t->pairs[a.pair], *other = &t->pairs[b.pair];
    if (a.count != b.count)
        return a.count > b.count;
    return one->left != other->left ? one->left < other->left : one->right < other->right;
}

static kn_status push(trainer *t, int32_t number)
{
    KN_TRY(KN_GROW(t->heap, t->heap_count, t->heap_capacity));
    const entry pushed = {t->pairs[number].count, number};
    int i = t->heap_count++;
    for (; i > 0 && is_before(t, pushed, t->heap[(i - 1) / 2]); i = (i - 1) / 2)
        t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = pushed;
    return KN_OK;
}

/* The pairs whose counts rose; a count that fell is noticed when the pair is popped. */
static kn_status push_risen(trainer *t)
{
    for (; t->num_risen > 0; t->num_risen--) {
        const int32_t number = t->risen[t->num_risen - 1];
        t->pairs[number].rose = false;
        if (t->pairs[number].count > 0)
            KN_TRY(push(t, number));
    }
    return KN_OK;
}

static entry pop(trainer *t)
{
    const entry first = t->heap[0], last = t->heap[--t->heap_count];
    int i = 0;
    for (int child = 1; child < t->heap_count; child = 2 * i + 1) {
        if (child + 1 < t->heap_count && is_before(t, t->heap[child + 1], t->heap[child]))
            child++;
        if (!is_before(t, t->heap[child], last))
            break;
        t->heap[i] = t->heap[child];
        i = child;
    }
    t->heap[i] = last;
    return first;
}

/* --- merging ------------------------------------------------------------------------------------------------------ */

/* Replaces the pair in a word, and corrects the counts of the pairs beside it. */
static kn_status merge_in(trainer *t, int32_t number, int32_t left, int32_t right, int32_t id)
{
    word *w = &t->words[number];
    int64_t kept = 0;
    for (int64_t i = 0; i < w->num_ids; i++) {
        const bool here = i + 1 < w->num_ids && w->ids[i] == left && w->ids[i + 1] == right;
        if (here) {
            if (kept > 0) {
                KN_TRY(count_pair(t, w->ids[kept - 1], left, -w->count, number));
                KN_TRY(count_pair(t, w->ids[kept - 1], id, w->count, number));
            }
            if (i + 2 < w->num_ids) {
                KN_TRY(count_pair(t, right, w->ids[i + 2], -w->count, number));
                KN_TRY(count_pair(t, id, w->ids[i + 2], w->count, number));
            }
            i++;
        }
        w->ids[kept++] = here ? id : w->ids[i];
    }
    w->num_ids = kept;
    return KN_OK;
}

/* The token of the two together, which another pair may have made before. */
static kn_status join(trainer *t, int32_t left, int32_t right, int32_t *id)
{
    kn_tokenizer *tokenizer = t->tokenizer;
    kn_text text = {0};
    kn_text_append(&text, tokenizer->tokens[left].text);
    kn_text_append(&text, tokenizer->tokens[right].text);
    char *joined = kn_text_finish(&text);
    if (!joined)
        return KN_ERR_MEMORY;
    kn_status status = KN_OK;
    *id = (int32_t)kn_tokenizer_id(tokenizer, joined);
    if (*id < 0) {
        *id = (int32_t)tokenizer->count;
        status = kn_tokenizer_add(tokenizer, joined, *id, false);
    }
    kn_free(joined);
    return status;
}

static kn_status merge(trainer *t, int32_t number)
{
    kn_tokenizer *tokenizer = t->tokenizer;
    const pair merged = t->pairs[number];
    int32_t id;
    KN_TRY(join(t, merged.left, merged.right, &id));
    int count = (int)tokenizer->num_merges;
    KN_TRY(KN_GROW(tokenizer->merges, count, t->merges_capacity));
    tokenizer->merges[tokenizer->num_merges++] = (kn_merge){merged.left, merged.right, id, count};
    for (int i = 0; i < merged.num_words; i++)
        KN_TRY(merge_in(t, merged.words[i], merged.left, merged.right, id));
    t->pairs[number].count = 0;
    return push_risen(t);
}

static kn_status learn(trainer *t, int64_t vocab_size, int64_t min_frequency)
{
    for (int32_t i = 0; i < t->num_words; i++)
        for (int64_t k = 0; k + 1 < t->words[i].num_ids; k++)
            KN_TRY(count_pair(t, t->words[i].ids[k], t->words[i].ids[k + 1], t->words[i].count, i));
    KN_TRY(push_risen(t));
    while (t->heap_count > 0 && t->tokenizer->count < vocab_size) {
        const entry top = pop(t);
        const int64_t now = t->pairs[top.pair].count;
        if (now != top.count) {
            if (now > 0)
                KN_TRY(push(t, top.pair));
            continue;
        }
        if (now < min_frequency || now < 1)
            break;
        KN_TRY(merge(t, top.pair));
    }
    return KN_OK;
}

/* --- creation ----------------------------------------------------------------------------------------------------- */

static kn_status add_special(kn_tokenizer *tokenizer, const char *const *names)
{
    for (int i = 0; names && names[i]; i++) {
        if (names[i][0] == '\0')
            return kn_fail(KN_ERR_ARGUMENT, "kn_bpe_train: special token %d is empty", i);
        size_t bad;
        if (!kn_is_utf8(names[i], strlen(names[i]), &bad)) /* a file is UTF-8 */
            return kn_fail(KN_ERR_ARGUMENT, "kn_bpe_train: special token %d is not UTF-8 from byte %zu on", i, bad);
        KN_TRY(kn_tokenizer_add(tokenizer, names[i], i, true));
        tokenizer->tokens[i].special = true;
    }
    return KN_OK;
}

static kn_status train(kn_tokenizer *tokenizer, const char *text, size_t length, int64_t vocab_size,
                       const kn_bpe_params *p)
{
    trainer t = {.tokenizer = tokenizer};
    tokenizer->split = KN_SPLIT_GPT2;
    KN_TRY(add_special(tokenizer, p->special_tokens));
    KN_TRY(kn_tokenizer_add_bytes(tokenizer, tokenizer->count));
    kn_tokenizer_find_bytes(tokenizer);
    if (vocab_size < tokenizer->count || vocab_size > KN_MAX_TOKENS)
        return kn_fail(KN_ERR_ARGUMENT,
                       "kn_bpe_train: vocab_size is %lld; it must be from %lld, the bytes and special "
                       "tokens, to %d",
                       (long long)vocab_size, (long long)tokenizer->count, KN_MAX_TOKENS);
    kn_status status = count_words(&t, text, length);
    if (status == KN_OK)
        status = learn(&t, vocab_size, p->min_frequency);
    free_trainer(&t);
    return status == KN_OK ? kn_tokenizer_finish(tokenizer) : status;
}

kn_bpe_params kn_bpe_params_init(void) { return (kn_bpe_params){KN_BPE_DEFAULTS}; }

kn_tokenizer *kn_bpe_train_with(const char *text, size_t length, int64_t vocab_size, const kn_bpe_params *params)
{
    const kn_bpe_params *p = params ? params : &(kn_bpe_params){KN_BPE_DEFAULTS};
    kn_tokenizer *made = NULL;
    if (!text) {
        kn_fail_argument_null("kn_bpe_train", "text");
        return kn_error_make_sticky();
    }
    kn_status status = kn_tokenizer_new(&made);
    if (status == KN_OK)
        status = train(made, text, length, vocab_size, p);
    if (status == KN_OK)
        return made;
    kn_tokenizer_free(made);
    return kn_error_make_sticky();
}

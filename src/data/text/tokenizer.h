/* data/text/tokenizer.h - internals of tokenizers.
 *
 * All are byte-level BPE; the byte tokenizer is one without merges. A text passes three stages: added tokens are cut out
 * (encode.c), what is between them is split into words (split.c), and of each word's bytes those pairs are merged that
 * the vocabulary lists first (bpe.c). */
#pragma once

#include <koine/text.h>

#include "base/name_index.h"
#include "base/text.h"

#define KN_MAX_TOKENS 10000000

/* How a text is split into words: the regular expressions of well-known tokenizers. */
typedef enum kn_split_kind {
    KN_SPLIT_NONE, /* one word */
    KN_SPLIT_GPT2,
    KN_SPLIT_LLAMA3, /* numbers of up to three digits */
    KN_SPLIT_QWEN2   /* each digit alone */
} kn_split_kind;

typedef struct kn_token {
    char *text; /* as the file spells it: each byte as a printable character, unless it is an added token; NULL: none */
    char *bytes;
    size_t length;
    bool added, special;
    /* Of added tokens: also takes blanks to its left, right; is looked for after those that are not `normalized`. */
    bool lstrip, rstrip, normalized;
} kn_token;

/* The pair of ids `left`, `right` becomes `id`; pairs of a lower rank first. */
typedef struct kn_merge {
    int32_t left, right, id, rank;
} kn_merge;

struct kn_tokenizer {
    kn_token *tokens; /* by id */
    int64_t count;
    kn_name_index index; /* of their texts */
    int32_t bytes[256];  /* the ids of single bytes; -1: none */
    int32_t unknown;     /* for bytes without an id; -1: they are left out */
    int32_t *added;      /* ids of the added tokens */
    int num_added;
    bool begins_added[256]; /* bytes that added tokens begin with */
    kn_merge *merges;       /* by rank */
    int64_t num_merges;
    kn_merge *table; /* the same as a hash table: `left` is -1 in free places; table_size is a power of two */
    size_t table_size;
    kn_split_kind split;
    bool add_prefix_space, ignore_merges;
};

/* tokenizer.c: building one. kn_tokenizer_new: empty. kn_tokenizer_add: the token with this id; `text` is copied.
 * kn_tokenizer_finish makes the tables, once tokens and merges are complete. */
kn_status kn_tokenizer_new(kn_tokenizer **tokenizer);
kn_status kn_tokenizer_add(kn_tokenizer *tokenizer, const char *text, int64_t id, bool added);
kn_status kn_tokenizer_add_bytes(kn_tokenizer *tokenizer,
                                 int64_t first);       /* the 256 bytes, in the order of their texts */
void kn_tokenizer_find_bytes(kn_tokenizer *tokenizer); /* their ids */
kn_status kn_tokenizer_finish(kn_tokenizer *tokenizer);

/* The character that stands for a byte in texts of tokens, in UTF-8 with a NUL (GPT-2's table), and its code point. */
uint32_t kn_byte_code(unsigned char byte);
void kn_byte_text(char text[5], unsigned char byte);
/* The byte that a code point stands for; -1: none. */
int kn_byte_of_code(uint32_t code);

/* bpe.c: what a word's bytes become. Merging needs scratch memory, which grows with the longest word. */
typedef struct kn_bpe_scratch {
    struct kn_bpe_symbol *symbols;
    struct kn_bpe_candidate *heap;
    size_t capacity;
} kn_bpe_scratch;
/* Writes at most `length` ids; returns their number, -1 with an error. */
int64_t kn_bpe_encode(const kn_tokenizer *tokenizer, kn_bpe_scratch *scratch, const char *word, size_t length,
                      int64_t *ids);
void kn_bpe_scratch_free(kn_bpe_scratch *scratch);
kn_status kn_bpe_make_table(kn_tokenizer *tokenizer);                                           /* of the merges */
const kn_merge *kn_tokenizer_merge(const kn_tokenizer *tokenizer, int32_t left, int32_t right); /* NULL: none */

/* split.c: the length of the first word of a text that is not empty. */
size_t kn_split_word(kn_split_kind kind, const char *text, size_t left);
/* The expression as tokenizer.json has it, NULL for KN_SPLIT_NONE; and the kind of an expression, false if unknown. */
const char *kn_split_pattern(kn_split_kind kind);
bool kn_split_find(kn_split_kind *kind, const char *pattern);

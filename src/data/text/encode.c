/* data/text/encode.c - from text to ids and back. */
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/text/tokenizer.h"
#include "data/text/unicode.h"

/* Words repeat: the ids of an earlier one are still in the output. */
typedef struct known_word {
    const char *word;
    size_t length;
    int64_t first, count; /* of its ids */
} known_word;
#define KNOWN_WORDS 8192 /* a power of two */

typedef struct encoder {
    const kn_tokenizer *tokenizer;
    kn_bpe_scratch scratch;
    known_word *known;
    int64_t *ids, count, capacity;
} encoder;

static kn_status reserve(encoder *e, size_t more)
{
    if (e->count + (int64_t)more <= e->capacity)
        return KN_OK;
    const int64_t capacity = 2 * e->capacity + (int64_t)more + 256;
    int64_t *ids = kn_realloc(e->ids, (size_t)capacity * sizeof *ids);
    if (!ids)
        return KN_ERR_MEMORY;
    e->ids = ids;
    e->capacity = capacity;
    return KN_OK;
}

/* --- words -------------------------------------------------------------------------------------------------------- */

/* The id of a word that is a token as a whole, for tokenizers that look for these first; -1: none. */
static int64_t whole_word(const kn_tokenizer *tokenizer, const char *word, size_t length)
{
    char text[256];
    size_t size = 0;
    if (!tokenizer->ignore_merges || length > sizeof text / 2 - 3)
        return -1;
    for (size_t i = 0; i < length; i++)
        size += kn_utf8_encode(text + size, kn_byte_code((unsigned char)word[i]));
    text[size] = '\0';
    return kn_tokenizer_id(tokenizer, text);
}

static kn_status encode_word(encoder *e, const char *word, size_t length)
{
    known_word *known = &e->known[kn_hash_bytes(word, length).low & (KNOWN_WORDS - 1)];
    KN_TRY(reserve(e, length));
    if (known->length == length && memcmp(known->word, word, length) == 0) {
        memcpy(e->ids + e->count, e->ids + known->first, (size_t)known->count * sizeof *e->ids);
        e->count += known->count;
        return KN_OK;
    }
    const int64_t whole = whole_word(e->tokenizer, word, length);
    int64_t count = 1;
    if (whole >= 0)
        e->ids[e->count] = whole;
    else if ((count = kn_bpe_encode(e->tokenizer, &e->scratch, word, length, e->ids + e->count)) < 0)
        return kn_error_status();
    *known = (known_word){word, length, e->count, count};
    e->count += count;
    return KN_OK;
}

static kn_status encode_words(encoder *e, const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        const size_t word = kn_split_word(e->tokenizer->split, text + at, length - at);
        KN_TRY(encode_word(e, text + at, word));
        at += word;
    }
    return KN_OK;
}

/* The words of what is between added tokens. */
static kn_status encode_plain(encoder *e, const char *text, size_t length)
{
    if (length == 0 || !e->tokenizer->add_prefix_space || text[0] == ' ')
        return encode_words(e, text, length);
    char *spaced = kn_malloc(length + 1);
    if (!spaced)
        return KN_ERR_MEMORY;
    spaced[0] = ' ';
    memcpy(spaced + 1, text, length);
    kn_status status = encode_words(e, spaced, length + 1);
    memset(e->known, 0, KNOWN_WORDS * sizeof *e->known); /* they are in `spaced` */
    kn_free(spaced);
    return status;
}

/* --- added tokens ------------------------------------------------------------------------------------------------- */

typedef struct found_token {
    int32_t id; /* -1: none */
    size_t begin, end;
} found_token;

/* The longest added token at text[0]. */
static int32_t added_at(const kn_tokenizer *tokenizer, const char *text, size_t left, bool normalized)
{
    int32_t found = -1;
    if (!tokenizer->begins_added[(unsigned char)text[0]])
        return -1;
    for (int i = 0; i < tokenizer->num_added; i++) {
        const kn_token *token = &tokenizer->tokens[tokenizer->added[i]];
        if (token->normalized == normalized && token->length <= left &&
            memcmp(token->bytes, text, token->length) == 0 &&
            (found < 0 || token->length > tokenizer->tokens[found].length))
            found = tokenizer->added[i];
    }
    return found;
}

static size_t blanks_before(const char *text, size_t end)
{
    size_t begin = end;
    for (;;) {
        size_t at = begin;
        while (at > 0 && begin - at < 4 && (at == begin || ((unsigned char)text[at] & 0xc0) == 0x80))
            at--;
        const kn_character c = kn_character_at(text + at, begin - at);
        if (begin == 0 || c.class != KN_CHAR_SPACE || c.bytes != begin - at)
            return begin;
        begin = at;
    }
}

static size_t blanks_after(const char *text, size_t length, size_t begin)
{
    for (;;) {
        const kn_character c = kn_character_at(text + begin, length - begin);
        if (c.bytes == 0 || c.class != KN_CHAR_SPACE)
            return begin;
        begin += c.bytes;
    }
}

static found_token find_added(const kn_tokenizer *tokenizer, const char *text, size_t length, bool normalized)
{
    for (size_t at = 0; at < length && tokenizer->num_added > 0; at++) {
        const int32_t id = added_at(tokenizer, text + at, length - at, normalized);
        if (id < 0)
            continue;
        const kn_token *token = &tokenizer->tokens[id];
        return (found_token){id, token->lstrip ? blanks_before(text, at) : at,
                             token->rstrip ? blanks_after(text, length, at + token->length) : at + token->length};
    }
    return (found_token){-1, length, length};
}

/* Cuts out the tokens that are not normalized, then, in what is between them, those that are. */
static kn_status encode_text(encoder *e, const char *text, size_t length, bool normalized)
{
    for (size_t at = 0; at < length;) {
        const found_token found = find_added(e->tokenizer, text + at, length - at, normalized);
        KN_TRY(normalized ? encode_plain(e, text + at, found.begin) : encode_text(e, text + at, found.begin, true));
        KN_TRY(reserve(e, 1));
        if (found.id >= 0)
            e->ids[e->count++] = found.id;
        at += found.end;
    }
    return KN_OK;
}

kn_status kn_tokenizer_encode(const kn_tokenizer *tokenizer, const char *text, size_t length, int64_t **ids,
                              int64_t *count)
{
    if (ids)
        *ids = NULL;
    if (count)
        *count = 0;
    if (!tokenizer || !text || !ids || !count)
        return kn_fail_argument_null("kn_tokenizer_encode", !tokenizer ? "tokenizer"
                                                            : !text    ? "text"
                                                            : !ids     ? "ids"
                                                                       : "count");
    encoder e = {.tokenizer = tokenizer, .known = kn_calloc(KNOWN_WORDS, sizeof(known_word))};
    kn_status status = e.known ? reserve(&e, length / 2) : KN_ERR_MEMORY;
    if (status == KN_OK)
        status = encode_text(&e, text, length, false);
    kn_bpe_scratch_free(&e.scratch);
    kn_free(e.known);
    if (status == KN_OK) {
        *ids = e.ids;
        *count = e.count;
    } else {
        kn_free(e.ids);
    }
    return status;
}

/* --- back --------------------------------------------------------------------------------------------------------- */

kn_tokenizer_decode_params kn_tokenizer_decode_params_init(void)
{
    return (kn_tokenizer_decode_params){KN_TOKENIZER_DECODE_DEFAULTS};
}

char *kn_tokenizer_decode_with(const kn_tokenizer *tokenizer, const int64_t *ids, int64_t count,
                               const kn_tokenizer_decode_params *params)
{
    const bool skip = !params || params->skip_special_tokens;
    kn_text text = {0};
    if (!tokenizer || (!ids && count > 0)) {
        kn_fail_argument_null("kn_tokenizer_decode", tokenizer ? "ids" : "tokenizer");
        return NULL;
    }
    kn_text_append(&text, "");
    for (int64_t i = 0; i < count; i++) {
        const kn_token *token = ids[i] >= 0 && ids[i] < tokenizer->count ? &tokenizer->tokens[ids[i]] : NULL;
        if (!token || !token->text) {
            kn_text_free(&text);
            kn_fail(KN_ERR_ARGUMENT, "kn_tokenizer_decode: id %lld is %lld; there is no such token", (long long)i,
                    (long long)ids[i]);
            return NULL;
        }
        if (!token->special || !skip)
            kn_text_append_bytes(&text, token->bytes, token->length);
    }
    if (params && params->length)
        *params->length = text.length;
    return kn_text_finish(&text);
}

/* data/text/tokenizer.c - tokenizers: their tokens, and the tables made of them. */
#include "data/text/tokenizer.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/text/unicode.h"

/* --- bytes as characters ------------------------------------------------------------------------------------------ */

/* Printable bytes stand for themselves, the 68 others for the characters from U+0100 on, in their order. */
static bool is_printable(unsigned byte) { return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad); }

uint32_t kn_byte_code(unsigned char byte)
{
    uint32_t code = 0x100;
    if (is_printable(byte))
        return byte;
    for (unsigned b = 0; b < byte; b++)
        code += !is_printable(b);
    return code;
}

int kn_byte_of_code(uint32_t code)
{
    if (code < 0x100)
        return is_printable(code) ? (int)code : -1;
    for (unsigned b = 0; b < 256 && code < 0x144; b++)
        if (!is_printable(b) && kn_byte_code((unsigned char)b) == code)
            return (int)b;
    return -1;
}

void kn_byte_text(char text[5], unsigned char byte) { text[kn_utf8_encode(text, kn_byte_code(byte))] = '\0'; }

/* --- tokens ------------------------------------------------------------------------------------------------------- */

static const char *text_at(const void *tokens, int position) { return ((const kn_token *)tokens)[position].text; }

int64_t kn_tokenizer_id(const kn_tokenizer *tokenizer, const char *token)
{
    return tokenizer && token ? kn_name_index_find(&tokenizer->index, token, text_at, tokenizer->tokens) : -1;
}

kn_status kn_tokenizer_new(kn_tokenizer **tokenizer)
{
    kn_tokenizer *made = kn_calloc(1, sizeof *made);
    if (!made)
        return KN_ERR_MEMORY;
    made->unknown = -1;
    *tokenizer = made;
    return KN_OK;
}

void kn_tokenizer_free(kn_tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    for (int64_t i = 0; i < tokenizer->count; i++) {
        kn_free(tokenizer->tokens[i].text);
        kn_free(tokenizer->tokens[i].bytes);
    }
    kn_name_index_free(&tokenizer->index);
    kn_free(tokenizer->tokens);
    kn_free(tokenizer->added);
    kn_free(tokenizer->merges);
    kn_free(tokenizer->table);
    kn_free(tokenizer);
}

/* What the text's characters stand for; the text itself if one stands for no byte, and of an added token. */
static kn_status set_bytes(kn_token *token)
{
    const size_t size = strlen(token->text);
    if (!(token->bytes = kn_malloc(size + 1)))
        return KN_ERR_MEMORY;
    for (size_t at = 0; at < size && !token->added;) {
        const kn_character c = kn_character_at(token->text + at, size - at);
        const int byte = kn_byte_of_code(c.code);
        if (byte < 0)
            break;
        token->bytes[token->length++] = (char)byte;
        if ((at += c.bytes) == size)
            return KN_OK;
    }
    memcpy(token->bytes, token->text, size + 1);
    token->length = size;
    return KN_OK;
}

static kn_status make_room(kn_tokenizer *tokenizer, int64_t count)
{
    if (count <= tokenizer->count)
        return KN_OK;
    /* A power of two, so that adding one after the other takes linear time. */
    size_t capacity = 256;
    while (capacity < (size_t)count)
        capacity *= 2;
    kn_token *tokens = kn_realloc(tokenizer->tokens, capacity * sizeof *tokens);
    if (!tokens)
        return KN_ERR_MEMORY;
    memset(tokens + tokenizer->count, 0, (size_t)(count - tokenizer->count) * sizeof *tokens);
    tokenizer->tokens = tokens;
    tokenizer->count = count;
    return KN_OK;
}

kn_status kn_tokenizer_add(kn_tokenizer *tokenizer, const char *text, int64_t id, bool added)
{
    if (id < 0 || id >= KN_MAX_TOKENS)
        return kn_fail(KN_ERR_FORMAT, "the id of \"%s\" is %lld; it must be from 0 to %d", text, (long long)id,
                       KN_MAX_TOKENS - 1);
    KN_TRY(make_room(tokenizer, id + 1));
    kn_token *token = &tokenizer->tokens[id];
    if (token->text)
        return kn_fail(KN_ERR_FORMAT, "\"%s\" and \"%s\" have the same id, %lld", token->text, text, (long long)id);
    if (kn_tokenizer_id(tokenizer, text) >= 0)
        return kn_fail(KN_ERR_FORMAT, "\"%s\" has two ids, %lld and %lld", text,
                       (long long)kn_tokenizer_id(tokenizer, text), (long long)id);
    if (!(token->text = kn_strdup(text)))
        return KN_ERR_MEMORY;
    token->added = added;
    KN_TRY(set_bytes(token));
    return kn_name_index_add(&tokenizer->index, token->text, (int)id);
}

kn_status kn_tokenizer_add_bytes(kn_tokenizer *tokenizer, int64_t first)
{
    for (uint32_t code = 0, there = 0; there < 256; code++) {
        const int byte = kn_byte_of_code(code);
        char text[5];
        if (byte < 0)
            continue;
        kn_byte_text(text, (unsigned char)byte);
        KN_TRY(kn_tokenizer_add(tokenizer, text, first + there++, false));
    }
    return KN_OK;
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

static kn_status find_added(kn_tokenizer *tokenizer)
{
    int count = 0;
    for (int64_t i = 0; i < tokenizer->count; i++)
        count += tokenizer->tokens[i].added;
    if (!(tokenizer->added = kn_calloc((size_t)count, sizeof *tokenizer->added)))
        return KN_ERR_MEMORY;
    for (int64_t i = 0; i < tokenizer->count; i++)
        if (tokenizer->tokens[i].added) {
            tokenizer->added[tokenizer->num_added++] = (int32_t)i;
            tokenizer->begins_added[(unsigned char)tokenizer->tokens[i].bytes[0]] = true;
        }
    return KN_OK;
}

void kn_tokenizer_find_bytes(kn_tokenizer *tokenizer)
{
    for (int b = 0; b < 256; b++) {
        char text[5];
        kn_byte_text(text, (unsigned char)b);
        tokenizer->bytes[b] = (int32_t)kn_tokenizer_id(tokenizer, text);
    }
}

kn_status kn_tokenizer_finish(kn_tokenizer *tokenizer)
{
    kn_tokenizer_find_bytes(tokenizer);
    KN_TRY(find_added(tokenizer));
    return kn_bpe_make_table(tokenizer);
}

kn_tokenizer *kn_byte_tokenizer(void)
{
    kn_tokenizer *made = NULL;
    kn_status status = kn_tokenizer_new(&made);
    for (int b = 0; b < 256 && status == KN_OK; b++) {
        char text[5];
        kn_byte_text(text, (unsigned char)b);
        status = kn_tokenizer_add(made, text, b, false);
    }
    if (status == KN_OK)
        status = kn_tokenizer_finish(made);
    if (status == KN_OK)
        return made;
    kn_tokenizer_free(made);
    return kn_error_make_sticky();
}

int64_t kn_tokenizer_vocab_size(const kn_tokenizer *tokenizer) { return tokenizer ? tokenizer->count : 0; }

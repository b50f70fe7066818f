/* koine/text.h - text as tokens: tokenizers, and datasets for language models.
 *
 *     kn_tokenizer *tokenizer = kn_tokenizer_load("tokenizer.json");
 *     kn_dataset *dataset = kn_text_dataset("book.txt", tokenizer, 256);
 *
 * A token is a sequence of bytes with a number, its id, from 0 to kn_tokenizer_vocab_size - 1. Every text can be
 * encoded, whether or not it is UTF-8, and decoding gives the same bytes again. A tokenizer does not change once it is
 * made: any number of threads may use it at once. */
#ifndef KOINE_TEXT_H
#define KOINE_TEXT_H

#include <koine/common.h>
#include <koine/data.h>
#include <koine/status.h>

KN_BEGIN_DECLS

/* --- tokenizers --------------------------------------------------------------------------------------------------- */

typedef struct kn_tokenizer kn_tokenizer;

/* 256 tokens: the bytes themselves. NULL with a sticky error. */
KN_API kn_tokenizer *kn_byte_tokenizer(void);

/* A tokenizer.json of Hugging Face's tokenizers, if it is a byte-level BPE (Sennrich et al. 2016; Radford et al. 2019),
 * as GPT-2's, Llama 3's and Qwen's are: the same ids as `encode(text, add_special_tokens=False)`. Normalizers and other
 * expressions than those three's are KN_ERR_FORMAT, which names the part of the file. NULL with a sticky error. */
KN_API kn_tokenizer *kn_tokenizer_load(const char *path);
KN_API kn_status kn_tokenizer_save(const kn_tokenizer *tokenizer, const char *path);

/* A byte-level BPE learned from a text, as `BpeTrainer` of tokenizers learns it: ids are special tokens, then the 256
 * bytes, then the most frequent pairs, merged one after the other (equally frequent ones: that of the lowest ids) until
 * there are `vocab_size` tokens or no pair is frequent enough. Words are split as GPT-2's are. */
typedef struct kn_bpe_params {
    /* default NULL: none; NULL-terminated: KN_NAMES("<|endoftext|>"). They are never split, wherever they occur */
    const char *const *special_tokens;
    int64_t min_frequency; /* default 2: less frequent pairs are not merged */
} kn_bpe_params;
#define KN_BPE_DEFAULTS .min_frequency = 2
KN_API kn_bpe_params kn_bpe_params_init(void);
KN_API kn_tokenizer *kn_bpe_train_with(const char *text, size_t length, int64_t vocab_size,
                                       const kn_bpe_params *params);
#define kn_bpe_train(text, length, vocab_size, ...)                                                                    \
    KN_CALL(kn_bpe_train_with(text, length, vocab_size, &(kn_bpe_params){KN_BPE_DEFAULTS, __VA_ARGS__}))

KN_API void kn_tokenizer_free(kn_tokenizer *tokenizer);                /* NULL allowed */
KN_API int64_t kn_tokenizer_vocab_size(const kn_tokenizer *tokenizer); /* the largest id + 1; 0 for NULL */
/* The id of a token as the file spells it ("<|endoftext|>"; "\u0120the" for " the"): token_to_id. -1 if there is none. */
KN_API int64_t kn_tokenizer_id(const kn_tokenizer *tokenizer, const char *token);

/* The ids of a text, which the caller frees with kn_free; NULL and 0 on failure. */
KN_API kn_status kn_tokenizer_encode(const kn_tokenizer *tokenizer, const char *text, size_t length, int64_t **ids,
                                     int64_t *count);

/* The text of ids, with a NUL behind it; the caller frees it with kn_free. NULL, with an error, for an id that there is
 * not. A token may be a part of a character, so the text of some ids need not be UTF-8. */
typedef struct kn_tokenizer_decode_params {
    bool skip_special_tokens; /* default true */
    size_t *length;           /* default NULL; set to the text's length in bytes, without the NUL */
} kn_tokenizer_decode_params;
#define KN_TOKENIZER_DECODE_DEFAULTS .skip_special_tokens = true
KN_API kn_tokenizer_decode_params kn_tokenizer_decode_params_init(void);
KN_API char *kn_tokenizer_decode_with(const kn_tokenizer *tokenizer, const int64_t *ids, int64_t count,
                                      const kn_tokenizer_decode_params *params);
#define kn_tokenizer_decode(tokenizer, ids, count, ...)                                                                \
    KN_CALL(kn_tokenizer_decode_with(tokenizer, ids, count,                                                            \
                                     &(kn_tokenizer_decode_params){KN_TOKENIZER_DECODE_DEFAULTS, __VA_ARGS__}))

/* --- datasets for language models --------------------------------------------------------------------------------- *
 * Windows of `context` tokens: "input" is tokens i to i + context - 1, int64 [context], and "target" the token after
 * each of them: i + 1 to i + context. */
typedef struct kn_text_dataset_params {
    int64_t stride;    /* default 0: context; the distance of the windows' first tokens */
    double begin, end; /* default 0, 1; the part of the text that is used: .end = 0.9, and .begin = 0.9 for the rest */
} kn_text_dataset_params;
#define KN_TEXT_DATASET_DEFAULTS .begin = 0, .end = 1
KN_API kn_text_dataset_params kn_text_dataset_params_init(void);

/* Of a file, which is read at once (plain or gzipped) / of ids, which are copied. A text of fewer than context + 1
 * tokens is an error. The tokenizer is not needed afterwards. */
KN_API kn_dataset *kn_text_dataset_with(const char *path, const kn_tokenizer *tokenizer, int64_t context,
                                        const kn_text_dataset_params *params);
KN_API kn_dataset *kn_token_dataset_with(const int64_t *ids, int64_t count, int64_t context,
                                         const kn_text_dataset_params *params);
#define kn_text_dataset(path, tokenizer, context, ...)                                                                 \
    KN_CALL(kn_text_dataset_with(path, tokenizer, context,                                                             \
                                 &(kn_text_dataset_params){KN_TEXT_DATASET_DEFAULTS, __VA_ARGS__}))
#define kn_token_dataset(ids, count, context, ...)                                                                     \
    KN_CALL(                                                                                                           \
        kn_token_dataset_with(ids, count, context, &(kn_text_dataset_params){KN_TEXT_DATASET_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif

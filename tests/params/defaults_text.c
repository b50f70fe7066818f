/* defaults_text.c - tokenizers, texts and tables as datasets. */
#include "defaults.h"

#include <unistd.h>

static const char verse[] = "the cat sat on the mat; the cat sat on the hat";

/* A file with this text, which is removed when its dataset has been shown. */
static const char *file_of(const char *text)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/koine-defaults-%ld", (long)getpid());
    FILE *file = fopen(path, "wb");
    if (file != NULL) {
        fputs(text, file);
        fclose(file);
    }
    return path;
}

/* The number of samples, and the beginning of the first one's input. */
static char *show_dataset(kn_dataset *dataset)
{
    unlink(file_of(""));
    int64_t input[64] = {0}, target[64];
    char text[64];
    if (!dataset || kn_dataset_get(dataset, 0, (void *[]){input, target}) != KN_OK)
        return show_error();
    snprintf(text, sizeof text, "%lld samples, %llx", (long long)kn_dataset_length(dataset), (long long)input[0]);
    kn_dataset_free(dataset);
    return strdup(text);
}
CALLS(kn_csv_dataset, kn_csv_params, show_dataset, kn_csv_dataset_with(file_of("x,y\n1,2\n3,4\n"), params),
      kn_csv_dataset(file_of("x,y\n1,2\n3,4\n")))

static kn_dataset *text_dataset(bool with, const kn_text_dataset_params *params)
{
    kn_tokenizer *bytes = kn_byte_tokenizer();
    const char *path = file_of(verse);
    kn_dataset *dataset = with ? kn_text_dataset_with(path, bytes, 8, params) : kn_text_dataset(path, bytes, 8);
    kn_tokenizer_free(bytes);
    return dataset;
}
CALLS(kn_text_dataset, kn_text_dataset_params, show_dataset, text_dataset(true, params), text_dataset(false, NULL))
static const int64_t some_ids[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
CALLS(kn_token_dataset, kn_text_dataset_params, show_dataset, kn_token_dataset_with(some_ids, 11, 3, params),
      kn_token_dataset(some_ids, 11, 3))

/* How many tokens it has learned, and the id of one. */
static char *show_tokenizer(kn_tokenizer *tokenizer)
{
    char text[64];
    if (!tokenizer)
        return show_error();
    snprintf(text, sizeof text, "%lld tokens, the: %lld", (long long)kn_tokenizer_vocab_size(tokenizer),
             (long long)kn_tokenizer_id(tokenizer, "the"));
    kn_tokenizer_free(tokenizer);
    return strdup(text);
}
CALLS(kn_bpe_train, kn_bpe_params, show_tokenizer, kn_bpe_train_with(verse, sizeof verse - 1, 300, params),
      kn_bpe_train(verse, sizeof verse - 1, 300))

/* A special token, which is left out by default, between two bytes. */
static char *decoded(bool with, const kn_tokenizer_decode_params *params)
{
    kn_tokenizer *tokenizer = kn_bpe_train(verse, 0, 300, .special_tokens = KN_NAMES("<s>"));
    const int64_t ids[] = {kn_tokenizer_id(tokenizer, "a"), 0, kn_tokenizer_id(tokenizer, "b")};
    char *text = with ? kn_tokenizer_decode_with(tokenizer, ids, 3, params) : kn_tokenizer_decode(tokenizer, ids, 3);
    char *shown = text ? strdup(text) : show_error();
    kn_free(text);
    kn_tokenizer_free(tokenizer);
    return shown;
}
CALLS(kn_tokenizer_decode, kn_tokenizer_decode_params, , decoded(true, params), decoded(false, NULL))

DEFAULTS(text_defaults, ROW(kn_csv_dataset), ROW(kn_text_dataset), ROW(kn_token_dataset), ROW(kn_bpe_train),
         ROW(kn_tokenizer_decode))

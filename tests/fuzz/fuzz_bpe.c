/* fuzz_bpe.c - learns a tokenizer from anything: it must read its own text and give it back. */
#include <koine/text.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    int64_t *ids = NULL, count = 0;
    size_t length = 0;
    kn_tokenizer *tokenizer = kn_bpe_train(text, size, 300, .min_frequency = 1);
    if (!tokenizer) {
        fuzz_expect_message();
        return 0;
    }
    char *back = kn_tokenizer_encode(tokenizer, text, size, &ids, &count) == KN_OK
                     ? kn_tokenizer_decode(tokenizer, ids, count, .length = &length)
                     : NULL;
    if (!back || length != size || memcmp(back, text, size) != 0) {
        fprintf(stderr, "the text changed: %s\n", kn_error_message());
        abort();
    }
    kn_free(back);
    kn_free(ids);
    kn_tokenizer_free(tokenizer);
    return 0;
}

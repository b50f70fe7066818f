/* fuzz_tokenizer.c - feeds kn_tokenizer_load with anything, and tokenizers with their own files. */
#include <koine/text.h>

#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kn_tokenizer *tokenizer = NULL;
    int64_t *ids = NULL, count = 0;
    if ((tokenizer = kn_tokenizer_load(fuzz_input_file(data, size))) == NULL) {
        fuzz_expect_message();
        return 0;
    }
    if (kn_tokenizer_encode(tokenizer, (const char *)data, size, &ids, &count) == KN_OK)
        kn_free(kn_tokenizer_decode(tokenizer, ids, count));
    kn_free(ids);
    kn_tokenizer_free(tokenizer);
    return 0;
}

/* fuzz_safetensors.c - feeds kn_load_safetensors with anything. */
#include <koine/io.h>

#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kn_tensor_file *file = NULL;
    if (kn_load_safetensors(&file, fuzz_input_file(data, size)) == KN_OK)
        kn_tensor_file_free(file);
    else
        fuzz_expect_message();
    return 0;
}

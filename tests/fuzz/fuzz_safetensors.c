/* fuzz_safetensors.c - feeds kn_load_safetensors with anything. */
#include <koine/io.h>

#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kn_tensor_file *file = NULL;
    if ((file = kn_load_safetensors(fuzz_input_file(data, size))) != NULL)
        kn_tensor_file_free(file);
    else
        fuzz_expect_message();
    return 0;
}

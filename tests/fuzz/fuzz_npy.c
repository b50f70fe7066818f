/* fuzz_npy.c - feeds kn_load_npy with anything. */
#include <koine/io.h>

#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kn_tensor *tensor = NULL;
    if ((tensor = kn_load_npy(fuzz_input_file(data, size))) != NULL)
        kn_release(tensor);
    else
        fuzz_expect_message();
    return 0;
}

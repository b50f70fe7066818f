/* fuzz_tuning.c - feeds the reader of tuning files with anything. */
#include "fuzz_input.h"
#include "rt/rt.h"
#include "rt/tuning/list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kn_tuning_list list = {0};
    if (kn_tuning_read(&list, kn_device_current(), fuzz_input_file(data, size), size % 2 == 0) == KN_OK)
        kn_tuning_list_free(&list);
    else
        fuzz_expect_message();
    return 0;
}

/* fuzz_csv.c - feeds kn_csv_dataset with anything. */
#include <koine/csv.h>

#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kn_dataset *dataset = NULL;
    const char *path = fuzz_input_file(data, size);
    if ((dataset = kn_csv_dataset(path, .header = size % 2, .missing = size % 3, .target = "0")) != NULL)
        kn_dataset_free(dataset);
    else
        fuzz_expect_message();
    return 0;
}

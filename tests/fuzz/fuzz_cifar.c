/* fuzz_cifar.c - feeds kn_cifar10_dataset with anything, as records and as the classes' names. */
#include <koine/image_data.h>

#include "fuzz_input.h"

/* A record is longer than what the fuzzer tries by itself: the bytes are repeated. */
enum { RECORD = 3073 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t records[3 * RECORD] = {0};
    for (size_t i = 0; i < sizeof records && size > 0; i++)
        records[i] = data[i % size];
    fuzz_write("batches.meta.txt", data, size);
    fuzz_write("test_batch.bin", records, size % 4 * RECORD + (size % 16 == 0));
    kn_dataset *dataset = kn_cifar10_dataset(fuzz_folder(), false);
    if (!dataset) {
        fuzz_expect_message();
        return 0;
    }
    float image[RECORD];
    int64_t class;
    for (int64_t i = 0; i < kn_dataset_length(dataset); i++)
        if (kn_dataset_get(dataset, i, (void *[]){image, &class}) != KN_OK)
            fuzz_expect_message();
    kn_dataset_free(dataset);
    return 0;
}

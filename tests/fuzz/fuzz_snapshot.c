/* fuzz_snapshot.c - feeds kn_memory_snapshot_save_plot with anything. */
#include <koine/memory.h>
#include <stdio.h>

#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char plot[128];
    snprintf(plot, sizeof plot, "%s/plot.svg", fuzz_folder());
    if (kn_memory_snapshot_save_plot(fuzz_input_file(data, size), plot) != KN_OK)
        fuzz_expect_message();
    return 0;
}

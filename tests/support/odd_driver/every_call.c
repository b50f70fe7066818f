/* support/odd_driver/every_call.c - calls in callbacks, and calls after a kernel has crashed. */
#include "support/odd_driver/odd.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cl_calls.h"

static atomic_size_t launches;
static atomic_bool has_crashed, is_known; /* a wait has told */

/* Others may be the library's own trials of the driver. */
void odd_count_launch(const char *kernel)
{
    const bool counts = odd[ODD_CRASH].is_on && strncmp(kernel, "pointwise_", 10) == 0;
    if (counts && atomic_fetch_add(&launches, 1) + 1 == odd[ODD_CRASH].number)
        atomic_store(&has_crashed, true);
}

/* Only these notice that a kernel has crashed. (Reads that do not wait fail, too: they are rare.) */
static bool waits(int name) { return name == N_clFinish || name == N_clWaitForEvents || name == N_clEnqueueReadBuffer; }

/* Objects of a dead context can still be released, and devices queried. */
static bool needs_context(int name)
{
    return strncmp(cl_call_names[name], "clEnqueue", 9) == 0 || strncmp(cl_call_names[name], "clCreate", 8) == 0 ||
           waits(name) || name == N_clFlush || name == N_clBuildProgram;
}

static cl_int called(int name)
{
    if (odd_in_callback()) {
        fprintf(stderr, "odd_driver: %s in a callback: other drivers would wait here for ever\n", cl_call_names[name]);
        abort();
    }
    if (!atomic_load(&has_crashed))
        return CL_SUCCESS;
    if (waits(name))
        atomic_store(&is_known, true);
    return atomic_load(&is_known) && needs_context(name) ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

void odd_install_every_call(void)
{
    if (odd[ODD_LATE].is_on || odd[ODD_CRASH].is_on)
        wrap_calls();
}

/* support/odd_driver/layer.c - an OpenCL layer (OPENCL_LAYERS) that does what real drivers have done. ODD_DRIVER names
 * the oddities, separated by commas, some with a number: "dims=100,late". tests/README.md tells which driver each is
 * from. Those of enumeration concern the second device:
 *
 *   old, unavailable, no-compiler  has OpenCL 1.1; cannot be used now; cannot compile
 *   copy                           is the first device, a GPU, once more, under a platform called rusticl
 *   unlike                         is a GeForce RTX 4090 (128 multiprocessors), the first an Arc A770 (512 units)
 *
 * Limits of devices, which they report and insist on:
 *
 *   local=KIB       local memory
 *   group=ITEMS     work-items per group of kernels without a required size, less than the device's limit
 *   dims=GROUPS     work-groups in dimensions 1 and 2
 *   strict          what OpenCL 1.2 forbids and PoCL allows: empty and ragged launches; groups above 1024, 1024, 64
 *   arguments=BYTES a kernel's arguments
 *   align=BITS      sub-buffers
 *   width=LANES     native and preferred vectors
 *   units=N         compute units (8); they are not more, so work is divided otherwise, no faster
 *   cache=BYTES     the global memory's cache (1): everything is larger
 *   bare            no extension beyond 1.2's own: neither f64 nor 64-bit atomics; 64 KiB of constants
 *   inexact         no denormals, no exact division (support/inexact_kernels.c sees to that)
 *   allocation=MIB  one buffer
 *   lazy=MIB        memory is given at first use, and this is all there is
 *
 * Commands and programs:
 *
 *   fill            fills of 2 GiB and more fail
 *   blocking        transfers and maps return when they are done, whatever the caller wants
 *   posted=MS       writes that block return when they have taken the data, and write it later
 *   late=MS         callbacks come late, in any order, and OpenCL calls in them end the process
 *   marker-zero, marker-mixed, no-times
 *                   markers have no times; have them in reverse; no command has any
 *   crash=N         the Nth launch of an elementwise kernel crashes: the next wait says CL_OUT_OF_RESOURCES, and so
 *                   does every call after it
 *   silent, warnings, no-binary
 *                   builds fail and say nothing; say much; binaries are empty
 *
 * Kernels run on the actual device. */
#include "support/odd_driver/odd.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define ODD_ROW(number, name, value) {name, value, false},
oddity odd[NUM_ODDITIES] = {ODDITIES(ODD_ROW)};

static atomic_int refusals;
EXPORT int odd_driver_refusals(void);
int odd_driver_refusals(void) { return atomic_load(&refusals); } /* for tests, which find it with dlsym */

cl_int odd_refuse(cl_int error, const char *format, ...)
{
    va_list args;
    atomic_fetch_add(&refusals, 1);
    va_start(args, format);
    fprintf(stderr, "odd_driver: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, ": %d\n", error);
    va_end(args);
    return error;
}

cl_device_id odd_device_of(cl_command_queue queue)
{
    cl_device_id device = NULL;
    below->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    return device;
}

/* "name" or "name=number". */
static void switch_on(const char *wanted)
{
    const size_t length = strcspn(wanted, "=");
    for (int i = 0; i < NUM_ODDITIES; i++) {
        if (strlen(odd[i].name) != length || memcmp(odd[i].name, wanted, length) != 0)
            continue;
        odd[i].is_on = true;
        if (wanted[length] == '=')
            odd[i].number = strtoul(wanted + length + 1, NULL, 10);
        return;
    }
    fprintf(stderr, "odd_driver: there is no oddity `%s`\n", wanted);
    abort();
}

static void install(void)
{
    char list[512];
    snprintf(list, sizeof list, "%s", getenv("ODD_DRIVER") ? getenv("ODD_DRIVER") : "");
    for (char *name = strtok(list, ","); name; name = strtok(NULL, ","))
        switch_on(name);
    odd_install_devices();
    odd_install_launches();
    odd_install_transfers();
    odd_install_memory();
    odd_install_events();
    odd_install_programs();
    odd_install_every_call();
}

LAYER("odd_driver", install)

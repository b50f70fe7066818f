/* rt/device/struct_copies.c - see rt/device/struct_copies.h. */
#include "rt/device/struct_copies.h"

#include <string.h>

#include "base/log.h"
#include "rt/device/inject.h"

static const char source[] = "typedef struct pair { int a, b; } pair;\n"
                             "kernel void copy_struct(global int *results)\n"
                             "{\n"
                             "    pair source, copy;\n"
                             "    source.a = 3;\n"
                             "    source.b = 4;\n"
                             "    copy = source;\n"
                             "    source.a = 5;\n"
                             "    results[0] = copy.a;\n"
                             "    results[1] = copy.b;\n"
                             "    results[2] = source.a;\n"
                             "}\n";
enum { RESULTS = 3 };
static const int right[RESULTS] = {3, 4, 5};

static cl_int run(kn_device *device, cl_program program, cl_mem memory, int *results)
{
    const size_t one = 1, bytes = RESULTS * sizeof *results;
    cl_int error;
    cl_kernel kernel = clCreateKernel(program, "copy_struct", &error);
    if (error == CL_SUCCESS)
        error = clSetKernelArg(kernel, 0, sizeof memory, &memory);
    if (error == CL_SUCCESS)
        error = clEnqueueWriteBuffer(device->service, memory, CL_TRUE, 0, bytes, results, 0, NULL, NULL);
    if (error == CL_SUCCESS)
        error =
            KN_CL(KN_CL_LAUNCH, clEnqueueNDRangeKernel(device->service, kernel, 1, NULL, &one, &one, 0, NULL, NULL));
    if (error == CL_SUCCESS)
        error = clEnqueueReadBuffer(device->service, memory, CL_TRUE, 0, bytes, results, 0, NULL, NULL);
    if (kernel)
        clReleaseKernel(kernel);
    return error;
}

static cl_int build_and_run(kn_device *device, int *results)
{
    const char *text = source;
    cl_int error;
    cl_mem memory = NULL;
    cl_program program = clCreateProgramWithSource(device->context, 1, &text, NULL, &error);
    if (error == CL_SUCCESS)
        error = clBuildProgram(program, 1, &device->id, "-cl-std=CL1.2", NULL, NULL);
    if (error == CL_SUCCESS)
        memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, RESULTS * sizeof *results, NULL, &error);
    if (error == CL_SUCCESS)
        error = run(device, program, memory, results);
    if (memory)
        clReleaseMemObject(memory);
    if (program)
        clReleaseProgram(program);
    return error;
}

static bool find_out(kn_device *device)
{
    int results[RESULTS] = {0};
    const bool dropped = build_and_run(device, results) != CL_SUCCESS || memcmp(results, right, sizeof right) != 0;
    if (dropped)
        kn_log_message(KN_LOG_INFO, "the compiler of %s drops writes to structs that are copied: -O2 avoids that",
                       device->label);
    return dropped;
}

bool kn_struct_copies_are_dropped(kn_device *device)
{
    static kn_mutex lock = KN_MUTEX_INIT;
    enum { UNTRIED, KEPT, DROPPED };
    if (!device->quirks.drops_struct_copies)
        return false;
    kn_lock(&lock);
    if (device->struct_copies == UNTRIED)
        device->struct_copies = find_out(device) ? DROPPED : KEPT;
    const bool dropped = device->struct_copies == DROPPED;
    kn_unlock(&lock);
    return dropped;
}

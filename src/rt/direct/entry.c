/* rt/direct/entry.c - see entry.h. */
#define _GNU_SOURCE /* dladdr */
#include "rt/direct/entry.h"

#include <dlfcn.h>
#include <string.h>

#include "rt/device/await.h"
#include "rt/direct/direct.h"

/* PoCL keeps each kernel's code in a shared library of its own, and unloads some when it has very many. Code that is in
 * no library is the program's, which is never released. */
static bool keep_loaded(kn_entry entry)
{
    Dl_info info;
    void *address;
    memcpy(&address, &entry, sizeof address);
    return dladdr(address, &info) == 0 || !info.dli_fname || dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) != NULL;
}

void kn_entry_find(kn_kernel *kernel, cl_command_queue queue)
{
    static const size_t one[3] = {1, 1, 1};
    kn_question *question = &kernel->question;
    const cl_long call = (cl_long)(uintptr_t)&question->head;
    kn_entry entry;
    if (!kernel->calling.is_gathered || kernel->calling.entry || !kn_direct_is_wanted())
        return;
    question->head.told = (cl_long)(uintptr_t)&question->answer;
    cl_int error = clSetKernelArg(kernel->handle, 0, sizeof call, &call);
    if (error == CL_SUCCESS)
        error = clEnqueueNDRangeKernel(queue, kernel->handle, 1, NULL, one, one, 0, NULL, NULL);
    if (error != CL_SUCCESS || kn_await_queue(queue) != CL_SUCCESS)
        return;
    const uintptr_t address = (uintptr_t)question->answer;
    memcpy(&entry, &address, sizeof entry);
    if (entry && keep_loaded(entry))
        kernel->calling.entry = entry;
}

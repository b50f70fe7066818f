/* rt/direct/entry.c - see entry.h. */
#define _GNU_SOURCE /* dladdr, dl_iterate_phdr */
#include "rt/direct/entry.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "rt/device/await.h"
#include "rt/direct/direct.h"

/* Reads a byte of each of the library's pages, so that they are there. A constant that is loaded with a mask (of a
 * vector's `x == 0 ? 1 : x`) is not while the mask is 0, nor is its page then, and each such load takes hundreds of
 * cycles on Zen 4: the gradient of float16 norms took 30 times as long. */
static int read_pages(struct dl_phdr_info *library, size_t size, void *base)
{
    enum { PAGE = 4096 };
    (void)size;
    if (library->dlpi_addr != (ElfW(Addr))(uintptr_t)base)
        return 0;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        const volatile char *first = (const volatile char *)(uintptr_t)(library->dlpi_addr + part->p_vaddr);
        for (size_t at = 0; part->p_type == PT_LOAD && (part->p_flags & PF_R) && at < part->p_memsz; at += PAGE)
            (void)first[at];
    }
    return 1;
}

/* PoCL keeps each kernel's code in a shared library of its own, and unloads some when it has very many. Code that is in
 * no library is the program's, which is never released. */
static bool keep_loaded(kn_entry entry)
{
    Dl_info info;
    void *address;
    memcpy(&address, &entry, sizeof address);
    if (dladdr(address, &info) == 0 || !info.dli_fname)
        return true;
    if (!dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD))
        return false;
    dl_iterate_phdr(read_pages, info.dli_fbase);
    return true;
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

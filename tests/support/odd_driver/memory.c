/* support/odd_driver/memory.c - buffers that are refused, or turn out not to be there. */
#include "support/odd_driver/odd.h"

#include <pthread.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)

typedef struct known_memory {
    cl_mem handle;
    size_t bytes;
    bool is_used;
    struct known_memory *next;
} known_memory;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static known_memory *all;
static size_t used; /* bytes */

static void CL_CALLBACK forget(cl_mem handle, void *user)
{
    (void)user;
    pthread_mutex_lock(&lock);
    known_memory **link = &all;
    while (*link && (*link)->handle != handle)
        link = &(*link)->next;
    known_memory *gone = *link;
    if (gone) {
        *link = gone->next;
        used -= gone->is_used ? gone->bytes : 0;
    }
    pthread_mutex_unlock(&lock);
    free(gone);
}

static void remember(cl_mem handle, size_t bytes)
{
    known_memory *made = calloc(1, sizeof *made);
    if (!made)
        return;
    *made = (known_memory){.handle = handle, .bytes = bytes};
    pthread_mutex_lock(&lock);
    made->next = all;
    all = made;
    pthread_mutex_unlock(&lock);
    below->clSetMemObjectDestructorCallback(handle, forget, NULL);
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *error)
{
    if (odd[ODD_ALLOCATION].is_on && bytes > odd[ODD_ALLOCATION].number * MIB) {
        if (error)
            *error = CL_INVALID_BUFFER_SIZE;
        return NULL;
    }
    cl_mem made = below->clCreateBuffer(context, flags, bytes, host, error);
    if (made && odd[ODD_LAZY].is_on)
        remember(made, bytes);
    return made;
}

static cl_mem CL_API_CALL create_sub_buffer(cl_mem memory, cl_mem_flags flags, cl_buffer_create_type type,
                                            const void *info, cl_int *error)
{
    const cl_buffer_region *region = info;
    if (odd[ODD_ALIGN].is_on && region->origin % (odd[ODD_ALIGN].number / 8) != 0) {
        if (error)
            *error = odd_refuse(CL_MISALIGNED_SUB_BUFFER_OFFSET, "a sub-buffer at %zu", region->origin);
        return NULL;
    }
    return below->clCreateSubBuffer(memory, flags, type, info, error);
}

cl_int odd_use_memory(cl_mem memory)
{
    cl_int error = CL_SUCCESS;
    if (!odd[ODD_LAZY].is_on)
        return CL_SUCCESS;
    pthread_mutex_lock(&lock);
    known_memory *known = all;
    while (known && known->handle != memory)
        known = known->next;
    if (known && !known->is_used) {
        known->is_used = used + known->bytes <= odd[ODD_LAZY].number * MIB;
        used += known->is_used ? known->bytes : 0;
        error = known->is_used ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

void odd_install_memory(void)
{
    ours.clCreateBuffer = create_buffer;
    ours.clCreateSubBuffer = create_sub_buffer;
}

/* rt/direct/stack.c - see stack.h. */
#define _GNU_SOURCE /* pthread_getattr_np */
#include "rt/direct/stack.h"

#include <pthread.h>
#include <stdint.h>

enum { NEEDED = 1 << 20 }; /* more than twice what any kernel takes: max pooling of float64 planes 400 KB */

typedef struct extent {
    uintptr_t lowest, end; /* 0: not known yet; 1: there is no telling */
} extent;

static extent find_stack(void)
{
    extent found = {1, 1};
#ifdef __linux__
    pthread_attr_t attributes;
    void *address;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return found;
    if (pthread_attr_getstack(&attributes, &address, &size) == 0)
        found = (extent){(uintptr_t)address, (uintptr_t)address + size};
    pthread_attr_destroy(&attributes);
#endif
    return found;
}

bool kn_stack_has_room(void)
{
    static _Thread_local extent stack;
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (stack.end == 0)
        stack = find_stack();
    return here < stack.end && here > stack.lowest && here - stack.lowest > NEEDED;
}

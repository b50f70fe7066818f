/* base/threads.c - see threads.h. */
#include "base/threads.h"

const void *kn_this_thread(void)
{
    static _Thread_local char mark;
    return &mark;
}

/* Of the C++ runtime's thread_local; glibc, Bionic. */
extern int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *library) __attribute__((weak));
extern void *__dso_handle;

bool kn_at_thread_exit(void (*function)(void *), void *argument)
{
    return __cxa_thread_atexit_impl && __cxa_thread_atexit_impl(function, argument, &__dso_handle) == 0;
}

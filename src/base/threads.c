/* base/threads.c - see threads.h. */
#include "base/threads.h"

const void *kn_this_thread(void)
{
    static _Thread_local char mark;
    return &mark;
}

/* rt/direct/stack.h - the calling thread's stack. */
#pragma once

#include <stdbool.h>

/* Is there room for a kernel? Some keep parts of their operands on it. False where the system does not tell, and on a
 * stack that is not the thread's own, such as a coroutine's. */
bool kn_stack_has_room(void);

/* rt/command/rehearsing.c - see rt/command/rehearsing.h. */
#include "rt/command/rehearsing.h"

_Atomic(const kn_rehearsal *) kn_rehearsal_now;

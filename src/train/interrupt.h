/* train/interrupt.h - SIGINT and SIGTERM as a flag that is checked between steps. */
#pragma once

#include <stdbool.h>

/* From the first begin to the last end, SIGINT and SIGTERM set the flag instead of ending the process; a second signal
 * of either kind does end it. A signal that the process ignores (SIGINT in the background) stays ignored. Several
 * threads may be between begin and end at once: all see the flag. */
void kn_interrupt_begin(void);
int kn_interrupt_end(void);    /* returns the last value of kn_interrupt_signal */
int kn_interrupt_signal(void); /* the first signal received; 0: none */
bool kn_interrupted(void);     /* was one received? */

/* train/interrupt.h - Ctrl-C and a request to end as a flag that is looked at between steps. */
#ifndef KN_TRAIN_INTERRUPT_H
#define KN_TRAIN_INTERRUPT_H

#include <stdbool.h>

/* From the first begin to the last end SIGINT and SIGTERM set the flag instead of ending the process; a second signal,
 * of either kind, ends it all the same. One that the process ignores (SIGINT in the background) it goes on ignoring.
 * Several threads may be between begin and end at once: all see the flag. */
void kn_interrupt_begin(void);
int kn_interrupt_end(void);    /* returns what kn_interrupt_signal would have said last */
int kn_interrupt_signal(void); /* the first that came; 0: none */
bool kn_interrupted(void);     /* has one come? */

#endif

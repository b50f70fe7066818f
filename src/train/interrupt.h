/* train/interrupt.h - Ctrl-C as a flag that is looked at between steps. */
#ifndef KN_TRAIN_INTERRUPT_H
#define KN_TRAIN_INTERRUPT_H

#include <stdbool.h>

/* From the first begin to the last end SIGINT sets the flag instead of ending the process; a second SIGINT ends it all
 * the same. Where the process ignores SIGINT (it runs in the background) it goes on ignoring it. Several threads may be
 * between begin and end at once: all see the flag. */
void kn_interrupt_begin(void);
void kn_interrupt_end(void);
bool kn_interrupted(void);

#endif

/* train/pace.h - keeps the host a few steps ahead of the device and no more.
 *
 * Enqueued without limit, steps would pile up buffers and commands, and Ctrl-C would take effect only after all of
 * them. Every few steps an event is recorded, and the one before it waited for: it has long passed when the device
 * keeps up. */
#ifndef KN_TRAIN_PACE_H
#define KN_TRAIN_PACE_H

#include "rt/rt.h"

typedef struct kn_pace {
    kn_event *previous;
    int steps; /* since that was recorded */
} kn_pace;

kn_status kn_pace_step(kn_pace *pace, kn_stream *stream); /* after each step */
void kn_pace_end(kn_pace *pace);                          /* forgets the event; does not wait */

#endif

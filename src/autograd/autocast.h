/* autograd/autocast.h - the thread's autocast region (koine/amp.h). What is converted is in ops/dispatch/autocast.c. */
#pragma once

#include <koine/amp.h>

/* Turns autocast off while an operator computes, forward or backward; returns what kn_autocast_resume restores. */
kn_dtype kn_autocast_pause(void);
void kn_autocast_resume(kn_dtype before);

/* Sets a function that is called when the thread leaves its outermost region. */
void kn_autocast_set_left(void (*left)(void));

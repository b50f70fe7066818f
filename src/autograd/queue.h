/* autograd/queue.h - the nodes that a backward pass has yet to run, by descending number. */
#pragma once

#include "autograd/tape.h"

typedef struct kn_queue {
    kn_node **items; /* each with a reference */
    int count, capacity;
} kn_queue;

kn_status kn_queue_push(kn_queue *q, kn_node *node); /* queued once, however often it is pushed */
kn_node *kn_queue_pop(kn_queue *q);                  /* a reference for the caller; NULL: empty */

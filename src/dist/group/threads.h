/* dist/group/threads.h - the ranks of a group as threads of one process: what the parts of that back end share. */
#pragma once

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "dist/group/transport.h"

typedef struct kn_place {
    void *data; /* what the others read, or write into */
    const size_t *sizes;
} kn_place;

typedef struct kn_message {
    struct kn_message *next;
    int from, to, tag;
    size_t bytes;
    char data[];
} kn_message;

/* Shared by the ranks; freed with the last. */
typedef struct kn_board {
    kn_mutex lock;
    pthread_cond_t changed;
    int size, users;
    int arrived;           /* ranks at the current meeting */
    unsigned long meeting; /* their number so far */
    const char *away;      /* why a rank is not coming: the group has failed */
    int away_rank;
    double timeout;
    kn_message *messages, **end; /* sent and not received yet, oldest first; where the next goes */
    char host[256];
    char **hosts;
    kn_place places[];
} kn_board;

typedef struct kn_threads_transport {
    kn_transport base;
    kn_board *board;
} kn_threads_transport;

static inline kn_board *kn_board_of(const kn_transport *self) { return ((const kn_threads_transport *)self)->board; }

/* Shows `data` to the other ranks; returns when all have shown theirs. */
kn_status kn_threads_show(kn_transport *self, const void *data, const size_t *sizes);
static inline char *kn_threads_shown(const kn_transport *self, int rank)
{
    return kn_board_of(self)->places[rank].data;
}
/* Returns when no rank reads the others' memory any more. */
kn_status kn_threads_leave(kn_transport *self);

/* The board is locked. From now on all calls fail: rank `rank` `why`, unless they failed before for another reason. */
void kn_board_give_up(kn_board *board, int rank, const char *why);
kn_status kn_board_fail(const kn_board *board);

/* The functions of the table that move values (threads_collectives.c, threads_messages.c). */
extern const kn_transport_class kn_threads_class;
kn_status kn_threads_send(kn_transport *self, kn_message_end *message, bool *done);
kn_status kn_threads_receive(kn_transport *self, kn_message_end *message, bool *done);
kn_status kn_threads_split(kn_transport *self, int color, int key, kn_transport **part);
void kn_threads_free(kn_transport *self);

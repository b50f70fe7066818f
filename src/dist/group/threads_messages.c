/* dist/group/threads_messages.c - messages between threads: copies in a list of the group. */
#include <string.h>

#include "dist/group/threads.h"

kn_status kn_threads_send(kn_transport *self, const void *data, size_t bytes, int to, int tag)
{
    kn_board *board = kn_board_of(self);
    kn_message *sent = kn_malloc(sizeof *sent + bytes);
    if (!sent)
        return KN_ERR_MEMORY;
    *sent = (kn_message){.from = self->rank, .to = to, .tag = tag, .bytes = bytes};
    memcpy(sent->data, data, bytes);
    kn_lock(&board->lock);
    *board->end = sent;
    board->end = &sent->next;
    pthread_cond_broadcast(&board->changed);
    kn_unlock(&board->lock);
    return KN_OK;
}

/* Takes the oldest message that fits out of the list; NULL if there is none. The board is locked. */
static kn_message *take(kn_board *board, int from, int to, int tag)
{
    for (kn_message **m = &board->messages; *m; m = &(*m)->next)
        if ((*m)->to == to && (*m)->tag == tag && (from == KN_ANY_RANK || (*m)->from == from)) {
            kn_message *taken = *m;
            *m = taken->next;
            if (!*m)
                board->end = m;
            return taken;
        }
    return NULL;
}

kn_status kn_threads_receive(kn_transport *self, void *data, size_t bytes, int from, int tag, int *sender)
{
    kn_board *board = kn_board_of(self);
    const struct timespec end = kn_board_deadline(board);
    kn_message *received;
    kn_status status = KN_OK;
    kn_lock(&board->lock);
    while (!(received = take(board, from, self->rank, tag)) && !board->away)
        if (!kn_board_wait(board, &end))
            kn_board_give_up(board, from == KN_ANY_RANK ? (self->rank + 1) % board->size : from,
                             "did not send in time");
    if (!received)
        status = kn_board_fail(board);
    kn_unlock(&board->lock);
    if (received && received->bytes != bytes)
        status = kn_fail(KN_ERR_SHAPE, "rank %d sent %zu bytes, but the tensor to receive has %zu", received->from,
                         received->bytes, bytes);
    else if (received)
        memcpy(data, received->data, bytes);
    if (received && sender)
        *sender = received->from;
    kn_free(received);
    return status;
}

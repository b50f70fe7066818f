/* dist/group/threads_messages.c - messages between threads: copies in a list of the group. */
#include <string.h>

#include "dist/group/threads.h"

kn_status kn_threads_send(kn_transport *self, kn_message_end *message, bool *done)
{
    kn_board *board = kn_board_of(self);
    kn_message *sent = kn_malloc(sizeof *sent + message->bytes);
    if (!sent)
        return KN_ERR_MEMORY;
    *sent = (kn_message){.from = self->rank, .to = message->other, .tag = message->tag, .bytes = message->bytes};
    memcpy(sent->data, message->data, message->bytes);
    kn_lock(&board->lock);
    *board->end = sent;
    board->end = &sent->next;
    pthread_cond_broadcast(&board->changed);
    kn_unlock(&board->lock);
    *done = true;
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

/* The oldest message, if it has come; `failed`: none will. */
static kn_message *look(kn_transport *self, const kn_message_end *wanted, bool *failed)
{
    kn_board *board = kn_board_of(self);
    kn_lock(&board->lock);
    kn_message *received = take(board, wanted->other, self->rank, wanted->tag);
    if (!received && wanted->waited > board->timeout)
        kn_board_give_up(board, wanted->other == KN_ANY_RANK ? (self->rank + 1) % board->size : wanted->other,
                         "did not send in time");
    *failed = !received && board->away;
    if (*failed)
        kn_board_fail(board);
    kn_unlock(&board->lock);
    return received;
}

kn_status kn_threads_receive(kn_transport *self, kn_message_end *message, bool *done)
{
    bool failed;
    kn_status status = KN_OK;
    kn_message *received = look(self, message, &failed);
    if (!received)
        return failed ? KN_ERR_DEVICE : KN_OK;
    if (received->bytes != message->bytes)
        status = kn_fail(KN_ERR_SHAPE, "rank %d sent %zu bytes, but the tensor to receive has %zu", received->from,
                         received->bytes, message->bytes);
    else
        memcpy(message->data, received->data, message->bytes);
    if (message->sender)
        *message->sender = received->from;
    kn_free(received);
    *done = true;
    return status;
}

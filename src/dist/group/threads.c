/* dist/group/threads.c - the ranks of a group as threads of one process: how they meet, and how groups are made. */
#include "dist/group/threads.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* --- waiting for the others --------------------------------------------------------------------------------------- */

static struct timespec deadline_of(const kn_board *board)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    const int64_t ns = end.tv_nsec + (int64_t)(1e9 * board->timeout);
    end.tv_sec += ns / 1000000000;
    end.tv_nsec = ns % 1000000000;
    return end;
}

kn_status kn_board_fail(const kn_board *board)
{
    return kn_fail(KN_ERR_DEVICE, "rank %d %s", board->away_rank, board->away);
}

void kn_board_give_up(kn_board *board, int rank, const char *why)
{
    if (board->away)
        return;
    board->away = why;
    board->away_rank = rank;
    pthread_cond_broadcast(&board->changed);
}

static int first_missing(const kn_board *board)
{
    for (int r = 0; r < board->size; r++)
        if (!board->places[r].data)
            return r;
    return 0;
}

/* Until another rank changes the board; false: the time is over. */
static bool wait_for_change(kn_board *board, const struct timespec *end)
{
    return pthread_cond_timedwait(&board->changed, &board->lock, end) != ETIMEDOUT;
}

/* All ranks have called it when it returns. */
static kn_status meet(kn_board *board)
{
    const struct timespec end = deadline_of(board);
    kn_lock(&board->lock);
    const unsigned long meeting = board->meeting;
    if (++board->arrived == board->size) {
        board->arrived = 0;
        board->meeting++;
        pthread_cond_broadcast(&board->changed);
    }
    while (board->meeting == meeting && !board->away)
        if (!wait_for_change(board, &end) && board->meeting == meeting)
            kn_board_give_up(board, first_missing(board), "did not answer in time");
    const kn_status status = board->meeting != meeting ? KN_OK : kn_board_fail(board);
    kn_unlock(&board->lock);
    return status;
}

kn_status kn_threads_show(kn_transport *self, const void *data, const size_t *sizes)
{
    static char nothing;
    kn_board *board = kn_board_of(self);
    kn_place *mine = &board->places[self->rank];
    kn_lock(&board->lock);
    mine->data = data ? (void *)data : &nothing;
    mine->sizes = sizes;
    kn_unlock(&board->lock);
    return meet(board);
}

kn_status kn_threads_leave(kn_transport *self)
{
    kn_board *board = kn_board_of(self);
    KN_TRY(meet(board));
    kn_lock(&board->lock);
    board->places[self->rank].data = NULL;
    kn_unlock(&board->lock);
    return KN_OK;
}

/* --- making ------------------------------------------------------------------------------------------------------- */

static void board_release(kn_board *board)
{
    kn_lock(&board->lock);
    const bool last = --board->users == 0;
    kn_unlock(&board->lock);
    if (!last)
        return;
    while (board->messages) {
        kn_message *next = board->messages->next;
        kn_free(board->messages);
        board->messages = next;
    }
    pthread_cond_destroy(&board->changed);
    kn_mutex_destroy(&board->lock);
    kn_free(board->hosts);
    kn_free(board);
}

void kn_threads_free(kn_transport *self)
{
    kn_board *board = kn_board_of(self);
    kn_lock(&board->lock);
    kn_board_give_up(board, self->rank, "has left the group");
    kn_unlock(&board->lock);
    board_release(board);
    kn_free(self);
}

static kn_board *board_new(int size, double timeout)
{
    kn_board *made = kn_calloc(1, sizeof *made + (size_t)size * sizeof made->places[0]);
    char **hosts = kn_calloc((size_t)size, sizeof *hosts);
    if (!made || !hosts) {
        kn_free(made);
        kn_free(hosts);
        return NULL;
    }
    kn_condition_init(&made->changed);
    kn_mutex_init(&made->lock);
    made->size = size;
    made->timeout = timeout;
    made->hosts = hosts;
    made->end = &made->messages;
    gethostname(made->host, sizeof made->host - 1);
    for (int r = 0; r < size; r++)
        hosts[r] = made->host;
    return made;
}

kn_status kn_threads_transports_new(const char *name, int size, double timeout, kn_transport **transports)
{
    kn_board *board = board_new(size, timeout);
    if (!board)
        return KN_ERR_MEMORY;
    for (int r = 0; r < size; r++) {
        kn_threads_transport *made = kn_calloc(1, sizeof *made);
        if (!made) {
            board->users++; /* for the release below */
            while (r-- > 0)
                kn_threads_free(transports[r]);
            board_release(board);
            return KN_ERR_MEMORY;
        }
        made->base = (kn_transport){.class = &kn_threads_class,
                                    .name = name,
                                    .rank = r,
                                    .size = size,
                                    .local_rank = r,
                                    .local_size = size,
                                    .hosts = board->hosts,
                                    .notices_losses = true};
        made->board = board;
        board->users++;
        transports[r] = &made->base;
    }
    return KN_OK;
}

/* --- splitting ---------------------------------------------------------------------------------------------------- */

typedef struct request {
    int color, key;
    kn_transport **part;
} request;

static request *request_of(kn_transport *self, int rank) { return (request *)(void *)kn_threads_shown(self, rank); }

/* The ranks with the color of `rank`, by key and then by rank; their number. */
static int members(kn_transport *self, int rank, int *ranks)
{
    int count = 0;
    for (int r = 0; r < self->size; r++) {
        if (request_of(self, r)->color != request_of(self, rank)->color)
            continue;
        int at = count++;
        for (; at > 0 && request_of(self, ranks[at - 1])->key > request_of(self, r)->key; at--)
            ranks[at] = ranks[at - 1];
        ranks[at] = r;
    }
    return count;
}

/* The first rank of each color makes the part's transports and hands them out. */
static kn_status hand_out(kn_transport *self)
{
    int *ranks = kn_calloc((size_t)self->size, sizeof *ranks);
    kn_transport **made = kn_calloc((size_t)self->size, sizeof *made);
    kn_status status = ranks && made ? KN_OK : KN_ERR_MEMORY;
    if (status == KN_OK) {
        const int count = members(self, self->rank, ranks);
        if (ranks[0] == self->rank)
            status = kn_threads_transports_new(self->name, count, kn_board_of(self)->timeout, made);
        for (int i = 0; i < count && made[i]; i++)
            *request_of(self, ranks[i])->part = made[i];
    }
    kn_free(ranks);
    kn_free(made);
    return status;
}

kn_status kn_threads_split(kn_transport *self, int color, int key, kn_transport **part)
{
    request mine = {color, key, part};
    *part = NULL;
    KN_TRY(kn_threads_show(self, &mine, NULL));
    kn_status status = color >= 0 ? hand_out(self) : KN_OK;
    KN_TRY(kn_threads_leave(self));
    if (status == KN_OK && color >= 0 && !*part)
        status = kn_fail(KN_ERR_MEMORY, "the rank that makes the new group is out of memory");
    return status;
}

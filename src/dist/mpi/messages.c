/* dist/mpi/messages.c - messages between two ranks. With seals, a second message with the same tag follows each. */
#include <stdlib.h>

#include "dist/mpi/moves.h"

/* A message on its way. It is freed when it has arrived: after an error MPI may still write to it. */
typedef struct way {
    MPI_Request requests[2]; /* of the message and of its seal */
    MPI_Datatype type;
    void *place; /* what is received, if its size is not the expected one */
    size_t bytes;
    int other;
    uint64_t seal;
} way;

static kn_mpi_transport *transport_of(kn_transport *self) { return (kn_mpi_transport *)self; }

static way *way_new(kn_transport *self, kn_message_end *message)
{
    way *w = calloc(1, sizeof *w);
    if (!w) {
        kn_mpi_host->fail(KN_ERR_MEMORY, "out of host memory: a message");
        return NULL;
    }
    *w = (way){.requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, .type = MPI_BYTE};
    message->state = w;
    transport_of(self)->messages++;
    return w;
}

static void way_free(kn_transport *self, kn_message_end *message)
{
    way *w = message->state;
    kn_mpi_block_free(&w->type);
    if (w->place != message->data)
        free(w->place);
    free(w);
    message->state = NULL;
    transport_of(self)->messages--;
}

static kn_status test(kn_transport *self, way *w, const char *what, bool *done)
{
    int all = 1;
    for (int i = 0; i < 2; i++) {
        int ended;
        const int error = MPI_Test(&w->requests[i], &ended, MPI_STATUS_IGNORE); /* of none: ended */
        if (error != MPI_SUCCESS)
            return kn_mpi_end_call(self, error, what);
        all &= ended;
    }
    *done = all;
    return KN_OK;
}

/* --- sending ------------------------------------------------------------------------------------------------------ */

static kn_status begin_send(kn_transport *self, kn_message_end *message, way *w)
{
    MPI_Comm comm = kn_mpi_comm(self);
    int count;
    kn_status status = kn_mpi_block(message->bytes, &w->type, &count);
    w->place = message->data;
    if (status == KN_OK)
        status = kn_mpi_end_call(
            self, MPI_Isend(message->data, count, w->type, message->other, message->tag, comm, &w->requests[0]),
            "send");
    if (status != KN_OK || !transport_of(self)->has_seals)
        return status;
    w->seal = kn_mpi_seal_of(0, message->data, message->bytes);
    return kn_mpi_end_call(self, MPI_Isend(&w->seal, KN_MPI_SEAL, message->other, message->tag, comm, &w->requests[1]),
                           "send");
}

kn_status kn_mpi_send(kn_transport *self, kn_message_end *message, bool *done)
{
    kn_status status = KN_OK;
    if (!message->state) {
        way *w = way_new(self, message);
        status = w ? begin_send(self, message, w) : KN_ERR_MEMORY;
    }
    if (status == KN_OK)
        status = test(self, message->state, "send", done);
    if (status == KN_OK && *done)
        way_free(self, message);
    return status;
}

/* --- receiving ---------------------------------------------------------------------------------------------------- */

static kn_status begin_receive(kn_transport *self, kn_message_end *message, MPI_Message *found,
                               const MPI_Status *probed)
{
    MPI_Count bytes = 0;
    int count;
    way *w = way_new(self, message);
    if (!w)
        return KN_ERR_MEMORY;
    MPI_Get_elements_x(probed, MPI_BYTE, &bytes);
    w->other = probed->MPI_SOURCE;
    w->bytes = (size_t)bytes;
    w->place = w->bytes == message->bytes ? message->data : malloc(w->bytes + 1);
    if (!w->place)
        return kn_mpi_host->fail(KN_ERR_MEMORY, "out of host memory: cannot allocate %zu bytes for a message",
                                 w->bytes);
    kn_status status = kn_mpi_block(w->bytes, &w->type, &count);
    if (status == KN_OK)
        status = kn_mpi_end_call(self, MPI_Imrecv(w->place, count, w->type, found, &w->requests[0]), "receive");
    if (status != KN_OK || !transport_of(self)->has_seals)
        return status;
    return kn_mpi_end_call(
        self, MPI_Irecv(&w->seal, KN_MPI_SEAL, w->other, message->tag, kn_mpi_comm(self), &w->requests[1]), "receive");
}

static kn_status check_received(kn_transport *self, const kn_message_end *message)
{
    const way *w = message->state;
    if (message->sender)
        *message->sender = w->other;
    if (transport_of(self)->has_seals && w->seal != kn_mpi_seal_of(0, w->place, w->bytes))
        return kn_mpi_fail_broken(self, w->other);
    return w->bytes == message->bytes
               ? KN_OK
               : kn_mpi_host->fail(KN_ERR_SHAPE, "rank %d sent %zu bytes, but the tensor to receive has %zu", w->other,
                                   w->bytes, message->bytes);
}

/* The size is known before the message is received: one that does not fit is taken and refused. */
kn_status kn_mpi_receive(kn_transport *self, kn_message_end *message, bool *done)
{
    kn_status status = KN_OK;
    if (!message->state) {
        MPI_Message found;
        MPI_Status probed;
        int has_come = 0;
        const int from = message->other == KN_ANY_RANK ? MPI_ANY_SOURCE : message->other;
        status = kn_mpi_end_call(self, MPI_Improbe(from, message->tag, kn_mpi_comm(self), &has_come, &found, &probed),
                                 "receive");
        if (status != KN_OK || !has_come)
            return status;
        status = begin_receive(self, message, &found, &probed);
    }
    if (status == KN_OK)
        status = test(self, message->state, "receive", done);
    if (status != KN_OK || !*done)
        return status;
    status = check_received(self, message);
    if (!self->is_unfinished)
        way_free(self, message);
    return status;
}

/* --- meanwhile ---------------------------------------------------------------------------------------------------- */

void kn_mpi_messages_go_on(const kn_transport *self)
{
    int any;
    if (((const kn_mpi_transport *)self)->messages > 0)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, kn_mpi_comm(self), &any, MPI_STATUS_IGNORE);
}

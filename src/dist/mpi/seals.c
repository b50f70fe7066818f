/* dist/mpi/seals.c - see dist/mpi/moves.h. */
#include <string.h>

#include "dist/mpi/monitor.h"
#include "dist/mpi/moves.h"

/* --- a seal ------------------------------------------------------------------------------------------------------- */

#define LANES 8 /* independent, so that a processor multiplies for one while it waits for another */
#define FACTOR UINT64_C(0x9e3779b97f4a7c15)

static uint64_t word_at(const char *place)
{
    uint64_t word;
    memcpy(&word, place, sizeof word);
    return word;
}

/* A polynomial of the words in each lane, and one of the lanes: every single change changes it. */
uint64_t kn_mpi_seal_of(uint64_t call, const void *data, size_t bytes)
{
    const char *place = data, *const end = place + bytes;
    uint64_t lanes[LANES] = {call, bytes}, seal = 0, rest = 0;
    for (; end - place >= (ptrdiff_t)sizeof lanes; place += sizeof lanes)
        for (int i = 0; i < LANES; i++)
            lanes[i] = lanes[i] * FACTOR + word_at(place + 8 * i);
    for (; end - place >= 8; place += 8)
        lanes[0] = lanes[0] * FACTOR + word_at(place);
    memcpy(&rest, place, (size_t)(end - place));
    for (int i = 0; i < LANES; i++)
        seal = (seal ^ seal >> 29) * FACTOR + lanes[i];
    return ((seal ^ seal >> 31) + rest) * FACTOR;
}

uint64_t kn_mpi_next_seal(kn_mpi_transport *transport) { return ++transport->sealed_calls; }

/* --- the verdict -------------------------------------------------------------------------------------------------- */

kn_status kn_mpi_fail_broken(kn_transport *self, int rank)
{
    self->is_unfinished = true;
    const kn_status status = kn_mpi_monitor_await_loss(self); /* it knows who: `rank` may only be behind the lost one */
    return status != KN_OK ? status
                           : kn_mpi_host->fail(KN_ERR_DEVICE,
                                               "the values of rank %d (%s) did not arrive whole: it, or a rank that "
                                               "passed them on, is lost",
                                               rank, self->hosts[rank]);
}

static bool has_seals(const kn_transport *self) { return ((const kn_mpi_transport *)self)->has_seals; }

/* Two seals per rank: those that go out and those that come in. */
static uint64_t *seals_of(kn_transport *self)
{
    return kn_mpi_memory_of(&((kn_mpi_transport *)self)->seals, 2 * sizeof(uint64_t) * (size_t)self->size);
}

/* Are the parts those that their ranks have sealed? */
static kn_status compare(kn_transport *self, uint64_t call, const kn_mpi_part *parts, const uint64_t *seals)
{
    for (int r = 0; r < self->size; r++)
        if (kn_mpi_seal_of(call, parts[r].data, parts[r].bytes) != seals[r])
            return kn_mpi_fail_broken(self, r);
    return KN_OK;
}

kn_status kn_mpi_check_exchange(kn_transport *self, const kn_mpi_part *sent, const kn_mpi_part *received)
{
    if (!has_seals(self))
        return KN_OK;
    const uint64_t call = kn_mpi_next_seal((kn_mpi_transport *)self);
    uint64_t *out = seals_of(self);
    if (!out)
        return KN_ERR_MEMORY;
    uint64_t *in = out + self->size;
    for (int r = 0; r < self->size; r++)
        out[r] = kn_mpi_seal_of(call, sent[r].data, sent[r].bytes);
    const kn_status status =
        kn_mpi_end_call(self, MPI_Alltoall(out, KN_MPI_SEAL, in, KN_MPI_SEAL, kn_mpi_comm(self)), "comparing values");
    return status == KN_OK ? compare(self, call, received, in) : status;
}

kn_status kn_mpi_check_gathered(kn_transport *self, kn_mpi_part own, const kn_mpi_part *received, int root)
{
    if (!has_seals(self))
        return KN_OK;
    MPI_Comm comm = kn_mpi_comm(self);
    const uint64_t call = kn_mpi_next_seal((kn_mpi_transport *)self);
    const uint64_t mine = kn_mpi_seal_of(call, own.data, own.bytes);
    uint64_t *in = seals_of(self);
    if (!in)
        return KN_ERR_MEMORY;
    const int error = root == KN_EVERY_RANK ? MPI_Allgather(&mine, KN_MPI_SEAL, in, KN_MPI_SEAL, comm)
                                            : MPI_Gather(&mine, KN_MPI_SEAL, in, KN_MPI_SEAL, root, comm);
    const kn_status status = kn_mpi_end_call(self, error, "comparing values");
    return status == KN_OK && received ? compare(self, call, received, in) : status;
}

/* *expected: not on the stack, as a call that fails may write to it later. */
static kn_status compare_one(kn_transport *self, int error, uint64_t seal, const uint64_t *expected, int root)
{
    const kn_status status = kn_mpi_end_call(self, error, "comparing values");
    return status != KN_OK || seal == *expected ? status : kn_mpi_fail_broken(self, root);
}

kn_status kn_mpi_check_scattered(kn_transport *self, const kn_mpi_part *sent, kn_mpi_part received, int root)
{
    if (!has_seals(self))
        return KN_OK;
    const uint64_t call = kn_mpi_next_seal((kn_mpi_transport *)self);
    const uint64_t seal = kn_mpi_seal_of(call, received.data, received.bytes);
    uint64_t *out = seals_of(self);
    if (!out)
        return KN_ERR_MEMORY;
    uint64_t *expected = out + self->size;
    *expected = ~seal;
    for (int r = 0; sent && r < self->size; r++)
        out[r] = kn_mpi_seal_of(call, sent[r].data, sent[r].bytes);
    const int error = MPI_Scatter(out, KN_MPI_SEAL, expected, KN_MPI_SEAL, root, kn_mpi_comm(self));
    return compare_one(self, error, seal, expected, root);
}

kn_status kn_mpi_check_broadcast(kn_transport *self, kn_mpi_part part, int root)
{
    if (!has_seals(self))
        return KN_OK;
    const uint64_t call = kn_mpi_next_seal((kn_mpi_transport *)self);
    const uint64_t seal = kn_mpi_seal_of(call, part.data, part.bytes);
    uint64_t *expected = seals_of(self);
    if (!expected)
        return KN_ERR_MEMORY;
    *expected = self->rank == root ? seal : ~seal;
    const int error = MPI_Bcast(expected, KN_MPI_SEAL, root, kn_mpi_comm(self));
    return compare_one(self, error, seal, expected, root);
}

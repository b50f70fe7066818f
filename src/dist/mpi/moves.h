/* dist/mpi/moves.h - collectives that move blocks of bytes by MPI's functions, and whether the blocks arrived whole.
 *
 * MPICH over UCX takes a receive that broke off, because its sender died, for one that succeeded (its callback knows
 * "cancelled" and "truncated", and takes any other error for none): the call returns MPI_SUCCESS, and part of the block
 * is what was in that memory before. Ranks that pass blocks on pass on such ones, too. So the rank that a block is from
 * makes a number of all its bytes, its seal, and the one that uses the block compares: wrong values become an error.
 * Open MPI returns the error and needs no seals. */
#pragma once

#include "dist/mpi/mpi.h"

#define KN_EVERY_RANK (-1) /* as a root: every rank gets the result */

typedef struct kn_mpi_part {
    const void *data;
    size_t bytes;
} kn_mpi_part;

/* KN_OK, or KN_ERR_DEVICE with the name of a rank that is lost, else with MPI's words: then memory of the call may be
 * written to later. */
kn_status kn_mpi_end_call(kn_transport *self, int error, const char *what);

/* Decides for seals or against them; collective (open.c). */
kn_status kn_mpi_choose_seals(kn_mpi_transport *transport);

/* Memory that is kept for the next call; NULL with an error. */
void *kn_mpi_memory_of(kn_mpi_memory *memory, size_t bytes);

/* --- moving ------------------------------------------------------------------------------------------------------- */

/* `blocks`: a block of `bytes` per rank; this rank's own may be in its place there. */
kn_status kn_mpi_gather(kn_transport *self, const void *block, size_t bytes, void *blocks, int root);
kn_status kn_mpi_scatter(kn_transport *self, const void *blocks, size_t bytes, void *block, int root);
kn_status kn_mpi_broadcast(kn_transport *self, void *data, size_t bytes, int root);
kn_status kn_mpi_all_to_all(kn_transport *self, const void *input, const size_t *input_sizes, void *output,
                            const size_t *output_sizes);

/* messages.c */
kn_status kn_mpi_send(kn_transport *self, kn_message_end *message, bool *done);
kn_status kn_mpi_receive(kn_transport *self, kn_message_end *message, bool *done);
/* Lets messages that are on their way go on, while this rank waits for others without MPI. */
void kn_mpi_messages_go_on(const kn_transport *self);

/* --- seals (seals.c) ---------------------------------------------------------------------------------------------- */

/* call: the same bytes may be there from the call before, so each has another seal. 0: a message between two ranks */
uint64_t kn_mpi_seal_of(uint64_t call, const void *data, size_t bytes);
uint64_t kn_mpi_next_seal(kn_mpi_transport *transport); /* the number of the next call, alike on all ranks */
#define KN_MPI_SEAL 1, MPI_UINT64_T                     /* count and type of one */

/* KN_ERR_DEVICE: what is from that rank is not whole. */
kn_status kn_mpi_fail_broken(kn_transport *self, int rank);

/* Collective, after MPI's call; nothing where there are no seals. A part per rank, in the order of the ranks. */
kn_status kn_mpi_check_exchange(kn_transport *self, const kn_mpi_part *sent, const kn_mpi_part *received);
/* own: what this rank gave; received: where the root has them, else NULL */
kn_status kn_mpi_check_gathered(kn_transport *self, kn_mpi_part own, const kn_mpi_part *received, int root);
/* sent: on the root, else NULL */
kn_status kn_mpi_check_scattered(kn_transport *self, const kn_mpi_part *sent, kn_mpi_part received, int root);
kn_status kn_mpi_check_broadcast(kn_transport *self, kn_mpi_part part, int root);

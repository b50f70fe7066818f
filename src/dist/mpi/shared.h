/* dist/mpi/shared.h - collectives of ranks that are all on one host, through memory that they share.
 *
 * Every rank has a seat in that memory: two slots for pieces of its values, and a number that tells how far it is. In a
 * round each rank fills the slot whose turn it is, says so, waits for all others, and reads their slots. A slot is
 * filled again two rounds later: by then all have come to the round between, so none reads it any more.
 *
 * Sums are made in the order of the ranks. Ranks that are lost are noticed here, by asking the monitor now and then. */
#pragma once

#include "dist/mpi/mpi.h"

/* Collective. Fails quietly: then transport->shared is NULL, and MPI moves the values. */
void kn_mpi_shared_open(kn_mpi_transport *transport);
void kn_mpi_shared_close(kn_mpi_shared *shared); /* NULL allowed */

/* root -1: all ranks get the result */
kn_status kn_mpi_shared_reduce(kn_transport *self, void *data, size_t count, kn_dtype dtype, kn_reduce_op op, int root);
kn_status kn_mpi_shared_broadcast(kn_transport *self, void *data, size_t bytes, int root);
kn_status kn_mpi_shared_all_gather(kn_transport *self, const void *block, size_t bytes, void *blocks);
kn_status kn_mpi_shared_barrier(kn_transport *self);

/* dist/mpi/mpi.h - libkoine_mpi.so: a back end of groups over MPI (dist/group/transport.h). It links MPI and nothing of
 * Koine. */
#pragma once

#include <mpi.h>

#include "dist/group/transport.h"

typedef struct kn_mpi_shared kn_mpi_shared;

typedef struct kn_mpi_memory {
    void *data;
    size_t bytes;
} kn_mpi_memory;

typedef struct kn_mpi_transport {
    kn_transport base;
    MPI_Comm comm;
    int *world_ranks; /* of its ranks */
    double timeout;   /* seconds */
    int messages;     /* on their way */
    bool has_seals;   /* values are compared with what their rank has sent (moves.h) */
    uint64_t sealed_calls;
    kn_mpi_memory scratch, records, seals; /* of reductions; of small blocks and of all blocks' seals */
    kn_mpi_shared *shared; /* memory of all its ranks; NULL: they are on several hosts, or have none (shared.h) */
} kn_mpi_transport;

extern const kn_transport_host *kn_mpi_host; /* what Koine offers */
extern const kn_transport_class kn_mpi_class;

static inline MPI_Comm kn_mpi_comm(const kn_transport *self) { return ((const kn_mpi_transport *)self)->comm; }

/* The function of KN_TRANSPORT_OPEN_NAME. */
__attribute__((visibility("default"))) kn_status
koine_transport_open(const kn_transport_host *host, const kn_group_params *params, kn_transport **transport);

/* That of KN_TRANSPORT_DESCRIBE_NAME. */
__attribute__((visibility("default"))) void koine_transport_describe(char *text, size_t size);

/* KN_OK, or KN_ERR_DEVICE with MPI's words. */
kn_status kn_mpi_check(int error, const char *what);

/* Takes the communicator, also on failure; collective (open.c). */
kn_status kn_mpi_transport_on(MPI_Comm comm, double timeout, kn_transport **transport);
void kn_mpi_transport_free(kn_transport *self);

/* --- functions of the table --------------------------------------------------------------------------------------- */

/* In the order of the ranks where that matters (reduce.c). root -1: all ranks get the result. */
kn_status kn_mpi_all_reduce(kn_transport *self, void *data, size_t count, kn_dtype dtype, kn_reduce_op op);
kn_status kn_mpi_reduce(kn_transport *self, void *data, size_t count, kn_dtype dtype, kn_reduce_op op, int root);
kn_status kn_mpi_reduce_scatter(kn_transport *self, const void *blocks, size_t count, kn_dtype dtype, kn_reduce_op op,
                                void *block);

/* --- large blocks (block.c) --------------------------------------------------------------------------------------- */

/* A type for `bytes` bytes, which may be more than MPI's counts can tell; the caller frees it unless it is MPI_BYTE.
 * `count` elements of it are the block. */
kn_status kn_mpi_block(size_t bytes, MPI_Datatype *type, int *count);
void kn_mpi_block_free(MPI_Datatype *type);

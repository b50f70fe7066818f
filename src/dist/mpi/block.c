/* dist/mpi/block.c - types for blocks of any size. */
#include <limits.h>

#include "dist/mpi/mpi.h"

kn_status kn_mpi_block(size_t bytes, MPI_Datatype *type, int *count)
{
    *type = MPI_BYTE;
    *count = (int)bytes;
    if (bytes <= INT_MAX)
        return KN_OK;
    const size_t chunk = (size_t)1 << 30;
    MPI_Datatype chunks;
    int error = MPI_Type_contiguous((int)chunk, MPI_BYTE, &chunks);
    if (error == MPI_SUCCESS) {
        const int lengths[] = {(int)(bytes / chunk), (int)(bytes % chunk)};
        const MPI_Aint places[] = {0, (MPI_Aint)(bytes - bytes % chunk)};
        const MPI_Datatype types[] = {chunks, MPI_BYTE};
        error = MPI_Type_create_struct(2, lengths, places, types, type);
        MPI_Type_free(&chunks);
    }
    if (error == MPI_SUCCESS)
        error = MPI_Type_commit(type);
    *count = 1;
    return kn_mpi_check(error, "describing a large block");
}

void kn_mpi_block_free(MPI_Datatype *type)
{
    if (*type != MPI_BYTE)
        MPI_Type_free(type);
}

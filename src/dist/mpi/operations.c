/* dist/mpi/operations.c - MPI's names for dtypes and for the reductions that reduce.c leaves to it, those of integers;
 * types for large blocks. */
#include <limits.h>

#include "dist/mpi/mpi.h"

MPI_Datatype kn_mpi_type(kn_dtype dtype)
{
    switch (dtype) {
    case KN_F64:
        return MPI_DOUBLE;
    case KN_F32:
        return MPI_FLOAT;
    case KN_F16: /* only moved */
    case KN_BF16:
        return MPI_UINT16_T;
    case KN_I64:
        return MPI_INT64_T;
    case KN_I32:
        return MPI_INT32_T;
    case KN_I16:
        return MPI_INT16_T;
    case KN_I8:
        return MPI_INT8_T;
    default:
        return MPI_UINT8_T;
    }
}

/* bool: one byte, 0 or 1; a sum is "or", a product "and". */
MPI_Op kn_mpi_operation(kn_dtype dtype, kn_reduce_op op)
{
    switch (op) {
    case KN_REDUCE_SUM:
        return dtype == KN_BOOL ? MPI_BOR : MPI_SUM;
    case KN_REDUCE_PRODUCT:
        return dtype == KN_BOOL ? MPI_BAND : MPI_PROD;
    case KN_REDUCE_MAX:
        return MPI_MAX;
    case KN_REDUCE_MIN:
        return MPI_MIN;
    case KN_REDUCE_AND:
        return MPI_BAND;
    case KN_REDUCE_OR:
        return MPI_BOR;
    default:
        return MPI_BXOR;
    }
}

/* --- large blocks ------------------------------------------------------------------------------------------------- */

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

/* dist/mpi/operations.c - MPI's names for dtypes and reductions. What MPI lacks, 16-bit floating types and maxima that
 * propagate NaN, are operations of our own that call Koine's. */
#include <limits.h>

#include "dist/mpi/mpi.h"

#define NUM_OPS (KN_REDUCE_XOR + 1)

static MPI_Datatype half_type, bfloat_type, bool_type;
static MPI_Op own_operations[NUM_OPS];

MPI_Datatype kn_mpi_type(kn_dtype dtype)
{
    switch (dtype) {
    case KN_F64:
        return MPI_DOUBLE;
    case KN_F32:
        return MPI_FLOAT;
    case KN_F16:
        return half_type;
    case KN_BF16:
        return bfloat_type;
    case KN_I64:
        return MPI_INT64_T;
    case KN_I32:
        return MPI_INT32_T;
    case KN_I16:
        return MPI_INT16_T;
    case KN_I8:
        return MPI_INT8_T;
    case KN_U8:
        return MPI_UINT8_T;
    default:
        return bool_type;
    }
}

/* --- operations of our own ---------------------------------------------------------------------------------------- */

static kn_dtype dtype_of(MPI_Datatype type)
{
    for (kn_dtype dtype = KN_F64; dtype < KN_BOOL; dtype++)
        if (kn_mpi_type(dtype) == type)
            return dtype;
    return KN_BOOL;
}

#define OWN_OPERATION(function, op)                                                                                    \
    static void function(void *in, void *inout, int *count, MPI_Datatype *type)                                        \
    {                                                                                                                  \
        kn_mpi_host->reduce(dtype_of(*type), op, inout, in, (size_t)*count);                                           \
    }
OWN_OPERATION(own_sum, KN_REDUCE_SUM)
OWN_OPERATION(own_max, KN_REDUCE_MAX)
OWN_OPERATION(own_min, KN_REDUCE_MIN)
OWN_OPERATION(own_product, KN_REDUCE_PRODUCT)
OWN_OPERATION(own_and, KN_REDUCE_AND)
OWN_OPERATION(own_or, KN_REDUCE_OR)
OWN_OPERATION(own_xor, KN_REDUCE_XOR)

static MPI_User_function *const own_functions[NUM_OPS] = {
    [KN_REDUCE_SUM] = own_sum, [KN_REDUCE_MAX] = own_max, [KN_REDUCE_MIN] = own_min, [KN_REDUCE_PRODUCT] = own_product,
    [KN_REDUCE_AND] = own_and, [KN_REDUCE_OR] = own_or,   [KN_REDUCE_XOR] = own_xor,
};

static int make_type(int bytes, MPI_Datatype *type)
{
    int error = MPI_Type_contiguous(bytes, MPI_BYTE, type);
    return error == MPI_SUCCESS ? MPI_Type_commit(type) : error;
}

kn_status kn_mpi_make_operations(void)
{
    static bool made;
    if (made)
        return KN_OK;
    made = true;
    int error = make_type(2, &half_type);
    if (error == MPI_SUCCESS)
        error = make_type(2, &bfloat_type);
    if (error == MPI_SUCCESS)
        error = make_type(1, &bool_type);
    for (int op = 0; op < NUM_OPS && error == MPI_SUCCESS; op++)
        if (own_functions[op])
            error = MPI_Op_create(own_functions[op], 1, &own_operations[op]);
    return kn_mpi_check(error, "making operations");
}

void kn_mpi_free_operations(void)
{
    MPI_Type_free(&half_type);
    MPI_Type_free(&bfloat_type);
    MPI_Type_free(&bool_type);
    for (int op = 0; op < NUM_OPS; op++)
        if (own_functions[op])
            MPI_Op_free(&own_operations[op]);
}

MPI_Op kn_mpi_operation(kn_dtype dtype, kn_reduce_op op)
{
    const bool whole = dtype >= KN_I64 && dtype <= KN_U8;
    if (!whole && (dtype > KN_F32 || (op != KN_REDUCE_SUM && op != KN_REDUCE_PRODUCT)))
        return own_operations[op];
    switch (op) {
    case KN_REDUCE_SUM:
        return MPI_SUM;
    case KN_REDUCE_PRODUCT:
        return MPI_PROD;
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

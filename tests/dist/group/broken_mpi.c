/* broken_mpi.c - preloaded: while `broken_mpi_is_on`, rank 1's MPI calls succeed as MPICH's do when a sender dies: the
 * last quarter of the bytes received is what was there before. Its barriers fail, with as long a text as MPICH's. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN __attribute__((visibility("default")))
SHOWN int broken_mpi_is_on;

typedef struct breach {
    char *place, *before;
    size_t bytes;
} breach;

/* Seals have another type: they arrive. */
static breach begin(void *place, long long count, MPI_Datatype type, MPI_Comm comm)
{
    int rank;
    breach b = {NULL, NULL, 0};
    PMPI_Comm_rank(comm, &rank);
    if (!broken_mpi_is_on || rank != 1 || type != MPI_BYTE || count < 4)
        return b;
    b.bytes = (size_t)count / 4;
    b.place = (char *)place + count - b.bytes;
    b.before = malloc(b.bytes);
    memcpy(b.before, b.place, b.bytes);
    return b;
}

static void end(breach b)
{
    if (b.before)
        memcpy(b.place, b.before, b.bytes);
    free(b.before);
}

static int size_of(MPI_Comm comm)
{
    int size;
    PMPI_Comm_size(comm, &size);
    return size;
}

SHOWN int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    breach b = begin(data, count, type, comm);
    const int error = PMPI_Bcast(data, count, type, root, comm);
    end(b);
    return error;
}

SHOWN int MPI_Allgather(const void *block, int sent, MPI_Datatype sent_type, void *blocks, int count, MPI_Datatype type,
                        MPI_Comm comm)
{
    breach b = begin(blocks, (long long)count * size_of(comm), type, comm);
    const int error = PMPI_Allgather(block, sent, sent_type, blocks, count, type, comm);
    end(b);
    return error;
}

/* The last rank's share is the last. */
SHOWN int MPI_Allgatherv(const void *block, int sent, MPI_Datatype sent_type, void *blocks, const int *counts,
                         const int *places, MPI_Datatype type, MPI_Comm comm)
{
    const int last = size_of(comm) - 1;
    breach b = begin((char *)blocks + places[last], counts[last], type, comm);
    const int error = PMPI_Allgatherv(block, sent, sent_type, blocks, counts, places, type, comm);
    end(b);
    return error;
}

SHOWN int MPI_Gather(const void *block, int sent, MPI_Datatype sent_type, void *blocks, int count, MPI_Datatype type,
                     int root, MPI_Comm comm)
{
    breach b = {NULL, NULL, 0};
    if (root == 1) /* the others have no memory for it */
        b = begin(blocks, (long long)count * size_of(comm), type, comm);
    const int error = PMPI_Gather(block, sent, sent_type, blocks, count, type, root, comm);
    end(b);
    return error;
}

SHOWN int MPI_Scatter(const void *blocks, int sent, MPI_Datatype sent_type, void *block, int count, MPI_Datatype type,
                      int root, MPI_Comm comm)
{
    breach b = begin(block, count, type, comm);
    const int error = PMPI_Scatter(blocks, sent, sent_type, block, count, type, root, comm);
    end(b);
    return error;
}

/* One message at a time: its breach ends when a test finds it done. */
static struct {
    MPI_Request *request;
    breach breach;
} message;

SHOWN int MPI_Imrecv(void *data, int count, MPI_Datatype type, MPI_Message *found, MPI_Request *request)
{
    breach b = begin(data, count, type, MPI_COMM_WORLD);
    if (b.before) {
        message.request = request;
        message.breach = b;
    }
    return PMPI_Imrecv(data, count, type, found, request);
}

SHOWN int MPI_Test(MPI_Request *request, int *done, MPI_Status *status)
{
    const int error = PMPI_Test(request, done, status);
    if (*done && message.request == request) {
        end(message.breach);
        message.request = NULL;
    }
    return error;
}

/* Nothing of it comes to `data`; the monitor's messages have other tags. */
SHOWN int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    int rank;
    PMPI_Comm_rank(comm, &rank);
    if (broken_mpi_is_on && rank == 1 && from == 2 && tag == 32767)
        data = malloc((size_t)count);
    return PMPI_Irecv(data, count, type, from, tag, comm, request);
}

SHOWN int MPI_Barrier(MPI_Comm comm)
{
    int rank;
    PMPI_Comm_rank(comm, &rank);
    const int error = PMPI_Barrier(comm);
    return broken_mpi_is_on && rank == 1 ? MPI_ERR_OTHER : error;
}

/* More than MPI_MAX_ERROR_STRING bytes: a line for each function. */
SHOWN int MPI_Error_string(int error, char *text, int *length)
{
    *length = sprintf(text, "Other MPI error, error stack:\n");
    for (int i = 0; i < 100; i++)
        *length += sprintf(text + *length, "function(%d).........................................: \n", i);
    *length += sprintf(text + *length, "send(%d): Endpoint timeout\n", error);
    return MPI_SUCCESS;
}

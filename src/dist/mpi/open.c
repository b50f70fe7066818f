/* dist/mpi/open.c - starting and ending MPI, and what a transport knows of its ranks.
 *
 * MPI_Finalize waits for all ranks. It is called when the process exits and only if all groups have been freed: a
 * process that leaves early must not wait for others that wait for it. */
#include <stdlib.h>
#include <string.h>

#include "dist/mpi/monitor.h"
#include "dist/mpi/moves.h"
#include "dist/mpi/shared.h"

const kn_transport_host *kn_mpi_host;

static int open_transports;

/* MPICH writes up to 128 lines of 320 characters whatever MPI_MAX_ERROR_STRING says (512): seen in 4.0.2, with the
 * calls that led to an "Endpoint timeout" of UCX. */
#define ERROR_TEXT ((size_t)64 << 10)

/* Of "Other MPI error, error stack:\ncall: \n...\ncall: reason" the first part and the reason. */
static kn_status fail_with_text(const char *what, char *text)
{
    static const char stack[] = ", error stack:";
    text[ERROR_TEXT - 1] = '\0';
    for (size_t end = strlen(text); end > 0 && text[end - 1] == '\n';)
        text[--end] = '\0';
    char *last = strrchr(text, '\n'), *calls = strstr(text, stack);
    text[strcspn(text, "\n")] = '\0';
    if (calls)
        *calls = '\0';
    return kn_mpi_host->fail(KN_ERR_DEVICE, "MPI failed (%s): %s%s%s", what, text, last ? ": " : "",
                             last ? last + 1 : "");
}

kn_status kn_mpi_check(int error, const char *what)
{
    if (error == MPI_SUCCESS)
        return KN_OK;
    char *text = calloc(1, ERROR_TEXT);
    int length, class = MPI_ERR_UNKNOWN;
    if (!text) {
        MPI_Error_class(error, &class);
        return kn_mpi_host->fail(KN_ERR_DEVICE, "MPI failed (%s): error class %d", what, class);
    }
    MPI_Error_string(error, text, &length);
    const kn_status status = fail_with_text(what, text);
    free(text);
    return status;
}

/* --- the start and the end of MPI --------------------------------------------------------------------------------- */

static void finalize(void)
{
    int done;
    MPI_Finalized(&done);
    if (done || open_transports > 0 || !kn_mpi_monitor_stop())
        return;
    MPI_Finalize();
}

/* Started by another MPI's launcher, every process would be alone without saying so. */
static kn_status check_launcher(int size)
{
#ifdef OPEN_MPI
    const char *others = getenv("PMI_SIZE"), *name = "Open MPI";
    const bool ours = getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK");
#else
    const char *others = getenv("OMPI_COMM_WORLD_SIZE"), *name = "MPICH";
    const bool ours = getenv("PMI_SIZE") || getenv("PMI_RANK");
#endif
    if (size > 1 || ours || !others || atoi(others) < 2)
        return KN_OK;
    return kn_mpi_host->fail(KN_ERR_DEVICE,
                             "this process was started by another MPI's launcher, as one of %s, but Koine was built "
                             "with %s: use its mpirun",
                             others, name);
}

static kn_status start_mpi(void)
{
    int started, finished, provided;
    MPI_Initialized(&started);
    MPI_Finalized(&finished);
    if (finished)
        return kn_mpi_host->fail(KN_ERR_STATE, "MPI has been finalized and cannot be started again in this process");
    if (started) {
        MPI_Query_thread(&provided);
    } else {
        const int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
        if (error != MPI_SUCCESS)
            return kn_mpi_check(error, "starting");
        atexit(finalize);
    }
    if (provided < MPI_THREAD_SERIALIZED)
        return kn_mpi_host->fail(KN_ERR_DEVICE, "MPI was started without support for threads: the program must call "
                                                "MPI_Init_thread with MPI_THREAD_MULTIPLE");
    return KN_OK;
}

/* --- a transport -------------------------------------------------------------------------------------------------- */

static int find_local(kn_transport *base, MPI_Comm comm)
{
    MPI_Comm local;
    int error = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, base->rank, MPI_INFO_NULL, &local);
    if (error != MPI_SUCCESS)
        return error;
    MPI_Comm_rank(local, &base->local_rank);
    MPI_Comm_size(local, &base->local_size);
    return MPI_Comm_free(&local);
}

/* All names in one block, after the pointers to them. */
static int find_hosts(kn_transport *base, MPI_Comm comm)
{
    char mine[MPI_MAX_PROCESSOR_NAME] = "";
    int length;
    MPI_Get_processor_name(mine, &length);
    const size_t size = (size_t)base->size;
    base->hosts = calloc(size, sizeof base->hosts[0] + sizeof mine);
    if (!base->hosts)
        return MPI_ERR_NO_MEM;
    char *names = (char *)(base->hosts + size);
    for (size_t r = 0; r < size; r++)
        base->hosts[r] = names + r * sizeof mine;
    return MPI_Allgather(mine, sizeof mine, MPI_CHAR, names, sizeof mine, MPI_CHAR, comm);
}

/* Which of all processes its ranks are: the monitor knows them by these numbers. */
static int find_world_ranks(kn_mpi_transport *transport)
{
    const int size = transport->base.size;
    transport->world_ranks = calloc(2 * (size_t)size, sizeof(int));
    if (!transport->world_ranks)
        return MPI_ERR_NO_MEM;
    int *own = transport->world_ranks + size;
    for (int r = 0; r < size; r++)
        own[r] = r;
    MPI_Group members, world;
    MPI_Comm_group(transport->comm, &members);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    const int error = MPI_Group_translate_ranks(members, size, own, world, transport->world_ranks);
    MPI_Group_free(&members);
    MPI_Group_free(&world);
    return error;
}

kn_status kn_mpi_transport_on(MPI_Comm comm, double timeout, kn_transport **transport)
{
    kn_mpi_transport *made = calloc(1, sizeof *made);
    if (!made) {
        MPI_Comm_free(&comm);
        return kn_mpi_host->fail(KN_ERR_MEMORY, "out of host memory: a group");
    }
    made->base.class = &kn_mpi_class;
    made->base.name = "mpi";
    made->comm = comm;
    made->timeout = timeout;
    open_transports++;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &made->base.rank);
    MPI_Comm_size(comm, &made->base.size);
    int error = find_local(&made->base, comm);
    if (error == MPI_SUCCESS)
        error = find_hosts(&made->base, comm);
    if (error == MPI_SUCCESS)
        error = find_world_ranks(made);
    if (error != MPI_SUCCESS) {
        kn_mpi_transport_free(&made->base);
        return kn_mpi_check(error, "making a group");
    }
    kn_status status = kn_mpi_choose_seals(made);
    if (status != KN_OK) {
        kn_mpi_transport_free(&made->base);
        return status;
    }
    kn_mpi_shared_open(made);
    *transport = &made->base;
    return KN_OK;
}

void kn_mpi_transport_free(kn_transport *self)
{
    kn_mpi_transport *transport = (kn_mpi_transport *)self;
    kn_mpi_shared_close(transport->shared);
    open_transports--;
    free(self->hosts);
    free(transport->world_ranks);
    if (!self->is_unfinished) { /* else MPI may still write to them */
        MPI_Comm_free(&transport->comm);
        free(transport->scratch.data);
        free(transport->records.data);
        free(transport->seals.data);
    }
    free(transport);
}

kn_status koine_transport_open(const kn_transport_host *host, const kn_group_params *params, kn_transport **transport)
{
    if (host->version != KN_TRANSPORT_VERSION)
        return host->fail(KN_ERR_DEVICE,
                          "libkoine_mpi.so has version %d of the interface, but Koine has %d: install "
                          "both from one build",
                          KN_TRANSPORT_VERSION, host->version);
    kn_mpi_host = host;
    kn_status status = start_mpi();
    int size = 1;
    if (status == KN_OK)
        status = kn_mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &size), "counting the ranks");
    if (status == KN_OK)
        status = check_launcher(size);
    if (status == KN_OK)
        status = kn_mpi_monitor_start(MPI_COMM_WORLD, params->lost_after);
    MPI_Comm comm;
    if (status == KN_OK)
        status = kn_mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "making a group");
    return status == KN_OK ? kn_mpi_transport_on(comm, params->timeout, transport) : status;
}

/* dist/mpi/moves.c - see dist/mpi/moves.h. */
#include "dist/mpi/moves.h"

#include <stdlib.h>
#include <string.h>

#include "dist/mpi/monitor.h"

/* What is small travels with its seal in one message; what is not, before it. */
#define FEW_BYTES ((size_t)64 << 10) /* of all ranks */

kn_status kn_mpi_end_call(kn_transport *self, int error, const char *what)
{
    if (error == MPI_SUCCESS)
        return KN_OK;
    self->is_unfinished = true;
    const kn_status lost = kn_mpi_monitor_await_loss(self);
    return lost != KN_OK ? lost : kn_mpi_check(error, what);
}

void *kn_mpi_memory_of(kn_mpi_memory *memory, size_t bytes)
{
    if (memory->bytes < bytes) {
        free(memory->data);
        memory->data = malloc(bytes);
        memory->bytes = memory->data ? bytes : 0;
    }
    if (!memory->data)
        kn_mpi_host->fail(KN_ERR_MEMORY, "out of host memory: cannot allocate %zu bytes for values of other ranks",
                          bytes);
    return memory->data;
}

kn_status kn_mpi_choose_seals(kn_mpi_transport *transport)
{
    const char *wanted = getenv("KOINE_VERIFY_MESSAGES");
#ifdef OPEN_MPI
    int mine = 0, all = 0;
#else
    int mine = 1, all = 0;
#endif
    if (wanted && *wanted)
        mine = strcmp(wanted, "0") != 0;
    const kn_status status =
        kn_mpi_check(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, transport->comm), "making a group");
    transport->has_seals = all != 0;
    return status;
}

/* --- one block, one call ------------------------------------------------------------------------------------------ */

typedef struct move {
    const void *from;
    void *to;
    int other; /* the root */
    MPI_Datatype type;
    int count; /* of the type: a block */
    MPI_Comm comm;
} move;

/* Makes the call with a type for blocks of `bytes`. */
static kn_status move_block(kn_transport *self, const char *name, int (*call)(const move *m), size_t bytes, move m)
{
    m.comm = kn_mpi_comm(self);
    kn_status status = kn_mpi_block(bytes, &m.type, &m.count);
    if (status == KN_OK)
        status = kn_mpi_end_call(self, call(&m), name);
    kn_mpi_block_free(&m.type);
    return status;
}

static int call_broadcast(const move *m) { return MPI_Bcast(m->to, m->count, m->type, m->other, m->comm); }

static int call_gather(const move *m)
{
    return m->other == KN_EVERY_RANK
               ? MPI_Allgather(m->from, m->count, m->type, m->to, m->count, m->type, m->comm)
               : MPI_Gather(m->from, m->count, m->type, m->to, m->count, m->type, m->other, m->comm);
}

static int call_scatter(const move *m)
{
    return MPI_Scatter(m->from, m->count, m->type, m->to, m->count, m->type, m->other, m->comm);
}

/* NULL with an error. The caller frees it. */
static kn_mpi_part *new_parts(size_t count)
{
    kn_mpi_part *parts = malloc(count * sizeof *parts);
    if (!parts)
        kn_mpi_host->fail(KN_ERR_MEMORY, "out of host memory: the values of other ranks");
    return parts;
}

/* The blocks of all ranks, one after another; NULL with an error. The caller frees the list. */
static kn_mpi_part *parts_of(const kn_transport *self, const void *blocks, size_t bytes)
{
    kn_mpi_part *parts = new_parts((size_t)self->size);
    for (size_t r = 0; parts && r < (size_t)self->size; r++)
        parts[r] = (kn_mpi_part){(const char *)blocks + r * bytes, bytes};
    return parts;
}

/* --- from all to one or to all ------------------------------------------------------------------------------------ */

static bool gets_all(const kn_transport *self, int root) { return root == KN_EVERY_RANK || root == self->rank; }

/* block and seal, as they travel */
static size_t record_bytes(size_t bytes) { return bytes + sizeof(uint64_t); }

static void write_record(char *record, uint64_t call, const void *block, size_t bytes)
{
    const uint64_t seal = kn_mpi_seal_of(call, block, bytes);
    memcpy(record, block, bytes);
    memcpy(record + bytes, &seal, sizeof seal);
}

static bool read_record(const char *record, uint64_t call, void *block, size_t bytes)
{
    uint64_t seal;
    memcpy(&seal, record + bytes, sizeof seal);
    memcpy(block, record, bytes);
    return seal == kn_mpi_seal_of(call, block, bytes);
}

static kn_status gather_records(kn_transport *self, const void *block, size_t bytes, void *blocks, int root)
{
    kn_mpi_transport *transport = (kn_mpi_transport *)self;
    const size_t size = (size_t)self->size, record = record_bytes(bytes);
    const uint64_t call = kn_mpi_next_seal(transport);
    char *records = kn_mpi_memory_of(&transport->records, record * (size + 1));
    if (!records)
        return KN_ERR_MEMORY;
    char *own = records + record * size;
    write_record(own, call, block, bytes);
    kn_status status =
        move_block(self, "gather", call_gather, record, (move){.from = own, .to = records, .other = root});
    for (size_t r = 0; r < size && status == KN_OK && gets_all(self, root); r++)
        if (!read_record(records + r * record, call, (char *)blocks + r * bytes, bytes))
            status = kn_mpi_fail_broken(self, (int)r);
    return status;
}

static kn_status gather_and_check(kn_transport *self, const void *block, size_t bytes, void *blocks, int root)
{
    const bool in_place = block == (const char *)blocks + (size_t)self->rank * bytes && gets_all(self, root);
    kn_mpi_part *parts = NULL;
    kn_status status = move_block(self, "gather", call_gather, bytes,
                                  (move){.from = in_place ? MPI_IN_PLACE : block, .to = blocks, .other = root});
    if (status != KN_OK || !((kn_mpi_transport *)self)->has_seals)
        return status;
    if (gets_all(self, root) && !(parts = parts_of(self, blocks, bytes)))
        return KN_ERR_MEMORY;
    status = kn_mpi_check_gathered(self, (kn_mpi_part){block, bytes}, parts, root);
    free(parts);
    return status;
}

static bool fits_record(const kn_transport *self, size_t bytes, size_t blocks)
{
    return ((const kn_mpi_transport *)self)->has_seals && bytes * blocks <= FEW_BYTES;
}

kn_status kn_mpi_gather(kn_transport *self, const void *block, size_t bytes, void *blocks, int root)
{
    return (fits_record(self, bytes, (size_t)self->size) ? gather_records : gather_and_check)(self, block, bytes,
                                                                                              blocks, root);
}

/* --- from one to all ---------------------------------------------------------------------------------------------- */

kn_status kn_mpi_scatter(kn_transport *self, const void *blocks, size_t bytes, void *block, int root)
{
    kn_mpi_part *parts = NULL;
    kn_status status =
        move_block(self, "scatter", call_scatter, bytes, (move){.from = blocks, .to = block, .other = root});
    if (status != KN_OK || !((kn_mpi_transport *)self)->has_seals)
        return status;
    if (self->rank == root && !(parts = parts_of(self, blocks, bytes)))
        return KN_ERR_MEMORY;
    status = kn_mpi_check_scattered(self, parts, (kn_mpi_part){block, bytes}, root);
    free(parts);
    return status;
}

static kn_status broadcast_record(kn_transport *self, void *data, size_t bytes, int root)
{
    kn_mpi_transport *transport = (kn_mpi_transport *)self;
    const uint64_t call = kn_mpi_next_seal(transport);
    char *record = kn_mpi_memory_of(&transport->records, record_bytes(bytes));
    if (!record)
        return KN_ERR_MEMORY;
    write_record(record, call, data, self->rank == root ? bytes : 0);
    const kn_status status =
        move_block(self, "broadcast", call_broadcast, record_bytes(bytes), (move){.to = record, .other = root});
    return status != KN_OK || read_record(record, call, data, bytes) ? status : kn_mpi_fail_broken(self, root);
}

kn_status kn_mpi_broadcast(kn_transport *self, void *data, size_t bytes, int root)
{
    if (fits_record(self, bytes, 1))
        return broadcast_record(self, data, bytes, root);
    const kn_status status = move_block(self, "broadcast", call_broadcast, bytes, (move){.to = data, .other = root});
    return status == KN_OK ? kn_mpi_check_broadcast(self, (kn_mpi_part){data, bytes}, root) : status;
}

/* --- from all to all ---------------------------------------------------------------------------------------------- */

/* A message for each pair: sizes and places may be larger than MPI_Alltoallv can tell. */
#define EXCHANGE_TAG 32767

typedef struct parcels {
    MPI_Request *requests; /* two per rank, what is received first */
    MPI_Datatype *types;
    kn_mpi_part *parts;
    int made; /* types */
} parcels;

static kn_status start_parcels(kn_transport *self, parcels *p)
{
    MPI_Comm comm = kn_mpi_comm(self);
    for (int i = 0; i < 2 * self->size; i++) {
        const int other = i % self->size;
        void *data = (void *)p->parts[i].data;
        int count;
        kn_status status = kn_mpi_block(p->parts[i].bytes, &p->types[i], &count);
        p->made++;
        if (status == KN_OK)
            status = kn_mpi_end_call(
                self,
                i < self->size ? MPI_Irecv(data, count, p->types[i], other, EXCHANGE_TAG, comm, &p->requests[i])
                               : MPI_Isend(data, count, p->types[i], other, EXCHANGE_TAG, comm, &p->requests[i]),
                "all_to_all");
        if (status != KN_OK)
            return status;
    }
    return KN_OK;
}

/* After an error the other requests stay: their memory does, too (kn_mpi_end_call). */
static kn_status await_parcels(kn_transport *self, parcels *p)
{
    int error = MPI_SUCCESS;
    for (int i = 0; i < 2 * self->size && error == MPI_SUCCESS; i++)
        error = MPI_Wait(&p->requests[i], MPI_STATUS_IGNORE);
    return kn_mpi_end_call(self, error, "all_to_all");
}

/* Where each rank's bytes are: those received, then those sent. */
static void find_parts(const kn_transport *self, const char *input, const size_t *input_sizes, const char *output,
                       const size_t *output_sizes, kn_mpi_part *parts)
{
    for (int r = 0; r < self->size; r++) {
        parts[r] = (kn_mpi_part){output, output_sizes[r]};
        parts[self->size + r] = (kn_mpi_part){input, input_sizes[r]};
        output += output_sizes[r];
        input += input_sizes[r];
    }
}

kn_status kn_mpi_all_to_all(kn_transport *self, const void *input, const size_t *input_sizes, void *output,
                            const size_t *output_sizes)
{
    const size_t count = 2 * (size_t)self->size;
    parcels p = {.requests = calloc(count, sizeof *p.requests), .types = calloc(count, sizeof *p.types)};
    p.parts = new_parts(count);
    kn_status status =
        p.requests && p.types && p.parts ? KN_OK : kn_mpi_host->fail(KN_ERR_MEMORY, "out of host memory: all_to_all");
    if (status == KN_OK) {
        find_parts(self, input, input_sizes, output, output_sizes, p.parts);
        status = start_parcels(self, &p);
    }
    if (status == KN_OK)
        status = await_parcels(self, &p);
    if (status == KN_OK)
        status = kn_mpi_check_exchange(self, p.parts + self->size, p.parts);
    for (int i = 0; i < p.made; i++)
        kn_mpi_block_free(&p.types[i]);
    free(p.requests);
    free(p.types);
    free(p.parts);
    return status;
}

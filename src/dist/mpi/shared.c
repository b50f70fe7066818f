#define _GNU_SOURCE /* syscall */
/* dist/mpi/shared.c - see dist/mpi/shared.h. */
#include "dist/mpi/shared.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#include "dist/mpi/monitor.h"
#include "dist/mpi/moves.h"

#define SLOT ((size_t)128 << 10) /* bytes: two of them and those of another rank fit a processor's own cache */
#define LINE 64                  /* bytes of a cache line */

typedef struct seat {
    _Alignas(LINE) atomic_uint round; /* whose slot the rank has filled */
    atomic_uint sleepers;             /* ranks that wait for it without a processor */
    _Alignas(LINE) char slots[2][SLOT];
} seat;

struct kn_mpi_shared {
    seat *seats; /* one per rank, in memory that all have */
    int rank, size;
    unsigned round;     /* the last one */
    bool has_processor; /* there are as many as ranks */
};

static kn_mpi_shared *shared_of(kn_transport *self) { return ((kn_mpi_transport *)self)->shared; }

/* --- waiting ------------------------------------------------------------------------------------------------------ */

#define SPINS 400        /* about 20 us */
#define YIELDS 40        /* instead, where ranks share a processor */
#define NAP_NS 50000000L /* how often the monitor is asked */
#define POLL_NS 20000L   /* where a rank cannot be woken, or messages are on their way */

static bool has_come(const seat *s, unsigned round) { return (int)(atomic_load(&s->round) - round) >= 0; }

/* To the processor's other thread, or to another rank. */
static void give_way(bool has_processor)
{
    if (!has_processor)
        sched_yield();
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

/* Until the rank goes on, or for that time. */
static void sleep_on(seat *s, unsigned round, long nanoseconds)
{
#ifdef __linux__
    const struct timespec nap = {.tv_nsec = nanoseconds};
    atomic_fetch_add(&s->sleepers, 1);
    const unsigned now = atomic_load(&s->round);
    if ((int)(now - round) < 0)
        syscall(SYS_futex, &s->round, FUTEX_WAIT, now, &nap, NULL, 0);
    atomic_fetch_sub(&s->sleepers, 1);
#else
    const struct timespec nap = {.tv_nsec = POLL_NS};
    (void)s, (void)round, (void)nanoseconds;
    nanosleep(&nap, NULL);
#endif
}

static void say_filled(kn_mpi_shared *shared)
{
    seat *s = &shared->seats[shared->rank];
    atomic_store(&s->round, shared->round);
#ifdef __linux__
    if (atomic_load(&s->sleepers) > 0)
        syscall(SYS_futex, &s->round, FUTEX_WAKE, shared->size, NULL, NULL, 0);
#endif
}

static double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static kn_status await_seat(kn_transport *self, seat *s)
{
    const kn_mpi_shared *shared = shared_of(self);
    for (int i = shared->has_processor ? SPINS : YIELDS; i > 0; i--) {
        if (has_come(s, shared->round))
            return KN_OK;
        give_way(shared->has_processor);
    }
    const double began = seconds();
    const bool has_messages = ((const kn_mpi_transport *)self)->messages > 0;
    for (double asked = began; !has_come(s, shared->round);) {
        sleep_on(s, shared->round, has_messages ? POLL_NS : NAP_NS);
        if (has_messages)
            kn_mpi_messages_go_on(self);
        const double now = seconds();
        if (now - asked < 1e-9 * NAP_NS)
            continue;
        const kn_status status = kn_mpi_monitor_check(self, now - began);
        if (status != KN_OK)
            return status;
        asked = now;
    }
    return KN_OK;
}

/* This rank's slot of the next round. */
static char *next_slot(kn_mpi_shared *shared) { return shared->seats[shared->rank].slots[++shared->round & 1]; }
static const char *slot_of(const kn_mpi_shared *shared, int rank)
{
    return shared->seats[rank].slots[shared->round & 1];
}

/* The slot is filled; returns when all are. */
static kn_status meet(kn_transport *self)
{
    kn_mpi_shared *shared = shared_of(self);
    kn_status status = KN_OK;
    say_filled(shared);
    for (int i = 1; i < shared->size && status == KN_OK; i++)
        status = await_seat(self, &shared->seats[(shared->rank + i) % shared->size]);
    return status;
}

/* --- reductions --------------------------------------------------------------------------------------------------- */

typedef struct reduction {
    kn_transport *self;
    kn_mpi_shared *shared;
    kn_dtype dtype;
    kn_reduce_op op;
    size_t element; /* bytes */
    int root;       /* -1: all */
} reduction;

/* out = the ranks' elements from `offset` (in bytes) on in their slots, in the order of the ranks. `out` holds this
 * rank's own, which are read there if the first addition, which overwrites them, reads them too. */
static void fold(const reduction *r, size_t offset, size_t count, char *out)
{
    const kn_mpi_shared *shared = r->shared;
    const char *values[2];
    for (int rank = 0; rank < 2; rank++)
        values[rank] = rank == shared->rank ? out : slot_of(shared, rank) + offset;
    kn_mpi_host->reduce(r->dtype, r->op, out, values[0], values[1], count);
    for (int rank = 2; rank < shared->size; rank++)
        kn_mpi_host->reduce(r->dtype, r->op, out, out, slot_of(shared, rank) + offset, count);
}

/* Every rank that gets the result adds all. */
static kn_status reduce_whole(const reduction *r, char *data, size_t count)
{
    memcpy(next_slot(r->shared), data, count * r->element);
    const kn_status status = meet(r->self);
    if (status == KN_OK && (r->root < 0 || r->root == r->shared->rank))
        fold(r, 0, count, data);
    return status;
}

/* Every rank adds one share and shows the sums to the others. */
static kn_status reduce_in_shares(const reduction *r, char *data, size_t count)
{
    const size_t size = (size_t)r->shared->size, rank = (size_t)r->shared->rank, e = r->element;
    const size_t first = count * rank / size, end = count * (rank + 1) / size;
    memcpy(next_slot(r->shared), data, count * e);
    kn_status status = meet(r->self);
    if (status != KN_OK)
        return status;
    fold(r, first * e, end - first, data + first * e);
    memcpy(next_slot(r->shared) + first * e, data + first * e, (end - first) * e);
    status = meet(r->self);
    for (size_t other = 0; other < size && status == KN_OK; other++) {
        const size_t from = count * other / size, to = count * (other + 1) / size;
        if (other != rank)
            memcpy(data + from * e, slot_of(r->shared, (int)other) + from * e, (to - from) * e);
    }
    return status;
}

#define SMALL 4096 /* bytes: a second meeting costs more than adding all everywhere */

kn_status kn_mpi_shared_reduce(kn_transport *self, void *data, size_t count, kn_dtype dtype, kn_reduce_op op, int root)
{
    const reduction r = {self, shared_of(self), dtype, op, kn_mpi_host->dtype_size(dtype), root};
    const bool in_shares = root < 0 && self->size > 2 && count * r.element > SMALL;
    const size_t most = SLOT / r.element;
    kn_status status = KN_OK;
    for (size_t first = 0; first < count && status == KN_OK; first += most) {
        const size_t piece = count - first < most ? count - first : most;
        status = (in_shares ? reduce_in_shares : reduce_whole)(&r, (char *)data + first * r.element, piece);
    }
    return status;
}

/* --- moving values ------------------------------------------------------------------------------------------------ */

kn_status kn_mpi_shared_broadcast(kn_transport *self, void *data, size_t bytes, int root)
{
    kn_mpi_shared *shared = shared_of(self);
    kn_status status = KN_OK;
    for (size_t first = 0; first < bytes && status == KN_OK; first += SLOT) {
        const size_t piece = bytes - first < SLOT ? bytes - first : SLOT;
        char *slot = next_slot(shared), *place = (char *)data + first;
        if (shared->rank == root)
            memcpy(slot, place, piece);
        status = meet(self);
        if (status == KN_OK && shared->rank != root)
            memcpy(place, slot_of(shared, root), piece);
    }
    return status;
}

kn_status kn_mpi_shared_all_gather(kn_transport *self, const void *block, size_t bytes, void *blocks)
{
    kn_mpi_shared *shared = shared_of(self);
    kn_status status = KN_OK;
    for (size_t first = 0; first < bytes && status == KN_OK; first += SLOT) {
        const size_t piece = bytes - first < SLOT ? bytes - first : SLOT;
        memcpy(next_slot(shared), (const char *)block + first, piece);
        status = meet(self);
        for (int rank = 0; rank < shared->size && status == KN_OK; rank++) {
            char *place = (char *)blocks + (size_t)rank * bytes;
            if (place != block)
                memcpy(place + first, slot_of(shared, rank), piece);
        }
    }
    return status;
}

kn_status kn_mpi_shared_barrier(kn_transport *self)
{
    next_slot(shared_of(self));
    return meet(self);
}

/* --- opening and closing ------------------------------------------------------------------------------------------ */

#define NAME 64

static size_t bytes_of(int size) { return (size_t)size * sizeof(seat); }

/* The file, or -1. Its pages are allocated here, where an error can be told, not at their first use. */
static int create(char name[NAME], int size)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, NAME, "/koine-%ld-%lld-%ld", (long)getpid(), (long long)now.tv_sec, now.tv_nsec);
    const int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file >= 0 && posix_fallocate(file, 0, (off_t)bytes_of(size)) != 0) {
        close(file);
        shm_unlink(name);
        return -1;
    }
    return file;
}

static seat *map(int file, int size)
{
    void *memory = file >= 0 ? mmap(NULL, bytes_of(size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    return memory == MAP_FAILED ? NULL : memory;
}

/* Rank 0 makes the memory, the others open it; its name is gone when all have it. NULL on all ranks if one fails. */
static seat *open_seats(const kn_transport *base, MPI_Comm comm)
{
    char name[NAME] = "";
    int file = base->rank == 0 ? create(name, base->size) : -1;
    if (base->rank == 0 && file < 0)
        name[0] = '\0';
    bool moved = MPI_Bcast(name, NAME, MPI_CHAR, 0, comm) == MPI_SUCCESS;
    if (base->rank > 0 && name[0])
        file = shm_open(name, O_RDWR, 0600);
    seat *seats = map(file, base->size);
    int mine = moved && seats, all = 0;
    moved = MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS;
    if (base->rank == 0 && name[0])
        shm_unlink(name);
    if (file >= 0)
        close(file);
    if (seats && !(moved && all)) {
        munmap(seats, bytes_of(base->size));
        return NULL;
    }
    return seats;
}

static bool is_wanted(void)
{
    const char *value = getenv("KOINE_SHARED_MEMORY");
    return !value || strcmp(value, "0") != 0;
}

void kn_mpi_shared_open(kn_mpi_transport *transport)
{
    kn_transport *base = &transport->base;
    if (base->size < 2 || base->local_size < base->size || !is_wanted())
        return;
    kn_mpi_shared *shared = calloc(1, sizeof *shared);
    seat *seats = open_seats(base, transport->comm);
    int mine = shared && seats, all = 0;
    if (MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, transport->comm) != MPI_SUCCESS || !all) {
        if (seats)
            munmap(seats, bytes_of(base->size));
        free(shared);
        return;
    }
    *shared = (kn_mpi_shared){seats, base->rank, base->size, 0, sysconf(_SC_NPROCESSORS_ONLN) >= base->size};
    transport->shared = shared;
    base->notices_losses = true;
}

void kn_mpi_shared_close(kn_mpi_shared *shared)
{
    if (!shared)
        return;
    munmap(shared->seats, bytes_of(shared->size));
    free(shared);
}

/* mpi_broken.c - every call of a group tells values that did not arrive whole, though MPI says that they did:
 * mpirun -n 3 env LD_PRELOAD=broken_mpi.so KOINE_VERIFY_MESSAGES=1 mpi_broken. Those of rank 1 are broken
 * (broken_mpi.c). */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <koine/koine.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 3
#define LARGE 50000 /* elements: more than what travels with its seal */
#define SMALL 100

typedef struct call {
    kn_group *group; /* of its own, as it fails */
    int rank;
    kn_tensor *x, *list[RANKS];
    kn_work *work;
} call;

static kn_status all_reduce(call *c) { return kn_group_all_reduce(c->group, c->x, .work = &c->work); }
static kn_status reduce(call *c) { return kn_group_reduce(c->group, c->x, 1, .work = &c->work); }
static kn_status broadcast(call *c) { return kn_group_broadcast(c->group, c->x, 2, .work = &c->work); }
static kn_status all_gather(call *c) { return kn_group_all_gather(c->group, c->list, c->x, .work = &c->work); }
static kn_status reduce_scatter(call *c) { return kn_group_reduce_scatter(c->group, c->x, c->list, .work = &c->work); }

static kn_status gather(call *c)
{
    return kn_group_gather(c->group, c->rank == 1 ? c->list : NULL, c->x, 1, .work = &c->work);
}

static kn_status scatter(call *c)
{
    return kn_group_scatter(c->group, c->x, c->rank == 2 ? c->list : NULL, 2, .work = &c->work);
}

static kn_status barrier(call *c) { return kn_group_barrier(c->group, .work = &c->work); }

static kn_status message(call *c)
{
    return c->rank == 1   ? kn_group_receive(c->group, c->x, 2, .work = &c->work)
           : c->rank == 2 ? kn_group_send(c->group, c->x, 1, .work = &c->work)
                          : KN_OK;
}

static const struct {
    const char *name;
    kn_status (*start)(call *c);
    int64_t count;
} calls[] = {
    {"all_reduce", all_reduce, SMALL},
    {"all_reduce", all_reduce, LARGE},
    {"reduce", reduce, SMALL},
    {"broadcast", broadcast, SMALL},
    {"broadcast", broadcast, LARGE},
    {"all_gather", all_gather, SMALL},
    {"all_gather", all_gather, LARGE},
    {"gather", gather, SMALL},
    {"scatter", scatter, SMALL},
    {"message", message, LARGE},
    {"reduce_scatter", reduce_scatter, LARGE},
    {"barrier", barrier, SMALL},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

static void prepare(call *c, int64_t count, kn_group *group)
{
    *c = (call){.rank = kn_group_rank(group)};
    c->x = kn_full(KN_SHAPE(count), c->rank + 1, .device = kn_device_host());
    for (int r = 0; r < RANKS; r++)
        c->list[r] = kn_full(KN_SHAPE(count), c->rank + 1, .device = kn_device_host());
    if (!c->x || kn_group_split(group, 0, c->rank, &c->group) != KN_OK)
        exit(2);
}

/* Only rank 1 may fail, with the reason. */
static bool ended_as_expected(call *c, int i)
{
    const kn_status status = kn_work_wait(c->work);
    const char *reason =
        calls[i].start == barrier ? "MPI failed (barrier): Other MPI error: send(" : "did not arrive whole";
    const bool right = c->rank != 1 ? status == KN_OK : status == KN_ERR_DEVICE && strstr(kn_error_message(), reason);
    if (!right)
        printf("rank %d: %s of %lld: %s\n", c->rank, calls[i].name, (long long)calls[i].count,
               status == KN_OK ? "no error" : kn_error_message());
    return right;
}

int main(void)
{
    kn_group *group = kn_group_open(.backend = "mpi", .check_calls = false, .lost_after = 2);
    int *const is_on = dlsym(RTLD_DEFAULT, "broken_mpi_is_on");
    call c[CALLS];
    int failed = 0;
    if (!group || !is_on || kn_group_size(group) != RANKS) {
        fprintf(stderr, "%s\n", group ? "mpirun -n 3 env LD_PRELOAD=broken_mpi.so mpi_broken" : kn_error_message());
        return 2;
    }
    KN_SCOPE;
    for (int i = 0; i < CALLS; i++)
        prepare(&c[i], calls[i].count, group);
    *is_on = 1;
    for (int i = 0; i < CALLS; i++)
        failed += calls[i].start(&c[i]) != KN_OK;
    for (int i = 0; i < CALLS; i++)
        failed += c[i].work && !ended_as_expected(&c[i], i);
    *is_on = 0;
    for (int i = 0; i < CALLS; i++) {
        kn_work_free(c[i].work);
        kn_group_free(c[i].group);
    }
    kn_group_free(group);
    return failed > 0;
}

/* dist/zero.c - optimizers whose state is divided among ranks: Rajbhandari et al., "ZeRO: Memory Optimizations Toward
 * Training Trillion Parameter Models" (2020), stage 1. Every parameter has an owner, which keeps its state and steps
 * it; the owners give their parameters to all (zero_share.c). Owners have whole parameters, so that steps which look at
 * all of one (LAMB, Muon, Adafactor) are the same, too. */
#include <koine/distributed.h>

#include "base/hash.h"
#include "dist/zero.h"

/* --- owners ------------------------------------------------------------------------------------------------------- */

typedef struct sized {
    int index;
    int64_t elements;
} sized;

/* The largest first; equal ones in their order. */
static int compare_sizes(const void *a, const void *b)
{
    const sized *x = a, *y = b;
    if (x->elements != y->elements)
        return x->elements > y->elements ? -1 : 1;
    return x->index - y->index;
}

static int least_loaded(const kn_zero *zero)
{
    int least = 0;
    for (int r = 1; r < zero->shard.size; r++)
        if (zero->loads[r] < zero->loads[least])
            least = r;
    return least;
}

/* The parameters that have none get owners: the largest first, each to the rank that has least so far. */
static kn_status extend(kn_optim *optim)
{
    kn_zero *zero = kn_zero_of(optim);
    const int first = zero->count, more = optim->count - first;
    int *owners = kn_calloc((size_t)optim->count, sizeof *owners);
    int64_t *starts = kn_calloc((size_t)optim->count, sizeof *starts);
    sized *order = kn_calloc((size_t)more, sizeof *order);
    if (!owners || !starts || !order) {
        kn_free(owners);
        kn_free(starts);
        kn_free(order);
        return KN_ERR_MEMORY;
    }
    for (int i = 0; i < first; i++)
        owners[i] = zero->shard.owners[i];
    for (int i = 0; i < more; i++)
        order[i] = (sized){first + i, kn_numel(optim->parameters[first + i])};
    qsort(order, (size_t)more, sizeof *order, compare_sizes);
    for (int i = 0; i < more; i++) {
        const int owner = owners[order[i].index] = least_loaded(zero);
        zero->loads[owner] += order[i].elements;
    }
    kn_free(order);
    kn_free(zero->shard.owners);
    zero->shard.owners = owners;
    kn_free(zero->starts);
    zero->starts = starts;
    zero->count = optim->count;
    return KN_OK;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static kn_status agree(kn_optim *optim, kn_tensor *found_inf)
{
    KN_NO_GRAD;
    return kn_group_all_reduce(kn_zero_of(optim)->group, found_inf, .op = KN_REDUCE_MAX);
}

/* --- making ------------------------------------------------------------------------------------------------------- */

static void free_zero(kn_optim_shard *shard)
{
    kn_zero *zero = (kn_zero *)shard;
    kn_tensor_list_free(&shard->whole);
    kn_free(shard->owners);
    kn_free(zero->loads);
    kn_free(zero->starts);
    kn_free(zero->lengths);
    kn_free(zero);
}

/* Ranks with other parameters would have other owners. */
static kn_status compare_parameters(const kn_optim *optim, kn_group *group)
{
    kn_hash hash = kn_hash_text(optim->algorithm->name);
    int64_t number;
    for (int i = 0; i < optim->count; i++) {
        const kn_tensor *p = optim->parameters[i];
        hash = kn_hash_combine(hash, kn_hash_bytes(&p->dtype, sizeof p->dtype));
        hash = kn_hash_combine(hash, kn_hash_bytes(p->shape, (size_t)p->ndim * sizeof p->shape[0]));
    }
    memcpy(&number, &hash.high, sizeof number);
    return kn_group_compare(group, number, "the optimizer or its parameters");
}

static kn_status attach(kn_optim *optim, kn_group *group)
{
    kn_zero *zero = kn_calloc(1, sizeof *zero);
    if (!zero)
        return KN_ERR_MEMORY;
    *zero = (kn_zero){.shard = {.rank = kn_group_rank(group),
                                .size = kn_group_size(group),
                                .extend = extend,
                                .agree = agree,
                                .begin = kn_zero_begin,
                                .stepped = kn_zero_stepped,
                                .finish = kn_zero_finish,
                                .free = free_zero},
                      .group = group};
    zero->loads = kn_calloc((size_t)zero->shard.size, sizeof *zero->loads);
    zero->lengths = kn_calloc((size_t)zero->shard.size, sizeof *zero->lengths);
    optim->shard = &zero->shard;
    return zero->loads && zero->lengths ? extend(optim) : KN_ERR_MEMORY;
}

static kn_status check(const kn_optim *optim, const kn_group *group)
{
    if (!group)
        return kn_fail_argument_null("optim_zero", "group");
    if (optim->algorithm->whole)
        return kn_fail(KN_ERR_ARGUMENT, "optim_zero: %s steps all parameters together", optim->algorithm->name);
    if (optim->shard || optim->buckets)
        return kn_fail(KN_ERR_STATE, "optim_zero: the optimizer %s",
                       optim->shard ? "is divided already" : "has state: divide it before its first step");
    return KN_OK;
}

kn_optim *kn_optim_zero(kn_optim *optim, kn_group *group)
{
    if (!optim)
        return NULL;
    kn_status status = check(optim, group);
    if (status == KN_OK && (status = compare_parameters(optim, group)) != KN_OK)
        kn_error_prefix("optim_zero");
    if (status == KN_OK)
        status = attach(optim, group);
    if (status == KN_OK)
        return optim;
    kn_optim_free(optim);
    return kn_error_make_sticky();
}

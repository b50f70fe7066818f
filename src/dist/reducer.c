/* dist/reducer.c - gradients in buckets, as in Li et al., "PyTorch Distributed: Experiences on Accelerating Data
 * Parallel Training", 2020.
 *
 * A bucket is a flat tensor: the gradients of its parameters, then a flag for each: 1 if this rank's pass used it. When
 * the last gradient of a bucket has come and the buckets before it have been sent, it is sent: so all ranks send the
 * same buckets in the same order, whatever order their gradients come in. When the pass ends the rest is sent, and the
 * averages are copied into the gradients.
 *
 * With `parts` the pass of rank r, the k-th of a step, has the gradients of part k size + r. Sums are made in the order
 * of the ranks, and rank 0's gradient begins with what has been added up so far: so the parts are added in their order,
 * however many ranks there are. */
#include "dist/reducer.h"

#include <koine/in_place.h>

#include "autograd/pass_end.h"

typedef struct slot { /* a parameter's place */
    kn_reducer *reducer;
    kn_tensor *parameter; /* borrowed: the hook lives no longer than it */
    kn_tensor *place;     /* a part of the bucket, in its shape */
    int bucket, flag;     /* flag: its index among those of the bucket */
    bool is_there;        /* its gradient of this pass */
} slot;

typedef struct bucket {
    kn_tensor *values;
    int64_t gradients; /* elements before the flags */
    int parameters, missing;
    kn_work *work;
} bucket;

struct kn_reducer {
    atomic_int references; /* the module's and the hooks' */
    kn_group *group;
    kn_distributed_params params;
    slot *slots;
    bucket *buckets;
    int num_slots, num_buckets;
    int sent;                           /* buckets of this pass */
    int pass;                           /* of a step that takes several: from 0 */
    int divisor;                        /* of sums over the ranks: their number, or how many have a batch */
    double divide_before, divide_after; /* the sums of this pass */
    kn_reduce_op op;
    bool syncs, is_freed, is_in_pass;
};

/* --- making ------------------------------------------------------------------------------------------------------- */

static void release(kn_reducer *r)
{
    if (atomic_fetch_sub(&r->references, 1) > 1)
        return;
    for (int i = 0; i < r->num_slots; i++)
        kn_release(r->slots[i].place);
    for (int b = 0; b < r->num_buckets; b++) {
        kn_release(r->buckets[b].values);
        kn_work_free(r->buckets[b].work);
    }
    kn_free(r->slots);
    kn_free(r->buckets);
    kn_free(r);
}

/* The dtype in which its gradient is sent. */
static kn_dtype sent_dtype(const kn_reducer *r, const kn_tensor *parameter)
{
    return r->params.compress ? r->params.compress : parameter->dtype;
}

/* Opens a bucket where the last one of the dtype is full. The sizes are those of PyTorch: a bucket is closed when it
 * has reached its size. */
static void assign(kn_reducer *r)
{
    int open[KN_BOOL + 1]; /* of each dtype */
    for (int d = 0; d <= KN_BOOL; d++)
        open[d] = -1;
    for (int i = 0; i < r->num_slots; i++) {
        const kn_tensor *parameter = r->slots[i].parameter;
        int *b = &open[sent_dtype(r, parameter)];
        if (*b < 0)
            *b = r->num_buckets++;
        bucket *to = &r->buckets[*b];
        r->slots[i].bucket = *b;
        r->slots[i].flag = to->parameters++;
        to->gradients += kn_numel(parameter);
        const size_t limit = *b == 0 ? r->params.first_bucket_bytes : r->params.bucket_bytes;
        if ((size_t)to->gradients * kn_dtype_size(parameter->dtype) >= limit)
            *b = -1;
    }
}

static kn_status allocate(kn_reducer *r)
{
    for (int i = 0; i < r->num_slots; i++) {
        slot *s = &r->slots[i];
        bucket *b = &r->buckets[s->bucket];
        const kn_tensor *p = s->parameter;
        if (!b->values)
            KN_TRY(kn_tensor_new(&b->values, sent_dtype(r, p), 1, (const int64_t[]){b->gradients + b->parameters},
                                 kn_device_of(p)));
    }
    int64_t *starts = kn_calloc((size_t)r->num_buckets, sizeof *starts);
    kn_status status = starts ? KN_OK : KN_ERR_MEMORY;
    for (int i = 0; i < r->num_slots && status == KN_OK; i++) {
        slot *s = &r->slots[i];
        const kn_tensor *p = s->parameter;
        status = kn_tensor_part(&s->place, r->buckets[s->bucket].values, p->ndim, p->shape, starts[s->bucket]);
        starts[s->bucket] += kn_numel(p);
    }
    kn_free(starts);
    return status;
}

static void release_hook(void *user) { release(((slot *)user)->reducer); }
static kn_status gradient_came(kn_tensor *parameter, void *user);

static kn_status add_hooks(kn_reducer *r)
{
    for (int i = 0; i < r->num_slots; i++) {
        atomic_fetch_add(&r->references, 1);
        KN_TRY(kn_register_post_accumulate_grad_hook(r->slots[i].parameter, gradient_came, &r->slots[i], release_hook));
    }
    return KN_OK;
}

kn_status kn_reducer_new(kn_reducer **reducer, kn_tensor *const *parameters, int count, kn_group *group,
                         const kn_distributed_params *params)
{
    kn_reducer *r = kn_calloc(1, sizeof *r);
    if (!r)
        return KN_ERR_MEMORY;
    *r = (kn_reducer){.group = group, .params = *params, .divisor = kn_group_size(group), .syncs = true};
    atomic_init(&r->references, 1);
    r->slots = kn_calloc((size_t)count, sizeof *r->slots);
    r->buckets = kn_calloc((size_t)count, sizeof *r->buckets);
    kn_status status = r->slots && r->buckets ? KN_OK : KN_ERR_MEMORY;
    for (int i = count; i-- > 0 && status == KN_OK;)
        if (kn_requires_grad(parameters[i]))
            r->slots[r->num_slots++] = (slot){.reducer = r, .parameter = parameters[i]};
    if (status == KN_OK) {
        assign(r);
        status = allocate(r);
    }
    if (status == KN_OK)
        status = add_hooks(r);
    if (status != KN_OK) {
        kn_reducer_free(r);
        return status;
    }
    *reducer = r;
    return KN_OK;
}

void kn_reducer_free(kn_reducer *reducer)
{
    if (!reducer)
        return;
    reducer->is_freed = true;
    release(reducer);
}

bool kn_reducer_set_sync(kn_reducer *reducer, bool sync)
{
    const bool before = reducer->syncs;
    reducer->syncs = sync || reducer->params.parts > 0; /* parts are added up by the passes themselves */
    return before;
}

void kn_reducer_set_divisor(kn_reducer *reducer, int divisor) { reducer->divisor = divisor; }

bool kn_reducer_syncs(const kn_reducer *reducer) { return reducer->syncs; }

/* --- in a pass ---------------------------------------------------------------------------------------------------- */

static kn_status set_flag(const bucket *b, int flag, double value)
{
    kn_tensor *one;
    KN_TRY(kn_tensor_view(&one, b->values, 1, (const int64_t[]){1}, NULL, b->values->offset + b->gradients + flag));
    kn_status status = kn_tensor_fill(one, value);
    kn_release(one);
    return status;
}

static kn_status set_flags(const bucket *b, double value)
{
    kn_tensor *flags;
    const int64_t count = b->parameters;
    KN_TRY(kn_tensor_view(&flags, b->values, 1, &count, NULL, b->values->offset + b->gradients));
    kn_status status = kn_tensor_fill(flags, value);
    kn_release(flags);
    return status;
}

static kn_status divide(kn_tensor *values, double divisor)
{
    if (divisor == 1)
        return KN_OK;
    KN_SCOPE;
    KN_NO_GRAD;
    return kn_div_scalar_(values, divisor) ? KN_OK : kn_error_status();
}

/* In order, the buckets that are complete. */
static kn_status send_complete(kn_reducer *r)
{
    for (; r->sent < r->num_buckets && r->buckets[r->sent].missing == 0; r->sent++) {
        bucket *b = &r->buckets[r->sent];
        KN_TRY(divide(b->values, r->divide_before));
        KN_TRY(kn_group_all_reduce(r->group, b->values, .op = r->op, .work = &b->work));
    }
    return KN_OK;
}

static int passes_of_step(const kn_reducer *r)
{
    return r->params.parts ? r->params.parts / kn_group_size(r->group) : 1;
}
static bool is_last_pass(const kn_reducer *r) { return r->pass == passes_of_step(r) - 1; }

/* A pass that has no gradients so far. 16-bit sums are divided before, like PyTorch's, so that they do not overflow. */
static void reset(kn_reducer *r)
{
    const double divisor = !r->params.parts ? r->divisor : is_last_pass(r) ? r->params.parts : 1;
    const bool is_mean = !r->params.parts && !r->params.compress && r->divisor == kn_group_size(r->group);
    r->op = is_mean ? KN_REDUCE_MEAN : KN_REDUCE_SUM;
    r->divide_before = r->params.compress ? divisor : 1;
    r->divide_after = is_mean || r->params.compress ? 1 : divisor;
    r->sent = 0;
    for (int i = 0; i < r->num_slots; i++)
        r->slots[i].is_there = false;
    for (int b = 0; b < r->num_buckets; b++)
        r->buckets[b].missing = r->buckets[b].parameters;
}

static kn_status pass_ended(kn_status status, void *user);

static kn_status begin_pass(kn_reducer *r)
{
    r->is_in_pass = true;
    reset(r);
    for (int b = 0; b < r->num_buckets; b++)
        KN_TRY(set_flags(&r->buckets[b], 1));
    return kn_pass_at_end(pass_ended, r);
}

static kn_status take_gradient(kn_reducer *r, slot *s, kn_tensor *gradient)
{
    s->is_there = true;
    r->buckets[s->bucket].missing--;
    if (gradient)
        return kn_tensor_copy(s->place, gradient);
    KN_TRY(set_flag(&r->buckets[s->bucket], s->flag, 0));
    return kn_tensor_fill(s->place, 0);
}

static kn_status gradient_came(kn_tensor *parameter, void *user)
{
    slot *s = user;
    kn_reducer *r = s->reducer;
    if (r->is_freed || !r->syncs)
        return KN_OK;
    if (!r->is_in_pass)
        KN_TRY(begin_pass(r));
    if (s->is_there)
        return KN_OK;
    KN_TRY(take_gradient(r, s, kn_grad(parameter)));
    return send_complete(r);
}

/* --- at its end --------------------------------------------------------------------------------------------------- */

/* A gradient that this pass did not add to, but an earlier one may have. */
static kn_status send_rest(kn_reducer *r)
{
    for (int i = 0; i < r->num_slots; i++) {
        slot *s = &r->slots[i];
        if (!s->is_there)
            KN_TRY(take_gradient(r, s, kn_grad(s->parameter)));
    }
    return send_complete(r);
}

/* Did any rank use it? Asked only of parameters that have no gradient here. */
static kn_status was_used(const kn_reducer *r, const slot *s, bool *used)
{
    const bucket *b = &r->buckets[s->bucket];
    kn_tensor *flag;
    double value;
    KN_TRY(kn_tensor_view(&flag, b->values, 1, (const int64_t[]){1}, NULL, b->values->offset + b->gradients + s->flag));
    kn_status status = kn_item(flag, &value);
    kn_release(flag);
    *used = value > 0;
    return status;
}

static kn_status store_average(const kn_reducer *r, const slot *s)
{
    kn_tensor *gradient = kn_grad(s->parameter);
    if (gradient)
        return kn_tensor_copy(gradient, s->place);
    bool used;
    KN_TRY(was_used(r, s, &used));
    if (!used)
        return KN_OK;
    KN_TRY(kn_tensor_cast(&gradient, s->place, s->parameter->dtype, kn_device_of(s->place)));
    kn_status status = kn_set_grad(s->parameter, gradient);
    kn_release(gradient);
    return status;
}

/* All works are waited for, also after a failure. */
static kn_status wait_for_all(kn_reducer *r)
{
    kn_status status = KN_OK;
    for (int b = 0; b < r->num_buckets; b++) {
        if (!r->buckets[b].work)
            continue;
        const kn_status waited = kn_work_wait(r->buckets[b].work);
        status = status == KN_OK ? waited : status;
        kn_work_free(r->buckets[b].work);
        r->buckets[b].work = NULL;
    }
    return status;
}

static kn_status store_averages(kn_reducer *r)
{
    for (int b = 0; b < r->num_buckets; b++)
        KN_TRY(divide(r->buckets[b].values, r->divide_after));
    for (int i = 0; i < r->num_slots; i++)
        KN_TRY(store_average(r, &r->slots[i]));
    return KN_OK;
}

/* What the parts so far add up to is kept by rank 0 alone: the others' next gradients begin with nothing. */
static kn_status store(kn_reducer *r)
{
    const bool is_last = is_last_pass(r);
    if (is_last || kn_group_rank(r->group) == 0)
        KN_TRY(store_averages(r));
    else
        for (int i = 0; i < r->num_slots; i++)
            KN_TRY(kn_set_grad(r->slots[i].parameter, NULL));
    r->pass = is_last ? 0 : r->pass + 1;
    return KN_OK;
}

static kn_status pass_ended(kn_status status, void *user)
{
    kn_reducer *r = user;
    r->is_in_pass = false;
    if (status == KN_OK)
        status = send_rest(r);
    const kn_status waited = wait_for_all(r);
    status = status == KN_OK ? waited : status;
    return status == KN_OK ? store(r) : status;
}

kn_status kn_reducer_answer(kn_reducer *r)
{
    kn_status status = KN_OK;
    reset(r);
    for (int b = 0; b < r->num_buckets && status == KN_OK; b++) {
        r->buckets[b].missing = 0;
        status = kn_tensor_fill(r->buckets[b].values, 0);
    }
    if (status == KN_OK)
        status = send_complete(r);
    const kn_status waited = wait_for_all(r);
    status = status == KN_OK ? waited : status;
    return status == KN_OK ? store_averages(r) : status;
}

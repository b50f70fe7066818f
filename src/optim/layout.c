/* optim/layout.c - the layout of the optimizer's state: buckets of one group, device and dtype, with one flat tensor
 * per kind of state. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "optim/optim.h"

/* Each parameter's state starts at a multiple of this many elements: 64 bytes of f32, a vector and a cache line. */
#define ALIGN_ELEMENTS 16

static int64_t rounded(int64_t elements) { return (elements + ALIGN_ELEMENTS - 1) / ALIGN_ELEMENTS * ALIGN_ELEMENTS; }

static bool belongs(const kn_optim *optim, int index, const kn_optim_bucket *bucket)
{
    const kn_tensor *parameter = optim->parameters[index];
    return optim->group_of[index] == bucket->group && parameter->storage->device == bucket->device &&
           parameter->dtype == bucket->dtype;
}

bool kn_optim_has_master(const kn_optim *optim, kn_dtype dtype)
{
    return optim->master_weights && kn_dtype_is_reduced(dtype);
}

int kn_optim_state_shape(const kn_optim *optim, int index, int state, int64_t shape[KN_MAX_DIMS])
{
    const kn_tensor *parameter = optim->parameters[index];
    const kn_optim_group *group = &optim->groups[optim->group_of[index]];
    const kn_optim_state *row = state < group->num_states ? &optim->algorithm->states[group->states[state]] : NULL;
    if (row && row->shape)
        return row->shape(parameter, shape);
    memcpy(shape, parameter->shape, (size_t)parameter->ndim * sizeof *shape);
    return parameter->ndim;
}

bool kn_optim_has_state(const kn_optim *optim, int index, int state)
{
    int64_t shape[KN_MAX_DIMS];
    return kn_optim_owns(optim, index) && kn_optim_state_shape(optim, index, state, shape) >= 0;
}

static int64_t state_elements(const kn_optim *optim, int index, int state)
{
    int64_t shape[KN_MAX_DIMS], elements = 1;
    const int ndim = kn_optim_state_shape(optim, index, state, shape);
    for (int d = 0; d < ndim; d++)
        elements *= shape[d];
    return ndim < 0 || !kn_optim_owns(optim, index) ? 0 : elements;
}

int kn_optim_state_count(const kn_optim *optim, int index)
{
    return optim->groups[optim->group_of[index]].num_states +
           kn_optim_has_master(optim, optim->parameters[index]->dtype);
}

const char *kn_optim_state_name(const kn_optim *optim, int index, int state)
{
    const kn_optim_group *group = &optim->groups[optim->group_of[index]];
    return state < group->num_states ? optim->algorithm->states[group->states[state]].name : "master_param";
}

/* A view of the parameter's share of a bucket's flat state. */
static kn_status view_state(const kn_optim *optim, int index, const kn_optim_bucket *bucket,
                            const kn_optim_place *place, int state, kn_tensor **view)
{
    int64_t shape[KN_MAX_DIMS];
    const int ndim = kn_optim_state_shape(optim, index, state, shape);
    return kn_tensor_view(view, bucket->states[state], ndim, shape, NULL, place->starts[state]);
}

kn_status kn_optim_state_view(kn_optim *optim, int index, int state, kn_tensor **view)
{
    const kn_optim_place *place = &optim->places[index];
    return view_state(optim, index, &optim->buckets[place->bucket], place, state, view);
}

/* Assigns each parameter a place; `buckets` has room for one per parameter. Returns the number of buckets. */
static int assign(const kn_optim *optim, kn_optim_bucket *buckets, kn_optim_place *places)
{
    int count = 0;
    for (int i = 0; i < optim->count; i++) {
        const kn_tensor *parameter = optim->parameters[i];
        int b = 0;
        while (b < count && !belongs(optim, i, &buckets[b]))
            b++;
        if (b == count)
            buckets[count++] = (kn_optim_bucket){
                .group = optim->group_of[i], .device = parameter->storage->device, .dtype = parameter->dtype};
        places[i] = (kn_optim_place){.bucket = b};
        for (int s = 0; s < kn_optim_state_count(optim, i); s++) {
            places[i].starts[s] = buckets[b].elements[s];
            buckets[b].elements[s] += rounded(state_elements(optim, i, s));
        }
    }
    return count;
}

/* States start at zero, or what the algorithm says; the master weights are set from the parameters. The padding between
 * parameters is never read. */
static kn_status allocate(const kn_optim *optim, kn_optim_bucket *bucket)
{
    const kn_optim_group *group = &optim->groups[bucket->group];
    const int states = group->num_states + kn_optim_has_master(optim, bucket->dtype);
    for (int s = 0; s < states; s++) {
        const bool has_start = s < group->num_states && optim->algorithm->initial;
        KN_TRY(
            kn_tensor_new(&bucket->states[s], kn_compute_type(bucket->dtype), 1, &bucket->elements[s], bucket->device));
        KN_TRY(kn_tensor_fill(bucket->states[s],
                              has_start ? optim->algorithm->initial(group->hyper, group->states[s]) : 0));
    }
    return KN_OK;
}

/* Fills the state of parameter `index` at its new place from its old one, which new parameters do not have: their
 * master weights are the parameters. */
static kn_status carry_over(kn_optim *optim, int index, const kn_optim_bucket *buckets, const kn_optim_place *places)
{
    const bool is_new = optim->buckets == NULL || optim->places[index].bucket < 0;
    const kn_optim_bucket *bucket = &buckets[places[index].bucket];
    const int states = kn_optim_state_count(optim, index);
    const kn_optim_group *group = &optim->groups[bucket->group];
    for (int s = is_new ? group->num_states : 0; s < states; s++) {
        const bool had = !is_new && optim->buckets[optim->places[index].bucket].states[s];
        if ((!had && s < group->num_states) || !kn_optim_has_state(optim, index, s))
            continue;
        kn_tensor *from = had ? NULL : kn_retain(optim->parameters[index]), *to = NULL;
        kn_status status = had ? kn_optim_state_view(optim, index, s, &from) : KN_OK;
        if (status == KN_OK)
            status = view_state(optim, index, bucket, &places[index], s, &to);
        if (status == KN_OK)
            status = kn_tensor_copy(to, from);
        kn_release(from);
        kn_release(to);
        KN_TRY(status);
    }
    return KN_OK;
}

static kn_status fill_buckets(kn_optim *optim, kn_optim_bucket *buckets, int count, const kn_optim_place *places)
{
    for (int b = 0; b < count; b++)
        KN_TRY(allocate(optim, &buckets[b]));
    for (int i = 0; i < optim->count; i++)
        KN_TRY(carry_over(optim, i, buckets, places));
    return KN_OK;
}

static bool up_to_date(const kn_optim *optim)
{
    if (optim->buckets == NULL)
        return false;
    for (int i = 0; i < optim->count; i++) {
        if (optim->places[i].bucket < 0 || !belongs(optim, i, &optim->buckets[optim->places[i].bucket]))
            return false;
    }
    return true;
}

/* State allocated during a capture would be reset by each replay. */
static kn_status refuse_capture(const kn_optim *optim)
{
    for (int i = 0; i < optim->count; i++) {
        kn_stream *stream = kn_stream_current(optim->parameters[i]->storage->device);
        if (kn_stream_is_capturing(stream))
            return kn_capture_fail(
                stream,
                kn_fail(
                    KN_ERR_STATE,
                    "%s: its state does not exist yet, and a graph cannot allocate it: run a step before the capture",
                    optim->algorithm->name));
    }
    return KN_OK;
}

kn_status kn_optim_lay_out(kn_optim *optim)
{
    if (up_to_date(optim))
        return KN_OK;
    KN_TRY(refuse_capture(optim));
    kn_optim_bucket *buckets = kn_calloc((size_t)optim->count, sizeof *buckets);
    kn_optim_place *places = kn_calloc((size_t)optim->count, sizeof *places);
    int count = 0;
    kn_status status = buckets == NULL || places == NULL ? KN_ERR_MEMORY : KN_OK;
    if (status == KN_OK) {
        count = assign(optim, buckets, places);
        status = fill_buckets(optim, buckets, count, places);
    }
    if (status != KN_OK) {
        kn_error_prefix("%s: its state", optim->algorithm->name);
        if (buckets != NULL)
            kn_optim_free_buckets(buckets, count);
        kn_free(places);
        return status;
    }
    kn_optim_free_buckets(optim->buckets, optim->num_buckets);
    kn_free(optim->places);
    optim->buckets = buckets;
    optim->num_buckets = count;
    optim->places = places;
    return KN_OK;
}

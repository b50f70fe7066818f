/* optim/state.c - lists an optimizer's state and restores it. */
#include "optim/state.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#define NAME_SIZE 64

const char *kn_optim_type_name(const kn_optim *optim) { return optim->algorithm->name; }

static int hyper_count(const kn_optim *optim)
{
    int count = 0;
    while (optim->algorithm->hyper[count] != NULL)
        count++;
    return count;
}

static void state_name(char name[NAME_SIZE], const kn_optim *optim, int index, int state)
{
    snprintf(name, NAME_SIZE, "%s.%d", optim->algorithm->states[state], index);
}

/* --- listing --------------------------------------------------------------------------------------------------- */

static kn_status append_numbers(kn_tensor_list *list, const char *name, kn_dtype dtype, const void *numbers, int count)
{
    kn_tensor *tensor = NULL;
    const int64_t length = count;
    KN_TRY(kn_tensor_new(&tensor, dtype, 1, &length, kn_device_host()));
    memcpy(tensor->storage->host, numbers, (size_t)count * kn_dtype_size(dtype));
    kn_status status = kn_tensor_list_append(list, name, tensor);
    kn_release(tensor);
    return status;
}

static kn_status append_all(kn_optim *optim, kn_tensor_list *list)
{
    KN_TRY(append_numbers(list, "step", KN_I64, optim->steps, optim->count));
    KN_TRY(append_numbers(list, "hyperparameters", KN_F64, optim->hyper, hyper_count(optim)));
    for (int i = 0; i < optim->count; i++) {
        for (int s = 0; s < optim->num_states; s++) {
            char name[NAME_SIZE];
            state_name(name, optim, i, s);
            kn_tensor *view = NULL;
            KN_TRY(kn_optim_state_view(optim, i, s, &view));
            kn_status status = kn_tensor_list_append(list, name, view);
            kn_release(view);
            KN_TRY(status);
        }
    }
    return KN_OK;
}

kn_status kn_optim_state_list(kn_optim *optim, kn_tensor_list *list)
{
    *list = (kn_tensor_list){0};
    KN_TRY(kn_optim_lay_out(optim));
    kn_status status = append_all(optim, list);
    if (status != KN_OK)
        kn_tensor_list_free(list);
    return status;
}

/* --- restoring ------------------------------------------------------------------------------------------------- */

static kn_status fetch(const kn_tensor_list *state, const char *name, int ndim, const int64_t *shape,
                       const char *origin, kn_tensor **found)
{
    kn_tensor *tensor = kn_tensor_list_find(state, name);
    if (tensor == NULL)
        return kn_fail(KN_ERR_FORMAT, "%s does not fit this optimizer: \"%s\" is missing", origin, name);
    bool same = tensor->ndim == ndim;
    for (int d = 0; same && d < ndim; d++)
        same = tensor->shape[d] == shape[d];
    if (same) {
        *found = tensor;
        return KN_OK;
    }
    char a[128], b[128];
    return kn_fail(KN_ERR_FORMAT, "%s does not fit this optimizer: \"%s\" is %s there and %s here", origin, name,
                   kn_format_shape(a, sizeof a, tensor->ndim, tensor->shape),
                   kn_format_shape(b, sizeof b, ndim, shape));
}

/* Reads `count` numbers of `dtype` from a tensor on any device. */
static kn_status fetch_numbers(const kn_tensor_list *state, const char *name, kn_dtype dtype, int count,
                               const char *origin, void *numbers)
{
    const int64_t length = count;
    kn_tensor *tensor, *host = NULL;
    KN_TRY(fetch(state, name, 1, &length, origin, &tensor));
    KN_TRY(kn_tensor_cast(&host, tensor, dtype, kn_device_host()));
    memcpy(numbers, (const char *)host->storage->host + (size_t)host->offset * kn_dtype_size(dtype),
           (size_t)count * kn_dtype_size(dtype));
    kn_release(host);
    return KN_OK;
}

/* A loaded state, checked before it is applied. */
typedef struct restored {
    double hyper[KN_OPTIM_MAX_HYPER];
    int64_t *steps;
    kn_tensor **tensors; /* [parameter][state], on the device and in the dtype of the parameter */
} restored;

static kn_status read_numbers(kn_optim *optim, const kn_tensor_list *state, const char *origin, restored *into)
{
    KN_TRY(fetch_numbers(state, "step", KN_I64, optim->count, origin, into->steps));
    KN_TRY(fetch_numbers(state, "hyperparameters", KN_F64, hyper_count(optim), origin, into->hyper));
    for (int i = 0; i < optim->count; i++) {
        if (into->steps[i] < 0)
            return kn_fail(KN_ERR_FORMAT, "%s: the step of parameter %d is negative", origin, i);
    }
    if (optim->algorithm->count_states(into->hyper) != optim->num_states)
        return kn_fail(KN_ERR_FORMAT,
                       "%s does not fit this %s optimizer: it has other hyperparameters (amsgrad, momentum)", origin,
                       optim->algorithm->name);
    return optim->algorithm->check(into->hyper);
}

static kn_status read_tensors(kn_optim *optim, const kn_tensor_list *state, const char *origin, restored *into)
{
    for (int i = 0; i < optim->count; i++) {
        const kn_tensor *parameter = optim->parameters[i];
        for (int s = 0; s < optim->num_states; s++) {
            char name[NAME_SIZE];
            state_name(name, optim, i, s);
            kn_tensor *found;
            KN_TRY(fetch(state, name, parameter->ndim, parameter->shape, origin, &found));
            KN_TRY(kn_tensor_cast(&into->tensors[i * optim->num_states + s], found, parameter->dtype,
                                  parameter->storage->device));
        }
    }
    /* Step, hyperparameters and the states must be all there is: more would belong to another optimizer, or to this one
     * with amsgrad. */
    if (state->count != 2 + optim->count * optim->num_states)
        return kn_fail(KN_ERR_FORMAT, "%s does not fit this %s optimizer: it holds %d tensors, expected %d", origin,
                       optim->algorithm->name, state->count, 2 + optim->count * optim->num_states);
    return KN_OK;
}

static kn_status take_over(kn_optim *optim, const restored *from)
{
    for (int i = 0; i < optim->count; i++) {
        for (int s = 0; s < optim->num_states; s++) {
            kn_tensor *view = NULL;
            KN_TRY(kn_optim_state_view(optim, i, s, &view));
            kn_status status = kn_tensor_copy(view, from->tensors[i * optim->num_states + s]);
            kn_release(view);
            KN_TRY(status);
        }
    }
    memcpy(optim->steps, from->steps, (size_t)optim->count * sizeof *optim->steps);
    memcpy(optim->hyper, from->hyper, sizeof optim->hyper);
    return KN_OK;
}

kn_status kn_optim_state_load(kn_optim *optim, const kn_tensor_list *state, const char *origin)
{
    KN_TRY(kn_optim_lay_out(optim));
    int tensors = optim->count * optim->num_states;
    restored from = {
        .steps = kn_calloc((size_t)optim->count, sizeof *from.steps),
        .tensors = kn_calloc((size_t)tensors, sizeof(kn_tensor *)),
    };
    memcpy(from.hyper, optim->hyper, sizeof from.hyper);
    kn_status status = from.steps == NULL || from.tensors == NULL ? KN_ERR_MEMORY : KN_OK;
    if (status == KN_OK)
        status = read_numbers(optim, state, origin, &from);
    if (status == KN_OK)
        status = read_tensors(optim, state, origin, &from);
    if (status == KN_OK)
        status = take_over(optim, &from);
    for (int i = 0; from.tensors != NULL && i < tensors; i++)
        kn_release(from.tensors[i]);
    kn_free(from.tensors);
    kn_free(from.steps);
    return status;
}

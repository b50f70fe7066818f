/* optim/lbfgs_state.c - the state of LBFGS as tensors by name: PyTorch's state of the first parameter, with lists of
 * vectors as matrices. */
#include "optim/lbfgs_state.h"

#include <string.h>

#include "base/error.h"
#include "base/integer.h"
#include "base/memory.h"
#include "optim/state.h"

void kn_lbfgs_forget(kn_lbfgs_state *state, int most)
{
    const int dropped = state->count > most ? state->count - most : 0;
    for (int i = 0; i < dropped; i++) {
        kn_release(state->pairs[i].y);
        kn_release(state->pairs[i].s);
    }
    if (dropped > 0)
        memmove(state->pairs, state->pairs + dropped, (size_t)(state->count - dropped) * sizeof *state->pairs);
    state->count -= dropped;
}

kn_status kn_lbfgs_push(kn_lbfgs_state *state, const kn_lbfgs_pair *pair)
{
    KN_TRY(KN_GROW(state->pairs, state->count, state->capacity));
    state->pairs[state->count++] = *pair;
    return KN_OK;
}

void kn_lbfgs_state_free(void *own)
{
    kn_lbfgs_state *state = own;
    if (!state)
        return;
    kn_lbfgs_forget(state, 0);
    kn_release(state->d);
    kn_release(state->prev_flat_grad);
    kn_free(state->pairs);
    kn_free(state);
}

/* --- listing ------------------------------------------------------------------------------------------------------ */

/* The rows of a matrix are y or s of all pairs. */
static kn_status fill_matrix(const kn_lbfgs_state *state, bool of_s, kn_tensor *matrix)
{
    const int64_t length = matrix->shape[1];
    for (int i = 0; i < state->count; i++) {
        kn_tensor *row = NULL;
        KN_TRY(kn_tensor_view(&row, matrix, 1, &length, NULL, i * length));
        const kn_status status = kn_tensor_copy(row, of_s ? state->pairs[i].s : state->pairs[i].y);
        kn_release(row);
        KN_TRY(status);
    }
    return KN_OK;
}

static kn_status append_matrix(kn_tensor_list *list, const char *name, const kn_lbfgs_state *state, bool of_s)
{
    kn_tensor *matrix = NULL;
    const int64_t shape[] = {state->count, kn_numel(state->d)};
    KN_TRY(kn_tensor_new(&matrix, state->d->dtype, 2, shape, state->d->storage->device));
    kn_status status = fill_matrix(state, of_s, matrix);
    if (status == KN_OK)
        status = kn_tensor_list_append(list, name, matrix);
    kn_release(matrix);
    return status;
}

static kn_status append_ro(kn_tensor_list *list, const kn_lbfgs_state *state)
{
    kn_tensor *ro = NULL;
    const int64_t count = state->count;
    KN_TRY(kn_tensor_new(&ro, KN_F64, 1, &count, kn_device_host()));
    for (int i = 0; i < state->count; i++)
        ((double *)kn_data(ro))[i] = state->pairs[i].ro;
    const kn_status status = kn_tensor_list_append(list, "state.0.ro", ro);
    kn_release(ro);
    return status;
}

kn_status kn_lbfgs_state_list(const kn_optim *optim, kn_tensor_list *list)
{
    const kn_lbfgs_state *state = optim->own;
    if (!state || state->n_iter == 0)
        return KN_OK;
    KN_TRY(kn_optim_append_number(list, "state.0.func_evals", KN_I64, (double)state->func_evals));
    KN_TRY(kn_optim_append_number(list, "state.0.n_iter", KN_I64, (double)state->n_iter));
    KN_TRY(kn_optim_append_number(list, "state.0.t", KN_F64, state->t));
    KN_TRY(kn_optim_append_number(list, "state.0.H_diag", KN_F64, state->h_diag));
    KN_TRY(kn_optim_append_number(list, "state.0.prev_loss", KN_F64, state->prev_loss));
    KN_TRY(kn_tensor_list_append(list, "state.0.d", state->d));
    KN_TRY(kn_tensor_list_append(list, "state.0.prev_flat_grad", state->prev_flat_grad));
    KN_TRY(append_matrix(list, "state.0.old_dirs", state, false));
    KN_TRY(append_matrix(list, "state.0.old_stps", state, true));
    return append_ro(list, state);
}

/* --- restoring ---------------------------------------------------------------------------------------------------- */

typedef struct reader {
    const kn_optim *optim;
    const kn_tensor_list *list;
    const char *origin;
    kn_dtype dtype; /* of vectors */
    int64_t length;
    int used;
} reader;

static kn_status find(reader *r, const char *name, int ndim, kn_tensor **found)
{
    kn_tensor *tensor = kn_tensor_list_find(r->list, name);
    if (!tensor || tensor->ndim != ndim)
        return kn_fail(KN_ERR_FORMAT, "%s does not fit this optimizer: \"%s\" is missing or has %d dimensions, not %d",
                       r->origin, name, tensor ? tensor->ndim : 0, ndim);
    if (ndim > 0 && strcmp(name, "state.0.ro") != 0 && tensor->shape[ndim - 1] != r->length)
        return kn_fail(KN_ERR_FORMAT, "%s does not fit this optimizer: \"%s\" is for %lld parameters, not %lld",
                       r->origin, name, (long long)tensor->shape[ndim - 1], (long long)r->length);
    r->used++;
    *found = tensor;
    return KN_OK;
}

static kn_status read_number(reader *r, const char *name, double *number)
{
    kn_tensor *tensor = NULL;
    KN_TRY(find(r, name, 0, &tensor));
    return kn_item(tensor, number);
}

static kn_status read_count(reader *r, const char *name, int64_t *count)
{
    double number;
    KN_TRY(read_number(r, name, &number));
    if (!kn_is_count(number))
        return kn_fail(KN_ERR_FORMAT, "%s: \"%s\", %g, is not a count", r->origin, name, number);
    *count = (int64_t)number;
    return KN_OK;
}

static kn_status read_vector(const reader *r, kn_tensor *from, kn_tensor **vector)
{
    return kn_tensor_cast(vector, from, r->dtype, r->optim->parameters[0]->storage->device);
}

static kn_status read_row(const reader *r, kn_tensor *matrix, int64_t row, kn_tensor **vector)
{
    kn_tensor *view = NULL;
    KN_TRY(kn_tensor_view(&view, matrix, 1, &r->length, NULL, row * r->length));
    const kn_status status = read_vector(r, view, vector);
    kn_release(view);
    return status;
}

static kn_status read_pairs(reader *r, kn_lbfgs_state *state)
{
    kn_tensor *dirs = NULL, *stps = NULL, *ro = NULL, *numbers = NULL;
    KN_TRY(find(r, "state.0.old_dirs", 2, &dirs));
    KN_TRY(find(r, "state.0.old_stps", 2, &stps));
    KN_TRY(find(r, "state.0.ro", 1, &ro));
    if (dirs->shape[0] != stps->shape[0] || dirs->shape[0] != ro->shape[0])
        return kn_fail(KN_ERR_FORMAT,
                       "%s does not fit this optimizer: \"old_dirs\", \"old_stps\" and \"ro\" have %lld, "
                       "%lld and %lld elements",
                       r->origin, (long long)dirs->shape[0], (long long)stps->shape[0], (long long)ro->shape[0]);
    KN_TRY(kn_tensor_cast(&numbers, ro, KN_F64, kn_device_host()));
    kn_status status = KN_OK;
    for (int64_t i = 0; i < ro->shape[0] && status == KN_OK; i++) {
        kn_lbfgs_pair pair = {NULL, NULL, ((const double *)kn_data(numbers))[i]};
        status = read_row(r, dirs, i, &pair.y);
        if (status == KN_OK)
            status = read_row(r, stps, i, &pair.s);
        if (status == KN_OK)
            status = kn_lbfgs_push(state, &pair);
        if (status != KN_OK) {
            kn_release(pair.y);
            kn_release(pair.s);
        }
    }
    kn_release(numbers);
    return status;
}

static kn_status read_state(reader *r, kn_lbfgs_state *state)
{
    kn_tensor *d = NULL, *gradient = NULL;
    KN_TRY(read_count(r, "state.0.func_evals", &state->func_evals));
    KN_TRY(read_count(r, "state.0.n_iter", &state->n_iter));
    if (state->n_iter == 0) /* where the gradient was 0 from the start, PyTorch has counted, and has nothing else */
        return KN_OK;
    KN_TRY(read_number(r, "state.0.t", &state->t));
    KN_TRY(read_number(r, "state.0.H_diag", &state->h_diag));
    KN_TRY(read_number(r, "state.0.prev_loss", &state->prev_loss));
    KN_TRY(find(r, "state.0.d", 1, &d));
    KN_TRY(find(r, "state.0.prev_flat_grad", 1, &gradient));
    KN_TRY(read_vector(r, d, &state->d));
    KN_TRY(read_vector(r, gradient, &state->prev_flat_grad));
    return read_pairs(r, state);
}

kn_status kn_lbfgs_state_load(const kn_optim *optim, const kn_tensor_list *list, const char *origin, void **own,
                              int *used)
{
    reader r = {.optim = optim, .list = list, .origin = origin, .dtype = KN_F32};
    *own = NULL;
    if (!kn_tensor_list_find(list, "state.0.n_iter"))
        return KN_OK;
    for (int i = 0; i < optim->count; i++) {
        r.length += kn_numel(optim->parameters[i]);
        r.dtype = optim->parameters[i]->dtype == KN_F64 ? KN_F64 : r.dtype;
    }
    if (!(*own = kn_calloc(1, sizeof(kn_lbfgs_state))))
        return KN_ERR_MEMORY;
    KN_TRY(read_state(&r, *own)); /* the caller frees it */
    *used += r.used;
    return KN_OK;
}

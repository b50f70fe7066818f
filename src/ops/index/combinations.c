/* ops/index/combinations.c - all choices of r elements of a vector, and powers of its elements. Compositions. */
#include <koine/index.h>
#include <koine/linalg.h>
#include <koine/operators.h>
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <string.h>

#include "base/memory.h"
#include "ops/dispatch/invoke.h"

/* --- combinations ------------------------------------------------------------------------------------------------- */

#define MOST ((int64_t)1 << 31)

/* How many there are, each factor of the product leaving an integer; -1: more than MOST. */
static int64_t count_of(int64_t n, int64_t r, bool with_replacement)
{
    const int64_t from = with_replacement ? n + r - 1 : n;
    int64_t count = 1;
    if (r > from || (n == 0 && r > 0))
        return 0;
    for (int64_t k = 1; k <= r; k++) {
        if (count > INT64_MAX / (from - r + k))
            return -1;
        count = count * (from - r + k) / k;
    }
    return count > MOST / (r > 0 ? r : 1) ? -1 : count;
}

/* The next choice after `choice`, in lexicographic order. */
static void step(int64_t *choice, int64_t n, int64_t r, bool with_replacement)
{
    int64_t at = r - 1;
    while (at > 0 && choice[at] == (with_replacement ? n - 1 : n - r + at))
        at--;
    choice[at]++;
    for (int64_t k = at + 1; k < r; k++)
        choice[k] = choice[k - 1] + (with_replacement ? 0 : 1);
}

static kn_tensor *indices_of(int64_t n, int64_t r, int64_t count, bool with_replacement, kn_device *device)
{
    int64_t *all = kn_malloc((size_t)(count * r) * sizeof *all);
    if (!all)
        return NULL;
    for (int64_t k = 0; k < r; k++)
        all[k] = with_replacement ? 0 : k;
    for (int64_t i = 1; i < count; i++) {
        memcpy(all + i * r, all + (i - 1) * r, (size_t)r * sizeof *all);
        step(all + i * r, n, r, with_replacement);
    }
    const int64_t total = count * r;
    kn_tensor *indices = kn_from_data_with(all, 1, &total, &(kn_tensor_options){.dtype = KN_I64, .device = device});
    kn_free(all);
    return indices;
}

static kn_status combinations_enter(kn_entry *entry)
{
    const kn_combinations_params *params = entry->params;
    kn_tensor *x = entry->inputs[0];
    char text[KN_DESCRIBE];

    if (x->ndim != 1)
        return kn_fail(KN_ERR_SHAPE, "x must have 1 dimension, not be %s", kn_tensor_describe(text, sizeof text, x));
    const int64_t n = x->shape[0], r = params->r, count = count_of(n, r, params->with_replacement);
    if (count < 0)
        return kn_fail(KN_ERR_ARGUMENT, "there are too many combinations of r = %lld of %lld elements", (long long)r,
                       (long long)n);
    if (r == 0)
        return kn_status_of(entry->result = kn_narrow(x, 0, 0, 0));
    if (count == 0)
        return kn_status_of(
            entry->result = kn_expand(kn_reshape(kn_narrow(x, 0, 0, 0), 2, (int64_t[]){0, 1}), 2, (int64_t[]){0, r}));
    kn_tensor *indices = indices_of(n, r, count, params->with_replacement, kn_device_of(x));
    if (!indices)
        return kn_error_status();
    return kn_status_of(entry->result = kn_reshape(kn_index_select(x, 0, indices), 2, (int64_t[]){count, r}));
}

static const kn_op_param combinations_rows[] = {KN_PARAM(kn_combinations_params, r, .min = 0, .max = 1000),
                                                KN_PARAM(kn_combinations_params, with_replacement)};
const kn_op kn_combinations_op = {.name = "combinations",
                                  .inputs = {"x"},
                                  .params =
                                      KN_PARAMS(kn_combinations_params, combinations_rows, KN_COMBINATIONS_DEFAULTS),
                                  .composes = true,
                                  .enter = combinations_enter};

kn_combinations_params kn_combinations_params_init(void) { return (kn_combinations_params){KN_COMBINATIONS_DEFAULTS}; }
kn_tensor *kn_combinations_with(kn_tensor *x, const kn_combinations_params *params)
{
    return kn_invoke(&kn_combinations_op, params, x);
}

/* --- Vandermonde's matrix ----------------------------------------------------------------------------------------- */

static kn_status vander_enter(kn_entry *entry)
{
    const kn_vander_params *params = entry->params;
    kn_tensor *x = entry->inputs[0];

    if (x->ndim < 1)
        return kn_fail(KN_ERR_SHAPE, "x has no dimensions; it must have at least 1");
    const int64_t n = params->n < 0 ? x->shape[x->ndim - 1] : params->n;
    const kn_dtype dtype = kn_dtype_is_floating(x->dtype) ? x->dtype : KN_I64;
    kn_tensor *base = kn_unsqueeze(kn_to_dtype(x, dtype), -1);
    kn_tensor *powers = params->increasing
                            ? kn_arange(0, (double)n, 1, .dtype = dtype, .device = kn_device_of(x))
                            : kn_arange((double)n - 1, -1, -1, .dtype = dtype, .device = kn_device_of(x));
    return kn_status_of(entry->result = kn_pow(base, powers));
}

static const kn_op_param vander_rows[] = {KN_PARAM(kn_vander_params, n, .min = -1, .max = 1e9),
                                          KN_PARAM(kn_vander_params, increasing)};
const kn_op kn_vander_op = {.name = "vander",
                            .inputs = {"x"},
                            .params = KN_PARAMS(kn_vander_params, vander_rows, KN_VANDER_DEFAULTS),
                            .composes = true,
                            .enter = vander_enter};

kn_vander_params kn_vander_params_init(void) { return (kn_vander_params){KN_VANDER_DEFAULTS}; }
kn_tensor *kn_vander_with(kn_tensor *x, const kn_vander_params *params) { return kn_invoke(&kn_vander_op, params, x); }

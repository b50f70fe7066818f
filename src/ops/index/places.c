/* ops/index/places.c - the places of true elements of a mask, and nonzero, argwhere, nonzero_as_tuple: coordinates.
 * Their number is read from the device. */
#include <koine/autograd.h>
#include <koine/index.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <string.h>

#include "base/integer.h"
#include "index/index.h"
#include "loops/work_size.h"
#include "ops/dispatch/promote.h"
#include "ops/index/index.h"

/* Sets the sticky error of a function that is composed of others. */
static void *failed(const char *function) { return kn_error_prefix("%s", function), kn_error_make_sticky(); }

/* --- counting ----------------------------------------------------------------------------------------------------- */

enum { MOST_CHUNKS = 256, LEAST_LENGTH = 4096 };

/* The true elements of a mask. On CPU devices `counts` has their number in each chunk, elsewhere up to each element. */
typedef struct true_elements {
    kn_tensor *mask, *counts; /* contiguous; of the scope */
    int64_t n, length, chunks, count;
} true_elements;

static kn_tensor *vector_of(int64_t count, const kn_tensor *like)
{
    return kn_empty_with(1, &count, &(kn_tensor_options){.dtype = KN_I64, .device = kn_device_of(like)});
}

static kn_tensor *flat(kn_tensor *x) { return kn_reshape(x, 1, (const int64_t[]){-1}); }

static kn_status count_in_chunks(true_elements *t, const kn_limits *limits)
{
    const int64_t most = kn_min_i64(MOST_CHUNKS, 4 * (int64_t)limits->compute_units);
    int64_t counts[MOST_CHUNKS];

    t->length = kn_max_i64(LEAST_LENGTH, kn_div_up(t->n, most));
    t->chunks = kn_div_up(t->n, t->length);
    t->counts = vector_of(t->chunks, t->mask);
    if (!t->counts)
        return kn_error_status();
    KN_TRY(kn_run(kn_tensor_stream(t->mask), .source = "index/keys.cl", .options = "-DINDEX=long",
                  .kernel = "count_true", .operation = "nonzero", .dims = 1, .global = {(size_t)t->chunks},
                  KN_ARGS(kn_arg_tensor(t->mask), kn_arg_tensor(t->counts), kn_arg_i64(t->n), kn_arg_i64(t->length),
                          kn_arg_i64(t->chunks))));
    KN_TRY(kn_read(t->counts, counts, (size_t)t->chunks * sizeof *counts));
    for (int64_t chunk = 0; chunk < t->chunks; chunk++)
        t->count += counts[chunk];
    return KN_OK;
}

static kn_status find_true(true_elements *t, kn_tensor *mask)
{
    *t = (true_elements){.mask = kn_contiguous(mask)};
    if (!t->mask)
        return kn_error_status();
    const kn_limits *limits = kn_tensor_limits(t->mask);
    t->n = kn_numel(t->mask);
    if (t->n == 0)
        return KN_OK;
    if (limits->is_cpu)
        return count_in_chunks(t, limits);
    t->counts = kn_cumsum(flat(t->mask), 0);
    return t->counts ? kn_item_i64(kn_narrow(t->counts, 0, t->n - 1, 1), &t->count) : kn_error_status();
}

/* --- listing ------------------------------------------------------------------------------------------------------ */

/* Coordinate d of true element k, in a tensor of this shape, becomes element k * step + d * apart of `places`. */
static kn_status list_on_cpu(const true_elements *t, int ndim, const int64_t *shape, kn_tensor *places, int64_t step,
                             int64_t apart)
{
    kn_index_listing w = {
        .ndim = ndim, .n = t->n, .length = t->length, .chunks = t->chunks, .step = step, .apart = apart};
    memcpy(w.shape, shape, (size_t)ndim * sizeof *shape);
    return kn_run(
        kn_tensor_stream(places), .source = "index/keys.cl", .options = "-DINDEX=long", .kernel = "list_true",
        .operation = "nonzero", .dims = 1, .global = {(size_t)t->chunks},
        KN_ARGS(kn_arg_tensor(t->mask), kn_arg_tensor(t->counts), kn_arg_tensor(places), kn_arg_struct(&w, sizeof w)));
}

static kn_status list_places(const true_elements *t, kn_tensor *places)
{
    const kn_limits *limits = kn_tensor_limits(t->mask);
    const kn_work_size work = kn_work_for(limits, t->n);

    if (limits->is_cpu)
        return list_on_cpu(t, 1, &t->n, places, 1, 0);
    return kn_run(kn_tensor_stream(places), .source = "index/keys.cl", .options = "-DINDEX=long",
                  .kernel = "index_places", .operation = "nonzero", .dims = 1, .global = {work.global},
                  .local = {work.local},
                  KN_ARGS(kn_arg_tensor(t->mask), kn_arg_tensor(t->counts), kn_arg_tensor(places), kn_arg_i64(t->n)));
}

kn_tensor *kn_index_places(kn_tensor *mask)
{
    true_elements t;
    kn_tensor *places = find_true(&t, mask) == KN_OK ? vector_of(t.count, mask) : NULL;
    if (!places || (t.count > 0 && list_places(&t, places) != KN_OK))
        return kn_error_make_sticky();
    return places;
}

/* Coordinate d of all places, in a tensor of x's shape: elements k * step of `coordinates` from `first` on. */
static kn_status write_coordinate(const kn_tensor *x, int d, const kn_tensor *places, const kn_tensor *coordinates,
                                  int64_t first, int64_t step)
{
    const int64_t count = kn_numel(places), inner = kn_shape_numel(x->ndim - d - 1, x->shape + d + 1);
    const kn_work_size work = kn_work_for(kn_tensor_limits(places), count);
    const int64_t offset = (coordinates->offset + first) * (int64_t)sizeof(int64_t);

    return kn_run(
        kn_tensor_stream(places), .source = "index/keys.cl", .options = "-DINDEX=long", .kernel = "index_coordinate",
        .operation = "nonzero", .dims = 1, .global = {work.global}, .local = {work.local},
        KN_ARGS(kn_arg_tensor(places), kn_arg_buffer(coordinates->storage->buffer, offset), kn_arg_i64(count),
                kn_arg_i64(x->shape[d]), kn_arg_i64(inner), kn_arg_i64(step), kn_arg_i32(kn_numel(x) <= UINT32_MAX)));
}

static kn_status list_coordinates(const kn_tensor *x, const true_elements *t, kn_tensor *coordinates, int64_t step,
                                  int64_t apart)
{
    if (kn_tensor_limits(x)->is_cpu)
        return list_on_cpu(t, x->ndim, x->shape, coordinates, step, apart);
    kn_tensor *places = vector_of(t->count, x);
    kn_status status = places ? list_places(t, places) : kn_error_status();
    for (int d = 0; status == KN_OK && d < x->ndim; d++)
        status = write_coordinate(x, d, places, coordinates, d * apart, step);
    return status;
}

/* --- public functions --------------------------------------------------------------------------------------------- */

static kn_tensor *mask_of(kn_tensor *x)
{
    return x->dtype == KN_BOOL ? x : kn_ne(x, kn_zeros(KN_SCALAR, .dtype = x->dtype, .device = kn_device_of(x)));
}

/* The coordinates of the elements that are not 0: [count, ndim], or, by dimension, [ndim, count]. */
static kn_tensor *coordinates_of(kn_tensor *x, bool by_dimension)
{
    true_elements t;
    KN_NO_GRAD;
    kn_tensor *mask = mask_of(x);
    if (!mask || find_true(&t, mask) != KN_OK)
        return NULL;
    const int64_t ndim = x->ndim, shape[] = {by_dimension ? ndim : t.count, by_dimension ? t.count : ndim};
    kn_tensor *all = kn_empty_with(2, shape, &(kn_tensor_options){.dtype = KN_I64, .device = kn_device_of(x)});
    if (!all || kn_numel(all) == 0)
        return all;
    return list_coordinates(x, &t, all, by_dimension ? 1 : ndim, by_dimension ? t.count : 1) == KN_OK ? all : NULL;
}

static kn_status check_on_device(const char *function, const kn_tensor *x)
{
    if (!kn_check_argument(function, "x", x))
        return kn_error_status();
    if (kn_device_is_host(x->storage->device))
        return kn_fail(KN_ERR_DEVICE,
                       "%s: the tensor is on the host, which runs no operations: move it to a device "
                       "with kn_to(tensor, device)",
                       function);
    const kn_status status = kn_tensor_check_memory(x);
    if (status != KN_OK)
        kn_error_prefix("%s", function);
    return status;
}

kn_tensor *kn_nonzero(kn_tensor *x)
{
    if (check_on_device("nonzero", x) != KN_OK)
        return kn_error_make_sticky();
    const int depth = kn_scope_begin();
    if (depth == 0)
        return NULL;
    kn_tensor *all = coordinates_of(x, false);
    return kn_scope_return(depth, all ? all : failed("nonzero"));
}

kn_tensor *kn_argwhere(kn_tensor *x) { return kn_nonzero(x); }

/* The vectors belong to the scope outside, where there is one. */
kn_status kn_nonzero_as_tuple(kn_tensor *x, kn_tensor **indices)
{
    KN_TRY(check_on_device("nonzero_as_tuple", x));
    if (!indices)
        return kn_fail_argument_null("nonzero_as_tuple", "indices");
    const int depth = kn_scope_begin();
    kn_tensor *own[KN_MAX_DIMS] = {NULL}, *one_by_one = x->ndim > 0 ? x : kn_reshape(x, 1, (const int64_t[]){1});
    kn_tensor *all = depth > 0 && one_by_one ? coordinates_of(one_by_one, true) : NULL;
    kn_status status = all ? KN_OK : kn_error_status();
    for (int d = 0; status == KN_OK && d < one_by_one->ndim; d++) {
        const int64_t count = all->shape[1];
        status = kn_tensor_view(&own[d], all, 1, &count, NULL, d * count);
    }
    kn_scope_end(depth);
    for (int d = 0; d < KN_MAX_DIMS && own[d]; d++) {
        if (status == KN_OK)
            status = (indices[d] = kn_scope_adopt(own[d])) ? KN_OK : kn_error_status();
        else
            kn_release(own[d]);
    }
    return status;
}

/* ops/index/index.h - the engine of operators with indices: gathering from a table, and scattering into it.
 *
 * Every such operator is a map: a space of places, the shape of what is gathered, of which each dimension walks along
 * one of the table, or one of the index, or both; and the index moves the place in the table. A gather reads there, a
 * scatter changes what is there. The map is the record of the operator on the tape, and serves its gradient: that of a
 * gather is a scatter that adds, that of a scatter a gather.
 *
 * Where several values go to one element they are applied in the order of the places, so results do not depend on the
 * division of the work: the last of several written values stays. */
#pragma once

#include "autograd/work.h"
#include "ops/dispatch/invoke.h"

/* What a scatter does where a value meets an element. */
typedef enum kn_index_mode {
    KN_INDEX_SET,
    KN_INDEX_ADD,
    KN_INDEX_MULTIPLY,
    KN_INDEX_MAX,
    KN_INDEX_MIN /* NaN wins */
} kn_index_mode;

typedef struct kn_index_map {
    int ndim;
    int64_t shape[KN_MAX_DIMS]; /* of the space */
    int own[KN_MAX_DIMS];       /* the table's dimension along which dimension d walks; -1: none */
    int along[KN_MAX_DIMS];     /* the index's; -1: none */
    int dim;                    /* the table's dimension along which the index moves; -1: over all its elements */
    int64_t unit;               /* with dim -1: in steps of so many elements of the table, as if it were contiguous */
    int64_t size;               /* indices are below this */
    bool wraps;                 /* negative indices count from the end */
    kn_index_mode mode;         /* of a scatter */
    bool clears;                /* of a scatter in place: the table's elements are zeros at first, whatever they are */
} kn_index_map;

/* values[place] = table[place, index]. */
kn_status kn_index_gather(kn_stream *stream, const char *operation, const kn_index_map *map, kn_tensor *table,
                          kn_tensor *index, kn_tensor *values);

/* table[place, index] = mode of it and values[place]. The values are of the table's dtype, and at least as large as the
 * space in each dimension, or one number, 0-dimensional. The table first becomes a copy of `initial`, if not NULL. */
kn_status kn_index_scatter(kn_stream *stream, const char *operation, const kn_index_map *map, kn_tensor *table,
                           kn_tensor *initial, kn_tensor *index, kn_tensor *values);

/* --- the parts of operators: inputs {x, index} of gathers, {x, index, source} of scatters ------------------------- */

kn_status kn_index_gather_shape(kn_call *call);
kn_status kn_index_gather_forward(kn_call *call);
kn_status kn_index_gather_backward(kn_grad_call *grad);
kn_status kn_index_gather_reference(const kn_call *call);

kn_status kn_index_scatter_shape(kn_call *call);
kn_status kn_index_scatter_forward(kn_call *call);
kn_status kn_index_scatter_backward(kn_grad_call *grad);
kn_status kn_index_scatter_reference(const kn_call *call);

#define KN_INDEX_GATHER_FIELDS                                                                                         \
    .record_size = sizeof(kn_index_map), .shape = kn_index_gather_shape, .forward = kn_index_gather_forward,           \
    .backward = kn_index_gather_backward, .backward_recorded = kn_index_gather_backward,                               \
    .reference = kn_index_gather_reference, .saved = {"index"}, .work = kn_work_memory_bound,                          \
    .backward_work = kn_grad_work_memory_bound

#define KN_INDEX_SCATTER_FIELDS(in_place_)                                                                             \
    .record_size = sizeof(kn_index_map), .in_place = in_place_, .shape = kn_index_scatter_shape,                       \
    .forward = kn_index_scatter_forward, .backward = kn_index_scatter_backward,                                        \
    .backward_recorded = kn_index_scatter_backward, .reference = kn_index_scatter_reference, .saved = {"index"},       \
    .work = kn_work_memory_bound, .backward_work = kn_grad_work_memory_bound

/* For `enter`: the map of gather and scatter along a dimension, where the index has the table's number of dimensions;
 * of indices of one dimension (index_select, index_add); of indices of all elements (take, put). */
kn_status kn_index_map_gather(kn_index_map *map, const kn_tensor *x, int dim, const kn_tensor *index);
kn_status kn_index_map_select(kn_index_map *map, const kn_tensor *x, int dim, const kn_tensor *index);
kn_status kn_index_map_flat(kn_index_map *map, const kn_tensor *x, const kn_tensor *index);

/* KN_ERR_DTYPE unless it is int64 or int32. */
kn_status kn_index_check_dtype(const kn_tensor *index);

/* The error of a source that has another dtype than x. */
kn_status kn_index_check_source(const kn_tensor *x, const kn_tensor *source);

/* The list of indices of kn_index, each along one dimension of x, as one index and its map, in which bool masks and
 * broadcasting are resolved. `key` belongs to the scope. */
kn_status kn_index_join(kn_index_map *map, kn_tensor **key, const kn_tensor *x, kn_tensor *const *indices, int count,
                        const kn_ints *dims);

/* The places of the elements that are true, in row-major order: int64 [count]. Waits for the device. */
kn_tensor *kn_index_places(kn_tensor *mask);

/* For backward: zeros of input `input`, to which the values of `gradient`'s places are added, in its dtype. */
kn_tensor *kn_index_spread(const kn_index_map *map, const kn_input_spec *input, kn_tensor *index, kn_tensor *gradient);

/* A gather, and a scatter into a copy of x, by map, as recorded operations. */
kn_tensor *kn_index_taken(const kn_index_map *map, kn_tensor *table, kn_tensor *index);
kn_tensor *kn_index_scattered(const kn_index_map *map, kn_index_mode mode, kn_tensor *x, kn_tensor *index,
                              kn_tensor *source);

/* The places' gradient in the shape of a source that is larger than the space. */
kn_tensor *kn_index_enlarge(kn_tensor *gradient, const kn_input_spec *source);

/* For references: output 0 as a copy of input 0, and a scatter into it of input 2, or of a number. */
void kn_index_reference_copy(const kn_call *call);
void kn_index_reference_scatter(const kn_call *call, const kn_index_map *map, const double *number);

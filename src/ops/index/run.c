/* ops/index/run.c - lays a map out for the kernels of cl/index, and launches them. See index.h. */
#include <stdio.h>

#include "base/divisor.h"
#include "index/index.h"
#include "loops/layout.h"
#include "loops/work_size.h"
#include "ops/index/index.h"

#define MAX_IN_32_BITS 0x7fffffff

/* --- the walk ----------------------------------------------------------------------------------------------------- */

static kn_layout lay_out(const kn_index_map *map, const kn_tensor *values, const kn_tensor *table,
                         const kn_tensor *index)
{
    kn_layout layout = {.ndim = map->ndim, .lanes = KN_INDEX_LANES};

    for (int d = 0; d < map->ndim; d++) {
        layout.shape[d] = map->shape[d];
        layout.strides[KN_INDEX_VALUES][d] = values->ndim == map->ndim ? values->strides[d] : 0;
        layout.strides[KN_INDEX_TABLE][d] = map->own[d] >= 0 ? table->strides[map->own[d]] : 0;
        layout.strides[KN_INDEX_INDEX][d] = map->along[d] >= 0 ? index->strides[map->along[d]] : 0;
    }
    kn_layout_collapse(&layout);
    return layout;
}

static void add_line_dimension(kn_index_walk *walk, const kn_layout *layout, int d)
{
    for (int lane = 0; lane < KN_INDEX_LANES; lane++)
        walk->strides[lane][walk->ndim] = layout->strides[lane][d];
    walk->shape[walk->ndim++] = layout->shape[d];
    walk->lines *= layout->shape[d];
}

static void set_inner(kn_index_walk *walk, const kn_layout *layout, int d)
{
    walk->inner = layout->shape[d];
    for (int lane = 0; lane < KN_INDEX_LANES; lane++)
        walk->inner_strides[lane] = layout->strides[lane][d];
}

static kn_index_walk begin(const kn_index_map *map, const kn_tensor *table)
{
    const bool moves = map->dim >= 0 && table->ndim > 0;
    return (kn_index_walk){.lines = 1,
                           .inner = 1,
                           .places = 1,
                           .parts = 1,
                           .ranges = 1,
                           .size = map->size,
                           .step = moves ? table->strides[map->dim] : map->unit,
                           .wraps = map->wraps};
}

static void set_divisors(kn_index_walk *walk)
{
    walk->by_inner = kn_divisor_of(walk->inner);
    for (int d = 0; d < walk->ndim; d++)
        walk->by[d] = kn_divisor_of(walk->shape[d]);
}

static bool is_free(const kn_index_map *map, const kn_tensor *table)
{
    return map->dim < 0 && !kn_is_contiguous(table);
}

/* --- gather ------------------------------------------------------------------------------------------------------- */

/* The bytes that are moved at once: elements, or on GPUs words of up to 16 bytes that divide contiguous rows. */
static int64_t widen(kn_index_walk *walk, const kn_tensor *table, const kn_tensor *values, bool is_cpu)
{
    const int64_t element = (int64_t)kn_dtype_size(table->dtype);
    int64_t word = 16, bits = walk->inner | walk->step | table->offset | values->offset;

    if (is_cpu || walk->inner_strides[0] != 1 || walk->inner_strides[1] != 1 || walk->inner_strides[2] != 0)
        return element;
    for (int d = 0; d < walk->ndim; d++)
        bits |= walk->strides[0][d] | walk->strides[1][d];
    while (bits * element % word != 0)
        word /= 2;
    const int64_t ratio = word / element;
    walk->inner /= ratio;
    walk->step /= ratio;
    for (int d = 0; d < walk->ndim; d++) {
        walk->strides[0][d] /= ratio;
        walk->strides[1][d] /= ratio;
    }
    return word;
}

static kn_status launch_gather(kn_stream *stream, const char *operation, const kn_index_map *map,
                               const kn_tensor *table, const kn_tensor *index, const kn_tensor *values)
{
    static const char *const words[] = {[1] = "uchar", [2] = "ushort", [4] = "uint", [8] = "ulong", [16] = "uint4"};
    const kn_limits *limits = kn_tensor_limits(table);
    const kn_layout layout = lay_out(map, values, table, index);
    kn_index_walk walk = begin(map, table);
    char options[64];

    for (int d = 0; d + 1 < layout.ndim; d++)
        add_line_dimension(&walk, &layout, d);
    set_inner(&walk, &layout, layout.ndim - 1);
    const int64_t word = widen(&walk, table, values, limits->is_cpu), all = walk.lines * walk.inner;
    const kn_work_size work = kn_work_for(limits, all);
    if (limits->is_cpu && walk.lines < (int64_t)work.global)
        walk.parts = ((int64_t)work.global + walk.lines - 1) / walk.lines;
    set_divisors(&walk);
    snprintf(options, sizeof options, "-DT=%s -DINDEX=%s -DWIDE=%d", words[word], kn_dtype_cl(index->dtype),
             all > MAX_IN_32_BITS);
    return kn_run(stream, .source = "index/gather.cl", .options = options, .kernel = "index_gather",
                  .operation = operation, .dims = 1, .global = {work.global}, .local = {work.local},
                  KN_ARGS(kn_arg_tensor(table), kn_arg_tensor(index), kn_arg_tensor(values),
                          kn_arg_struct(&walk, sizeof walk), kn_arg_fault()));
}

kn_status kn_index_gather(kn_stream *stream, const char *operation, const kn_index_map *map, kn_tensor *table,
                          kn_tensor *index, kn_tensor *values)
{
    kn_tensor *whole = NULL;

    if (kn_shape_numel(map->ndim, map->shape) == 0)
        return KN_OK;
    if (!is_free(map, table))
        return launch_gather(stream, operation, map, table, index, values);
    KN_TRY(kn_tensor_contiguous(&whole, table));
    const kn_status status = launch_gather(stream, operation, map, whole, index, values);
    kn_release(whole);
    return status;
}

/* --- scatter ------------------------------------------------------------------------------------------------------ */

/* Dimensions in which the table is walked, too, are those of lines: no two lines have an element in common. The others
 * are one dimension of places. */
static kn_index_walk walk_of_scatter(const kn_index_map *map, const kn_tensor *table, const kn_tensor *index,
                                     const kn_tensor *values)
{
    const kn_layout layout = lay_out(map, values, table, index);
    kn_index_walk walk = begin(map, table);
    int last = -1;

    for (int d = 0; d < layout.ndim; d++) {
        if (layout.shape[d] > 1 && layout.strides[KN_INDEX_TABLE][d] == 0) {
            walk.places = layout.shape[d];
            for (int lane = 0; lane < KN_INDEX_LANES; lane++)
                walk.place_strides[lane] = layout.strides[lane][d];
            continue;
        }
        if (last >= 0)
            add_line_dimension(&walk, &layout, last);
        last = d;
    }
    if (last >= 0)
        set_inner(&walk, &layout, last);
    return walk;
}

static void make_inner_a_line(kn_index_walk *walk)
{
    for (int lane = 0; lane < KN_INDEX_LANES; lane++) {
        walk->strides[lane][walk->ndim] = walk->inner_strides[lane];
        walk->inner_strides[lane] = 0;
    }
    walk->shape[walk->ndim++] = walk->inner;
    walk->lines *= walk->inner;
    walk->inner = 1;
}

/* Lines are taken one by one where the indices of one are neighbours in memory or, on CPU devices, the elements that an
 * index moves between are nearer to each other than those of neighbouring lines. */
static bool has_near_places(const kn_limits *limits, const kn_index_walk *walk)
{
    return walk->inner_strides[KN_INDEX_INDEX] > walk->place_strides[KN_INDEX_INDEX] ||
           (limits->is_cpu && walk->inner_strides[KN_INDEX_TABLE] > walk->step);
}

static int64_t between(int64_t least, int64_t value, int64_t most)
{
    return most < least || value > most ? most : value < least ? least : value;
}

/* With listed indices every work-group reads all of them: enough groups for any GPU. */
enum { GROUP = 256, GROUPS = 2048, MANY_COLUMNS = 32768, LEAST_PART = 32, ITEMS = 16384 };
enum { IN_CACHE = 1 << 19, BYTES_PER_TEST = 16, MANY_FEWER = 8, SMALL_LINE = 8 << 20 };

static bool should_list(const kn_limits *limits, const kn_index_walk *walk)
{
    return !limits->is_cpu && limits->max_work_group_size >= GROUP && walk->lines * walk->inner < MANY_COLUMNS &&
           walk->places > 1 && walk->size <= MAX_IN_32_BITS;
}

static kn_status launch_listed(kn_stream *stream, kn_launch_params launch, kn_index_walk *walk, const kn_arg *first)
{
    int64_t lanes = 1;

    if (walk->inner_strides[KN_INDEX_INDEX] != 0)
        make_inner_a_line(walk);
    const int64_t chunks = (walk->inner + GROUP - 1) / GROUP;
    while (lanes < walk->inner && lanes < GROUP)
        lanes *= 2;
    walk->ranges = between(1, GROUPS / (walk->lines * chunks), walk->size);
    launch.kernel = "index_scatter_listed";
    launch.global[0] = (size_t)(walk->lines * chunks * walk->ranges * GROUP);
    launch.local[0] = GROUP;
    const kn_arg arguments[] = {first[0],          first[1],      first[2], kn_arg_struct(walk, sizeof *walk),
                                kn_arg_i32(lanes), kn_arg_fault()};
    launch.args = arguments;
    launch.num_args = 6;
    return kn_launch(stream, &launch);
}

/* Every task reads all indices: only as many ranges as fill the device. */
static void divide(kn_index_walk *walk, int64_t wanted)
{
    if (walk->places > 1)
        walk->ranges = between(1, wanted / (walk->lines * walk->parts), walk->size);
}

/* On CPU devices the elements of a task should also stay in a core's cache: of elements with an index each narrower
 * parts, of rows more ranges, unless testing the indices would then take longer than adding the rows. A line of single
 * elements that the shared cache holds is one range: adding all takes no longer than finding those of a range. */
static void divide_on_cpu(kn_index_walk *walk, int64_t wanted, size_t element)
{
    const int64_t row = walk->inner * (int64_t)element, line = walk->size * row;
    const int64_t tasks = (wanted + walk->lines - 1) / walk->lines, most = walk->inner / LEAST_PART + 1;

    if (walk->inner_strides[KN_INDEX_INDEX] != 0)
        walk->parts = between(tasks, line / IN_CACHE, most);
    else if (walk->inner > 1 && walk->places > 1 && walk->size >= tasks)
        walk->ranges = between(tasks, between(1, line / IN_CACHE, row / BYTES_PER_TEST), walk->size);
    else
        walk->parts = between(1, tasks, most);
    if (walk->ranges == 1 && (walk->inner > 1 || line > SMALL_LINE))
        divide(walk, wanted);
}

static kn_status launch_items(kn_stream *stream, kn_launch_params launch, const kn_limits *limits, kn_index_walk *walk,
                              const kn_arg *first, size_t element)
{
    if (limits->is_cpu)
        divide_on_cpu(walk, (int64_t)limits->compute_units, element);
    else {
        walk->parts = walk->inner;
        divide(walk, ITEMS);
    }
    const int64_t tasks = walk->lines * walk->parts * walk->ranges;
    const kn_work_size work =
        kn_work_for(limits, limits->is_cpu ? tasks * walk->places * (walk->inner / walk->parts) : tasks);
    launch.kernel = "index_scatter";
    launch.global[0] = limits->is_cpu && (int64_t)work.global > tasks ? (size_t)tasks : work.global;
    launch.local[0] = work.local;
    const kn_arg arguments[] = {first[0],      first[1], first[2], first[3], kn_arg_struct(walk, sizeof *walk),
                                kn_arg_fault()};
    launch.args = arguments;
    launch.num_args = 6;
    return kn_launch(stream, &launch);
}

/* Of bools a sum is "or", which is the larger one, and a product "and", the smaller one. */
static kn_index_mode mode_for(kn_index_mode mode, kn_dtype dtype)
{
    const bool is_bool = dtype == KN_BOOL;
    return is_bool && mode == KN_INDEX_ADD ? KN_INDEX_MAX : is_bool && mode == KN_INDEX_MULTIPLY ? KN_INDEX_MIN : mode;
}

/* The table's first values. */
static kn_status fill(const kn_index_map *map, kn_tensor *table, kn_tensor *initial)
{
    return map->clears ? kn_tensor_fill(table, 0) : initial ? kn_tensor_copy(table, initial) : KN_OK;
}

/* Can the tasks that own the elements do that, too? Together they own all if the space covers the table. Where few
 * elements change, copying all at once is faster. */
static bool can_fill(const kn_limits *limits, const kn_index_walk *walk, const kn_tensor *table,
                     const kn_tensor *initial)
{
    return limits->is_cpu && walk->lines * walk->inner * walk->size == kn_numel(table) && kn_is_contiguous(table) &&
           walk->places > 1 && walk->size <= MANY_FEWER * walk->places &&
           (!initial || (kn_is_contiguous(initial) && initial->dtype == table->dtype));
}

static kn_status launch_scatter(kn_stream *stream, const char *operation, const kn_index_map *map, kn_tensor *table,
                                kn_tensor *initial, const kn_tensor *index, const kn_tensor *values)
{
    static const char *const words[] = {[1] = "-DT=uchar", [2] = "-DT=ushort", [4] = "-DT=uint", [8] = "-DT=ulong"};
    const kn_limits *limits = kn_tensor_limits(table);
    kn_index_walk walk = walk_of_scatter(map, table, index, values);
    if (walk.places > 1 && has_near_places(limits, &walk))
        make_inner_a_line(&walk);
    char options[96];

    snprintf(options, sizeof options, "%s -DINDEX=%s -DMODE=%d",
             map->mode == KN_INDEX_SET ? words[kn_dtype_size(table->dtype)] : kn_dtype_options(table->dtype),
             kn_dtype_cl(index->dtype), mode_for(map->mode, table->dtype));
    kn_launch_params launch = {.source = "index/scatter.cl", .options = options, .operation = operation, .dims = 1};
    if ((initial || map->clears) && can_fill(limits, &walk, table, initial))
        walk.fills = map->clears ? 1 : 2;
    else
        KN_TRY(fill(map, table, initial));
    const kn_arg first[] = {kn_arg_tensor(table), kn_arg_tensor(index), kn_arg_tensor(values),
                            kn_arg_tensor(walk.fills > 1 ? initial : values)};
    return should_list(limits, &walk) ? launch_listed(stream, launch, &walk, first)
                                      : launch_items(stream, launch, limits, &walk, first, kn_dtype_size(table->dtype));
}

/* The dimensions of places are one if those of index and values are contiguous. */
static bool must_join(const kn_index_map *map)
{
    int places = 0;
    for (int d = 0; d < map->ndim; d++)
        places += map->own[d] < 0 && map->shape[d] > 1;
    return places > 1;
}

/* `own` is an operand to release: the tensor as it is, or a copy, contiguous or apart from the table's memory. */
static kn_status operand_of(kn_tensor **own, kn_tensor *t, const kn_tensor *table, kn_dtype dtype, bool contiguous)
{
    if (t->dtype == dtype && t->storage != table->storage && (!contiguous || kn_is_contiguous(t)))
        return *own = kn_retain(t), KN_OK;
    return kn_tensor_cast(own, t, dtype, t->storage->device);
}

/* Halves are combined in float32, and a table whose strides do not fit the map is changed in a copy. */
static kn_status scatter_to_copy(kn_stream *stream, const char *operation, const kn_index_map *map, kn_tensor *table,
                                 kn_tensor *initial, kn_tensor *index, kn_tensor *values)
{
    kn_tensor *copy = NULL;
    const kn_dtype dtype = map->mode == KN_INDEX_SET ? table->dtype : kn_compute_type(table->dtype);

    KN_TRY(kn_tensor_cast(&copy, initial ? initial : table, dtype, table->storage->device));
    kn_status status = kn_index_scatter(stream, operation, map, copy, NULL, index, values);
    if (status == KN_OK)
        status = kn_tensor_copy(table, copy);
    kn_release(copy);
    return status;
}

kn_status kn_index_scatter(kn_stream *stream, const char *operation, const kn_index_map *map, kn_tensor *table,
                           kn_tensor *initial, kn_tensor *index, kn_tensor *values)
{
    const bool joins = must_join(map);
    kn_tensor *from = NULL, *at = NULL;

    if (kn_shape_numel(map->ndim, map->shape) == 0)
        return fill(map, table, initial);
    if (is_free(map, table) || (map->mode != KN_INDEX_SET && kn_dtype_is_reduced(table->dtype)))
        return scatter_to_copy(stream, operation, map, table, initial, index, values);
    kn_status status = operand_of(&from, values, table, table->dtype, joins && values->ndim > 0);
    if (status == KN_OK)
        status = operand_of(&at, index, table, index->dtype, joins);
    if (status == KN_OK)
        status = launch_scatter(stream, operation, map, table, initial, at, from);
    kn_release(at);
    kn_release(from);
    return status;
}

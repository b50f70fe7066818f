/* ops/index/reduce.c - scatter_reduce, index_reduce: several values for one element become their sum, product, mean,
 * maximum or minimum. */
#include <koine/autograd.h>
#include <koine/index.h>
#include <koine/pointwise.h>
#include <koine/shape.h>

#include "autograd/work.h"
#include "base/dtype.h"
#include "ops/index/index.h"
#include "ops/pointwise/elementwise.h"

/* On the tape: a map, as of every scatter. */
typedef struct reduction {
    kn_index_map map;
    bool include_self;
} reduction;

static kn_tensor *number(double value, const kn_tensor *like)
{
    return kn_full_with(0, NULL, kn_scalar_real(value),
                        &(kn_tensor_options){.dtype = like->dtype, .device = kn_device_of(like)});
}

/* --- sum and mean: of other operators ----------------------------------------------------------------------------- */

static kn_pointwise_code floor_code = {
    .name = "floor_divide", .inputs = "ab", .values = {"a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0)"}};

static kn_tensor *divided(kn_tensor *sum, kn_tensor *count)
{
    if (!sum || !count || kn_dtype_is_floating(sum->dtype))
        return kn_div(sum, count);
    kn_tensor *mean = kn_empty_like(sum);
    const kn_tensor *const inputs[] = {sum, count};
    if (!mean || kn_elements(kn_tensor_stream(sum), &floor_code, "scatter_reduce", sum->dtype, mean, inputs, 2, NULL))
        return kn_error_make_sticky();
    return mean;
}

/* The number of values of each element, its own one included or not. It is the same along dimensions that the index
 * does not know, where it has one element. */
static kn_tensor *counted(const reduction *own, kn_tensor *x, kn_tensor *index)
{
    kn_index_map map = own->map;

    for (int d = 0; d < map.ndim; d++)
        if (map.own[d] >= 0 && map.along[d] < 0 && map.shape[d] > 1) {
            x = kn_narrow(x, map.own[d], 0, 1);
            map.shape[d] = 1;
        }
    return kn_index_scattered(&map, KN_INDEX_ADD, own->include_self ? kn_ones_like(x) : kn_zeros_like(x), index,
                              number(1, x));
}

/* An element without values keeps its own. */
static kn_tensor *summed(const reduction *own, kn_tensor *x, kn_tensor *index, kn_tensor *src, bool mean)
{
    kn_tensor *count = mean || !own->include_self ? counted(own, x, index) : NULL;
    if (!own->include_self) {
        kn_tensor *has_none = kn_eq(count, number(0, x));
        x = kn_where(has_none, x, number(0, x));
        count = mean ? kn_where(has_none, number(1, x), count) : NULL;
    }
    kn_tensor *sum = kn_index_scattered(&own->map, KN_INDEX_ADD, x, index, src);
    return mean ? divided(sum, count) : sum;
}

static kn_status enter(kn_entry *entry, reduction *own)
{
    static const kn_index_mode modes[] = {KN_INDEX_ADD, KN_INDEX_MULTIPLY, KN_INDEX_ADD, KN_INDEX_MAX, KN_INDEX_MIN};
    const kn_scatter_reduce_args *args = entry->params;
    kn_tensor *x = entry->inputs[0], *src = entry->inputs[2];

    own->include_self = args->include_self;
    own->map.mode = modes[args->reduce];
    KN_TRY(kn_index_check_source(x, src));
    if (own->map.mode != KN_INDEX_ADD)
        return KN_OK;
    entry->result = summed(own, x, entry->inputs[1], src, args->reduce == KN_SCATTER_MEAN);
    return entry->result ? KN_OK : kn_error_status();
}

static kn_status scatter_reduce_enter(kn_entry *entry)
{
    const kn_scatter_reduce_args *args = entry->params;
    reduction *own = kn_entry_record(entry, sizeof *own);
    KN_TRY(kn_index_map_gather(&own->map, entry->inputs[0], args->dim, entry->inputs[1]));
    return enter(entry, own);
}

static kn_status index_reduce_enter(kn_entry *entry)
{
    const kn_scatter_reduce_args *args = entry->params;
    reduction *own = kn_entry_record(entry, sizeof *own);
    KN_TRY(kn_index_map_select(&own->map, entry->inputs[0], args->dim, entry->inputs[1]));
    return enter(entry, own);
}

/* --- product, maximum and minimum --------------------------------------------------------------------------------- */

/* What a value meets first, where x does not count. */
static double neutral_of(kn_index_mode mode, kn_dtype dtype)
{
    if (mode == KN_INDEX_MULTIPLY)
        return 1;
    if (dtype == KN_BOOL)
        return mode == KN_INDEX_MIN;
    if (kn_dtype_is_floating(dtype))
        return mode == KN_INDEX_MAX ? -(double)INFINITY : (double)INFINITY;
    return (double)(mode == KN_INDEX_MAX ? kn_dtype_lowest(dtype) : kn_dtype_highest(dtype));
}

static kn_status fill_places(kn_call *call, const reduction *own, kn_tensor *y)
{
    kn_index_map map = own->map;
    kn_tensor *neutral = NULL;
    const bool is_whole = !kn_dtype_is_floating(y->dtype);
    const double value = neutral_of(map.mode, y->dtype);

    map.mode = KN_INDEX_SET;
    KN_TRY(kn_tensor_new(&neutral, y->dtype, 0, NULL, y->storage->device));
    kn_status status = kn_tensor_fill_with(neutral, !is_whole                         ? kn_scalar_real(value)
                                                    : y->dtype == KN_I64 && value > 1 ? kn_scalar_int(INT64_MAX)
                                                                                      : kn_scalar_int((int64_t)value));
    if (status == KN_OK)
        status = kn_index_scatter(call->stream, call->op->name, &map, y, call->inputs[0], call->inputs[1], neutral);
    kn_release(neutral);
    return status;
}

static kn_status reduce_forward(kn_call *call)
{
    const reduction *own = call->params;
    kn_tensor *y = call->outputs[0];

    if (call->needs_grad) {
        kn_tensor *const saved[] = {call->inputs[0], call->inputs[1], call->inputs[2], y};
        for (int i = 0; i < 4; i++)
            KN_TRY(kn_call_save(call, saved[i]));
    }
    if (!own->include_self)
        KN_TRY(fill_places(call, own, y));
    return kn_index_scatter(call->stream, call->op->name, &own->map, y, own->include_self ? call->inputs[0] : NULL,
                            call->inputs[1], call->inputs[2]);
}

static kn_status reduce_reference(const kn_call *call)
{
    const reduction *own = call->params;
    kn_index_map filling = own->map;
    double value = neutral_of(own->map.mode, call->spec[0].dtype);

    kn_index_reference_copy(call);
    filling.mode = KN_INDEX_SET;
    if (!own->include_self)
        kn_index_reference_scatter(call, &filling, &value);
    kn_index_reference_scatter(call, &own->map, NULL);
    return KN_OK;
}

/* --- gradients ---------------------------------------------------------------------------------------------------- */

typedef struct parts {
    const reduction *own;
    kn_tensor *g, *x, *index, *src, *y; /* src: as large as the space */
} parts;

static kn_tensor *as_number(kn_tensor *condition, const kn_tensor *like) { return kn_to_dtype(condition, like->dtype); }
static kn_tensor *is_zero(kn_tensor *x) { return kn_eq(x, number(0, x)); }
static kn_tensor *is_one(kn_tensor *x) { return kn_eq(x, number(1, x)); }

/* Equal extremes share the gradient. */
static void extreme_gradients(const parts *p, kn_tensor **of_x, kn_tensor **of_src)
{
    const kn_index_map *map = &p->own->map;
    kn_tensor *x_is = as_number(kn_eq(p->x, p->y), p->g);
    kn_tensor *src_is = as_number(kn_eq(p->src, kn_index_taken(map, p->y, p->index)), p->g);
    kn_tensor *share = kn_div(p->g, kn_index_scattered(map, KN_INDEX_ADD, x_is, p->index, src_is));
    *of_x = kn_mul(x_is, share);
    *of_src = kn_mul(src_is, kn_index_taken(map, share, p->index));
}

static kn_tensor *only_zeros(kn_tensor *x) { return kn_where(is_zero(x), x, number(0, x)); }

/* The factors of a product: the product of those that are not 0, the number of zeros, and their sum, which has a
 * gradient; NULL without recording. */
typedef struct factors {
    kn_tensor *product, *zeros, *sum;
} factors;

/* The product of the others: with one zero among them its gradient is that of the zero. */
static kn_tensor *others(kn_tensor *factor, factors f)
{
    kn_tensor *zero = number(0, factor), *nothing = is_zero(factor);
    kn_tensor *rest = kn_div(f.product, kn_where(nothing, number(1, factor), factor));
    kn_tensor *more = kn_sub(f.zeros, as_number(nothing, factor));
    kn_tensor *with_zero = f.sum ? kn_where(is_one(more), kn_mul(rest, kn_sub(f.sum, only_zeros(factor))), zero) : zero;
    return kn_where(is_zero(more), rest, with_zero);
}

static const kn_op by_map_op;

static void product_gradients(const parts *p, kn_tensor **of_x, kn_tensor **of_src)
{
    const kn_index_map *map = &p->own->map;
    kn_tensor *one = number(1, p->x), *x = p->x;
    if (!p->own->include_self)
        x = kn_index_scattered(map, KN_INDEX_SET, x, p->index, one);
    factors f = {.product = kn_invoke(&by_map_op, (&(reduction){*map, true}), kn_where(is_zero(x), one, x), p->index,
                                      kn_where(is_zero(p->src), one, p->src)),
                 .zeros = kn_index_scattered(map, KN_INDEX_ADD, as_number(is_zero(x), x), p->index,
                                             as_number(is_zero(p->src), x)),
                 .sum = kn_grad_enabled()
                            ? kn_index_scattered(map, KN_INDEX_ADD, only_zeros(x), p->index, only_zeros(p->src))
                            : NULL};
    *of_x = kn_mul(p->g, others(x, f));
    for (int i = 0; i < 3; i++) {
        kn_tensor **field = (kn_tensor * *[]){&f.product, &f.zeros, &f.sum}[i];
        *field = *field ? kn_index_taken(map, *field, p->index) : NULL;
    }
    *of_src = kn_mul(kn_index_taken(map, p->g, p->index), others(p->src, f));
}

static kn_status reduce_backward(kn_grad_call *grad)
{
    const reduction *own = grad->params;
    kn_tensor *of_x, *of_src, *index = grad->saved[1];
    parts p = {own,   grad->grad_outputs[0],           kn_grad_saved_input(grad, 0, 0),
               index, kn_grad_saved_input(grad, 2, 2), kn_grad_saved_output(grad, 3, 0)};

    for (int d = 0; p.src && d < own->map.ndim; d++)
        p.src = kn_narrow(p.src, d, 0, own->map.shape[d]);
    (own->map.mode == KN_INDEX_MULTIPLY ? product_gradients : extreme_gradients)(&p, &of_x, &of_src);
    if (!own->include_self)
        of_x = kn_index_scattered(&own->map, KN_INDEX_SET, of_x, index, of_x ? number(0, of_x) : NULL);
    if (grad->needs[0])
        grad->grad_inputs[0] = of_x;
    if (grad->needs[2])
        grad->grad_inputs[2] = kn_index_enlarge(of_src, &grad->input[2]);
    return of_x && of_src ? KN_OK : kn_error_status();
}

/* --- operators ---------------------------------------------------------------------------------------------------- */

static const char *const reductions[] = {"sum", "prod", "mean", "amax", "amin", NULL};
static const kn_op_param rows[] = {KN_PARAM(kn_scatter_reduce_args, dim),
                                   KN_PARAM(kn_scatter_reduce_args, reduce, .values = reductions),
                                   KN_PARAM(kn_scatter_reduce_args, include_self)};

#define REDUCE_OP(op_name, source_, ...)                                                                               \
    {                                                                                                                  \
        .name = op_name, .inputs = {"x", "index", source_},                                                            \
        .dtypes = {KN_DTYPES_ALL, KN_DTYPES_INDICES, KN_DTYPES_ALL}, .composes = true,                                 \
        .record_size = sizeof(reduction), .shape = kn_index_scatter_shape, .forward = reduce_forward,                  \
        .backward = reduce_backward, .backward_recorded = reduce_backward, .reference = reduce_reference,              \
        .saved = {"x", "index", source_, "result"}, .work = kn_work_memory_bound, __VA_ARGS__                          \
    }
#define PARAMS KN_PARAMS(kn_scatter_reduce_args, rows, .include_self = true)
const kn_op kn_scatter_reduce_op = REDUCE_OP("scatter_reduce", "src", .params = PARAMS, .enter = scatter_reduce_enter);
const kn_op kn_index_reduce_op = REDUCE_OP("index_reduce", "source", .params = PARAMS, .enter = index_reduce_enter);
static const kn_op by_map_op = REDUCE_OP("scatter_reduce", "src", .enter = NULL);

kn_scatter_reduce_params kn_scatter_reduce_params_init(void)
{
    return (kn_scatter_reduce_params){KN_SCATTER_REDUCE_DEFAULTS};
}

#define REDUCE_FUNCTION(function, op)                                                                                  \
    kn_tensor *function(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *src, kn_scatter_reduction reduce,          \
                        const kn_scatter_reduce_params *params)                                                        \
    {                                                                                                                  \
        const kn_scatter_reduce_args args = {dim, reduce, params ? params->include_self : true};                       \
        return kn_invoke(&op, &args, x, index, src);                                                                   \
    }
REDUCE_FUNCTION(kn_scatter_reduce_with, kn_scatter_reduce_op)
REDUCE_FUNCTION(kn_index_reduce_with, kn_index_reduce_op)

/* ops/sort/engine.c - plans and launches. See engine.h. */
#include "ops/sort/engine.h"

#include <stdio.h>

#include "base/error.h"
#include "base/integer.h"
#include "loops/rows_plan.h"
#include "loops/work_size.h"
#include "sort/plan.h"

/* TILE: items in a GPU's local memory. CHUNK: elements for which a work-item of a CPU device is worth starting. FEW: a
 * selection of up to 1 in FEW elements is faster than a sort. */
enum { TILE = 2048, CHUNK = 16384, FEW = 4, CPU_DIGIT = 8, GPU_DIGIT = 4 };

static int group_of(const kn_limits *limits) { return (int)kn_work_for_groups(limits, 1).local; }
static size_t item_size(kn_dtype dtype) { return kn_dtype_size(dtype) == 8 ? 16 : 8; }

const char *kn_sort_options(char *buffer, size_t size, kn_dtype dtype, const kn_limits *limits)
{
    static const char *const bits[] = {[1] = "uchar", [2] = "ushort", [4] = "uint", [8] = "ulong"};
    const size_t bytes = kn_dtype_size(dtype);
    const char *infinite = dtype == KN_F64    ? "0x7ff0000000000000UL"
                           : dtype == KN_F32  ? "0x7f800000u"
                           : dtype == KN_F16  ? "0x7c00u"
                           : dtype == KN_BF16 ? "0x7f80u"
                                              : "0";
    const int length =
        snprintf(buffer, size, "-DBITS=%s -DKEY=%s -DWIDTH=%d -DINFINITE=%s -DSIGNED=%d", bits[bytes],
                 bytes == 8 ? "ulong" : "uint", (int)(8 * bytes), infinite, dtype != KN_BOOL && dtype != KN_U8);
    if (!limits->is_cpu)
        snprintf(buffer + length, size - (size_t)length, " -DTILE=%d -DGROUP=%d", TILE, group_of(limits));
    return buffer;
}

/* --- launching ---------------------------------------------------------------------------------------------------- */

/* A problem on its way: its stream, limits, options and plan. */
typedef struct work {
    const kn_sort_problem *problem;
    kn_stream *stream;
    const kn_limits *limits;
    char options[160];
    kn_sort_plan plan;
} work;

static kn_status launch(work *w, const char *kernel, kn_work_size size, const kn_arg *args, int num_args)
{
    return kn_run(w->stream, .source = "sort/sort.cl", .options = w->options, .kernel = kernel,
                  .operation = w->problem->operation, .dims = 1, .global = {size.global}, .local = {size.local},
                  .args = args, .num_args = num_args);
}

#define LAUNCH(w, kernel, size, ...)                                                                                   \
    launch(w, kernel, size, (const kn_arg[]){__VA_ARGS__, kn_arg_struct(&(w)->plan, sizeof(w)->plan)},                 \
           (int)(sizeof((const kn_arg[]){__VA_ARGS__}) / sizeof(kn_arg)) + 1)

/* Unwanted outputs are passed as the input and not written. */
static kn_arg output(const work *w, const kn_tensor *t) { return kn_arg_tensor(t ? t : w->problem->x); }
static kn_arg whole(const kn_buffer *buffer) { return kn_arg_buffer(buffer, 0); }

static kn_status allocate(kn_buffer **buffer, work *w, int64_t items)
{
    return kn_buffer_alloc(buffer, w->stream, (size_t)items * item_size(w->problem->x->dtype));
}

/* The first k of each `length` items are the results. */
static kn_status finish(work *w, const kn_buffer *items, int64_t length)
{
    const kn_sort_problem *p = w->problem;
    w->plan.n = p->n;
    w->plan.k = p->k;
    w->plan.length = length;
    return LAUNCH(w, "sort_finish", kn_work_for(w->limits, p->rows * p->k), kn_arg_tensor(p->x), whole(items),
                  output(w, p->values), output(w, p->indices));
}

/* --- a work-item or a work-group per row ------------------------------------------------------------------------- */

static kn_status sort_rows(work *w)
{
    const kn_sort_problem *p = w->problem;
    const int64_t fill = kn_work_items(w->limits, p->rows * p->n * 8, 4096);
    const kn_work_size size = {.global = (size_t)kn_min_i64(p->rows, fill)};
    kn_buffer *scratch;
    KN_TRY(allocate(&scratch, w, (int64_t)size.global * 2 * p->n));
    const kn_status status =
        LAUNCH(w, "sort_rows", size, kn_arg_tensor(p->x), whole(scratch), output(w, p->values), output(w, p->indices));
    kn_buffer_free(scratch);
    return status;
}

/* --- selecting ---------------------------------------------------------------------------------------------------- */

/* Cuts rows of plan.n into chunks, of which each gives k. */
static void cut(work *w)
{
    kn_sort_plan *plan = &w->plan;
    int64_t chunks;
    if (w->limits->is_cpu)
        chunks =
            kn_min_i64(kn_div_up(2 * w->limits->compute_units, plan->rows), plan->n / kn_max_i64(CHUNK, FEW * plan->k));
    else
        chunks = kn_div_up(plan->n, TILE);
    plan->length = w->limits->is_cpu ? kn_div_up(plan->n, kn_max_i64(chunks, 1)) : kn_min_i64(TILE, plan->n);
    plan->chunks = kn_div_up(plan->n, plan->length);
    for (plan->segment = 2; plan->segment < plan->length;)
        plan->segment *= 2;
}

static kn_status select_on_cpu(work *w, const kn_buffer *items, const kn_buffer *chosen)
{
    const int64_t tasks = w->plan.rows * w->plan.chunks, room = w->plan.k + kn_max_i64(w->plan.k, 40);
    const int64_t fill = kn_work_items(w->limits, w->plan.rows * w->plan.n, 4096);
    const kn_work_size size = {.global = (size_t)kn_min_i64(tasks, fill)};
    kn_buffer *scratch;
    KN_TRY(allocate(&scratch, w, (int64_t)size.global * 2 * room));
    const kn_arg args[] = {kn_arg_tensor(w->problem->x),
                           items ? whole(items) : kn_arg_tensor(w->problem->x),
                           whole(scratch),
                           whole(chosen),
                           kn_arg_struct(&w->plan, sizeof w->plan),
                           kn_arg_i64(room)};
    const kn_status status = launch(w, "sort_select", size, args, 6);
    kn_buffer_free(scratch);
    return status;
}

static kn_status select_on_gpu(work *w, const kn_buffer *items, const kn_buffer *chosen)
{
    const kn_sort_problem *p = w->problem;
    const int64_t groups = kn_div_up(w->plan.rows * w->plan.chunks, TILE / w->plan.segment);
    return LAUNCH(w, "sort_tiles", kn_work_for_groups(w->limits, groups), kn_arg_tensor(p->x),
                  items ? whole(items) : kn_arg_tensor(p->x), output(w, p->values), output(w, p->indices),
                  chosen ? whole(chosen) : kn_arg_tensor(p->x));
}

/* Stage after stage, each on what the one before has chosen, until a row is one chunk. */
static kn_status select_first(work *w)
{
    kn_sort_plan *plan = &w->plan;
    kn_buffer *items = NULL;
    kn_status status = KN_OK;
    for (bool is_last = false; status == KN_OK && !is_last;) {
        kn_buffer *chosen = NULL;
        cut(w);
        is_last = plan->chunks == 1;
        plan->has_items = items != NULL;
        if (w->limits->is_cpu || items || !is_last)
            status = allocate(&chosen, w, plan->rows * plan->chunks * plan->k);
        if (status == KN_OK)
            status = (w->limits->is_cpu ? select_on_cpu : select_on_gpu)(w, items, chosen);
        kn_buffer_free(items);
        items = chosen;
        plan->n = plan->chunks * plan->k;
    }
    if (status == KN_OK && (w->limits->is_cpu || plan->has_items))
        status = finish(w, items, plan->k);
    kn_buffer_free(items);
    return status;
}

/* --- all together ------------------------------------------------------------------------------------------------- */

static kn_work_size work_on_chunks(const work *w)
{
    const int64_t tasks = w->plan.rows * w->plan.chunks;
    return w->limits->is_cpu ? (kn_work_size){.global = (size_t)tasks} : kn_work_for_groups(w->limits, tasks);
}

/* The items before and after a pass, its digits' counts, and on CPU devices what a chunk's keys have in common. */
typedef struct together {
    kn_buffer *items[2], *counts, *seen;
} together;

enum { SEEN = 3 * sizeof(uint64_t) };

static kn_status allocate_together(together *t, work *w, int digit)
{
    const int64_t pieces = w->plan.rows * w->plan.chunks;
    KN_TRY(kn_buffer_alloc(&t->counts, w->stream, (size_t)pieces * ((size_t)1 << digit) * sizeof(uint32_t)));
    KN_TRY(kn_buffer_alloc(&t->seen, w->stream, (size_t)pieces * SEEN));
    KN_TRY(allocate(&t->items[0], w, w->plan.rows * w->plan.n));
    return allocate(&t->items[1], w, w->plan.rows * w->plan.n);
}

/* The kernels find out which passes a row needs, and so which of both has its items. */
static kn_status sort_together_on_cpu(work *w, const together *t)
{
    const kn_sort_problem *p = w->problem;
    const kn_work_size size = work_on_chunks(w);
    const int width = (int)(8 * kn_dtype_size(p->x->dtype));
    const kn_arg items = whole(t->items[0]), others = whole(t->items[1]), seen = whole(t->seen);

    KN_TRY(LAUNCH(w, "sort_keys", size, kn_arg_tensor(p->x), items, seen));
    for (w->plan.shift = 0; w->plan.shift < width; w->plan.shift += CPU_DIGIT) {
        KN_TRY(LAUNCH(w, "sort_count", size, items, others, seen, whole(t->counts)));
        KN_TRY(LAUNCH(w, "sort_scatter", size, items, others, seen, whole(t->counts)));
    }
    return LAUNCH(w, "sort_deliver", size, kn_arg_tensor(p->x), items, others, seen, output(w, p->values),
                  output(w, p->indices));
}

static kn_status sort_together_on_gpu(work *w, const together *t)
{
    const kn_sort_problem *p = w->problem;
    const int width = (int)(8 * kn_dtype_size(p->x->dtype));
    int from = 0;

    KN_TRY(LAUNCH(w, "sort_keys", kn_work_for(w->limits, p->rows * p->n), kn_arg_tensor(p->x), whole(t->items[0])));
    for (w->plan.shift = 0; w->plan.shift < width; w->plan.shift += GPU_DIGIT) {
        KN_TRY(LAUNCH(w, "sort_count", work_on_chunks(w), whole(t->items[from]), whole(t->counts)));
        KN_TRY(LAUNCH(w, "sort_scan", kn_work_for_groups(w->limits, w->plan.rows), whole(t->counts)));
        KN_TRY(LAUNCH(w, "sort_scatter", work_on_chunks(w), whole(t->items[from]), whole(t->counts),
                      whole(t->items[!from])));
        from = !from;
    }
    return finish(w, t->items[from], p->n);
}

static kn_status sort_together(work *w)
{
    const kn_sort_problem *p = w->problem;
    kn_sort_plan *plan = &w->plan;
    const bool cpu = w->limits->is_cpu;
    together t = {{NULL, NULL}, NULL, NULL};

    plan->length = cpu ? kn_div_up(p->n, kn_div_up(2 * w->limits->compute_units, p->rows)) : TILE;
    plan->chunks = kn_div_up(p->n, plan->length);
    kn_status status = allocate_together(&t, w, cpu ? CPU_DIGIT : GPU_DIGIT);
    if (status == KN_OK)
        status = (cpu ? sort_together_on_cpu : sort_together_on_gpu)(w, &t);
    kn_buffer_free(t.counts);
    kn_buffer_free(t.seen);
    kn_buffer_free(t.items[0]);
    kn_buffer_free(t.items[1]);
    return status;
}

kn_status kn_sort_run(kn_stream *stream, const kn_sort_problem *problem)
{
    work w = {.problem = problem,
              .stream = stream,
              .limits = kn_tensor_limits(problem->x),
              .plan = {.rows = problem->rows,
                       .n = problem->n,
                       .chunks = 1,
                       .length = problem->n,
                       .k = problem->k,
                       .descending = problem->descending,
                       .has_values = problem->values != NULL,
                       .has_indices = problem->indices != NULL}};
    if (problem->rows * problem->k == 0)
        return KN_OK;
    if (problem->n > INT32_MAX)
        return kn_fail(KN_ERR_SHAPE, "a row has %lld elements; at most %d are sorted", (long long)problem->n,
                       INT32_MAX);
    kn_sort_options(w.options, sizeof w.options, problem->x->dtype, w.limits);
    const bool few = problem->k * FEW <= problem->n;
    if (w.limits->is_cpu)
        return few                                                                           ? select_first(&w)
               : problem->rows >= w.limits->compute_units || problem->n < 2 * (int64_t)CHUNK ? sort_rows(&w)
                                                                                             : sort_together(&w);
    return problem->n <= TILE || (few && problem->k * FEW <= TILE) ? select_first(&w) : sort_together(&w);
}

/* ops/rnn/fused.c - the steps of a recurrent layer on CPU devices: tiles of the product go directly into the cell
 * (cl/rnn/steps.cl). */
#include <stdio.h>

#include "base/integer.h"
#include "ops/gemm/gemm.h"
#include "ops/rnn/rnn.h"

enum { SUMS_OF_32_REGISTERS = 24, SUMS_OF_16_REGISTERS = 12, ITEMS_PER_CORE = 8 };
enum { GROUP_BYTES = 1 << 19 };
enum { LAUNCH = 600000 };    /* multiplications that take as long as a launch */
enum { ROWS_OF_WEIGHT = 4 }; /* reading the weight from the level-2 cache takes as long as so many rows */

/* A tile is `rows` by `vectors`; `units` of the hidden state are in a panel of the packed weight. */
typedef struct tile {
    int width, vectors, rows;
    int64_t units, panels, depth;
} tile;

static tile tile_with(const kn_rnn_pass *pass, int width, int vectors, int rows)
{
    const int gates = kn_rnn_gates(pass->cell), parts = pass->is_backward ? 1 : gates;
    const int64_t units = (int64_t)vectors / parts * width;

    return (tile){width,
                  vectors,
                  rows,
                  units,
                  kn_div_up(pass->size.hidden, units),
                  pass->is_backward ? gates * pass->size.hidden : pass->size.outputs};
}

/* The tile with the least multiplications for so many rows, those beyond the edges and the loads included. Of each
 * number of vectors that fits the gates there are three. */
static tile choose_tile(const kn_limits *limits, const kn_rnn_pass *pass, int64_t rows)
{
    const int most = limits->vector_registers >= 32 ? SUMS_OF_32_REGISTERS : SUMS_OF_16_REGISTERS;
    const int gates = kn_rnn_gates(pass->cell), width = kn_limits_vector_width(limits, pass->gates->dtype == KN_F64);
    tile best = {0};
    double least = 0;

    for (int vectors = 4; vectors >= 2; vectors--)
        for (int i = 0; i < 3 && (vectors == gates || pass->is_backward || gates == 1); i++) {
            const int height[] = {most / vectors, most * 2 / 3 / vectors, 1};
            const tile t = tile_with(pass, width, vectors, height[i]);
            const double loads = (double)(t.rows + vectors) / (t.rows * vectors);
            const double cost = (double)(kn_div_up(rows, t.rows) * t.rows * t.panels * t.units) * (1 + 0.2 * loads);
            if (!best.rows || cost < least) {
                best = t;
                least = cost;
            }
        }
    return best;
}

/* A launch of one work-item per element of `items`. */
static kn_status run(kn_stream *stream, const kn_rnn_pass *pass, tile t, const char *kernel, int64_t items,
                     const kn_arg *args, int count)
{
    char options[160];

    snprintf(options, sizeof options, "%s -DVW=%d -DNV=%d -DMR=%d -DCELL=%d -DBACKWARD=%d -DPROJECTED=0",
             kn_dtype_options(pass->gates->dtype), t.width, t.vectors, t.rows, pass->cell, pass->is_backward);
    return kn_launch(stream, &(kn_launch_params){.source = "rnn/steps.cl",
                                                 .options = options,
                                                 .kernel = kernel,
                                                 .operation = pass->operation,
                                                 .dims = 1,
                                                 .global = {(size_t)items},
                                                 .local = {1},
                                                 .args = args,
                                                 .num_args = count});
}
#define RUN(stream, pass, t, kernel, items, ...)                                                                       \
    run(stream, pass, t, kernel, items, (const kn_arg[]){__VA_ARGS__},                                                 \
        (int)(sizeof((kn_arg[]){__VA_ARGS__}) / sizeof(kn_arg)))

bool kn_rnn_supports_fused(const kn_limits *limits, const void *problem)
{
    (void)limits;
    return ((const kn_rnn_pass *)problem)->weight_hr == NULL;
}

bool kn_rnn_prefers_fused(const kn_limits *limits, const void *problem)
{
    (void)problem;
    return limits->is_cpu;
}

static kn_status pack(kn_buffer **panels, kn_stream *stream, const kn_rnn_pass *pass, tile t)
{
    const int parts = pass->is_backward ? 1 : kn_rnn_gates(pass->cell);
    const size_t bytes = (size_t)(t.panels * parts * t.depth * t.units) * kn_dtype_size(pass->gates->dtype);

    KN_TRY(kn_buffer_alloc(panels, stream, bytes));
    return RUN(stream, pass, t, "rnn_pack", t.panels, kn_arg_tensor(pass->weight_hh), kn_arg_buffer(*panels, 0),
               kn_arg_i64(pass->size.hidden), kn_arg_i64(t.depth));
}

/* --- division among work-items ------------------------------------------------------------------------------------ */

/* The rows of each work-item if it has all panels. */
static int64_t rows_to_walk(const kn_limits *limits, const kn_rnn_pass *pass)
{
    return kn_div_up(pass->size.batch, limits->compute_units);
}

/* Is it faster to take rows through all steps than to launch each step, divided among all cores? */
static bool should_walk(const kn_limits *limits, const kn_rnn_pass *pass)
{
    const double row = (double)(kn_rnn_gates(pass->cell) * pass->size.hidden * pass->size.outputs);
    const int64_t rows = kn_max_i64(rows_to_walk(limits, pass), ROWS_OF_WEIGHT);

    return (double)rows * row <= (double)pass->size.batch * row / limits->compute_units + LAUNCH;
}

/* A step's work-items of whole tiles: so many panels that they stay in the level-2 cache for all rows, and enough items
 * to keep the cores busy. */
static void divide_step(kn_rnn_walk *w, const kn_limits *limits, const kn_rnn_pass *pass, tile t)
{
    const int64_t batch = pass->size.batch, tiles = kn_div_up(batch, t.rows);
    const int64_t wanted = (int64_t)ITEMS_PER_CORE * limits->compute_units;
    const int64_t panel = t.vectors * t.width * t.depth * (int64_t)kn_dtype_size(pass->gates->dtype);
    const int64_t most = kn_min_i64(kn_max_i64(1, GROUP_BYTES / panel), kn_max_i64(1, t.panels * tiles / wanted));

    w->panels_per_item = kn_div_up(t.panels, kn_div_up(t.panels, most)); /* nearly equal */
    const int64_t groups = kn_div_up(t.panels, w->panels_per_item);
    w->rows_per_item = kn_div_up(tiles, kn_min_i64(tiles, kn_div_up(wanted, groups))) * t.rows;
}

/* --- the launches ------------------------------------------------------------------------------------------------- */

static kn_arg tensor_or(const kn_tensor *t, const kn_tensor *instead) { return kn_arg_tensor(t ? t : instead); }

static kn_status walk_forward(kn_stream *stream, const kn_rnn_pass *pass, const kn_buffer *panels, tile t,
                              const kn_rnn_walk *w, int64_t items)
{
    const kn_tensor *gates = pass->gates;
    const kn_rnn_step s = kn_rnn_step_of(pass, 0);

    return RUN(stream, pass, t, "rnn_forward", items, kn_arg_buffer(panels, 0), kn_arg_tensor(gates),
               tensor_or(pass->bias_hh, gates), kn_arg_tensor(pass->states), tensor_or(pass->output, gates),
               tensor_or(pass->cells ? pass->cells : pass->news, gates), tensor_or(pass->lengths, gates),
               kn_arg_struct(&s, sizeof s), kn_arg_struct(w, sizeof *w), kn_arg_fault());
}

static kn_status walk_backward(kn_stream *stream, const kn_rnn_pass *pass, const kn_buffer *panels, tile t,
                               const kn_rnn_walk *w, int64_t items)
{
    const kn_tensor *gates = pass->gates;
    const kn_rnn_step s = kn_rnn_step_of(pass, 0);

    return RUN(stream, pass, t, "rnn_backward", items, kn_arg_buffer(panels, 0), kn_arg_tensor(gates),
               kn_arg_tensor(pass->states), tensor_or(pass->cells ? pass->cells : pass->news, gates),
               tensor_or(pass->output, gates), kn_arg_tensor(pass->d_state), tensor_or(pass->d_cell, pass->d_state),
               kn_arg_tensor(pass->d_gates), kn_arg_tensor(pass->d_products), tensor_or(pass->lengths, gates),
               kn_arg_struct(&s, sizeof s), kn_arg_struct(w, sizeof *w));
}

/* What the last step undone leaves to the initial state. */
static kn_status finish_backward(kn_stream *stream, const kn_rnn_pass *pass, int64_t time)
{
    const kn_rnn_sizes size = pass->size;
    const int64_t columns = kn_rnn_gates(pass->cell) * size.hidden;
    const kn_tensor *d = pass->d_products, *weight = pass->weight_hh, *state = pass->d_state;

    return kn_gemm(
        stream, &(kn_gemm_problem){
                    .product = {.f64 = d->dtype == KN_F64,
                                .m = size.batch,
                                .n = size.hidden,
                                .k = columns,
                                .batch = 1,
                                .alpha = 1,
                                .beta = 1,
                                .a = {d->storage->buffer, d->offset + time * size.batch * columns, columns, 0, false},
                                .b = {weight->storage->buffer, weight->offset, size.hidden, 0, false},
                                .c = {state->storage->buffer, state->offset, size.hidden, 0, false}}});
}

/* All steps in one launch, or each in one. */
static kn_status run_steps(kn_stream *stream, const kn_rnn_pass *pass, const kn_buffer *panels, tile t, bool walks)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const int64_t batch = pass->size.batch, steps = pass->size.steps;
    kn_rnn_walk w = {.start = pass->start,
                     .rows = steps,
                     .reverse = pass->reverse,
                     .depth = t.depth,
                     .panels = t.panels,
                     .panels_per_item = t.panels,
                     .rows_per_item = rows_to_walk(limits, pass)};

    if (!walks)
        divide_step(&w, limits, pass, t);
    const int64_t items = kn_div_up(t.panels, w.panels_per_item) * kn_div_up(batch, w.rows_per_item);
    for (; w.first < steps; w.first = w.end) {
        w.end = walks ? steps : w.first + 1;
        KN_TRY((pass->is_backward ? walk_backward : walk_forward)(stream, pass, panels, t, &w, items));
    }
    return pass->is_backward ? finish_backward(stream, pass, kn_rnn_step_at(pass, steps - 1).time) : KN_OK;
}

kn_status kn_rnn_fused(kn_stream *stream, const void *problem)
{
    const kn_rnn_pass *pass = problem;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const bool walks = should_walk(limits, pass);
    const tile t = choose_tile(limits, pass, walks ? rows_to_walk(limits, pass) : pass->size.batch);
    kn_buffer *panels = NULL;
    kn_status status = pack(&panels, stream, pass, t);

    if (status == KN_OK)
        status = run_steps(stream, pass, panels, t, walks);
    kn_buffer_free(panels);
    return status;
}

/* ops/rnn/fused.c - the steps of a recurrent layer on CPU devices: one launch each, in which tiles of the product go
 * directly into the cell (cl/rnn/steps.cl). */
#include <stdio.h>

#include "base/integer.h"
#include "ops/gemm/gemm.h"
#include "ops/rnn/rnn.h"

enum { SUMS_OF_32_REGISTERS = 24, SUMS_OF_16_REGISTERS = 12, ITEMS_PER_CORE = 8 };
enum { GROUP_BYTES = 1 << 19 };

/* A tile is `rows` by `vectors`; `units` of the hidden state are in a panel of the packed weight. */
typedef struct tile {
    int width, vectors, rows;
    int64_t units, panels, depth;
} tile;

static tile tile_of(const kn_limits *limits, const kn_rnn_pass *pass)
{
    const int gates = kn_rnn_gates(pass->cell), parts = pass->is_backward ? 1 : gates;
    const int most = limits->vector_registers >= 32 ? SUMS_OF_32_REGISTERS : SUMS_OF_16_REGISTERS;
    tile t = {.width = kn_limits_vector_width(limits, pass->gates->dtype == KN_F64),
              .vectors = pass->is_backward ? 2
                         : gates == 1      ? 3
                                           : gates,
              .depth = pass->is_backward ? gates * pass->size.hidden : pass->size.outputs};
    t.rows = pass->size.batch == 1 ? 1 : most / t.vectors;
    t.units = (int64_t)t.vectors / parts * t.width;
    t.panels = kn_div_up(pass->size.hidden, t.units);
    return t;
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

/* Work-items of whole tiles: so many panels that they stay in the level-2 cache for all rows, and enough items to keep
 * the cores busy. Returns their number. */
static int64_t divide(kn_rnn_step *s, const kn_limits *limits, const kn_rnn_pass *pass, tile t)
{
    const int64_t tiles = kn_div_up(s->batch, t.rows), wanted = (int64_t)ITEMS_PER_CORE * limits->compute_units;
    const int64_t panel = t.vectors * t.width * t.depth * (int64_t)kn_dtype_size(pass->gates->dtype);
    const int64_t most = kn_min_i64(kn_max_i64(1, GROUP_BYTES / panel), kn_max_i64(1, t.panels * tiles / wanted));

    s->panels = t.panels;
    s->panels_per_item = kn_div_up(t.panels, kn_div_up(t.panels, most)); /* nearly equal */
    const int64_t groups = kn_div_up(t.panels, s->panels_per_item);
    s->rows_per_item = kn_div_up(tiles, kn_min_i64(tiles, kn_div_up(wanted, groups))) * t.rows;
    return groups * kn_div_up(s->batch, s->rows_per_item);
}

static kn_status step_forward(kn_stream *stream, const kn_rnn_pass *pass, const kn_buffer *panels, tile t,
                              kn_rnn_place_in_time at)
{
    const kn_tensor *gates = pass->gates;
    kn_rnn_step s = kn_rnn_step_of(pass, at);
    const int64_t items = divide(&s, kn_tensor_limits(gates), pass, t);

    s.depth = t.depth;
    return RUN(stream, pass, t, "rnn_forward", items, kn_rnn_row(gates, at.time, NULL), kn_arg_buffer(panels, 0),
               kn_arg_tensor(pass->bias_hh ? pass->bias_hh : gates), kn_rnn_row(pass->states, at.state, NULL),
               kn_rnn_row(pass->states, at.next, NULL), kn_rnn_row(pass->output, at.time, gates),
               kn_rnn_row(pass->cells, at.state, gates),
               pass->cells ? kn_rnn_row(pass->cells, at.next, NULL) : kn_rnn_row(pass->news, at.time, gates),
               kn_rnn_row(pass->lengths, 0, gates), kn_arg_struct(&s, sizeof s), kn_arg_fault());
}

/* `after` is the time of the step undone before, none for the first. */
static kn_status step_backward(kn_stream *stream, const kn_rnn_pass *pass, const kn_buffer *panels, tile t,
                               kn_rnn_place_in_time at, int64_t after)
{
    const kn_tensor *gates = pass->gates;
    kn_rnn_step s = kn_rnn_step_of(pass, at);
    const int64_t items = divide(&s, kn_tensor_limits(gates), pass, t);

    s.depth = after < 0 ? 0 : t.depth;
    return RUN(stream, pass, t, "rnn_backward", items, kn_rnn_row(pass->d_products, after < 0 ? 0 : after, NULL),
               kn_arg_buffer(panels, 0), kn_rnn_row(gates, at.time, NULL), kn_rnn_row(pass->states, at.state, NULL),
               kn_rnn_row(pass->cells, at.state, gates),
               pass->cells ? kn_rnn_row(pass->cells, at.next, NULL) : kn_rnn_row(pass->news, at.time, gates),
               kn_rnn_row(pass->output, at.time, gates), kn_arg_tensor(pass->d_state),
               kn_arg_tensor(pass->d_cell ? pass->d_cell : pass->d_state), kn_rnn_row(pass->d_gates, at.time, NULL),
               kn_rnn_row(pass->d_products, at.time, NULL), kn_rnn_row(pass->lengths, 0, gates),
               kn_arg_struct(&s, sizeof s));
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

static kn_status run_steps(kn_stream *stream, const kn_rnn_pass *pass, const kn_buffer *panels, tile t)
{
    int64_t after = -1;

    for (int64_t step = 0; step < pass->size.steps; step++) {
        const kn_rnn_place_in_time at = kn_rnn_step_at(pass, step);
        KN_TRY(pass->is_backward ? step_backward(stream, pass, panels, t, at, after)
                                 : step_forward(stream, pass, panels, t, at));
        after = at.time;
    }
    return pass->is_backward ? finish_backward(stream, pass, after) : KN_OK;
}

kn_status kn_rnn_fused(kn_stream *stream, const void *problem)
{
    const kn_rnn_pass *pass = problem;
    const tile t = tile_of(kn_device_limits(kn_stream_device(stream)), pass);
    kn_buffer *panels = NULL;
    kn_status status = pack(&panels, stream, pass, t);

    if (status == KN_OK)
        status = run_steps(stream, pass, panels, t);
    kn_buffer_free(panels);
    return status;
}

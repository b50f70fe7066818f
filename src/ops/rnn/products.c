/* ops/rnn/products.c - the steps of a recurrent layer on any device: a matrix product, then the cell (cl/rnn/cells.cl).
 * With a projection another product follows the cell, or in the backward pass precedes it. */
#include <stdio.h>

#include "loops/work_size.h"
#include "ops/gemm/gemm.h"
#include "ops/rnn/rnn.h"

/* A matrix with rows of `columns` elements, from row `row` of a tensor on. */
static kn_gemm_operand rows_of(const kn_tensor *t, int64_t row, bool transposed)
{
    const int64_t columns = t->shape[t->ndim - 1], each = kn_shape_numel(t->ndim - 1, t->shape + 1);
    return (kn_gemm_operand){t->storage->buffer, t->offset + row * (t->ndim > 2 ? each : columns), columns, 0,
                             transposed};
}

/* c = a b + beta c (+ bias), [m, n] with sums of k terms. */
static kn_status multiply(kn_stream *stream, const kn_rnn_pass *pass, int64_t m, int64_t n, int64_t k,
                          kn_gemm_operand a, kn_gemm_operand b, kn_gemm_operand c, double beta)
{
    return kn_gemm(stream, &(kn_gemm_problem){.product = {.f64 = pass->gates->dtype == KN_F64,
                                                          .m = m,
                                                          .n = n,
                                                          .k = k,
                                                          .batch = 1,
                                                          .alpha = 1,
                                                          .beta = beta,
                                                          .a = a,
                                                          .b = b,
                                                          .c = c}});
}

/* A launch over the elements of [batch, columns]. */
static kn_status run_cells(kn_stream *stream, const kn_rnn_pass *pass, const char *kernel, int64_t columns,
                           const kn_arg *args, int count)
{
    const kn_work_size work = kn_work_for(kn_tensor_limits(pass->gates), pass->size.batch * columns);
    char options[96];

    snprintf(options, sizeof options, "%s -DCELL=%d -DPROJECTED=%d", kn_dtype_options(pass->gates->dtype), pass->cell,
             pass->weight_hr != NULL);
    return kn_launch(stream, &(kn_launch_params){.source = "rnn/cells.cl",
                                                 .options = options,
                                                 .kernel = kernel,
                                                 .operation = pass->operation,
                                                 .dims = 1,
                                                 .global = {work.global},
                                                 .local = {work.local},
                                                 .args = args,
                                                 .num_args = count});
}
#define RUN_CELLS(stream, pass, kernel, columns, ...)                                                                  \
    run_cells(stream, pass, kernel, columns, (const kn_arg[]){__VA_ARGS__},                                            \
              (int)(sizeof((kn_arg[]){__VA_ARGS__}) / sizeof(kn_arg)))

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* The projection of the cell's state, and the states that stay. */
static kn_status project(kn_stream *stream, const kn_rnn_pass *pass, kn_rnn_place_in_time at)
{
    const kn_rnn_sizes size = pass->size;
    kn_rnn_step s = kn_rnn_step_of(pass, at.time);

    s.hidden = size.outputs;
    KN_TRY(multiply(stream, pass, size.batch, size.outputs, size.hidden, rows_of(pass->raw, 0, false),
                    rows_of(pass->weight_hr, 0, true), rows_of(pass->states, at.next, false), 0));
    return RUN_CELLS(stream, pass, "rnn_keep", size.outputs, kn_rnn_row(pass->states, at.state, NULL),
                     kn_rnn_row(pass->states, at.next, NULL), kn_rnn_row(pass->output, at.time, pass->gates),
                     kn_rnn_row(pass->lengths, 0, pass->gates), kn_arg_struct(&s, sizeof s));
}

static kn_status step_forward(kn_stream *stream, const kn_rnn_pass *pass, const kn_tensor *product,
                              kn_rnn_place_in_time at)
{
    const kn_rnn_sizes size = pass->size;
    const bool projects = pass->weight_hr != NULL;
    const kn_tensor *gates = pass->gates, *any = gates;
    kn_rnn_step s = kn_rnn_step_of(pass, at.time);
    const kn_arg next = projects ? kn_arg_tensor(pass->raw) : kn_rnn_row(pass->states, at.next, NULL);
    const kn_arg extra = pass->cells ? kn_rnn_row(pass->cells, at.next, NULL) : kn_rnn_row(pass->news, at.time, any);

    s.has_output = !projects;
    KN_TRY(multiply(stream, pass, size.batch, kn_rnn_gates(pass->cell) * size.hidden, size.outputs,
                    rows_of(pass->states, at.state, false), rows_of(pass->weight_hh, 0, true),
                    rows_of(product, 0, false), 0));
    KN_TRY(RUN_CELLS(stream, pass, "rnn_forward", size.hidden, kn_rnn_row(gates, at.time, NULL), kn_arg_tensor(product),
                     kn_arg_tensor(pass->bias_hh ? pass->bias_hh : any), kn_rnn_row(pass->states, at.state, NULL), next,
                     kn_rnn_row(pass->output, at.time, any), kn_rnn_row(pass->cells, at.state, any), extra,
                     kn_rnn_row(pass->lengths, 0, any), kn_arg_struct(&s, sizeof s), kn_arg_fault()));
    return projects ? project(stream, pass, at) : KN_OK;
}

static kn_status run_forward(kn_stream *stream, const kn_rnn_pass *pass)
{
    const int64_t shape[] = {pass->size.batch, kn_rnn_gates(pass->cell) * pass->size.hidden};
    kn_tensor *product;

    KN_TRY(kn_tensor_new(&product, pass->gates->dtype, 2, shape, pass->gates->storage->device));
    kn_status status = KN_OK;
    for (int64_t step = 0; status == KN_OK && step < pass->size.steps; step++)
        status = step_forward(stream, pass, product, kn_rnn_step_at(pass, step));
    kn_release(product);
    return status;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

/* d_state += the gradients of a step's product, times the weight. */
static kn_status add_to_state(kn_stream *stream, const kn_rnn_pass *pass, int64_t time)
{
    const kn_rnn_sizes size = pass->size;

    return multiply(stream, pass, size.batch, size.outputs, kn_rnn_gates(pass->cell) * size.hidden,
                    rows_of(pass->d_products, time, false), rows_of(pass->weight_hh, 0, false),
                    rows_of(pass->d_state, 0, false), 1);
}

/* The gradient of the cell's state from that of its projection. */
static kn_status project_backward(kn_stream *stream, const kn_rnn_pass *pass, kn_rnn_place_in_time at)
{
    const kn_rnn_sizes size = pass->size;
    kn_rnn_step s = kn_rnn_step_of(pass, at.time);

    s.hidden = size.outputs;
    KN_TRY(RUN_CELLS(stream, pass, "rnn_keep_backward", size.outputs, kn_rnn_row(pass->output, at.time, pass->gates),
                     kn_arg_tensor(pass->d_state), kn_rnn_row(pass->d_projected, at.time, NULL),
                     kn_rnn_row(pass->lengths, 0, pass->gates), kn_arg_struct(&s, sizeof s)));
    return multiply(stream, pass, size.batch, size.hidden, size.outputs, rows_of(pass->d_projected, at.time, false),
                    rows_of(pass->weight_hr, 0, false), rows_of(pass->raw, 0, false), 0);
}

static kn_status step_backward(kn_stream *stream, const kn_rnn_pass *pass, kn_rnn_place_in_time at)
{
    const bool projects = pass->weight_hr != NULL;
    const kn_tensor *any = pass->gates;
    const kn_rnn_step s = kn_rnn_step_of(pass, at.time);
    const kn_arg extra = pass->cells ? kn_rnn_row(pass->cells, at.next, NULL) : kn_rnn_row(pass->news, at.time, any);

    if (projects)
        KN_TRY(project_backward(stream, pass, at));
    KN_TRY(RUN_CELLS(stream, pass, "rnn_backward", pass->size.hidden, kn_rnn_row(pass->gates, at.time, NULL),
                     kn_rnn_row(pass->states, at.state, NULL), kn_rnn_row(pass->cells, at.state, any), extra,
                     projects ? kn_arg_tensor(pass->raw) : kn_rnn_row(pass->output, at.time, any),
                     kn_arg_tensor(pass->d_state), kn_arg_tensor(pass->d_cell ? pass->d_cell : pass->d_state),
                     kn_rnn_row(pass->d_gates, at.time, NULL), kn_rnn_row(pass->d_products, at.time, NULL),
                     kn_rnn_row(pass->lengths, 0, any), kn_arg_struct(&s, sizeof s)));
    return add_to_state(stream, pass, at.time);
}

kn_status kn_rnn_by_products(kn_stream *stream, const void *problem)
{
    const kn_rnn_pass *pass = problem;
    kn_status status = KN_OK;

    if (!pass->is_backward)
        return run_forward(stream, pass);
    for (int64_t step = 0; status == KN_OK && step < pass->size.steps; step++)
        status = step_backward(stream, pass, kn_rnn_step_at(pass, step));
    return status;
}

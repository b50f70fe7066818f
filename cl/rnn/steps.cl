/* rnn/steps.cl - steps of a recurrent layer on CPU devices: tiles of the product with the state, MR rows by some
 * vectors of hidden units, whose sums go directly into the cell (rnn/cells.clh).
 *
 * Rows of the batch are independent: a work-item that has all panels takes its rows through all steps. If there are too
 * few rows, work-items have some of the panels each, and a launch has one step.
 *
 * The weight is packed once per pass into panels of UNITS hidden units: [panel][k][NV vectors], forward with the
 * vectors of all gates side by side. Units beyond the last are 0.
 *
 * Compiled in: T, VW, NV, MR, CELL, BACKWARD, PROJECTED 0. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "common/prefetch.clh"
#include "gemm/outer.clh"
#include "gemm/pack.clh"
#include "common/exp.clh"

#define R V
#define LOAD(p) load_lanes(p, lanes)
#define STORE(value, p) store_lanes(value, p, lanes)
#define SIGMOID sigmoid_of
#define TANH tanh_of

/* The first `lanes` elements of a vector. */
static inline V load_lanes(const global T *p, const int lanes)
{
    if (lanes == VW)
        return VLOAD(0, p);
    T part[VW];
    for (int i = 0; i < VW; i++)
        part[i] = i < lanes ? p[i] : (T)0;
    return VLOAD(0, part);
}

static inline void store_lanes(V value, global T *p, const int lanes)
{
    if (lanes == VW) {
        VSTORE(value, 0, p);
        return;
    }
    T part[VW];
    VSTORE(value, 0, part);
    for (int i = 0; i < lanes; i++)
        p[i] = part[i];
}

#include "rnn/cells.clh"

/* A panel has UNITS hidden units, as PARTS matrices [depth][UNITS]. */
#define PARTS (BACKWARD ? 1 : GATES)
#define PER_PART (NV / PARTS)
#define UNITS (PER_PART * VW)

/* The sums of a block of rows stay in the level-1 cache, and so does a block of a panel while the rows pass by. */
#define BLOCK_ROWS (40 / MR * MR)
#define BLOCK_DEPTH max(16, 24576 / (NV * VW * (int)sizeof(T)))

/* sum[i] += element k of row i times row k of the panel. */
KN_INLINE void add_step(V sum[MR][NV], const global T *row[MR], const global T *panel, long depth, long k)
{
    V part[NV];
#pragma unroll
    for (int v = 0; v < NV; v++)
        part[v] = VLOAD(0, panel + (v / PER_PART * depth + k) * UNITS + v % PER_PART * VW);
#pragma unroll
    for (int i = 0; i < MR; i++) {
        const V value = (V)row[i][k];
#pragma unroll
        for (int v = 0; v < NV; v++)
            sum[i][v] = fma(value, part[v], sum[i][v]);
    }
}

/* sums[i] += row i of a times `count` rows of the panel, or =, for `rows` rows; those up to MR repeat the last. */
static inline void multiply(V *sums, const global T *a, long stride, const global T *panel, long depth, long count,
                            int rows, const bool add)
{
    const global T *row[MR];
    V sum[MR][NV];
#pragma unroll
    for (int i = 0; i < MR; i++) {
        row[i] = a + min(i, rows - 1) * stride;
#pragma unroll
        for (int v = 0; v < NV; v++)
            sum[i][v] = add ? sums[i * NV + v] : (V)0;
    }
    KN_IN_PAIRS(k, count, add_step(sum, row, panel, depth, k));
#pragma unroll
    for (int i = 0; i < MR; i++)
#pragma unroll
        for (int v = 0; v < NV; v++)
            sums[i * NV + v] = sum[i][v];
}

/* Asks for what the cells of a block will read from memory, so that it arrives during the product. */
static inline void fetch(const global T *x, long stride, long hidden, int rows, int parts)
{
    for (int i = 0; i < rows; i++)
        for (int part = 0; part < parts; part++)
            for (int v = 0; v < PER_PART; v++)
                PREFETCH(x + i * stride + part * hidden + v * VW);
}

/* sums = `rows` rows of a, `depth` long and as far apart, times the panel. */
static inline void multiply_block(V *sums, const global T *a, const global T *panel, long depth, int rows)
{
    for (long k = 0; k < depth; k += BLOCK_DEPTH)
        for (int i = 0; i < rows; i += MR)
            multiply(sums + i * NV, a + i * depth + k, depth, panel + k * UNITS, depth,
                     min(depth - k, (long)BLOCK_DEPTH), min(MR, rows - i), k > 0);
}

/* dim 0: panels. Forward the matrices are those of the gates, of the weight [GATES * hidden, depth] transposed;
 * backward it is the weight [depth, hidden]. */
KN_KERNEL_ONCE(rnn_pack,
               (KN_ARG(weight), KN_ARG(panels), hidden, depth),
               KN_IN(weight), KN_OUT(panels), const long hidden, const long depth)
{
    KN_BIND_IN(T, weight);
    KN_BIND_OUT(T, panels);
    const long first = KN_ID(0) * UNITS;
    const int units = (int)min((long)UNITS, hidden - first);
    panels += KN_ID(0) * PARTS * depth * UNITS;
#if BACKWARD
    pack_panel(panels, weight + first, depth, units, UNITS, hidden, 1);
#else
    for (int g = 0; g < GATES; g++)
        pack_panel(panels + g * depth * UNITS, weight + (g * hidden + first) * depth, depth, units, UNITS, 1, depth);
#endif
}

/* --- walking ------------------------------------------------------------------------------------------------------ */

/* The rows and the panels of this work-item, dim 0. */
typedef struct part_of_step {
    long row, end_row, panel, end_panel;
} part_of_step;

static part_of_step part_of(kn_rnn_walk w, long batch, long item)
{
    const long groups = (w.panels + w.panels_per_item - 1) / w.panels_per_item;
    const long row = item / groups * w.rows_per_item;
    const long panel = item % groups * w.panels_per_item;
    return (part_of_step){row, min(row + w.rows_per_item, batch), panel, min(panel + w.panels_per_item, w.panels)};
}

/* The row of the pass's tensors that a step has. */
static long row_of(kn_rnn_walk w, long step) { return !w.reverse == !BACKWARD ? step : w.rows - 1 - step; }

/* A loop over blocks: all rows of a panel, which stays in the level-2 cache. */
#define FOR_BLOCKS(row, panel, part)                                      \
    for (long panel = (part).panel; panel < (part).end_panel; panel++) \
        for (long row = (part).row; row < (part).end_row; row += BLOCK_ROWS)

#if BACKWARD

static inline void step_backward(backward_operands to, kn_rnn_step s, part_of_step part, const global T *after,
                                 const global T *panels, long depth)
{
    V sums[BLOCK_ROWS * NV];
    FOR_BLOCKS(row, panel, part)
    {
        const int rows = (int)min((long)BLOCK_ROWS, part.end_row - row);
        const long at = row * s.hidden + panel * UNITS;
        fetch(to.gates + row * GATES * s.hidden + panel * UNITS, GATES * s.hidden, s.hidden, rows, GATES);
        if (s.has_gradient)
            fetch(to.d_output + at, s.hidden, s.hidden, rows, 1);
        if (CELL >= KN_RNN_GRU)
            fetch((CELL == KN_RNN_LSTM ? to.cell : to.extra) + at, s.hidden, s.hidden, rows, 1);
        if (after)
            multiply_block(sums, after + row * depth, panels + panel * depth * UNITS, depth, rows);
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < NV; v++) {
                const long column = panel * UNITS + v * VW;
                const V sum = after ? sums[i * NV + v] : (V)0;
                if (column + VW <= s.hidden)
                    cell_backward(to, s, row + i, column, sum, VW);
                else if (column < s.hidden)
                    cell_backward(to, s, row + i, column, sum, (int)(s.hidden - column));
            }
    }
}

/* The tensors of the pass. extra: cells or news. */
KN_KERNEL_ONCE(rnn_backward,
               (KN_ARG(panels), KN_ARG(gates), KN_ARG(states), KN_ARG(extra), KN_ARG(d_output), KN_ARG(d_state),
                KN_ARG(d_cell), KN_ARG(d_gates), KN_ARG(d_products), KN_ARG(lengths), s, w),
               KN_IN(panels), KN_IN(gates), KN_IN(states), KN_IN(extra), KN_IN(d_output), KN_INOUT(d_state),
               KN_INOUT(d_cell), KN_INOUT(d_gates), KN_INOUT(d_products), KN_IN(lengths), kn_rnn_step s,
               const kn_rnn_walk w)
{
    KN_BIND_IN(T, panels);
    KN_BIND_IN(T, gates);
    KN_BIND_IN(T, states);
    KN_BIND_IN(T, extra);
    KN_BIND_IN(T, d_output);
    KN_BIND_OUT(T, d_state);
    KN_BIND_OUT(T, d_cell);
    KN_BIND_OUT(T, d_gates);
    KN_BIND_OUT(T, d_products);
    KN_BIND_IN(long, lengths);
    const part_of_step part = part_of(w, s.batch, KN_ID(0));
    const long each = s.batch * s.hidden;
    for (long step = w.first; step < w.end; step++) {
        const long at = row_of(w, step), state = at + (w.reverse ? 1 : 0), next = at + (w.reverse ? 0 : 1);
        const backward_operands to = {gates + at * GATES * each,
                                      states + state * each,
                                      extra + state * each,
                                      extra + (CELL == KN_RNN_LSTM ? next : at) * each,
                                      d_output + at * each,
                                      d_state,
                                      d_cell,
                                      d_gates + at * GATES * each,
                                      d_products + at * GATES * each,
                                      lengths};
        s.time = w.start + at;
        step_backward(to, s, part, step > 0 ? d_products + row_of(w, step - 1) * GATES * each : 0, panels, w.depth);
    }
}

#else

static inline void step_forward(forward_operands to, kn_rnn_step s, part_of_step part, const global T *panels,
                                long depth)
{
    V sums[BLOCK_ROWS * NV];
    FOR_BLOCKS(row, panel, part)
    {
        const int rows = (int)min((long)BLOCK_ROWS, part.end_row - row);
        fetch(to.gates + row * GATES * s.hidden + panel * UNITS, GATES * s.hidden, s.hidden, rows, GATES);
        multiply_block(sums, to.state + row * depth, panels + panel * PARTS * depth * UNITS, depth, rows);
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < PER_PART; v++) {
                const long column = panel * UNITS + v * VW;
                V sum[GATES];
#pragma unroll
                for (int g = 0; g < GATES; g++)
                    sum[g] = sums[i * NV + g * PER_PART + v];
                if (column + VW <= s.hidden)
                    cell_forward(to, s, row + i, column, sum, VW);
                else if (column < s.hidden)
                    cell_forward(to, s, row + i, column, sum, (int)(s.hidden - column));
            }
    }
}

/* The tensors of the pass. extra: cells or news. */
KN_KERNEL_ONCE(rnn_forward,
               (KN_ARG(panels), KN_ARG(gates), KN_ARG(bias), KN_ARG(states), KN_ARG(output), KN_ARG(extra),
                KN_ARG(lengths), s, w, fault, fault_operation),
               KN_IN(panels), KN_INOUT(gates), KN_IN(bias), KN_INOUT(states), KN_OUT(output), KN_INOUT(extra),
               KN_IN(lengths), kn_rnn_step s, const kn_rnn_walk w, KN_FAULT)
{
    KN_BIND_IN(T, panels);
    KN_BIND_OUT(T, gates);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, states);
    KN_BIND_OUT(T, output);
    KN_BIND_OUT(T, extra);
    KN_BIND_IN(long, lengths);
    const part_of_step part = part_of(w, s.batch, KN_ID(0));
    const long each = s.batch * s.hidden;
    for (long step = w.first; step < w.end; step++) {
        const long at = row_of(w, step), state = at + (w.reverse ? 1 : 0), next = at + (w.reverse ? 0 : 1);
        const forward_operands to = {gates + at * GATES * each,
                                     bias,
                                     states + state * each,
                                     states + next * each,
                                     output + at * each,
                                     extra + state * each,
                                     extra + (CELL == KN_RNN_LSTM ? next : at) * each,
                                     lengths};
        s.time = w.start + at;
        for (long row = part.row; s.has_lengths && s.time == 0 && row < part.end_row; row++)
            if (lengths[row] < 0 || lengths[row] > s.steps)
                kn_report_index(fault, lengths[row], s.steps + 1);
        step_forward(to, s, part, panels, w.depth);
    }
}

#endif

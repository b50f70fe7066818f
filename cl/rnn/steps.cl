/* rnn/steps.cl - a step of a recurrent layer on CPU devices, in one launch: tiles of the product with the state, MR
 * rows by some vectors of hidden units, whose sums go directly into the cell (rnn/cells.clh).
 *
 * The weight is packed once per pass into panels of UNITS hidden units: [panel][k][NV vectors], forward with the
 * vectors of all gates side by side. Units beyond the last are 0.
 *
 * Compiled in: T, VW, NV, MR, CELL, BACKWARD, PROJECTED 0. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "gemm/pack.clh"

#define R V
#define LOAD(p) load_lanes(p, lanes)
#define STORE(value, p) store_lanes(value, p, lanes)

/* The first `lanes` elements of a vector. */
static inline V load_lanes(const global T *p, const int lanes)
{
    if (lanes == VW)
        return VGET(0, p);
    T part[VW];
    for (int i = 0; i < VW; i++)
        part[i] = i < lanes ? p[i] : (T)0;
    return VLOAD(0, part);
}

static inline void store_lanes(V value, global T *p, const int lanes)
{
    if (lanes == VW) {
        VPUT(value, 0, p);
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

/* sums[i] = row i of a times the panel, for `rows` rows; those up to MR repeat the last. */
static inline void multiply(T *sums, const global T *restrict a, long stride, const global T *restrict panel,
                            long depth, int rows)
{
    const global T *row[MR];
    V sum[MR][NV];
#pragma unroll
    for (int i = 0; i < MR; i++) {
        row[i] = a + min(i, rows - 1) * stride;
#pragma unroll
        for (int v = 0; v < NV; v++)
            sum[i][v] = (V)0;
    }
    for (long k = 0; k < depth; k++) {
        V column[NV];
#pragma unroll
        for (int v = 0; v < NV; v++)
            column[v] = VLOAD(0, panel + (v / PER_PART * depth + k) * UNITS + v % PER_PART * VW);
#pragma unroll
        for (int i = 0; i < MR; i++) {
            const V value = (V)row[i][k];
#pragma unroll
            for (int v = 0; v < NV; v++)
                sum[i][v] = fma(value, column[v], sum[i][v]);
        }
    }
#pragma unroll
    for (int i = 0; i < MR; i++)
#pragma unroll
        for (int v = 0; v < NV; v++)
            VSTORE(sum[i][v], 0, sums + (i * NV + v) * VW);
}

/* dim 0: panels. Forward the matrices are those of the gates, of the weight [GATES * hidden, depth] transposed;
 * backward it is the weight [depth, hidden]. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void rnn_pack(KN_IN(weight), KN_OUT(panels), const long hidden,
                                                                    const long depth)
{
    KN_BIND_IN(T, weight);
    KN_BIND_OUT(T, panels);
    const long first = get_global_id(0) * UNITS;
    const int units = (int)min((long)UNITS, hidden - first);
    panels += get_global_id(0) * PARTS * depth * UNITS;
#if BACKWARD
    pack_panel(panels, weight + first, depth, units, UNITS, hidden, 1);
#else
    for (int g = 0; g < GATES; g++)
        pack_panel(panels + g * depth * UNITS, weight + (g * hidden + first) * depth, depth, units, UNITS, 1, depth);
#endif
}

/* The rows and the panels of this work-item, dim 0. */
typedef struct part_of_step {
    long row, end_row, panel, end_panel;
} part_of_step;

static part_of_step part_of(kn_rnn_step s)
{
    const long groups = (s.panels + s.panels_per_item - 1) / s.panels_per_item;
    const long row = get_global_id(0) / groups * s.rows_per_item;
    const long panel = get_global_id(0) % groups * s.panels_per_item;
    return (part_of_step){row, min(row + s.rows_per_item, s.batch), panel,
                          min(panel + s.panels_per_item, s.panels)};
}

/* A loop over its tiles: along the panels, which stay in cache, and whose elements in a row are neighbours. */
#define FOR_TILES(row, panel, part)                                \
    for (long row = (part).row; row < (part).end_row; row += MR) \
        for (long panel = (part).panel; panel < (part).end_panel; panel++)

#if BACKWARD

/* d_products of the step after this one, or whatever while there is none (depth 0), times the panels. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
rnn_backward(KN_IN(after), KN_IN(panels), RNN_BACKWARD)
{
    KN_BIND_IN(T, after);
    KN_BIND_IN(T, panels);
    RNN_BIND_BACKWARD;
    const part_of_step part = part_of(s);
    T sums[MR * NV * VW];
    FOR_TILES(row, panel, part)
    {
        const int rows = (int)min((long)MR, part.end_row - row);
        multiply(sums, after + row * s.depth, s.depth, panels + panel * s.depth * UNITS, s.depth, rows);
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < NV; v++) {
                const long column = panel * UNITS + v * VW;
                if (column < s.hidden)
                    cell_backward(to, s, row + i, column, VLOAD(0, sums + (i * NV + v) * VW),
                                  (int)min((long)VW, s.hidden - column));
            }
    }
}

#else

/* The state times the panels. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
rnn_forward(RNN_FORWARD(panels))
{
    RNN_BIND_FORWARD(panels);
    const part_of_step part = part_of(s);
    T sums[MR * NV * VW];
    if (s.has_lengths && s.time == 0)
        for (long row = part.row; row < part.end_row; row++)
            if (lengths[row] < 0 || lengths[row] > s.steps)
                kn_report_index(fault, lengths[row], s.steps + 1);
    FOR_TILES(row, panel, part)
    {
        const int rows = (int)min((long)MR, part.end_row - row);
        multiply(sums, state + row * s.depth, s.depth, panels + panel * PARTS * s.depth * UNITS, s.depth, rows);
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < PER_PART; v++) {
                const long column = panel * UNITS + v * VW;
                V sum[GATES];
                for (int g = 0; g < GATES; g++)
                    sum[g] = VLOAD(0, sums + (i * NV + g * PER_PART + v) * VW);
                if (column < s.hidden)
                    cell_forward(to, s, row + i, column, sum, (int)min((long)VW, s.hidden - column));
            }
    }
}

#endif

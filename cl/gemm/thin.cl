/* gemm/thin.cl - matrix products with few columns on GPUs, including matrix times vector; those with few rows are
 * computed as their transposes (src/ops/gemm/thin.c). They are memory-bound: A is read once, for all columns.
 *
 * A team of `team` work-items, a power of two, computes one row of C. If A is contiguous along k, neighbouring
 * work-items belong to one team and read neighbouring steps of a row; else they belong to neighbouring teams and read
 * neighbouring rows. Each work-item has four steps in flight. The team's sums are added by a tree in local memory, in
 * an order that depends only on sizes; parts of long sums are separate products, added by gemm/total.cl.
 *
 * Compiled in: T, COLUMNS (1, 2, 4 or 8; C may have fewer), ALONG_K, GROUP (a power of two). */
#include "common/koine.clh"
#include "gemm/finish.clh"
#include "gemm/thin.h"

/* sum += the products of one step. Columns beyond the last repeat it, and are not stored. */
static inline void add_step(T *sum, T a, const global T *b, const int *column)
{
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
        sum[c] = fma(a, b[column[c]], sum[c]);
}

/* dim 0: rows, dim 1: part of the sum, dim 2: matrix. */
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
gemm_thin(KN_IN(a), KN_IN(b), KN_IN(bias), KN_OUT(c), kn_gemm_thin_layout l, kn_gemm_thin_size s, kn_gemm_finish finish)
{
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, c);
    local T part[COLUMNS][GROUP];
    const int item = get_local_id(0), teams = GROUP / s.team;
    const int lane = ALONG_K ? item & (s.team - 1) : item / teams, team = ALONG_K ? item / s.team : item & (teams - 1),
              next_lane = ALONG_K ? 1 : teams;
    const long row = (long)get_group_id(0) * teams + team, first = get_group_id(1) * s.steps_per_part + lane;
    const long last = row < s.rows ? min((long)(get_group_id(1) + 1) * s.steps_per_part, s.steps) : 0;
    T sum[COLUMNS];
    int column[COLUMNS];
#pragma unroll
    for (int i = 0; i < COLUMNS; i++) {
        sum[i] = 0;
        column[i] = min(i, s.columns - 1) * (int)l.b_column;
    }
    a += get_group_id(2) * l.a_batch + row * l.a_row + first * l.a_step;
    b += get_group_id(2) * l.b_batch + first * l.b_step;
    const long a_next = s.team * l.a_step, b_next = s.team * l.b_step;
    long step = first;
    for (; step + 3 * s.team < last; step += 4 * s.team, a += 4 * a_next, b += 4 * b_next) {
        const T a0 = a[0], a1 = a[a_next], a2 = a[2 * a_next], a3 = a[3 * a_next];
        add_step(sum, a0, b, column);
        add_step(sum, a1, b + b_next, column);
        add_step(sum, a2, b + 2 * b_next, column);
        add_step(sum, a3, b + 3 * b_next, column);
    }
    for (; step < last; step += s.team, a += a_next, b += b_next)
        add_step(sum, *a, b, column);

#pragma unroll
    for (int i = 0; i < COLUMNS; i++)
        part[i][item] = sum[i];
    for (int span = s.team / 2; span > 0; span /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < span)
#pragma unroll
            for (int i = 0; i < COLUMNS; i++)
                part[i][item] += part[i][item + span * next_lane];
    }
    if (lane > 0 || row >= s.rows)
        return;
    c += get_group_id(2) * l.c_batch + get_group_id(1) * l.c_part + row * l.c_row;
    bias += row * l.bias_row;
#pragma unroll
    for (int i = 0; i < COLUMNS; i++)
        if (i < s.columns)
            c[i * l.c_column] = finish_value(finish, part[i][item], c + i * l.c_column, bias + i * l.bias_column);
}

/* loss/class_loss.cl - cross entropy of logits (`logits` = 1) and negative log-likelihood of log-probabilities (0),
 * with class indices.
 *
 * x [N, C, inner]; a row is one of the N * inner positions with its C classes. With m the row's maximum, s = log sum
 * exp(x - m), w the class weights, e the label smoothing and t the row's target:
 *
 *     l[c] = x[c] - m - s, the log-probabilities; x[c] itself where these are given
 *     loss = - (1 - e) w[t] l[t] - e / C sum_c w[c] l[c]; the mean divides by W, the sum of w[t] over the rows
 *     dloss/dx[c] = (1 - e) w[t] (p[c] - [c = t]) + e / C (p[c] sum w - w[c]), p[c] = exp(l[c]), 0 for log-probabilities
 *
 * m and s are kept apart: their sum would be rounded to m's digits.
 *
 * A row whose target is `ignore` counts nothing. The rows' losses are summed block by block, and the blocks' sums by
 * `class_loss_finish`, or at once where one block holds all rows. Compiled in: T, and TARGET, the targets' type. */
#include "common/koine.clh"
#include "reduce/sum_run.clh"

#define REDUCE_MEAN 0
#define REDUCE_SUM 1
#define REDUCE_NONE 2

/* As in ops/class_loss.c. */
typedef struct {
    long rows, classes, inner, ignore, rows_per_block, blocks;
    int logits, reduction, has_weight, unused;
} class_loss;

/* Where class 0 of a row lies. */
static long row_start(const class_loss *p, long row)
{
    return p->inner == 1 ? row * p->classes : row / p->inner * p->classes * p->inner + row % p->inner;
}

typedef KN_JOIN(T, 2) norm; /* m and s of a row */

#ifndef KN_CPU
static norm row_norm(const global T *x, long classes, long stride)
{
    T largest = -INFINITY, sum = 0;

    for (long c = 0; c < classes; c++)
        largest = fmax(largest, x[c * stride]);
    for (long c = 0; c < classes; c++)
        sum += exp(x[c * stride] - largest);
    return (norm)(largest, log(sum));
}
#endif

/* The row's target, or -1 where the row counts nothing; an index out of range is reported and counts nothing. */
static long row_target(const class_loss *p, const global TARGET *target, long row, KN_FAULT)
{
    const long t = target[row];

    if (t == p->ignore)
        return -1;
    if (t < 0 || t >= p->classes) {
        kn_report_index(fault, t, p->classes);
        return -1;
    }
    return t;
}

/* The loss of one row; adds the row's weight to *total. */
static T row_loss(const class_loss *p, const global T *x, const global T *weight, long t, norm own, T smoothing,
                  T *total)
{
    const T w = p->has_weight ? weight[t] : (T)1;
    T loss = -w * (x[t * p->inner] - own.x - own.y);

    *total += w;
    if (smoothing != 0) {
        T smooth = 0;
        for (long c = 0; c < p->classes; c++)
            smooth -= (p->has_weight ? weight[c] : (T)1) * (x[c * p->inner] - own.x - own.y);
        loss = (1 - smoothing) * loss + smoothing / p->classes * smooth;
    }
    return loss;
}

#ifdef KN_CPU

/* m and s of up to 16 rows: the logarithms of all in one. */
static void sixteen_norms(const class_loss *p, const global T *x, long first, long count, norm *norms)
{
    T most[16], sums[16];

    for (int i = 0; i < 16; i++)
        most[i] = sums[i] = 1;
    for (long i = 0; i < count; i++) {
        const long at = row_start(p, first + i), room = p->rows * p->classes - at;
        const global T *row = x + at;
        T largest = -INFINITY, sum = 0;
        if (p->inner == 1) {
            TV lanes = -INFINITY, parts = 0;
            for (long c = 0; c < p->classes; c += 16)
                lanes = fmax(lanes, load_part(row + c, p->classes - c, room - c, -INFINITY));
            largest = max_lanes(lanes);
            for (long c = 0; c < p->classes; c += 16)
                parts += exp(load_part(row + c, p->classes - c, room - c, -INFINITY) - largest);
            sum = sum_lanes(parts);
        } else {
            for (long c = 0; c < p->classes; c++)
                largest = fmax(largest, row[c * p->inner]);
            for (long c = 0; c < p->classes; c++)
                sum += exp(row[c * p->inner] - largest);
        }
        most[i] = largest;
        sums[i] = sum;
    }
    vstore16(log(vload16(0, sums)), 0, sums);
    for (int i = 0; i < 16; i++)
        norms[i] = (norm)(most[i], sums[i]);
}

kernel void class_loss_forward(KN_IN(x), KN_IN(target), KN_IN(weight), KN_OUT(y), KN_OUT(norms), KN_OUT(totals),
                               KN_OUT(parts), const class_loss p, const T smoothing, KN_FAULT)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(TARGET, target);
    KN_BIND_IN(T, weight);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(norm, norms);
    KN_BIND_OUT(T, totals);
    KN_BIND_OUT(T, parts);
    KN_FOR(block, p.blocks)
    {
        const long end = min((block + 1) * p.rows_per_block, (long)p.rows);
        T sum = 0, error = 0, total = 0;
        norm own[16] = {0};
        for (long row = block * p.rows_per_block, i = 0; row < end; row++, i = (i + 1) % 16) {
            if (p.logits && i == 0)
                sixteen_norms(&p, x, row, min(16L, end - row), own);
            const long t = row_target(&p, target, row, fault, fault_operation);
            const T loss = t < 0 ? (T)0 : row_loss(&p, x + row_start(&p, row), weight, t, own[i], smoothing, &total);
            if (p.logits)
                norms[row] = own[i];
            if (p.reduction == REDUCE_NONE)
                y[row] = loss;
            else
                KN_TWO_SUM(T, sum, error, loss);
        }
        if (p.blocks > 1) {
            parts[2 * block] = sum_finish(sum, error);
            parts[2 * block + 1] = total;
        } else if (p.reduction != REDUCE_NONE) {
            totals[0] = total;
            y[0] = p.reduction == REDUCE_MEAN ? sum_finish(sum, error) / total : sum_finish(sum, error);
        }
    }
}

kernel void class_loss_finish(KN_IN(parts), KN_OUT(y), KN_OUT(totals), const class_loss p)
{
    KN_BIND_IN(T, parts);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(T, totals);
    T sum = 0, error = 0, total = 0, total_error = 0;
    if (get_global_id(0) > 0)
        return;
    for (long block = 0; block < p.blocks; block++) {
        KN_TWO_SUM(T, sum, error, parts[2 * block]);
        KN_TWO_SUM(T, total, total_error, parts[2 * block + 1]);
    }
    sum = sum_finish(sum, error);
    totals[0] = sum_finish(total, total_error);
    y[0] = p.reduction == REDUCE_MEAN ? sum / totals[0] : sum;
}

#else

/* The same by the whole work-group. */
static norm row_norm_group(const global T *x, long classes, local T *part)
{
    const long me = get_local_id(0), step = get_local_size(0);
    T largest = -INFINITY, sum = 0;

    for (long c = me; c < classes; c += step)
        largest = fmax(largest, x[c]);
    largest = max_group(part, largest);
    for (long c = me; c < classes; c += step)
        sum += exp(x[c] - largest);
    return (norm)(largest, log(sum_group(part, sum)));
}

/* What a block's sums come to, by the first work-item. */
static void finish_block(const class_loss *p, long block, T sum, T total, global T *y, global T *totals,
                         global T *parts)
{
    if (get_local_id(0) > 0)
        return;
    if (p->blocks > 1) {
        parts[2 * block] = sum;
        parts[2 * block + 1] = total;
    } else if (p->reduction != REDUCE_NONE) {
        totals[0] = total;
        y[0] = p->reduction == REDUCE_MEAN ? sum / total : sum;
    }
}

/* A work-group per block, a row per work-item. */
kernel void class_loss_forward(KN_IN(x), KN_IN(target), KN_IN(weight), KN_OUT(y), KN_OUT(norms), KN_OUT(totals),
                               KN_OUT(parts), const class_loss p, const T smoothing, KN_FAULT)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(TARGET, target);
    KN_BIND_IN(T, weight);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(norm, norms);
    KN_BIND_OUT(T, totals);
    KN_BIND_OUT(T, parts);
    local T part[KN_SUM_GROUP];
    for (long block = get_group_id(0); block < p.blocks; block += get_num_groups(0)) {
        const long end = min((block + 1) * p.rows_per_block, (long)p.rows);
        T sum = 0, total = 0;
        for (long row = block * p.rows_per_block + get_local_id(0); row < end; row += get_local_size(0)) {
            const global T *from = x + row_start(&p, row);
            const norm own = p.logits ? row_norm(from, p.classes, p.inner) : (norm)0;
            const long t = row_target(&p, target, row, fault, fault_operation);
            const T loss = t < 0 ? (T)0 : row_loss(&p, from, weight, t, own, smoothing, &total);
            if (p.logits)
                norms[row] = own;
            if (p.reduction == REDUCE_NONE)
                y[row] = loss;
            sum += loss;
        }
        sum = sum_group(part, sum);
        total = sum_group(part, total);
        finish_block(&p, block, sum, total, y, totals, parts);
    }
}

/* Logits with inner = 1 and many classes: the whole work-group on one row after another. */
kernel void class_loss_forward_long(KN_IN(x), KN_IN(target), KN_IN(weight), KN_OUT(y), KN_OUT(norms), KN_OUT(totals),
                                    KN_OUT(parts), const class_loss p, const T smoothing, KN_FAULT)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(TARGET, target);
    KN_BIND_IN(T, weight);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(norm, norms);
    KN_BIND_OUT(T, totals);
    KN_BIND_OUT(T, parts);
    local T part[KN_SUM_GROUP];
    for (long block = get_group_id(0); block < p.blocks; block += get_num_groups(0)) {
        const long end = min((block + 1) * p.rows_per_block, (long)p.rows);
        T sum = 0, total = 0;
        for (long row = block * p.rows_per_block; row < end; row++) {
            const global T *from = x + row * p.classes;
            const norm own = row_norm_group(from, p.classes, part);
            if (get_local_id(0) == 0) {
                const long t = row_target(&p, target, row, fault, fault_operation);
                const T loss = t < 0 ? (T)0 : row_loss(&p, from, weight, t, own, smoothing, &total);
                norms[row] = own;
                if (p.reduction == REDUCE_NONE)
                    y[row] = loss;
                sum += loss;
            }
        }
        finish_block(&p, block, sum, total, y, totals, parts);
    }
}

#define LOSS(block) parts[2 * (block)]
#define WEIGHT(block) parts[2 * (block) + 1]

/* One work-group. */
kernel void class_loss_finish(KN_IN(parts), KN_OUT(y), KN_OUT(totals), const class_loss p)
{
    KN_BIND_IN(T, parts);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(T, totals);
    local T part[KN_SUM_GROUP];
    T sum, total;
    KN_SUM_RUN(sum, p.blocks, LOSS, part);
    KN_SUM_RUN(total, p.blocks, WEIGHT, part);
    if (get_local_id(0) == 0) {
        totals[0] = total;
        y[0] = p.reduction == REDUCE_MEAN ? sum / total : sum;
    }
}

#endif

/* A work-item per row on CPU devices, else per element. */
kernel void class_loss_backward(KN_IN(gradient), KN_IN(x), KN_IN(target), KN_IN(weight), KN_IN(norms), KN_IN(totals),
                                KN_OUT(out), const class_loss p, const T smoothing)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(T, x);
    KN_BIND_IN(TARGET, target);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(norm, norms);
    KN_BIND_IN(T, totals);
    KN_BIND_OUT(T, out);
    T all = p.classes; /* sum of the class weights */
    if (p.has_weight && smoothing != 0) {
        all = 0;
        for (long c = 0; c < p.classes; c++)
            all += weight[c];
    }
#ifdef KN_CPU
    KN_FOR(row, p.rows)
    {
        const long first = 0, classes = p.classes;
#else
    KN_FOR(element, p.rows * p.classes)
    {
        const long row = element / (p.classes * p.inner) * p.inner + element % p.inner;
        const long first = element / p.inner % p.classes, classes = first + 1;
#endif
        const long from = row_start(&p, row), t = target[row];
        const int counts = t != p.ignore && t >= 0 && t < p.classes;
        const T g = p.reduction == REDUCE_NONE   ? gradient[row]
                    : p.reduction == REDUCE_MEAN ? gradient[0] / totals[0]
                                                 : gradient[0];
        const T w = counts ? g * (1 - smoothing) * (p.has_weight ? weight[t] : (T)1) : (T)0;
        const norm own = p.logits ? norms[row] : (norm)0;
        const T even = counts ? g * smoothing / p.classes : (T)0;
        const T scale = p.logits ? w + even * all : (T)0; /* of p[c] */
        long c = first;
        if (!counts) {
            for (; c < classes; c++)
                out[from + c * p.inner] = 0;
            continue;
        }
#ifdef KN_CPU
        if (p.inner == 1)
            for (; c < classes; c += 16) {
                const long room = p.rows * p.classes - from;
                TV v = 0;
                if (p.logits)
                    v = scale * exp(load_part(x + from + c, classes - c, room - c, 0) - own.x - own.y);
                store_part(v, out + from + c, classes - c);
            }
#endif
        for (; c < classes; c++)
            out[from + c * p.inner] = p.logits ? scale * exp(x[from + c * p.inner] - own.x - own.y) : (T)0;
        if (t >= first && t < classes)
            out[from + t * p.inner] -= w;
        if (smoothing != 0)
            for (c = first; c < classes; c++)
                out[from + c * p.inner] -= even * (p.has_weight ? weight[c] : (T)1);
    }
}

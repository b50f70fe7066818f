/* loss/class_loss_gpu.cl - losses of rows of classes, and their gradients, for devices with work-groups: see
 * loss/class_loss.clh.
 *
 * A team of `lanes` work-items, a power of two, processes a row; a single work-item if there are few classes or they
 * are `inner` apart. Logits are read once for m and s, again, from cache, with label smoothing, and once backward. */
#include "loss/class_loss.clh"
#include "norm/softmax_row.clh"

/* A block's results, written by the first work-item. */
static void finish_block(const kn_class_loss_layout *p, long block, T sum, T total, global T *y, global T *totals,
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

/* A work-group per block. */
kernel void class_loss_forward(KN_IN(x), KN_IN(target), KN_IN(weight), KN_OUT(y), KN_OUT(norms), KN_OUT(totals),
                               KN_OUT(parts), const kn_class_loss_layout p, const T smoothing, KN_FAULT,
                               const int lanes)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(TARGET, target);
    KN_BIND_IN(T, weight);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(norm, norms);
    KN_BIND_OUT(T, totals);
    KN_BIND_OUT(T, parts);
    local T mosts[KN_SUM_GROUP], sums[KN_SUM_GROUP], smooths[KN_SUM_GROUP], part[KN_SUM_GROUP], other[KN_SUM_GROUP];
    const int lane = get_local_id(0) & (lanes - 1), teams = get_local_size(0) / lanes;
    const long smoothed = smoothing != 0 ? p.classes : 0;
    for (long block = get_group_id(0); block < p.blocks; block += get_num_groups(0)) {
        const long end = min((block + 1) * p.rows_per_block, (long)p.rows);
        T sum = 0, total = 0;
        for (long first = block * p.rows_per_block; first < end; first += teams) {
            /* Teams past the last row repeat it, because all must reach the barriers. */
            const long mine = first + get_local_id(0) / lanes, row = min(mine, end - 1);
            const global T *from = x + row_start(&p, row);
            norm own = 0;
            T most = 0, exponentials = 1, smooth;
            if (p.logits)
                row_share(from, p.classes, p.inner, lane, lanes, &most, &exponentials);
            row_merge(mosts, sums, lanes, &most, &exponentials);
            if (p.logits)
                own = (norm)(most, log(exponentials));
#define SMOOTH(c) ((p.has_weight ? weight[c] : (T)1) * (from[(c) * p.inner] - own.x - own.y))
            KN_SUM_SHARE(smooth, smoothed, SMOOTH, lane, lanes);
            smooth = sum_team(smooths, smooth, lanes);
            if (lane == 0 && mine == row) {
                const long t = row_target(&p, target, row, fault, fault_operation);
                T loss = 0;
                if (t >= 0) {
                    const T w = p.has_weight ? weight[t] : (T)1;
                    loss = -w * (from[t * p.inner] - own.x - own.y);
                    if (smoothing != 0)
                        loss = (1 - smoothing) * loss - smoothing / p.classes * smooth;
                    total += w;
                }
                if (p.logits)
                    norms[row] = own;
                if (p.reduction == REDUCE_NONE)
                    y[row] = loss;
                sum += loss;
            }
        }
        sum_pair_group(part, other, get_local_size(0), &sum, &total);
        finish_block(&p, block, sum, total, y, totals, parts);
    }
}

#define LOSS(block) parts[2 * (block)]
#define WEIGHT(block) parts[2 * (block) + 1]

/* One work-group. */
kernel void class_loss_finish(KN_IN(parts), KN_OUT(y), KN_OUT(totals), const kn_class_loss_layout p)
{
    KN_BIND_IN(T, parts);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(T, totals);
    local T part[KN_SUM_GROUP], other[KN_SUM_GROUP];
    T sum, total;
    KN_SUM_SHARE(sum, p.blocks, LOSS, get_local_id(0), get_local_size(0));
    KN_SUM_SHARE(total, p.blocks, WEIGHT, get_local_id(0), get_local_size(0));
    sum_pair_group(part, other, get_local_size(0), &sum, &total);
    if (get_local_id(0) == 0) {
        totals[0] = total;
        y[0] = p.reduction == REDUCE_MEAN ? sum / total : sum;
    }
}

kernel void class_loss_backward(KN_IN(gradient), KN_IN(x), KN_IN(target), KN_IN(weight), KN_IN(norms), KN_IN(totals),
                                KN_OUT(out), const kn_class_loss_layout p, const T smoothing, const int lanes)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(T, x);
    KN_BIND_IN(TARGET, target);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(norm, norms);
    KN_BIND_IN(T, totals);
    KN_BIND_OUT(T, out);
    const int lane = get_local_id(0) & (lanes - 1), teams = get_local_size(0) / lanes;
    T all = p.classes; /* sum of the class weights */
    if (p.has_weight && smoothing != 0) {
        all = 0;
        for (long c = 0; c < p.classes; c++)
            all += weight[c];
    }
    for (long row = get_group_id(0) * (long)teams + get_local_id(0) / lanes; row < p.rows;
         row += get_num_groups(0) * (long)teams) {
        const long from = row_start(&p, row), t = target[row];
        const int counts = t != p.ignore && t >= 0 && t < p.classes;
        const T g = p.reduction == REDUCE_NONE   ? gradient[row]
                    : p.reduction == REDUCE_MEAN ? gradient[0] / totals[0]
                                                 : gradient[0];
        const T w = counts ? g * (1 - smoothing) * (p.has_weight ? weight[t] : (T)1) : (T)0;
        const int reads = p.logits && counts, weighted = p.has_weight && smoothing != 0;
        const norm own = reads ? norms[row] : (norm)0;
        const T even = counts ? g * smoothing / p.classes : (T)0;
        const T scale = reads ? w + even * all : (T)0; /* of p[c] */
#define PART_OF(c, value) \
    (scale * exp((value) - own.x - own.y) - ((c) == t ? w : (T)0) - (weighted ? even * weight[c] : even))
        const long far = lanes * p.inner, last = p.classes - 1;
        const global T *q = x + from + lane * p.inner;
        global T *to = out + from + lane * p.inner;
        for (long c = lane; c < p.classes; c += 4 * lanes, q += 4 * far, to += 4 * far) {
            const T v0 = reads ? q[0] : (T)0, v1 = reads && c + lanes <= last ? q[far] : (T)0;
            const T v2 = reads && c + 2 * lanes <= last ? q[2 * far] : (T)0;
            const T v3 = reads && c + 3 * lanes <= last ? q[3 * far] : (T)0;
            to[0] = PART_OF(c, v0);
            if (c + lanes <= last)
                to[far] = PART_OF(c + lanes, v1);
            if (c + 2 * lanes <= last)
                to[2 * far] = PART_OF(c + 2 * lanes, v2);
            if (c + 3 * lanes <= last)
                to[3 * far] = PART_OF(c + 3 * lanes, v3);
        }
    }
}

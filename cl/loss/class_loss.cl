/* loss/class_loss.cl - losses of rows of classes, and their gradients, on CPU devices: see loss/class_loss.clh. */
#include "loss/class_loss.clh"

/* m and s of up to 16 rows, with one vector logarithm for all. */
static void sixteen_norms(const kn_class_loss_layout *p, const global T *x, long first, long count, norm *norms)
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
                               KN_OUT(parts), const kn_class_loss_layout p, const T smoothing, KN_FAULT)
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

kernel void class_loss_finish(KN_IN(parts), KN_OUT(y), KN_OUT(totals), const kn_class_loss_layout p)
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

/* A work-item per row. */
kernel void class_loss_backward(KN_IN(gradient), KN_IN(x), KN_IN(target), KN_IN(weight), KN_IN(norms), KN_IN(totals),
                                KN_OUT(out), const kn_class_loss_layout p, const T smoothing)
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
    KN_FOR(row, p.rows)
    {
        const long from = row_start(&p, row), t = target[row];
        const int counts = t != p.ignore && t >= 0 && t < p.classes;
        const T g = p.reduction == REDUCE_NONE   ? gradient[row]
                    : p.reduction == REDUCE_MEAN ? gradient[0] / totals[0]
                                                 : gradient[0];
        const T w = counts ? g * (1 - smoothing) * (p.has_weight ? weight[t] : (T)1) : (T)0;
        const norm own = p.logits ? norms[row] : (norm)0;
        const T even = counts ? g * smoothing / p.classes : (T)0;
        const T scale = p.logits ? w + even * all : (T)0; /* of p[c] */
        long c = 0;
        if (!counts) {
            for (; c < p.classes; c++)
                out[from + c * p.inner] = 0;
            continue;
        }
        if (p.inner == 1)
            for (; c < p.classes; c += 16) {
                const long room = p.rows * p.classes - from;
                TV v = 0;
                if (p.logits)
                    v = scale * exp(load_part(x + from + c, p.classes - c, room - c, 0) - own.x - own.y);
                store_part(v, out + from + c, p.classes - c);
            }
        for (; c < p.classes; c++)
            out[from + c * p.inner] = p.logits ? scale * exp(x[from + c * p.inner] - own.x - own.y) : (T)0;
        out[from + t * p.inner] -= w;
        if (smoothing != 0)
            for (c = 0; c < p.classes; c++)
                out[from + c * p.inner] -= even * (p.has_weight ? weight[c] : (T)1);
    }
}

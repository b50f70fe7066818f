/* loss/bce.cl - binary cross entropy of logits x against targets t, with element weights w and positive weights v (1 if
 * absent):
 *
 *     l = w ((1 - t) x + (1 + (v - 1) t) (log(1 + exp(-|x|)) + max(-x, 0)))
 *     dl/dx = w ((1 - t) - (1 + (v - 1) t) / (1 + exp(x)))
 *     dl/dt = w (-x + (v - 1) (log(1 + exp(-|x|)) + max(-x, 0)))
 * All operands are contiguous and have the same shape. `reduced`: 0 gives each element's loss, 1 sums over chunks. */
#include "common/koine.clh"
#include "reduce/sum_run.clh"
#ifndef KN_CPU
#include "common/vec4.clh"
#endif

/* log(1 + exp(-x)), stable. The expressions are valid for scalars and vectors. */
#define SOFTPLUS_NEGATIVE(x) (log1p(exp(-fabs(x))) + fmax(-(x), (T)0))
/* -x + (v - 1) SOFTPLUS_NEGATIVE(x), without 0 * inf if v is 1. */
#define TARGET_GRADIENT(x, v) \
    ((v) * fmax(-(x), (T)0) - fmax(x, (T)0) + ((v) - (T)1) * log1p(exp(-fabs(x))))
#define TERM(x, t, w, v) ((w) * (((T)1 - (t)) * (x) + ((T)1 + ((v) - (T)1) * (t)) * SOFTPLUS_NEGATIVE(x)))

#ifdef KN_CPU
static TV term_lanes(const global T *x, const global T *t, const global T *w, const global T *v)
{
    TV weight = 1, positive = 1;
    if (w)
        weight = KN_VLOAD(w);
    if (v)
        positive = KN_VLOAD(v);
    const TV a = KN_VLOAD(x), b = KN_VLOAD(t);
    return TERM(a, b, weight, positive);
}
#endif

static T term_one(const global T *x, const global T *t, const global T *w, const global T *v)
{
    const T weight = w ? *w : (T)1, positive = v ? *v : (T)1;
    return TERM(*x, *t, weight, positive);
}

#define AT(p, k) ((p) ? (p) + from + (k) : 0)
#define VECTOR(k) term_lanes(x + from + (k), t + from + (k), AT(w, k), AT(v, k))
#define SCALAR(k) term_one(x + from + (k), t + from + (k), AT(w, k), AT(v, k))

/* y[chunk] = the chunk's sum divided by `divisor`. */
kernel void bce_forward(KN_IN(x), KN_IN(t), KN_IN(weight), KN_IN(positive), KN_OUT(y), const int has_weight,
                        const int has_positive, const long n, const long length, const long chunks, const T divisor)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, t);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(T, positive);
    KN_BIND_OUT(T, y);
    const global T *w = has_weight ? weight : 0, *v = has_positive ? positive : 0;
#ifdef KN_CPU
    KN_FOR(chunk, chunks)
#else
    local T part[KN_SUM_GROUP];
    for (long chunk = get_group_id(0); chunk < chunks; chunk += get_num_groups(0))
#endif
    {
        const long from = chunk * length, count = min(length, n - from);
        T total;
#ifdef KN_CPU
        KN_SUM_RUN(total, count, VECTOR, SCALAR);
        y[chunk] = total / divisor;
#else
        KN_SUM_RUN(total, count, SCALAR, part);
        if (get_local_id(0) == 0)
            y[chunk] = total / divisor;
#endif
    }
}

/* The loss of each element. */
kernel void bce_elements(KN_IN(x), KN_IN(t), KN_IN(weight), KN_IN(positive), KN_OUT(y), const int has_weight,
                         const int has_positive, const long n)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, t);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(T, positive);
    KN_BIND_OUT(T, y);
#ifdef KN_CPU
    const global T *w = has_weight ? weight : 0, *v = has_positive ? positive : 0;
    const long from = 0;
    KN_FOR(i, n)
        y[i] = SCALAR(i);
#else
    const int aligned = is_vector_aligned(x) && is_vector_aligned(t) && is_vector_aligned(weight) && is_vector_aligned(positive) && is_vector_aligned(y);
    KN_FOR_VEC4(i, n)
    {
        const long left = n - i;
        const four a = load_vec4(x + i, left, aligned), b = load_vec4(t + i, left, aligned);
        four w = 1, v = 1;
        if (has_weight)
            w = load_vec4(weight + i, left, aligned);
        if (has_positive)
            v = load_vec4(positive + i, left, aligned);
        store_vec4(TERM(a, b, w, v), y + i, left, aligned);
    }
#endif
}

/* out = scale dl/dx dL/dl, or dl/dt with `of_target`; dL/dl is a single number unless `each`. */
kernel void bce_backward(KN_IN(gradient), KN_IN(x), KN_IN(t), KN_IN(weight), KN_IN(positive), KN_OUT(out),
                         const int has_weight,
                         const int has_positive, const int each, const int of_target, const long n, const T scale)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, t);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(T, positive);
    KN_BIND_OUT(T, out);
#ifdef KN_CPU
    KN_FOR(i, n)
    {
        const T w = scale * gradient[each ? i : 0] * (has_weight ? weight[i] : (T)1);
        const T v = has_positive ? positive[i] : (T)1;
        const T a = x[i], b = t[i];
        if (of_target)
            out[i] = w * TARGET_GRADIENT(a, v);
        else
            out[i] = w * ((1 - b) - (1 + (v - 1) * b) / (1 + exp(a)));
    }
#else
    const int aligned = is_vector_aligned(x) && is_vector_aligned(t) && is_vector_aligned(weight) && is_vector_aligned(positive) &&
                        is_vector_aligned(out) && (!each || is_vector_aligned(gradient));
    KN_FOR_VEC4(i, n)
    {
        const long left = n - i;
        const four a = load_vec4(x + i, left, aligned), b = load_vec4(t + i, left, aligned);
        four w = scale * gradient[0], v = 1;
        if (each)
            w = scale * load_vec4(gradient + i, left, aligned);
        if (has_weight)
            w *= load_vec4(weight + i, left, aligned);
        if (has_positive)
            v = load_vec4(positive + i, left, aligned);
        const four result = of_target ? w * TARGET_GRADIENT(a, v) : w * ((1 - b) - (1 + (v - 1) * b) / (1 + exp(a)));
        store_vec4(result, out + i, left, aligned);
    }
#endif
}

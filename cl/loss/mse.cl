/* loss/mse.cl - the squared error of contiguous a and b, chunk by chunk, and its gradient. */
#include "common/koine.clh"
#include "reduce/sum_run.clh"
#ifndef KN_CPU
#include "common/fours.clh"
#endif

#ifdef KN_CPU
static TV square_lanes(TV v) { return v * v; }
#endif
static T square_one(T v) { return v * v; }

#define VECTOR(k) square_lanes(KN_VLOAD(from_a + (k)) - KN_VLOAD(from_b + (k)))
#define SCALAR(k) square_one(from_a[k] - from_b[k])

/* y[chunk] = sum of (a - b)^2 over the chunk, divided by `divisor`. */
kernel void mse_forward(KN_IN(a), KN_IN(b), KN_OUT(y), const long n, const long length, const long chunks,
                        const T divisor)
{
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_OUT(T, y);
#ifdef KN_CPU
    KN_FOR(chunk, chunks)
#else
    local T part[KN_SUM_GROUP];
    for (long chunk = get_group_id(0); chunk < chunks; chunk += get_num_groups(0))
#endif
    {
        const global T *from_a = a + chunk * length, *from_b = b + chunk * length;
        const long count = min(length, n - chunk * length);
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

/* out = scale (a - b) dL/dy, with one dL/dy for all. */
kernel void mse_backward(KN_IN(gradient), KN_IN(a), KN_IN(b), KN_OUT(out), const long n, const T scale)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_OUT(T, out);
    const T factor = scale * gradient[0];
#ifdef KN_CPU
    KN_FOR(i, n)
        out[i] = factor * (a[i] - b[i]);
#else
    const int aligned = lies_as_vector(a) && lies_as_vector(b) && lies_as_vector(out);
    KN_FOURS(i, n)
        store_four(factor * (load_four(a + i, n - i, aligned) - load_four(b + i, n - i, aligned)), out + i, n - i, aligned);
#endif
}

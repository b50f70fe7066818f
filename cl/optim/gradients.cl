/* optim/gradients.cl - norms and changes of many tensors, up to eight per launch: dimension 1 of the launch is the
 * slot. P: the type of an element; T: what it is computed in; S: the type of the norm.
 *
 * NORM 0: the infinity norm, 1, 2, or 3: the p-norm of any p. */
#include "pointwise/elements.clh"

#ifdef KN_HALF
#define P half
#define GET KN_LOAD_HALF
#define PUT KN_STORE_HALF
#elif defined(KN_BFLOAT)
#define P ushort
#define GET KN_LOAD_BFLOAT
#define PUT KN_STORE_BFLOAT
#else
#define P T
#define GET KN_LOAD_PLAIN
#define PUT KN_STORE_PLAIN
#endif

#define KN_SLOT(i) KN_INOUT(x##i), const long length##i
#define KN_SLOT_GIVEN(i) KN_ARG(x##i), length##i
#define KN_TAKE_SLOT(i)                                                         \
    x = (global P *)(KN_OF_SLOT x##i##_base + KN_OF_SLOT x##i##_offset);        \
    n = KN_OF_SLOT length##i;
#include "optim/eight.clh"

/* Declares x and n of the work-item's slot. */
#define BIND_SLOT()                                                             \
    global P *x = 0;                                                            \
    long n = 0;                                                                 \
    const uint slot = KN_ID(1);                                                 \
    KN_CHOOSE_SLOT

/* --- norms ---------------------------------------------------------------------------------------- */

#ifdef NORM
/* NaN stays. */
static S larger(const S a, const S b) { return b > a || b != b ? b : a; }

#if NORM == 0
#define ADD(sum, v) sum = larger(sum, v)
#define TERM(v) (S) fabs(v)
#define ROOT(sum, p) sum
#elif NORM == 1
#define ADD(sum, v) sum += v
#define TERM(v) (S) fabs(v)
#define ROOT(sum, p) sum
#elif NORM == 2
#define ADD(sum, v) sum += v
#define TERM(v) (S)(v) * (S)(v)
#define ROOT(sum, p) sqrt(sum)
#else
#define ADD(sum, v) sum += v
#define TERM(v) pow((S)fabs(v), p)
#define ROOT(sum, p) pow(sum, 1 / p)
#endif

/* parts [tensors][count]: a contiguous share of each tensor per work-item. Sixteen sums, so that the loop is not one
 * chain of additions. */
KN_KERNEL_ONCE(norm_parts,
               (KN_EIGHT_SLOTS_GIVEN, KN_ARG(parts), first, count, p),
               KN_EIGHT_SLOTS, KN_OUT(parts), const long first, const long count, const S p)
{
    KN_BIND_OUT(S, parts);
    BIND_SLOT();
    const long part = KN_ID(0);
    if (part >= count)
        return;
    const long share = (n + count - 1) / count, end = min((part + 1) * share, n);
    long i = min(part * share, n);
    S sum = 0;
#if defined(KN_CPU) && !defined(KN_HALF) && !defined(KN_BFLOAT) && (NORM == 1 || NORM == 2)
    TV wide = 0;
    for (; i + KN_LANES <= end; i += KN_LANES) {
        const TV v = KN_VLOAD(x + i);
#if NORM == 1
        wide += fabs(v);
#else
        wide += v * v;
#endif
    }
    for (int lane = 0; lane < KN_LANES; lane++)
        sum += (S)((const T *)&wide)[lane];
#endif
    for (; i < end; i++) {
        const T v = GET(x, i);
        ADD(sum, TERM(v));
    }
    parts[(first + slot) * count + part] = sum;
}

KN_KERNEL_ONCE(norm_total,
               (KN_ARG(parts), KN_ARG(norm), n, p),
               KN_IN(parts), KN_OUT(norm), const long n, const S p)
{
    KN_BIND_IN(S, parts);
    KN_BIND_OUT(S, norm);
    if (KN_ID(0) != 0)
        return;
    S sum = 0;
    for (long i = 0; i < n; i++)
        ADD(sum, parts[i]);
    *norm = ROOT(sum, p);
}
#endif

/* --- changes -------------------------------------------------------------------------------------- */

/* x *= min(1, max_norm / (*norm + 1e-6)). */
KN_KERNEL_ONCE(clip_to_norm,
               (KN_EIGHT_SLOTS_GIVEN, KN_ARG(norm), max_norm),
               KN_EIGHT_SLOTS, KN_IN(norm), const S max_norm)
{
    BIND_SLOT();
    const S ratio = max_norm / (*(const global S *)(norm_base + norm_offset) + (S)1e-6);
    if (ratio >= 1)
        return;
    const T factor = (T)ratio;
    KN_FOR_ONCE(i, n)
    {
        PUT(P, factor * GET(x, i), x, i);
    }
}

/* Between -limit and limit; NaN stays. */
KN_KERNEL_ONCE(clip_to_value,
               (KN_EIGHT_SLOTS_GIVEN, limit),
               KN_EIGHT_SLOTS, const T limit)
{
    BIND_SLOT();
    KN_FOR_ONCE(i, n)
    {
        const T v = GET(x, i);
        PUT(P, KN_CLAMP(v, -limit, limit), x, i);
    }
}

/* Divides by the scale, or multiplies by it (is_inverse); found becomes 1 if a result is not finite. */
KN_KERNEL_ONCE(unscale,
               (KN_EIGHT_SLOTS_GIVEN, KN_ARG(scale), KN_ARG(found), is_inverse),
               KN_EIGHT_SLOTS, KN_IN(scale), KN_INOUT(found), const int is_inverse)
{
    BIND_SLOT();
    const float given = *(const global float *)(scale_base + scale_offset);
    const T factor = (T)(is_inverse ? given : 1 / given);
    int bad = 0;
    KN_FOR_ONCE(i, n)
    {
        const T v = factor * GET(x, i);
        bad |= !(v - v == 0);
        PUT(P, v, x, i);
    }
    if (bad)
        *(global float *)(found_base + found_offset) = 1;
}

/* train/device_log.cl - running statistics that stay on the device until they are read: scalars and
 * histograms. */
#include "train/device_log.clh"

#if defined(HISTOGRAM)

/* The counter of x: 0 below, 1 above, 2 NaN, 3 + bin. The formula, in this order, is that of torch.histc on the CPU. */
static int place_of(T x, T low, T high, int bins)
{
    if (isnan(x))
        return 2;
    if (x < low)
        return 0;
    if (x > high)
        return 1;
    return 3 + min((int)((x - low) / (high - low) * (T)bins), bins - 1);
}

/* parts [parts][3 + bins] of the counts. On a CPU device each work-item has a part, elsewhere each work-group, which
 * counts in local memory: integer atomics do not depend on the order. */
#ifdef KN_CPU
KN_KERNEL_ONCE(histogram_parts, (KN_ARG(x), KN_ARG(parts), n, low, high, bins),
               KN_IN(x), KN_OUT(parts), const long n, const T low, const T high, const int bins)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(int, parts);
    global int *own = parts + KN_ID(0) * (3 + bins);
    for (int i = 0; i < 3 + bins; i++)
        own[i] = 0;
    KN_FOR_ONCE (i, n)
        own[place_of(x[i], low, high, bins)]++;
}
#else
kernel void histogram_parts(KN_IN(x), KN_OUT(parts), const long n, const T low, const T high, const int bins,
                            local int *own)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(int, parts);
    const int me = get_local_id(0), step = get_local_size(0);
    for (int i = me; i < 3 + bins; i += step)
        own[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    KN_FOR (i, n)
        atomic_inc(own + place_of(x[i], low, high, bins));
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = me; i < 3 + bins; i += step)
        parts[get_group_id(0) * (3 + bins) + i] = own[i];
}
#endif

KN_KERNEL_ONCE(histogram_sum, (KN_ARG(parts), KN_ARG(cells), n, count, places),
               KN_IN(parts), KN_INOUT(cells), const long n, const long count, const long places)
{
    KN_BIND_IN(int, parts);
    KN_BIND_OUT(long, cells);
    if (KN_ID(0) == 0)
        cells[KN_HISTOGRAM_VALUES] += n;
    KN_FOR_ONCE (i, places) {
        long sum = 0;
        for (long part = 0; part < count; part++)
            sum += parts[part * places + i];
        cells[KN_HISTOGRAM_OUTSIDE + i] += sum;
    }
}

#else

KN_KERNEL_ONCE(log_scalar, (KN_ARG(value), KN_ARG(cells), weight), KN_IN(value), KN_INOUT(cells), const long weight)
{
    KN_BIND_IN(T, value);
    KN_BIND_OUT(long, cells);
    if (KN_ID(0) == 0)
        note_scalar(cells, value[0], weight);
}

#endif

/* pool/max_indices.cl - indices of maxima in their planes, as the operators with indices return them: from and to the
 * places in windows that pool/max.cl stores as INDEX, and the gradient by them. */
#include "pool/pool.clh"

#define NO_PLACE ((INDEX)-1)

/* Converts maxima's places in their windows to their indices in the plane, or back: `none` or NO_PLACE where there is
 * none inside. CPU devices take rows, so that the loops are vectors, others elements. Each place of the window is
 * compared, as forward does: divisions by its sizes would take longer. */
#ifdef KN_CPU
#define RUN(p) (p).out_size[2]
#else
#define RUN(p) 1
#endif

#define CONVERSION(name, FROM, TO, value)                                                                              \
    static void name(const kn_pool_geometry *p, long line, int first, int count, const global FROM *from,              \
                     global TO *to)                                                                                    \
    {                                                                                                                  \
        const int row = line % p->out_size[1], slice = SLICE(line / p->out_size[1] % p->out_size[0]);                  \
        const int stride = p->stride[2];                                                                               \
        int place = 0;                                                                                                 \
        for (int t = 0; t < DEPTH(p->kernel_size[0]); t++)                                                             \
            for (int r = 0; r < p->kernel_size[1]; r++) {                                                              \
                const int d = SLICE(slice * p->stride[0] - p->padding[0] + t * p->dilation[0]);                        \
                const int h = row * p->stride[1] - p->padding[1] + r * p->dilation[1];                                 \
                const bool inside = is_within(d, DEPTH(p->size[0])) && is_within(h, p->size[1]);                       \
                for (int s = 0; s < p->kernel_size[2]; s++, place++) {                                                 \
                    const int left = first * stride - p->padding[2] + s * p->dilation[2];                              \
                    const long at = ((long)d * p->size[1] + h) * p->size[2] + left;                                    \
                    const int begin = left >= 0 ? 0 : (stride - 1 - left) / stride;                                    \
                    const int most = left + (count - 1) * stride < p->size[2] ? count                                  \
                                     : left >= p->size[2] ? 0 : (p->size[2] - 1 - left) / stride + 1;                  \
                    for (int k = begin; k < (inside ? most : 0); k++)                                                  \
                        to[k] = value;                                                                                 \
                }                                                                                                      \
            }                                                                                                          \
    }
CONVERSION(row_indices, INDEX, long, from[k] == place ? at + (long)k * stride : to[k])

KN_KERNEL_ONCE(max_pool_indices, (KN_ARG(index), KN_ARG(indices), p, none),
               KN_IN(index), KN_OUT(indices), const kn_pool_geometry p, const int none)
{
    KN_BIND_IN(INDEX, index);
    KN_BIND_OUT(long, indices);
    KN_FOR_ONCE(run, p.planes * out_volume_of(&p) / RUN(p))
    {
        const long from = run * RUN(p), line = from / p.out_size[2];
        for (int k = 0; k < RUN(p); k++)
            indices[from + k] = none;
        row_indices(&p, line, (int)(from - line * p.out_size[2]), RUN(p), index + from, indices + from);
    }
}

#ifdef KN_CPU
/* The gradient of maxima whose indices in the planes are given. A work-item owns whole planes and adds in the order of
 * the outputs. */
KN_KERNEL_ONCE(max_pool_backward_by_indices, (KN_ARG(gradient), KN_ARG(indices), KN_ARG(out), p),
               KN_IN(gradient), KN_IN(indices), KN_OUT(out), const kn_pool_geometry p)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(long, indices);
    KN_BIND_OUT(T, out);
    const long volume = volume_of(&p), out_volume = out_volume_of(&p);
    KN_FOR_ONCE(i, p.planes)
    {
        global T *plane = out + i * volume;
        for (long k = 0; k < volume; k++)
            plane[k] = 0;
        for (long k = i * out_volume; k < (i + 1) * out_volume; k++)
            if (indices[k] >= 0 && indices[k] < volume)
                plane[indices[k]] += gradient[k];
    }
}
#else
CONVERSION(row_places, long, INDEX, from[k] == at + (long)k * stride ? (INDEX)place : to[k])

kernel void max_pool_places(KN_IN(indices), KN_OUT(index), const kn_pool_geometry p)
{
    KN_BIND_IN(long, indices);
    KN_BIND_OUT(INDEX, index);
    KN_FOR(i, p.planes * out_volume_of(&p))
    {
        index[i] = NO_PLACE;
        row_places(&p, i / p.out_size[2], (int)(i % p.out_size[2]), 1, indices + i, index + i);
    }
}
#endif

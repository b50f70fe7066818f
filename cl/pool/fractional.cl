/* pool/fractional.cl - fractional max pooling: windows of one size at steps that a random number per plane shifts. */
#include "common/koine.clh"
#include "pool/pool.h"

/* Where window i of n begins, for a draw from [0, 1); the last one ends at the input's end. */
static int begin_of(int size, int kernel_size, int i, int n, T draw)
{
    if (i == n - 1)
        return size - kernel_size;
    const T step = (T)(size - kernel_size) / (T)(n - 1);
    return (int)((i + draw) * step) - (int)(draw * step);
}

/* The maximum of a window and its index in the volume. */
static T window_max(const kn_pool_geometry *p, const global T *volume, int front, int top, int left, int *index)
{
    T best = -INFINITY;
    int best_at = (front * p->size[1] + top) * p->size[2] + left;
    for (int d = front; d < front + p->kernel_size[0]; d++)
        for (int h = top; h < top + p->kernel_size[1]; h++)
            for (int w = left; w < left + p->kernel_size[2]; w++) {
                const int place = (d * p->size[1] + h) * p->size[2] + w;
                const T v = volume[place];
                const int takes = (v > best) | (v != v); /* NaN wins; without branches, which none could foretell */
                best = takes ? v : best;
                best_at = takes ? place : best_at;
            }
    *index = best_at;
    return best;
}

/* A work-item of CPU devices takes lines of outputs, as dividing takes as long as finding a maximum. */
#ifdef KN_CPU
#define RUN(p) (p).out_size[2]
#else
#define RUN(p) 1
#endif

/* `samples` has `dims` draws per plane: (width, height) for images, (depth, height, width) for volumes. */
KN_KERNEL_ONCE(fractional_max_pool, (KN_ARG(x), KN_ARG(samples), KN_ARG(y), KN_ARG(indices), given, dims),
               KN_IN(x), KN_IN(samples), KN_OUT(y), KN_OUT(indices), const kn_pool_geometry given, const int dims)
{
    const kn_pool_geometry p = given;
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, samples);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(long, indices);
    const long outputs = (long)p.out_size[0] * p.out_size[1] * p.out_size[2];
    KN_FOR_ONCE(run, p.planes * outputs / RUN(p))
    {
        const long first = run * RUN(p), plane = first / outputs;
        const int at = (int)(first - plane * outputs), row = at / p.out_size[2], slice = row / p.out_size[1];
        const global T *draw = samples + plane * dims, *volume = x + plane * p.size[0] * p.size[1] * p.size[2];
        const int front = dims == 3 ? begin_of(p.size[0], p.kernel_size[0], slice, p.out_size[0], draw[0]) : 0;
        const int top = begin_of(p.size[1], p.kernel_size[1], row - slice * p.out_size[1], p.out_size[1], draw[1]);
        for (int k = 0; k < RUN(p); k++) {
            const int left = begin_of(p.size[2], p.kernel_size[2], at - row * p.out_size[2] + k, p.out_size[2],
                                      draw[dims == 3 ? 2 : 0]);
            int index;
            y[first + k] = window_max(&p, volume, front, top, left, &index);
            indices[first + k] = index;
        }
    }
}

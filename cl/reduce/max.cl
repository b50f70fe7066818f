/* reduce/max.cl - maxima over the middle of [outer, n, inner] and where they are, for any T, on CPU devices. NaN counts
 * as the largest; the first among equals wins.
 *
 * Where places are not wanted they may be wrong.
 *
 * The middle may be cut into chunks: then `max_middle` gives [outer, chunks, inner] maxima, and `max_combine` the
 * maxima of these. */
#include "common/koine.clh"
#include "reduce/max_run.clh"

/* Up to 16 columns, loaded with what stands beside them: loops of a fixed length become vectors. */
static void max_few(const global T *x, global T *values, global long *indices, long rows, long inner, long columns,
                    long first)
{
    T best[16];
    int at[16];

    for (int j = 0; j < 16; j++) {
        best[j] = x[j];
        at[j] = 0;
    }
    for (long row = 1; row < rows; row++)
        for (int j = 0; j < 16; j++) {
            const T v = x[row * inner + j];
            const bool take = BEATS(v, best[j]);
            best[j] = take ? v : best[j];
            at[j] = take ? (int)row : at[j];
        }
    for (long j = 0; j < columns; j++) {
        values[j] = best[j];
        indices[j] = first + at[j];
    }
}

static void max_columns(const global T *x, global T *values, global long *indices, long rows, long inner, long columns,
                        long first)
{
    T best[64];
    int at[64];

    for (long j = 0; j < columns; j++) {
        best[j] = x[j];
        at[j] = 0;
    }
    for (long row = 1; row < rows; row++)
        for (long j = 0; j < columns; j++) {
            const T v = x[row * inner + j];
            const bool take = BEATS(v, best[j]);
            best[j] = take ? v : best[j];
            at[j] = take ? (int)row : at[j];
        }
    for (long j = 0; j < columns; j++) {
        values[j] = best[j];
        indices[j] = first + at[j];
    }
}

kernel void max_middle(KN_IN(x), KN_OUT(values), KN_OUT(indices), const long outer, const long n, const long inner,
                       const long length, const long chunks, const int wants_places)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, values);
    KN_BIND_OUT(long, indices);
    const long width = 64;
    const long tiles = (inner + width - 1) / width;
    KN_FOR(task, outer * chunks * tiles)
    {
        /* 64-bit division costs as much as a short run: none where nothing is cut. */
        const long piece = tiles == 1 ? task : task / tiles, tile = tiles == 1 ? 0 : task % tiles;
        const long block = chunks == 1 ? piece : piece / chunks, chunk = chunks == 1 ? 0 : piece % chunks;
        const long rows = min(length, n - chunk * length);
        const long start = (block * n + chunk * length) * inner + tile * width;
        const global T *from = x + start;
        const long to = piece * inner + tile * width;
        if (inner > 1 && inner < 16 && start + (rows - 1) * inner + 16 <= outer * n * inner) {
            max_few(from, values + to, indices + to, rows, inner, inner, chunk * length);
            continue;
        }
        if (inner > 1) {
            max_columns(from, values + to, indices + to, rows, inner, min(width, inner - tile * width), chunk * length);
            continue;
        }
        T value;
        const long at = rows >= 16 ? max_long_run(from, rows, &value, wants_places) : max_short_run(from, (int)rows, &value);
        values[to] = value;
        indices[to] = chunk * length + at;
    }
}

kernel void max_combine(KN_IN(part_values), KN_IN(part_indices), KN_OUT(values), KN_OUT(indices), const long outer,
                        const long chunks, const long inner)
{
    KN_BIND_IN(T, part_values);
    KN_BIND_IN(long, part_indices);
    KN_BIND_OUT(T, values);
    KN_BIND_OUT(long, indices);
    KN_FOR(task, outer * inner)
    {
        const long from = task / inner * chunks * inner + task % inner;
        T value;
        const long chunk = max_run(part_values + from, chunks, inner, &value);
        values[task] = value;
        indices[task] = part_indices[from + chunk * inner];
    }
}

/* dL/dx of the maxima: dL/dy at the place of each, 0 elsewhere. */
kernel void max_backward(KN_IN(gradient), KN_IN(indices), KN_OUT(out), const long outer, const long n, const long inner)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(long, indices);
    KN_BIND_OUT(T, out);
    KN_FOR(row, outer * n)
    {
        const long from = row / n * inner, at = row % n;
        for (long j = 0; j < inner; j++)
            out[row * inner + j] = indices[from + j] == at ? gradient[from + j] : (T)0;
    }
}

/* ops/sort/reference.c - the order of elements by merging, on the host: what engine.h promises. */
#include "ops/dispatch/reference.h"
#include "base/memory.h"
#include "ops/sort/engine.h"

/* Does b come strictly before a? NaN is larger than all numbers. */
static bool comes_before(double b, double a, bool descending)
{
    const bool less = b < a || (isnan(a) && !isnan(b)), more = b > a || (isnan(b) && !isnan(a));
    return descending ? more : less;
}

static void merge(int64_t *to, const int64_t *from, const double *value, int64_t low, int64_t middle, int64_t high,
                  bool descending)
{
    int64_t a = low, b = middle;
    for (int64_t i = low; i < high; i++)
        to[i] = a < middle && (b >= high || !comes_before(value[from[b]], value[from[a]], descending)) ? from[a++]
                                                                                                       : from[b++];
}

int64_t *kn_sort_reference_order(const kn_tensor *x, int64_t first, int64_t step, int64_t n, bool descending)
{
    int64_t *order = kn_calloc((size_t)n + 1, sizeof *order), *other = kn_calloc((size_t)n + 1, sizeof *other);
    double *value = kn_calloc((size_t)n + 1, sizeof *value);
    const bool made = order && other && value;
    for (int64_t i = 0; made && i < n; i++) {
        order[i] = i;
        value[i] = kn_reference_get(x, first + i * step);
    }
    for (int64_t length = 1; made && length < n; length *= 2) {
        for (int64_t low = 0; low < n; low += 2 * length) {
            const int64_t middle = low + length < n ? low + length : n;
            merge(other, order, value, low, middle, middle + length < n ? middle + length : n, descending);
        }
        int64_t *const sorted = other;
        other = order;
        order = sorted;
    }
    kn_free(value);
    kn_free(other);
    if (!made) {
        kn_free(order);
        return NULL;
    }
    return order;
}

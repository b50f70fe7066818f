/* sort/sort.cl - sorts rows of elements, or takes the first k of each in that order: stable, hence deterministic.
 * src/ops/sort/engine.h says which kernels run for which sizes. */
#include "common/koine.clh"
#include "sort/keys.clh"
#include "sort/plan.h"

/* Item i of a chunk that begins at `first`, from an element or from an earlier stage. */
static inline kn_item kn_item_at(const global BITS *x, const global kn_item *items, const kn_sort_plan *plan,
                                 const long row, const long place)
{
    if (plan->has_items)
        return items[row * plan->n + place];
    return (kn_item){kn_key(x[row * plan->n + place], plan->descending), (uint)place};
}

/* Result j of a row of n elements. */
static inline void kn_put_result(const kn_item item, const global BITS *x, global BITS *values, global long *indices,
                                 const kn_sort_plan *plan, const long row, const long j)
{
    if (plan->has_values)
        values[row * plan->k + j] = kn_element(item, plan->descending, x + row * plan->n);
    if (plan->has_indices)
        indices[row * plan->k + j] = item.place;
}

/* Results from items in order, of which each row has `length`. */
KN_KERNEL_ONCE(sort_finish, (KN_ARG(x), KN_ARG(items), KN_ARG(values), KN_ARG(indices), plan),
               KN_IN(x), KN_IN(items), KN_OUT(values), KN_OUT(indices), const kn_sort_plan plan)
{
    KN_BIND_IN(BITS, x);
    KN_BIND_IN(kn_item, items);
    KN_BIND_OUT(BITS, values);
    KN_BIND_OUT(long, indices);
    KN_FOR_ONCE (i, plan.rows * plan.k) {
        const long row = i / plan.k, j = i - row * plan.k;
        kn_put_result(items[row * plan.length + j], x, values, indices, &plan, row, j);
    }
}

#ifdef KN_CPU
#include "sort/cpu.clh"
#else
#include "sort/gpu.clh"
#endif

/* autograd/queue.c - a heap, largest number first. */
#include "autograd/queue.h"

#include "base/memory.h"

kn_status kn_queue_push(kn_queue *q, kn_node *node)
{
    if (node->queued)
        return KN_OK;
    KN_TRY(KN_GROW(q->items, q->count, q->capacity));
    atomic_fetch_add(&node->references, 1);
    node->queued = true;
    int at = q->count++;
    while (at > 0 && q->items[(at - 1) / 2]->number < node->number) {
        q->items[at] = q->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    q->items[at] = node;
    return KN_OK;
}

kn_node *kn_queue_pop(kn_queue *q)
{
    if (q->count == 0)
        return NULL;
    kn_node *top = q->items[0], *moved = q->items[--q->count];
    int at = 0;
    for (int child = 1; child < q->count; child = 2 * at + 1) {
        if (child + 1 < q->count && q->items[child + 1]->number > q->items[child]->number)
            child++;
        if (q->items[child]->number <= moved->number)
            break;
        q->items[at] = q->items[child];
        at = child;
    }
    q->items[at] = moved;
    top->queued = false;
    return top;
}

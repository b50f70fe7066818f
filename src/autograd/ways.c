/* autograd/ways.c - which nodes lie between the roots of a pass and the outputs whose gradients are wanted. */
#include <stdlib.h>

#include "autograd/engine.h"
#include "base/memory.h"

static kn_status visit(kn_ways *ways, kn_node *node)
{
    if (!node || node->way != KN_WAY_UNKNOWN)
        return KN_OK;
    if (ways->count == ways->capacity) {
        const int capacity = ways->capacity ? 2 * ways->capacity : 64;
        kn_node **nodes = kn_realloc(ways->nodes, (size_t)capacity * sizeof *nodes);
        if (!nodes)
            return KN_ERR_MEMORY;
        ways->nodes = nodes;
        ways->capacity = capacity;
    }
    atomic_fetch_add(&node->references, 1);
    node->way = KN_WAY_NOWHERE;
    ways->nodes[ways->count++] = node;
    return KN_OK;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t p = (*(kn_node *const *)a)->number, q = (*(kn_node *const *)b)->number;
    return p < q ? -1 : p > q;
}

static bool is_wanted(const kn_pass *pass, const kn_node *node)
{
    for (int i = 0; i < pass->num_wanted; i++)
        if (pass->wanted[i].node == node)
            return true;
    return false;
}

/* Inputs have smaller numbers than results, leaves the smallest: when a node is reached, its edges are already
 * marked. */
static void mark(const kn_ways *ways, const kn_pass *pass)
{
    for (int i = 0; i < ways->count; i++) {
        kn_node *node = ways->nodes[i];
        for (int k = 0; k < node->num_inputs; k++)
            if (node->edges[k].node && node->edges[k].node->way != KN_WAY_NOWHERE)
                node->way = KN_WAY_THROUGH;
        if (node->way == KN_WAY_NOWHERE && is_wanted(pass, node))
            node->way = KN_WAY_END;
    }
}

kn_status kn_ways_find(kn_ways *ways, const kn_pass *pass, const kn_pass_end *starts, int num_starts)
{
    for (int i = 0; i < num_starts; i++)
        KN_TRY(visit(ways, starts[i].node));
    for (int at = 0; at < ways->count; at++) {
        const kn_node *node = ways->nodes[at];
        for (int i = 0; i < node->num_inputs; i++)
            KN_TRY(visit(ways, node->edges[i].node));
    }
    if (ways->count > 0)
        qsort(ways->nodes, (size_t)ways->count, sizeof(kn_node *), by_number);
    mark(ways, pass);
    return KN_OK;
}

void kn_ways_forget(kn_ways *ways)
{
    for (int i = 0; i < ways->count; i++)
        ways->nodes[i]->way = KN_WAY_UNKNOWN;
    for (int i = 0; i < ways->count; i++)
        kn_node_release(ways->nodes[i]);
    kn_free(ways->nodes);
}

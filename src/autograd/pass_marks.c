/* autograd/pass_marks.c - which nodes lie between the roots of a pass and the outputs whose gradients are wanted. */
#include <stdlib.h>

#include "autograd/engine.h"
#include "base/memory.h"

static kn_status visit(kn_pass_marks *marks, kn_node *node)
{
    if (!node || node->mark == KN_MARK_VISITED)
        return KN_OK;
    KN_TRY(KN_GROW(marks->nodes, marks->count, marks->capacity));
    atomic_fetch_add(&node->references, 1);
    marks->nodes[marks->count++] = (kn_marked_node){node, node->mark};
    node->mark = KN_MARK_VISITED;
    return KN_OK;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t p = ((const kn_marked_node *)a)->node->number, q = ((const kn_marked_node *)b)->node->number;
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
static void mark(const kn_pass_marks *marks, const kn_pass *pass)
{
    for (int i = 0; i < marks->count; i++) {
        kn_node *node = marks->nodes[i].node;
        node->mark = KN_MARK_OFF_PATH;
        for (int k = 0; k < node->num_inputs; k++)
            if (node->edges[k].node && node->edges[k].node->mark != KN_MARK_OFF_PATH)
                node->mark = KN_MARK_ON_PATH;
        if (node->mark == KN_MARK_OFF_PATH && is_wanted(pass, node))
            node->mark = KN_MARK_WANTED;
    }
}

kn_status kn_pass_marks_set(kn_pass_marks *marks, const kn_pass *pass, const kn_pass_endpoint *roots, int num_roots)
{
    for (int i = 0; i < num_roots; i++)
        KN_TRY(visit(marks, roots[i].node));
    for (int at = 0; at < marks->count; at++) {
        const kn_node *node = marks->nodes[at].node;
        for (int i = 0; i < node->num_inputs; i++)
            KN_TRY(visit(marks, node->edges[i].node));
    }
    if (marks->count > 0)
        qsort(marks->nodes, (size_t)marks->count, sizeof *marks->nodes, by_number);
    mark(marks, pass);
    return KN_OK;
}

void kn_pass_marks_clear(kn_pass_marks *marks)
{
    for (int i = 0; i < marks->count; i++)
        marks->nodes[i].node->mark = marks->nodes[i].outside;
    for (int i = 0; i < marks->count; i++)
        kn_node_release(marks->nodes[i].node);
    kn_free(marks->nodes);
}

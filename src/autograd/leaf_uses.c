/* autograd/leaf_uses.c - when is a leaf's gradient complete? Leaves have the smallest number, so that they would come
 * last in a pass. But their gradients are wanted early: those of the last layers are sent to other ranks while the pass
 * goes on (dist/reducer.c), and freed early. So the edges that lead to a leaf are counted, and those of nodes that the
 * pass has run. Nodes that the pass does not reach keep a leaf waiting until its turn comes by number: that is late,
 * but right. */
#include "autograd/tape.h"

static bool is_leaf(const kn_node *node) { return node && !node->op; }

void kn_leaf_add_use(kn_node *leaf)
{
    if (is_leaf(leaf))
        atomic_fetch_add(&leaf->uses, 1);
}

void kn_leaf_drop_use(kn_node *leaf, kn_node *node)
{
    if (!is_leaf(leaf))
        return;
    atomic_fetch_sub(&leaf->uses, 1);
    const uint64_t pass = atomic_load(&node->pass);
    if (pass && pass == atomic_load(&leaf->pass))
        atomic_fetch_sub(&leaf->ran, 1);
}

void kn_leaf_note_run(kn_node *node, uint64_t pass)
{
    if (atomic_exchange(&node->pass, pass) == pass)
        return;
    for (int i = 0; i < node->num_inputs; i++) {
        kn_node *leaf = node->edges[i].node;
        if (!is_leaf(leaf))
            continue;
        if (atomic_exchange(&leaf->pass, pass) != pass)
            atomic_store(&leaf->ran, 0);
        atomic_fetch_add(&leaf->ran, 1);
    }
}

bool kn_leaf_is_complete(kn_node *leaf, uint64_t pass)
{
    return is_leaf(leaf) && atomic_load(&leaf->pass) == pass && atomic_load(&leaf->ran) == atomic_load(&leaf->uses);
}

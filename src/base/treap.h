/* base/treap.h - a search tree whose nodes lie inside what is searched for.
 *
 * A treap: a search tree by the caller's order, and a heap by priorities that are hashes of keys. So its shape depends
 * on what is in it alone, and its depth stays near 2 ln n without rebalancing. No two nodes are equal in the order. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kn_treap_node {
    struct kn_treap_node *left, *right;
    uint32_t priority;
} kn_treap_node;

/* The struct that holds a node: KN_TREAP_OF(kn_buffer, place, node). */
#define KN_TREAP_OF(type, field, node) ((type *)(void *)((char *)(uintptr_t)(node)-offsetof(type, field)))

typedef bool (*kn_treap_order)(const kn_treap_node *a, const kn_treap_node *b); /* does a come before b? */

/* A finaliser of 64-bit hashes (the multiply-xorshift of MurmurHash3). */
static inline uint32_t kn_treap_priority(uint64_t key)
{
    key = (key ^ (key >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    key = (key ^ (key >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (uint32_t)(key >> 32);
}

/* Splits the tree into what comes before `node` and what comes after. */
static inline void kn_treap_split(kn_treap_node *tree, const kn_treap_node *node, kn_treap_node **low,
                                  kn_treap_node **high, kn_treap_order comes_before)
{
    while (tree) {
        if (comes_before(tree, node)) {
            *low = tree;
            low = &tree->right;
            tree = tree->right;
        } else {
            *high = tree;
            high = &tree->left;
            tree = tree->left;
        }
    }
    *low = *high = NULL;
}

/* Inline, so that the order is compiled into each caller's. */
static inline void kn_treap_insert(kn_treap_node **root, kn_treap_node *node, uint64_t key, kn_treap_order comes_before)
{
    node->priority = kn_treap_priority(key);
    while (*root && (*root)->priority >= node->priority)
        root = comes_before(*root, node) ? &(*root)->right : &(*root)->left;
    kn_treap_split(*root, node, &node->left, &node->right, comes_before);
    *root = node;
}

static inline void kn_treap_remove(kn_treap_node **root, kn_treap_node *node, kn_treap_order comes_before)
{
    while (*root != node)
        root = comes_before(*root, node) ? &(*root)->right : &(*root)->left;
    kn_treap_node *left = node->left, *right = node->right;
    while (left && right) {
        kn_treap_node **upper = left->priority >= right->priority ? &left : &right;
        *root = *upper;
        root = upper == &left ? &left->right : &right->left;
        *upper = *root;
    }
    *root = left ? left : right;
    node->left = node->right = NULL;
}

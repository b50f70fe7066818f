/* ops/rows.h - the tables of rows, one per family of operations: X(conv) for rows_conv.c. */
#pragma once

#include "support/op_row.h"

/* clang-format off */
#define OP_TABLES(X) \
    X(activation) \
    X(alignment) \
    X(attention) \
    X(binary) \
    X(composed) \
    X(conv) \
    X(conv2d) \
    X(cumulative) \
    X(elementwise) \
    X(index) \
    X(linalg) \
    X(loss) \
    X(matmul) \
    X(norm) \
    X(pool) \
    X(pool2d) \
    X(products) \
    X(reduction) \
    X(rnn) \
    X(shape) \
    X(sort) \
    X(unary) \
    X(vision)
/* clang-format on */

#define OP_TABLE_DECLARED(family) extern const op_table family##_rows;
OP_TABLES(OP_TABLE_DECLARED)

/* Builds a row whose parameters are the operator and its parameters: "elu alpha=1.5". */
kn_tensor *apply_named(kn_tensor *const *x, const void *call);

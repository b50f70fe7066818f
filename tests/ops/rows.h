/* ops/rows.h - the tables of rows, one per family of operations. */
#pragma once

#include "support/op_row.h"

extern const op_table unary_rows, binary_rows, reduction_rows, matmul_rows, shape_rows;
extern const op_table conv2d_rows, conv_rows, pool2d_rows, pool_rows, activation_rows, loss_rows, norm_rows,
    alignment_rows;

/* test_ops.c - every operation on every device: see support/op_row.h for what is checked and how to run one case. */
#include "ops/rows.h"

int main(int argc, char **argv)
{
    static const op_table *const tables[] = {
        &unary_rows,  &binary_rows, &reduction_rows,  &matmul_rows, &shape_rows, &conv2d_rows,    &conv_rows,
        &pool2d_rows, &pool_rows,   &activation_rows, &loss_rows,   &norm_rows,  &alignment_rows, NULL};
    return op_test_main(argc, argv, tables);
}

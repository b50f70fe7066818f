/* test_ops.c - every operation on every device: see support/op_row.h for what is checked and how to run one case. */
#include "ops/rows.h"

int main(int argc, char **argv)
{
#define ADDRESS(family) &family##_rows,
    static const op_table *const tables[] = {OP_TABLES(ADDRESS) NULL};
    return op_test_main(argc, argv, tables);
}

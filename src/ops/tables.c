/* ops/tables.c - the list of all tables of implementations that KOINE_IMPL and the tests can name. */
#include <string.h>

#include "ops/conv/common/conv.h"
#include "ops/dispatch/choice.h"
#include "ops/gemm/gemm.h"
#include "ops/gemm/matmul.h"

static const kn_implementation_table *const tables[] = {
    &kn_gemm_implementations,
    &kn_matmul_f16_implementations,
    &kn_conv_implementations,
    &kn_conv_backward_data_implementations,
    &kn_conv_backward_weights_implementations,
};
enum { NUM_TABLES = sizeof tables / sizeof tables[0] };

const kn_implementation_table *kn_implementation_table_at(int index)
{
    return index >= 0 && index < NUM_TABLES ? tables[index] : NULL;
}

const kn_implementation_table *kn_implementation_table_find(const char *operation)
{
    for (int i = 0; i < NUM_TABLES; i++)
        if (strcmp(tables[i]->operation, operation) == 0)
            return tables[i];
    return NULL;
}

/* ops/tables.c - the list of all tables of implementations that KOINE_IMPL and the tests can name. */
#include "base/load.h"
#include "ops/attention/attention.h"
#include "ops/conv/common/conv.h"
#include "ops/dispatch/choice.h"
#include "ops/gemm/gemm.h"
#include "ops/gemm/matmul.h"
#include "ops/rnn/rnn.h"

static const kn_implementation_table *const tables[] = {
    &kn_attention_implementations,
    &kn_attention_backward_implementations,
    &kn_gemm_implementations,
    &kn_matmul_f16_implementations,
    &kn_conv_implementations[KN_CONV_FORWARD],
    &kn_conv_implementations[KN_CONV_DATA],
    &kn_conv_implementations[KN_CONV_WEIGHTS],
    &kn_rnn_implementations,
    NULL,
};

KN_AT_LOAD register_tables(void) { kn_implementation_tables = tables; }

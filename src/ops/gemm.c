/* ops/gemm.c - the table of matrix multiplications, and what its rows share. */
#include "ops/gemm.h"

static const kn_implementation rows[] = {
    {"skinny", kn_gemm_accepts_skinny, kn_gemm_skinny},    {"split", kn_gemm_accepts_split, kn_gemm_split},
    {"direct", kn_gemm_accepts_direct, kn_gemm_direct},    {"packed", kn_gemm_accepts_cpu, kn_gemm_packed},
    {"clblast", kn_gemm_accepts_clblast, kn_gemm_clblast}, {"reference", NULL, kn_gemm_reference},
};
static const kn_implementation_table table = {"gemm", rows, (int)(sizeof rows / sizeof rows[0])};

kn_gemm_layout kn_gemm_operand_layout(const kn_gemm_operand *operand)
{
    return (kn_gemm_layout){
        .row_stride = operand->transposed ? 1 : operand->ld,
        .col_stride = operand->transposed ? operand->ld : 1,
        .batch_stride = operand->batch_stride,
    };
}

kn_status kn_gemm(kn_stream *stream, const kn_gemm_problem *problem)
{
    const kn_gemm_params *p = &problem->product;
    if (p->m == 0 || p->n == 0 || p->batch == 0)
        return KN_OK;
    return kn_run_implementation(&table, stream, problem);
}

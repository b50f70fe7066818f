/* ops/gemm.c - the table of matrix multiplications, and what its rows share. */
#include "ops/gemm.h"

static const kn_implementation rows[] = {
    {"skinny", kn_gemm_supports_skinny, kn_gemm_prefers_skinny, kn_gemm_skinny},
    {"split", kn_gemm_supports_split, kn_gemm_prefers_split, kn_gemm_split},
    {"dots", kn_gemm_supports_dots, kn_gemm_prefers_dots, kn_gemm_dots},
    {"direct", NULL, kn_gemm_prefers_direct, kn_gemm_direct},
    {"packed", NULL, kn_gemm_prefers_packed, kn_gemm_packed},
    {"clblast", kn_gemm_supports_clblast, NULL, kn_gemm_clblast},
    {"reference", NULL, NULL, kn_gemm_reference},
};
const kn_implementation_table kn_gemm_implementations = KN_IMPLEMENTATION_TABLE("gemm", rows);

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
    return kn_run_implementation(&kn_gemm_implementations, stream, problem);
}

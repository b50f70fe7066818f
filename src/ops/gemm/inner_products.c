/* ops/gemm/inner_products.c - batches of a short row times a column, on CPU devices: sums of products of neighbours. To
 * prepare a product of matrices takes longer than one of these. */
#include "loops/rows.h"
#include "ops/gemm/gemm.h"

enum { LONGEST = 256, FEWEST = 64 };

static kn_rows_code code = {
    .name = "inner_products", .inputs = "ab", KN_SUM_OF("a * b"), .numbers = "p", .values = {"p * s"}};

/* Rows and columns must be contiguous, those of both operands equally far apart, and the results neighbours. */
bool kn_gemm_supports_inner(const kn_limits *limits, const void *problem_)
{
    const kn_gemm_problem *problem = problem_;
    const kn_gemm_params *p = &problem->product;
    const bool is_plain = p->beta == 0 && !problem->bias && !problem->activation && !problem->sums;
    (void)limits;
    return p->m == 1 && p->n == 1 && is_plain && (!p->a.transposed || p->a.ld == 1) &&
           (p->b.transposed || p->b.ld == 1) && p->a.batch_stride == p->b.batch_stride &&
           (p->c.batch_stride == 1 || p->batch == 1);
}

bool kn_gemm_prefers_inner(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params *p = &((const kn_gemm_problem *)problem)->product;
    return limits->is_cpu && p->k <= LONGEST && p->batch >= FEWEST;
}

static kn_rows_operand operand_of(const kn_gemm_operand *x, kn_dtype dtype)
{
    return (kn_rows_operand){.buffer = x->buffer, .offset = x->offset, .dtype = dtype};
}

kn_status kn_gemm_inner(kn_stream *stream, const void *problem)
{
    const kn_gemm_params *p = &((const kn_gemm_problem *)problem)->product;
    const kn_dtype dtype = p->f64 ? KN_F64 : KN_F32;
    return kn_rows_run(stream, &(const kn_rows_problem){.code = &code,
                                                        .operation = "gemm",
                                                        .compute = dtype,
                                                        .outer = p->batch,
                                                        .n = p->k,
                                                        .inner = 1,
                                                        .has_strides = true,
                                                        .pitch = p->a.batch_stride,
                                                        .step = 1,
                                                        .inputs = {operand_of(&p->a, dtype), operand_of(&p->b, dtype)},
                                                        .outputs = {operand_of(&p->c, dtype)},
                                                        .numbers = {p->alpha}});
}

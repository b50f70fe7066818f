/* ops/gemm/split.c - matrix products with a small result and a long sum (a layer's weight gradient over a large batch):
 * k is split into parts, which form the batch of one product, and the parts are added in order. Otherwise the few tiles
 * of the result would use few cores. */
#include <string.h>

#include "ops/gemm/blocked.h"
#include "ops/gemm/gemm.h"

enum { FEW_RESULTS = 16 * 1024 }; /* elements of C: above this, its tiles are enough work */
enum { FEW_RESULTS_OF_GPUS = 64 * 64 * 64 };
enum { LONG_SUM = 8192 };
enum { CHUNK = 64 }; /* elements of C per work-item of the total are a multiple of this */
/* Fixed, so that the order of sums does not depend on the number of cores. */
enum { MIN_PART = 1024, MAX_PARTS = 64 };

typedef struct split {
    int64_t part, whole_parts, rest; /* k = whole_parts * part + rest */
} split;

static split choose_split(int64_t k)
{
    int64_t part = (k + MAX_PARTS - 1) / MAX_PARTS;
    part = part < MIN_PART ? MIN_PART : part;
    part = part < (k + 1) / 2 ? part : (k + 1) / 2; /* two parts where one would suffice: only when forced */
    return (split){part, k / part, k % part};
}

/* The parts form the batch, so the product must not have one. */
bool kn_gemm_supports_split(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params *p = &((const kn_gemm_problem *)problem)->product;
    return p->batch == 1 && p->k > 0 && (limits->is_cpu || kn_gemm_supports_blocked(limits, problem));
}

bool kn_gemm_prefers_split(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params *p = &((const kn_gemm_problem *)problem)->product;
    return p->k >= LONG_SUM && p->m <= (limits->is_cpu ? FEW_RESULTS : FEW_RESULTS_OF_GPUS) / p->n &&
           (limits->is_cpu || kn_block_pays(limits, p->m, p->n));
}

/* `parts` products over `k` steps from step `first` on, into products[index]. */
static kn_status multiply(kn_stream *stream, const kn_gemm_params *whole, kn_buffer *products, int64_t first, int64_t k,
                          int64_t parts, int64_t index)
{
    int64_t a_step = whole->a.transposed ? whole->a.ld : 1, b_step = whole->b.transposed ? 1 : whole->b.ld;
    kn_gemm_problem problem = {.product = *whole};
    kn_gemm_params *p = &problem.product;
    p->k = k;
    p->batch = parts;
    p->alpha = 1;
    p->beta = 0;
    p->a.offset += first * a_step;
    p->b.offset += first * b_step;
    p->a.batch_stride = k * a_step;
    p->b.batch_stride = k * b_step;
    p->c = (kn_gemm_operand){products, index * p->m * p->n, p->n, p->m * p->n, false};
    return kn_device_limits(kn_stream_device(stream))->is_cpu ? kn_gemm_tiles(stream, &problem)
                                                              : kn_gemm_blocked(stream, &problem);
}

kn_status kn_gemm_total(kn_stream *stream, const kn_gemm_problem *problem, kn_buffer *products, int64_t count,
                        bool bf16)
{
    const kn_gemm_params *p = &problem->product;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    char options[KN_GEMM_OPTIONS];
    int64_t results = p->m * p->n;
    int64_t chunk = limits->is_cpu ? (results / (32 * limits->compute_units) / CHUNK + 1) * CHUNK
                                   : kn_limits_vector_width(limits, p->f64);
    const int64_t size = bf16 ? KN_GEMM_HALF : kn_gemm_element(p);
    const size_t group = limits->is_cpu ? 1 : 64, items = (size_t)kn_div_up(results, chunk);
    kn_gemm_finish finish;
    kn_gemm_vector_options(options, limits, p->f64);
    strcat(options, bf16 ? " -DBFLOAT" : "");
    return kn_run(stream, .source = "gemm/total.cl", .kernel = "gemm_total", .operation = "gemm", .options = options,
                  .dims = 1, .global = {(items + group - 1) / group * group}, .local = {group},
                  KN_ARGS(kn_arg_buffer(products, 0), kn_gemm_sized_bias_arg(problem, size),
                          kn_gemm_sized_arg(&p->c, size), kn_arg_i64(p->m), kn_arg_i64(p->n), kn_arg_i64(count),
                          kn_arg_i64(p->c.ld), kn_arg_i64(chunk), kn_gemm_finish_arg(&finish, problem)));
}

kn_status kn_gemm_split(kn_stream *stream, const void *problem_)
{
    const kn_gemm_problem *problem = problem_;
    const kn_gemm_params *p = &problem->product;
    split s = choose_split(p->k);
    int64_t count = s.whole_parts + (s.rest > 0);
    kn_buffer *products = NULL;
    KN_TRY(kn_buffer_alloc(&products, stream, (size_t)(count * p->m * p->n * kn_gemm_element(p))));
    kn_status status = multiply(stream, p, products, 0, s.part, s.whole_parts, 0);
    if (status == KN_OK && s.rest > 0)
        status = multiply(stream, p, products, s.part * s.whole_parts, s.rest, 1, s.whole_parts);
    if (status == KN_OK)
        status = kn_gemm_total(stream, problem, products, count, false);
    kn_buffer_free(products);
    return status;
}

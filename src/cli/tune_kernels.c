/* cli/tune_kernels.c - tunes kernel parameters: each candidate is checked on a product of odd sizes, then timed. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/tune.h"
#include "ops/gemm/blocked.h"
#include "ops/gemm/gemm.h"
#include "ops/gemm/instructions.h"
#include "rt/clblast/parameters.h"
#include "tensor/tensor.h"

enum { RUNS = 3 };
static const double hopeless = 2, /* this many times slower than the best: one run is enough */
    margin = 0.97;                /* a candidate must beat the default by this factor */

/* Something to tune: candidates by index, of which 0 is the untuned default. */
typedef struct tunable tunable;
struct tunable {
    const char *label;    /* in the results table */
    const char *question; /* in the results file */
    bool f64;
    kn_block_arithmetic arithmetic;                                                                /* of blocks */
    const char *(*candidate)(const tunable *t, const kn_tuner *tuner, int index, char buffer[64]); /* NULL: the end */
    bool (*fits)(const tunable *t, const kn_tuner *tuner, int index, const char *name);
    kn_status (*use)(const tunable *t, kn_tuner *tuner, int index, const char *name);
    kn_status (*multiply)(kn_stream *stream, const kn_gemm_params *p);
    const int64_t *sizes; /* of the timed products, repeated so that all do equal work; 0-terminated */
    kn_clblast_kernel kernel;
};

/* --- products ----------------------------------------------------------------------------------------------------- */

typedef struct product {
    kn_tensor *a, *b, *c;
    kn_gemm_params params;
} product;

static kn_dtype dtype_of(const tunable *t) { return t->f64 ? KN_F64 : t->arithmetic == KN_BLOCK_F16 ? KN_F16 : KN_F32; }

static kn_tensor *random_matrix(const tunable *t, const kn_tuner *tuner, int64_t rows, int64_t columns)
{
    return kn_rand(KN_SHAPE(rows, columns), .dtype = dtype_of(t), .device = tuner->device);
}

static kn_status make_product(product *p, const tunable *t, const kn_tuner *tuner, int64_t m, int64_t n, int64_t k)
{
    *p = (product){.a = random_matrix(t, tuner, m, k),
                   .b = random_matrix(t, tuner, k, n),
                   .c = kn_zeros(KN_SHAPE(m, n), .dtype = dtype_of(t), .device = tuner->device)};
    if (!p->a || !p->b || !p->c)
        return kn_error_status();
    kn_tensor *const all[3] = {p->a, p->b, p->c};
    kn_gemm_operand *const operands[3] = {&p->params.a, &p->params.b, &p->params.c};
    const int64_t pitches[3] = {k, n, n};
    p->params.f64 = t->f64, p->params.m = m, p->params.n = n, p->params.k = k;
    p->params.batch = 1, p->params.alpha = 1;
    for (int i = 0; i < 3; i++)
        *operands[i] = (kn_gemm_operand){.buffer = all[i]->storage->buffer, .ld = pitches[i]};
    return KN_OK;
}

/* Elements are in [0, 1). A sum rounds k times, each time by up to half an ulp of at most k, and most of these errors
 * cancel: about k^1.5, with a margin. TF32 rounds the elements to 11 bits. A missing or extra term changes the sum by
 * 0.25 on average. */
static double bound_of(const tunable *t, int64_t k)
{
    const double root = sqrt((double)k);
    return t->arithmetic == KN_BLOCK_TF32 ? 4 * 4.9e-4 * root : 4 * (t->f64 ? 1.2e-16 : 6e-8) * (double)k * root;
}

static kn_status compare(const tunable *t, const product *p, const double *a, const double *b, const double *c)
{
    enum { SAMPLES = 4096 };
    const kn_gemm_params *g = &p->params;
    const double bound = bound_of(t, g->k);
    const int64_t elements = g->m * g->n, step = elements / SAMPLES > 0 ? elements / SAMPLES : 1;
    for (int64_t e = elements - 1; e >= 0; e -= step) {
        double sum = 0;
        for (int64_t l = 0; l < g->k; l++)
            sum += a[e / g->n * g->k + l] * b[l * g->n + e % g->n];
        if (!(fabs(c[e] - sum) <= bound))
            return kn_error_set(KN_ERR_DEVICE, "wrong result: element %lld, %lld is %.9g, expected %.9g",
                                (long long)(e / g->n), (long long)(e % g->n), c[e], sum);
    }
    return KN_OK;
}

/* Converted by the host: not every device has f64. */
static kn_status read_as_doubles(kn_tensor *t, double *numbers)
{
    kn_tensor *copy;
    KN_TRY(kn_tensor_cast(&copy, t, KN_F64, kn_device_host()));
    const kn_status status = kn_read(copy, numbers, (size_t)kn_numel(copy) * sizeof *numbers);
    kn_release(copy);
    return status;
}

/* A product slightly smaller than the timed one, so that it takes the same path, of sizes no tile divides. */
static kn_status check_with(const tunable *t, kn_tuner *tuner, int64_t m, int64_t n, int64_t k, double *numbers)
{
    double *a = numbers, *b = a + m * k, *c = b + k * n;
    product p;
    KN_SCOPE;
    KN_TRY(make_product(&p, t, tuner, m, n, k));
    KN_TRY(t->multiply(tuner->stream, &p.params));
    KN_TRY(read_as_doubles(p.a, a));
    KN_TRY(read_as_doubles(p.b, b));
    KN_TRY(read_as_doubles(p.c, c));
    return compare(t, &p, a, b, c);
}

static kn_status check(const tunable *t, kn_tuner *tuner, int64_t size)
{
    const int64_t m = size - 59, n = size - 27, k = size - 5;
    double *numbers = kn_malloc((size_t)(m * k + k * n + m * n) * sizeof *numbers);
    kn_status status = numbers ? check_with(t, tuner, m, n, k, numbers) : KN_ERR_MEMORY;
    kn_free(numbers);
    return status;
}

/* --- timing ------------------------------------------------------------------------------------------------------- */

/* Each size is repeated until it does as much work as the largest. */
static double flops_of(const tunable *t)
{
    int count = 0;
    while (t->sizes[count])
        count++;
    const double largest = (double)t->sizes[count - 1];
    return 2 * largest * largest * largest * count;
}

static kn_status time_size(double *seconds, const tunable *t, kn_tuner *tuner, int64_t size, int64_t largest,
                           double best)
{
    const int64_t repeats = largest / size * (largest / size) * (largest / size);
    double fastest = HUGE_VAL;
    product p;
    KN_SCOPE;
    KN_TRY(make_product(&p, t, tuner, size, size, size));
    KN_TRY(t->multiply(tuner->stream, &p.params));
    for (int run = 0; run < RUNS; run++) {
        KN_TRY(kn_synchronize(tuner->device));
        const double start = kn_clock_seconds();
        for (int64_t i = 0; i < repeats; i++)
            KN_TRY(t->multiply(tuner->stream, &p.params));
        KN_TRY(kn_synchronize(tuner->device));
        fastest = fmin(fastest, kn_clock_seconds() - start);
        if (fastest > hopeless * best)
            break;
    }
    *seconds += fastest;
    return KN_OK;
}

/* HUGE_VAL for a candidate that fails or is wrong, which is reported as progress. */
static double measure(const tunable *t, kn_tuner *tuner, int index, const char *name, double best)
{
    double seconds = 0;
    int last = 0;
    while (t->sizes[last + 1])
        last++;
    kn_status status = t->use(t, tuner, index, name);
    if (status == KN_OK)
        status = check(t, tuner, t->sizes[last]);
    for (int i = 0; i <= last && status == KN_OK; i++)
        status = time_size(&seconds, t, tuner, t->sizes[i], t->sizes[last], best);
    if (status == KN_OK) {
        kn_tune_print(tuner, "  %8.1f GFLOP/s  %s", flops_of(t) / seconds * 1e-9, name);
        return seconds;
    }
    kn_tune_print(tuner, "  skipped  %s: %s", name, kn_error_message());
    kn_error_clear();
    kn_stream_drain(tuner->stream); /* CLBlast's kernels may still be compiled: not while the process exits */
    return HUGE_VAL;
}

/* --- the search --------------------------------------------------------------------------------------------------- */

/* Continues where an earlier run stopped: candidates with a time are not timed again. */
static kn_status search(const tunable *t, kn_tuner *tuner, kn_tuning_result *result)
{
    char buffer[64];
    const char *name;
    for (int i = 0; (name = t->candidate(t, tuner, i, buffer)); i++) {
        if (kn_tuning_seconds(result, name) >= 0 || !t->fits(t, tuner, i, name))
            continue;
        if (kn_tune_should_stop(tuner))
            return KN_OK;
        const double best = result->choice ? kn_tuning_seconds(result, result->choice) : HUGE_VAL;
        KN_TRY(kn_tuning_add(result, name, measure(t, tuner, i, name, best), margin));
        if (result->choice)
            KN_TRY(kn_tune_keep(tuner, result));
    }
    result->complete = true;
    tuner->measured++;
    return result->choice ? kn_tune_keep(tuner, result) : KN_OK;
}

static void apply_choice(const tunable *t, kn_tuner *tuner, const char *choice)
{
    char buffer[64];
    const char *name;
    for (int i = 0; choice && (name = t->candidate(t, tuner, i, buffer)); i++)
        if (strcmp(name, choice) == 0 && t->use(t, tuner, i, name) == KN_ERR_STATE) {
            tuner->needs_new_process = true;
            kn_error_clear();
        }
}

static kn_status tune(const tunable *t, kn_tuner *tuner)
{
    kn_tuning_result result;
    const bool known = kn_tuning_find(&result, tuner->device, t->question);
    kn_status status = KN_OK;
    if (!known)
        result.question = kn_strdup(t->question);
    if (!result.question)
        return KN_ERR_MEMORY;
    if (known && result.complete) {
        tuner->kept++;
        kn_tune_print(tuner, "%s: known", t->label);
    } else if (!kn_tune_should_stop(tuner)) {
        kn_tune_print(tuner, "%s%s", t->label, known ? ": resuming" : "");
        status = search(t, tuner, &result);
    }
    if (status == KN_OK && result.choice && (known || result.num_figures > 0))
        status = kn_tune_report(tuner, t->label, &result, flops_of(t));
    if (status == KN_OK)
        apply_choice(t, tuner, result.choice);
    kn_tuning_free(&result);
    return status;
}

/* --- CLBlast ------------------------------------------------------------------------------------------------------ */

/* The default set first, whatever its index in the list. */
static const char *clblast_candidate(const tunable *t, const kn_tuner *tuner, int index, char buffer[64])
{
    const char *usual = kn_clblast_default(tuner->limits, t->kernel), *name;
    (void)buffer;
    if (index == 0)
        return usual;
    for (int i = 0; (name = kn_clblast_candidate(t->kernel, i)); i++)
        if (strcmp(name, usual) != 0 && --index == 0)
            return name;
    return NULL;
}

/* Large work-groups are slow to compile and slow to run on CPU devices; single work-items are on other devices. */
static bool clblast_fits(const tunable *t, const kn_tuner *tuner, int index, const char *name)
{
    const size_t items = kn_clblast_candidate_items(name);
    const bool suits = items == 0 || (items == 1) == tuner->limits->is_cpu;
    return index == 0 || (suits && kn_clblast_candidate_fits(name, tuner->limits, t->f64));
}

static kn_status clblast_use(const tunable *t, kn_tuner *tuner, int index, const char *name)
{
    (void)index;
    return kn_clblast_use(tuner->device, t->kernel, t->f64, name);
}

/* The direct kernel computes the small products and the other one the large ones; the threshold between them is tuned
 * last. */
static kn_status tune_clblast_in(kn_tuner *tuner, bool f64)
{
    static const int64_t large[] = {2048, 0}, small[] = {512, 0}, both[] = {128, 256, 512, 1024, 2048, 0},
                         of_cpus[] = {512, 0};
    static const char *const labels[2][KN_CLBLAST_KERNELS] = {
        {"clblast Xgemm f32", "clblast XgemmDirect f32", "clblast threshold f32"},
        {"clblast Xgemm f64", "clblast XgemmDirect f64", "clblast threshold f64"}};
    const int64_t *const sizes[KN_CLBLAST_KERNELS] = {large, small, both};
    for (int kernel = 0; kernel < KN_CLBLAST_KERNELS; kernel++) {
        char question[KN_CLBLAST_QUESTION];
        const tunable t = {.label = labels[f64][kernel],
                           .question = kn_clblast_question(question, kernel, f64),
                           .f64 = f64,
                           .candidate = clblast_candidate,
                           .fits = clblast_fits,
                           .use = clblast_use,
                           .multiply = kn_clblast_gemm,
                           .sizes = tuner->limits->is_cpu ? of_cpus : sizes[kernel],
                           .kernel = kernel};
        if (tuner->limits->is_cpu && kernel != KN_CLBLAST_GEMM)
            continue; /* see kn_clblast_default */
        KN_TRY(tune(&t, tuner));
    }
    return KN_OK;
}

kn_status kn_tune_clblast(kn_tuner *tuner)
{
    KN_TRY(tune_clblast_in(tuner, false));
    return tuner->limits->has_f64 ? tune_clblast_in(tuner, true) : KN_OK;
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

static const char *block_candidate(const tunable *t, const kn_tuner *tuner, int index, char buffer[64])
{
    (void)t, (void)tuner;
    const kn_block_shape *shape = kn_block_shape_at(index);
    return shape ? kn_block_name(buffer, shape) : NULL;
}

static bool block_fits(const tunable *t, const kn_tuner *tuner, int index, const char *name)
{
    (void)name;
    return kn_block_fits(kn_block_shape_at(index), tuner->limits, t->arithmetic);
}

static kn_status block_use(const tunable *t, kn_tuner *tuner, int index, const char *name)
{
    (void)t, (void)tuner, (void)name;
    kn_block_force(kn_block_shape_at(index));
    return KN_OK;
}

static kn_status multiply_in_blocks(kn_stream *stream, const kn_gemm_params *p)
{
    return kn_gemm_blocked(stream, &(kn_gemm_problem){.product = *p});
}

static kn_status multiply_in_tf32(kn_stream *stream, const kn_gemm_params *p)
{
    return kn_gemm_tensor(stream, &(kn_gemm_problem){.product = *p});
}

static kn_status multiply_in_f16(kn_stream *stream, const kn_gemm_params *p)
{
    return kn_gemm_halves(stream, &(kn_gemm_problem){.product = *p});
}

static bool has_arithmetic(const kn_tuner *tuner, kn_block_arithmetic arithmetic)
{
    switch (arithmetic) {
    case KN_BLOCK_F64:
        return tuner->limits->has_f64;
    case KN_BLOCK_TF32:
        return kn_choose_block(tuner->limits, arithmetic, 1, 1, 1) && kn_tensor_cores_work(tuner->stream);
    case KN_BLOCK_F16:
        return kn_choose_block(tuner->limits, arithmetic, 1, 1, 1) && kn_tensor_cores_work_in_f16(tuner->stream);
    default:
        return true;
    }
}

kn_status kn_tune_blocks(kn_tuner *tuner)
{
    static const int64_t large[] = {2048, 0}, of_cpus[] = {256, 0};
    static const char *const labels[] = {"blocked f32", "blocked f64", "blocked TF32", "blocked f16"};
    static kn_status (*const multiply[])(kn_stream *, const kn_gemm_params *) = {multiply_in_blocks, multiply_in_blocks,
                                                                                 multiply_in_tf32, multiply_in_f16};
    kn_status status = KN_OK;
    for (int i = KN_BLOCK_F32; i <= KN_BLOCK_F16 && status == KN_OK; i++) {
        const kn_block_arithmetic arithmetic = (kn_block_arithmetic)i;
        const tunable t = {.label = labels[i],
                           .question = kn_block_question(arithmetic),
                           .f64 = arithmetic == KN_BLOCK_F64,
                           .arithmetic = arithmetic,
                           .candidate = block_candidate,
                           .fits = block_fits,
                           .use = block_use,
                           .multiply = multiply[i],
                           .sizes = tuner->limits->is_cpu ? of_cpus : large};
        if (!has_arithmetic(tuner, arithmetic))
            continue;
        status = tune(&t, tuner);
        kn_block_force(NULL);
    }
    return status;
}

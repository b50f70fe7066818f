/* test_gemm.c - every implementation of the table "gemm" on features of kn_gemm that tensors rarely use: alpha, beta, a
 * bias together with beta, an activation, padded leading dimensions, offsets, a repeated matrix, and elements of C that
 * the product must not touch. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

#include "ops/gemm/gemm.h"
#include "support/as_gpu.h"
#include "support/values.h"
#include "tensor/tensor.h"

/* Fewer unless KOINE_TEST_FULL is set. */
enum { MAX_CASES = 150, FEW_CASES = 60, MAX_DRAWS = 3 };
static int num_cases(void) { return (test_full() ? MAX_CASES : FEW_CASES) / next_size(); }

/* One matrix: its elements on the host, and the same on the device. */
typedef struct matrix {
    kn_gemm_operand operand;
    double *values;
    int64_t count;
    int64_t first; /* element at which the matrix starts */
    kn_tensor *tensor;
} matrix;

typedef struct gemm_case {
    kn_gemm_problem problem;
    matrix a, b, c, bias;
} gemm_case;

static int64_t draw(test_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(test_random_next(random) % (uint64_t)(high - low + 1));
}

/* Copies the elements to the device. */
static void upload(matrix *x, bool f64)
{
    x->tensor = tensor_of_doubles(x->values, 1, &x->count, f64 ? KN_F64 : KN_F32, false);
    CHECK_TENSOR(x->tensor);
    x->operand.buffer = x->tensor->storage->buffer;
    x->operand.offset = x->tensor->offset + x->first;
}

/* Dense matrices have nothing between their rows, and nothing between one and the next. */
typedef enum gaps { DENSE, SPACED, REPEATED } gaps;

static matrix draw_matrix(test_random *random, int64_t rows, int64_t columns, int64_t batch, bool transposed,
                          gaps between)
{
    const int64_t has_gaps = between != DENSE;
    int64_t stored_rows = transposed ? columns : rows, stored_columns = transposed ? rows : columns;
    matrix x = {.first = draw(random, 0, 5)};
    x.operand.transposed = transposed;
    x.operand.ld = stored_columns + has_gaps * draw(random, 0, 1) * draw(random, 0, 7);
    x.operand.ld = x.operand.ld < 1 ? 1 : x.operand.ld;
    x.operand.batch_stride = between == REPEATED ? 0 : stored_rows * x.operand.ld + has_gaps * draw(random, 0, 3);
    x.count = x.first + (batch - 1) * x.operand.batch_stride + stored_rows * x.operand.ld + 7;
    x.values = malloc((size_t)x.count * sizeof *x.values);
    assert_non_null(x.values);
    for (int64_t i = 0; i < x.count; i++)
        x.values[i] = test_random_uniform(random, -1, 1);
    return x;
}

static int64_t element_of(const matrix *x, int64_t batch, int64_t row, int64_t column)
{
    const kn_gemm_operand *o = &x->operand;
    return x->first + batch * o->batch_stride + (o->transposed ? column * o->ld + row : row * o->ld + column);
}

/* Sizes from 1 on, often one of them 1, sometimes one large; k may be 0. Sometimes rows times columns. */
static void draw_sizes(test_random *random, int64_t size[3])
{
    size[0] = draw(random, 1, 40);
    size[1] = draw(random, 1, 70);
    size[2] = draw(random, 0, 50);
    if (draw(random, 0, 1))
        size[draw(random, 0, 2)] = 1;
    if (draw(random, 0, 3) == 0)
        size[draw(random, 0, 2)] = draw(random, 100, 1100);
    if (draw(random, 0, 5) == 0)
        size[0] = size[1] = 1;
}

/* Around block boundaries of k, rows, panels and their groups, and columns; strides of 4 KiB; few long sums, and long
 * rows and columns of short ones. */
static const int64_t large_sizes[][3] = {
    {37, 1000, 1100}, {300, 31, 700}, {131, 257, 1024}, {1, 4099, 203}, {4099, 1, 203}, {523, 33, 17}, {131, 1024, 300},
    {37, 2100, 260},  {900, 70, 520}, {1, 7, 5003},     {13, 1, 4999},  {3, 8, 4100},   {5, 6, 8200},  {2, 1, 70001},
    {2003, 1, 11},    {1, 2003, 19},  {1, 70001, 3},    {70001, 1, 4},  {1, 1500, 9},   {1500, 1, 30}};
enum { LARGE_SIZES = sizeof large_sizes / sizeof large_sizes[0] };

static gaps draw_gaps(test_random *random) { return draw(random, 0, 3) == 0 ? REPEATED : SPACED; }

/* Of rows times columns most are plain and dense, and many. */
static gemm_case draw_case(test_random *random, bool f64, const int64_t size[3])
{
    kn_gemm_params p = {.f64 = f64, .m = size[0], .n = size[1], .k = size[2], .alpha = 1};
    const bool is_dense = p.m == 1 && p.n == 1 && draw(random, 0, 3) > 0;
    p.batch = draw(random, 0, 2) == 0 && size[0] * size[1] < 40000 ? draw(random, 2, is_dense ? 90 : 4) : 1;
    p.alpha = draw(random, 0, 1) ? 1 : test_random_uniform(random, -2, 2);
    p.beta = is_dense || draw(random, 0, 1) ? 0 : test_random_uniform(random, -2, 2);
    gemm_case g = {.problem = {.product = p}};
    g.a = draw_matrix(random, p.m, p.k, p.batch, draw(random, 0, 1), is_dense ? DENSE : draw_gaps(random));
    g.b = draw_matrix(random, p.k, p.n, p.batch, draw(random, 0, 1), is_dense ? DENSE : draw_gaps(random));
    g.c = draw_matrix(random, p.m, p.n, p.batch, false, is_dense ? DENSE : SPACED);
    g.bias = draw_matrix(random, 1, p.n, 1, false, SPACED);
    /* C is not read if beta is 0: it may hold anything. */
    for (int64_t i = 0; p.beta == 0 && i < p.batch * p.m * p.n; i++)
        g.c.values[element_of(&g.c, i / p.n / p.m, i / p.n % p.m, i % p.n)] = NAN;
    upload(&g.a, f64);
    upload(&g.b, f64);
    upload(&g.bias, f64);
    if (!is_dense && draw(random, 0, 1)) {
        g.problem.bias = g.bias.operand.buffer;
        g.problem.bias_offset = g.bias.operand.offset;
    }
    g.problem.activation =
        is_dense ? KN_ACTIVATION_NONE : (kn_activation)((p.m + p.n + p.k) % (KN_ACTIVATION_RELU6 + 1));
    g.problem.product.a = g.a.operand;
    g.problem.product.b = g.b.operand;
    return g;
}

/* The expected contents of C's whole buffer; freed with free(). */
static double *expect(const gemm_case *g)
{
    const kn_gemm_params *p = &g->problem.product;
    double *right = malloc((size_t)g->c.count * sizeof *right);
    assert_non_null(right);
    for (int64_t i = 0; i < g->c.count; i++)
        right[i] = g->c.values[i];
    for (int64_t i = 0; i < p->batch * p->m * p->n; i++) {
        int64_t column = i % p->n, row = i / p->n % p->m, batch = i / p->n / p->m;
        double sum = 0, *target = &right[element_of(&g->c, batch, row, column)];
        for (int64_t j = 0; j < p->k; j++)
            sum += g->a.values[element_of(&g->a, batch, row, j)] * g->b.values[element_of(&g->b, batch, j, column)];
        *target = p->alpha * sum + (p->beta != 0 ? p->beta * *target : 0);
        if (g->problem.bias)
            *target += g->bias.values[g->bias.first + column];
        *target = kn_clamp_value(kn_bounds_of(g->problem.activation), *target);
    }
    return right;
}

/* The magnitude of the sums. With cancellation the absolute error is the same, so the tolerance is relative to this,
 * not to the result. */
static double largest_magnitude(const double *values, int64_t count)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, isfinite(values[i]) ? fabs(values[i]) : 0);
    return largest;
}

static void check_implementation(gemm_case *g, const double *right, const char *name, int number)
{
    const kn_gemm_params *p = &g->problem.product;
    char message[400];
    upload(&g->c, p->f64); /* restored */
    g->problem.product.c = g->c.operand;
    kn_force_implementation("gemm", name);
    kn_status status = kn_gemm(kn_tensor_stream(g->c.tensor), &g->problem);
    kn_force_implementation("gemm", NULL);
    CHECK_OK(status);
    double *values = read_doubles(g->c.tensor);
    assert_non_null(values);
    closeness limit = closeness_of(p->f64 ? KN_F64 : KN_F32, p->k + 1);
    limit.atol += limit.rtol * largest_magnitude(right, g->c.count);
    if (!values_close(values, right, g->c.count, limit, message, sizeof message))
        fail_msg("%s, case %d: m %d n %d k %d batch %d alpha %g beta %g%s%s%s activation %d: %s", name, number,
                 (int)p->m, (int)p->n, (int)p->k, (int)p->batch, p->alpha, p->beta, p->a.transposed ? " A^T" : "",
                 p->b.transposed ? " B^T" : "", g->problem.bias ? " bias" : "", (int)g->problem.activation, message);
    free(values);
}

static void check_case(test_random *random, bool f64, int number, const int64_t size[3], int64_t *computed)
{
    const kn_implementation_table *table = &kn_gemm_implementations;
    gemm_case g = draw_case(random, f64, size);
    double *right = expect(&g);
    for (int i = 0; i < table->count; i++) {
        if (!can_force(table, &table->rows[i]))
            continue;
        {
            KN_SCOPE;
            check_implementation(&g, right, table->rows[i].name, number);
        }
        computed[i] += kn_count_forced("gemm").ran;
    }
    free(right);
    free(g.a.values);
    free(g.b.values);
    free(g.c.values);
    free(g.bias.values);
}

static void test_all_implementations(void **state)
{
    bool has_f64 = kn_device_limits(kn_device_current())->has_f64;
    int64_t computed[16] = {0};
    test_random random = test_random_from("gemm");
    (void)state;
    for (int i = 0; i < num_cases(); i++) {
        int64_t size[3];
        draw_sizes(&random, size);

        KN_SCOPE;
        check_case(&random, has_f64 && i % 3 == 2, i, size, computed);
    }
    /* None was skipped. */
    for (int i = 0; i < kn_gemm_implementations.count; i++)
        assert_true(computed[i] > num_cases() / 20 ||
                    !can_force(&kn_gemm_implementations, &kn_gemm_implementations.rows[i]));
}

static void test_large_sizes(void **state)
{
    bool has_f64 = kn_device_limits(kn_device_current())->has_f64;
    int64_t computed[16] = {0};
    test_random random = test_random_from("gemm large");
    (void)state;
    for (int i = 0; i < MAX_DRAWS * LARGE_SIZES; i += test_full() ? 1 : MAX_DRAWS * (2 * next_size() - 1)) {
        KN_SCOPE;
        check_case(&random, has_f64 && i % 4 == 3, i, large_sizes[i / MAX_DRAWS], computed);
    }
}

/* Of a^T b, as in a linear layer's backward pass: the sums over k of a or of b, in several blocks of k, with rows and
 * columns left over; with few columns C is computed transposed. */
enum { SUM_K = 2103 };
typedef struct sums_case {
    int64_t m, n;
    bool of_b;
} sums_case;
static const sums_case sums_cases[] = {{71, 130, false}, {71, 130, true}, {300, 510, false}, {300, 510, true},
                                       {600, 70, false}, {600, 70, true}, {5, 1000, true},   {1000, 5, false}};

static bool check_sums(kn_dtype dtype, sums_case c)
{
    KN_SCOPE;
    const int64_t m = c.m, n = c.n, count = c.of_b ? n : m;
    kn_tensor *a = random_tensor("a", 2, (const int64_t[]){SUM_K, m}, -1, false, dtype),
              *b = random_tensor("b", 2, (const int64_t[]){SUM_K, n}, -1, false, dtype),
              *y = kn_empty(KN_SHAPE(m, n), .dtype = dtype), *sums = kn_empty(KN_SHAPE(count), .dtype = dtype);
    kn_tensor *wanted = kn_sum_dims(c.of_b ? b : a, (const int[]){0}, 1, false);
    kn_gemm_sums target = {.buffer = sums->storage->buffer, .offset = sums->offset, .of_b = c.of_b};
    const kn_gemm_problem problem = {.product = {.f64 = dtype == KN_F64,
                                                 .m = m,
                                                 .n = n,
                                                 .k = SUM_K,
                                                 .batch = 1,
                                                 .alpha = 1,
                                                 .a = {a->storage->buffer, a->offset, m, 0, true},
                                                 .b = {b->storage->buffer, b->offset, n, 0, false},
                                                 .c = {y->storage->buffer, y->offset, n, 0, false}},
                                     .sums = &target};
    char message[256];
    CHECK_OK(kn_gemm_tiles(kn_tensor_stream(y), &problem));
    if (!target.done)
        return false;
    double *found = read_doubles(sums), *expected = read_doubles(wanted);
    const bool close = values_close(found, expected, count, closeness_of(dtype, SUM_K), message, sizeof message);
    free(found);
    free(expected);
    if (!close)
        fail_msg("%s, %d x %d, of %s: %s", kn_dtype_name(dtype), (int)m, (int)n, c.of_b ? "b" : "a", message);
    return true;
}

static void test_sums(void **state)
{
    const kn_limits *limits = kn_device_limits(kn_device_current());
    int done[2] = {0};
    (void)state;
    if (!kn_gemm_computes_sums(limits))
        return;
    for (size_t i = 0; i < sizeof sums_cases / sizeof sums_cases[0]; i++) {
        done[sums_cases[i].of_b] += check_sums(KN_F32, sums_cases[i]);
        if (limits->has_f64)
            check_sums(KN_F64, sums_cases[i]);
    }
    assert_true(done[false] >= 2 && done[true] >= 2);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    obey_vector_width(argc, argv);
    const struct CMUnitTest tests[] = {TEST(test_all_implementations), TEST(test_large_sizes), TEST(test_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

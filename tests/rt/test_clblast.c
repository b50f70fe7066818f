/* CLBlast as a provider of matrix products: every transpose, offsets, batches, f32 and f64. */
#include "rt_test.h"

#include <math.h>

#include "rt/rt.h"
#include "tensor/tensor.h"

typedef struct problem {
    bool f64, ta, tb;
    int64_t m, n, k, batch;
} problem;

static double element(const kn_tensor *t, int64_t i)
{
    return t->dtype == KN_F64 ? ((double *)t->storage->host)[i] : ((float *)t->storage->host)[i];
}

static void check(const problem *p)
{
    const kn_dtype dtype = p->f64 ? KN_F64 : KN_F32;
    KN_SCOPE
    {
        kn_tensor *a = kn_randn(KN_SHAPE(p->batch, p->m * p->k), .dtype = dtype),
                  *b = kn_randn(KN_SHAPE(p->batch, p->k * p->n), .dtype = dtype);
        kn_tensor *c = kn_ones(KN_SHAPE(p->batch, p->m * p->n), .dtype = dtype);
        kn_gemm_params gemm = {
            .f64 = p->f64, .m = p->m, .n = p->n, .k = p->k, .batch = p->batch, .alpha = 2, .beta = 0.5};
        gemm.a = (kn_gemm_operand){a->storage->buffer, 0, p->ta ? p->m : p->k, p->m * p->k, p->ta};
        gemm.b = (kn_gemm_operand){b->storage->buffer, 0, p->tb ? p->k : p->n, p->k * p->n, p->tb};
        gemm.c = (kn_gemm_operand){c->storage->buffer, 0, p->n, p->m * p->n, false};
        assert_ok(kn_clblast_gemm(kn_tensor_stream(a), &gemm));
        a = kn_to(a, kn_device_host());
        b = kn_to(b, kn_device_host());
        c = kn_to(c, kn_device_host());
        for (int64_t i = 0; i < p->batch * p->m * p->n; i++) {
            int64_t z = i / (p->m * p->n), row = i / p->n % p->m, column = i % p->n;
            double sum = 0;
            for (int64_t l = 0; l < p->k; l++)
                sum += element(a, z * p->m * p->k + (p->ta ? l * p->m + row : row * p->k + l)) *
                       element(b, z * p->k * p->n + (p->tb ? column * p->k + l : l * p->n + column));
            double error = fabs(element(c, i) - (2 * sum + 0.5));
            assert_true(error < (p->f64 ? 1e-10 : 1e-3));
        }
    }
}

static void products_are_right(void **state)
{
    (void)state;
    for (int transposes = 0; transposes < 4; transposes++) {
        check(&(problem){false, transposes & 1, transposes & 2, 17, 23, 31, 1});
        check(&(problem){true, transposes & 1, transposes & 2, 5, 7, 11, 1});
    }
    check(&(problem){false, false, true, 8, 9, 10, 3});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Matrix products with CLBlast: every transpose, offsets, batches, f32 and f64. */
#include "rt/rt_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt/clblast/parameters.h"
#include "rt/rt.h"
#include "rt/tuning/tuning.h"
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

    KN_SCOPE;
    kn_tensor *a = kn_randn(KN_SHAPE(p->batch, p->m * p->k), .dtype = dtype),
              *b = kn_randn(KN_SHAPE(p->batch, p->k * p->n), .dtype = dtype);
    kn_tensor *c = kn_ones(KN_SHAPE(p->batch, p->m * p->n), .dtype = dtype);
    kn_gemm_params gemm = {.f64 = p->f64, .m = p->m, .n = p->n, .k = p->k, .batch = p->batch, .alpha = 2, .beta = 0.5};
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

static bool has_f64(void) { return kn_device_limits(kn_device_current())->has_f64; }

static void products_are_right(void **state)
{
    (void)state;
    for (int transposes = 0; transposes < 4; transposes++) {
        check(&(problem){false, transposes & 1, transposes & 2, 17, 23, 31, 1});
        if (has_f64())
            check(&(problem){true, transposes & 1, transposes & 2, 5, 7, 11, 1});
    }
    check(&(problem){false, false, true, 8, 9, 10, 3});
    check(&(problem){false, false, false, 64, 64, 64, 3}); /* no padding */
}

/* --- parameters --------------------------------------------------------------------------------------------------- */

static long value(const char *set, const char *name)
{
    char key[32];
    snprintf(key, sizeof key, "%s=", name);
    const char *found = strstr(set, key);
    while (found && found != set && found[-1] != ' ')
        found = strstr(found + 1, key);
    assert_non_null(found);
    return strtol(found + strlen(key), NULL, 10);
}

#define DIVIDES(a, b) assert_int_equal((b) % (a), 0)

/* The constraints that CLBlast's tuner enforces and its library assumes. */
static void sets_obey_the_rules(void **state)
{
    (void)state;
    const char *set;
    for (int i = 0; (set = kn_clblast_candidate(KN_CLBLAST_GEMM, i)); i++) {
        const long items = value(set, "MDIMC") * value(set, "NDIMC");
        DIVIDES(value(set, "KWI"), value(set, "KWG"));
        DIVIDES(value(set, "MDIMC") * value(set, "VWM"), value(set, "MWG"));
        DIVIDES(value(set, "MDIMA") * value(set, "VWM"), value(set, "MWG"));
        DIVIDES(value(set, "NDIMC") * value(set, "VWN"), value(set, "NWG"));
        DIVIDES(value(set, "NDIMB") * value(set, "VWN"), value(set, "NWG"));
        DIVIDES(value(set, "MDIMA"), items);
        DIVIDES(value(set, "NDIMB"), items);
        DIVIDES(items / value(set, "MDIMA"), value(set, "KWG"));
        DIVIDES(items / value(set, "NDIMB"), value(set, "KWG"));
    }
    for (int i = 0; (set = kn_clblast_candidate(KN_CLBLAST_DIRECT, i)); i++) {
        const long items = value(set, "MDIMCD") * value(set, "NDIMCD"), wgd = value(set, "WGD");
        DIVIDES(value(set, "KWID"), wgd);
        DIVIDES(value(set, "MDIMCD") * value(set, "VWMD"), wgd);
        DIVIDES(value(set, "MDIMAD") * value(set, "VWMD"), wgd);
        DIVIDES(value(set, "NDIMCD") * value(set, "VWND"), wgd);
        DIVIDES(value(set, "NDIMBD") * value(set, "VWND"), wgd);
        DIVIDES(items / value(set, "MDIMAD"), wgd);
        DIVIDES(items / value(set, "NDIMBD"), wgd);
    }
}

/* On a CPU device the first product activates the default; sets that are not in the list, or do not fit, are rejected;
 * CLBlast's own set is not restored. */
static void sets_are_put_to_use(void **state)
{
    (void)state;
    kn_device *device = kn_device_current();
    const kn_limits *limits = kn_device_limits(device);
    const char *usual = kn_clblast_default(limits, KN_CLBLAST_GEMM);
    assert_string_equal(kn_clblast_in_use(device, KN_CLBLAST_GEMM, false), usual);
    assert_int_equal(kn_clblast_use(device, KN_CLBLAST_GEMM, false, "MWG=1"), KN_ERR_ARGUMENT);
    const char *other = kn_clblast_candidate(KN_CLBLAST_GEMM, 12);
    assert_ok(kn_clblast_use(device, KN_CLBLAST_GEMM, false, other));
    assert_string_equal(kn_clblast_in_use(device, KN_CLBLAST_GEMM, false), other);
    check(&(problem){false, false, false, 33, 65, 17, 1}); /* different padding, hence different memory */
    check(&(problem){false, true, true, 33, 65, 17, 2});
    assert_int_equal(kn_clblast_use(device, KN_CLBLAST_GEMM, false, KN_CLBLAST_OWN), KN_ERR_STATE);
    if (limits->is_cpu)
        assert_ok(kn_clblast_use(device, KN_CLBLAST_GEMM, false, usual));
    kn_limits small = {.max_work_group_size = 64, .local_memory = 1024};
    assert_false(kn_clblast_candidate_fits(other, &small, false));
}

/* Activating a set for one kernel before the first product leaves the others at their defaults. */
static void each_kernel_is_prepared(void **state)
{
    (void)state;
    kn_device *device = kn_device_current();
    const kn_limits *limits = kn_device_limits(device);
    assert_ok(kn_clblast_use(device, KN_CLBLAST_GEMM, false, kn_clblast_default(limits, KN_CLBLAST_GEMM)));
    assert_string_equal(kn_clblast_in_use(device, KN_CLBLAST_THRESHOLD, false),
                        kn_clblast_default(limits, KN_CLBLAST_THRESHOLD));
}

static int warnings;

static void count_warnings(kn_log_level level, const char *message, void *user)
{
    (void)user;
    warnings += level == KN_LOG_WARNING && strstr(message, "a tuning result is ignored");
}

/* A shared file may contain anything: unknown sets are ignored. */
static void nonsense_is_not_put_to_use(void **state)
{
    (void)state;
    if (!has_f64())
        skip();
    char question[KN_CLBLAST_QUESTION];
    kn_tuning_result nonsense = {.complete = true};
    nonsense.question = (char *)(uintptr_t)kn_clblast_question(question, KN_CLBLAST_GEMM, true);
    nonsense.choice = (char[]){"GEMMK=0 KREG=1 MWG=1000000 NWG=0 %s%n"};
    assert_ok(kn_tuning_store(kn_device_current(), &nonsense));
    kn_log_set_handler(count_warnings, NULL);
    check(&(problem){true, false, false, 40, 30, 20, 1});
    kn_log_set_handler(NULL, NULL);
    assert_int_equal(warnings, 1);
    const char *usual = kn_clblast_default(kn_device_limits(kn_device_current()), KN_CLBLAST_GEMM);
    assert_string_equal(kn_clblast_in_use(kn_device_current(), KN_CLBLAST_GEMM, true), usual);
}

/* Takes minutes on PoCL, which compiles each for seconds: only with "--all". */
static void every_set_computes_products(void **state)
{
    (void)state;
    kn_device *device = kn_device_current();
    const kn_limits *limits = kn_device_limits(device);
    for (int kernel = KN_CLBLAST_GEMM; kernel <= KN_CLBLAST_DIRECT; kernel++) {
        const char *set;
        assert_ok(kn_clblast_use(device, KN_CLBLAST_THRESHOLD, false,
                                 kn_clblast_candidate(KN_CLBLAST_THRESHOLD, kernel == KN_CLBLAST_GEMM ? 0 : 5)));
        for (int i = 0; (set = kn_clblast_candidate((kn_clblast_kernel)kernel, i)); i++) {
            if (!kn_clblast_candidate_fits(set, limits, false))
                continue;
            assert_ok(kn_clblast_use(device, (kn_clblast_kernel)kernel, false, set));
            check(&(problem){false, false, false, 133, 71, 45, 1});
        }
    }
}

static int64_t stat(const char *key)
{
    int64_t value = 0;
    assert_ok(kn_memory_stat(kn_device_current(), key, &value));
    return value;
}

/* Copies of the operands are allocated from the pool, not from the driver for each product. (The kernel for small
 * products, which many GPUs take here by default, makes none.) */
static void scratch_comes_from_the_pool(void **state)
{
    (void)state;
    const problem p = {false, false, true, 130, 70, 90, 1};
    assert_ok(kn_clblast_use(kn_device_current(), KN_CLBLAST_THRESHOLD, false,
                             kn_clblast_candidate(KN_CLBLAST_THRESHOLD, 0)));
    check(&p);
    const int64_t taken = stat("num_device_alloc"), handed_out = stat("allocation.all.allocated");
    check(&p);
    assert_int_equal(stat("num_device_alloc"), taken);
    assert_true(stat("allocation.all.allocated") >= handed_out + 4); /* a, b, c, and the copies */
}

int main(int argc, char **argv)
{
    const bool all = argc > 1 && strcmp(argv[1], "--all") == 0;
    char cache[] = "/tmp/koine-clblast-XXXXXX", command[64];
    if (!mkdtemp(cache))
        return 1;
    setenv("KOINE_CACHE_DIR", cache, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kernel_is_prepared), cmocka_unit_test(nonsense_is_not_put_to_use),
        cmocka_unit_test(products_are_right),      cmocka_unit_test(sets_obey_the_rules),
        cmocka_unit_test(sets_are_put_to_use),     cmocka_unit_test(scratch_comes_from_the_pool)};
    const struct CMUnitTest long_tests[] = {cmocka_unit_test(every_set_computes_products)};
    int failed = all ? cmocka_run_group_tests(long_tests, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -r %s", cache);
    return system(command) == 0 ? failed : 1;
}

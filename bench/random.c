/* random.c - random numbers: of an input's shape or from its elements, 2^20 of them; indices by weight from rows of
 * 1000, and one from 32000. What is drawn differs between libraries. */
#include "bench.h"

static kn_tensor *rand_like(kn_tensor *const *x, const double *p) { return (void)p, kn_rand_like(x[0]); }
static kn_tensor *randn_like(kn_tensor *const *x, const double *p) { return (void)p, kn_randn_like(x[0]); }
static kn_tensor *bernoulli(kn_tensor *const *x, const double *p) { return (void)p, kn_bernoulli(x[0]); }
static kn_tensor *exponential_(kn_tensor *const *x, const double *p) { return kn_exponential_(x[0], p[0]); }
static kn_tensor *poisson(kn_tensor *const *x, const double *p) { return (void)p, kn_poisson(x[0]); }
static kn_tensor *randint(kn_tensor *const *x, const double *p)
{
    return kn_randint(0, (int64_t)p[0], KN_SHAPE(kn_numel(x[0])));
}
static kn_tensor *multinomial(kn_tensor *const *x, const double *p)
{
    return kn_multinomial(x[0], (int64_t)p[0], .replacement = p[1] != 0);
}

#define CASE(label, function, drawn, size, rows, n, ...)                                                               \
    {                                                                                                                  \
        .name = label, .shape = #rows "x" #n, .dtype = KN_F32, .flops = drawn, .bytes = (double)(size) * (drawn),      \
        BENCH_OPERATION_UNCOMPARED,                                                                                    \
        .operation = &(const bench_operation){.name = #function,                                                       \
                                              .apply = function,                                                       \
                                              .inputs = {{.ndim = 2, .shape = {rows, n}, .fill = BENCH_UNIFORM}},      \
                                              .parameters = {__VA_ARGS__}},                                            \
    }
#define DRAWS(label, function, size, ...) CASE(label, function, 1048576, size, 1024, 1024, __VA_ARGS__)

static const bench_case cases[] = {
    DRAWS("random/uniform", rand_like, 4, 0),
    DRAWS("random/normal", randn_like, 4, 0),
    DRAWS("random/integers", randint, 8, 100),
    DRAWS("random/bernoulli", bernoulli, 8, 0),
    DRAWS("random/exponential", exponential_, 4, 1),
    DRAWS("random/poisson", poisson, 8, 0),
    CASE("random/multinomial/few", multinomial, 64 * 20, 8, 64, 1000, 20, 0),
    CASE("random/multinomial/with_replacement", multinomial, 64 * 100, 8, 64, 1000, 100, 1),
    CASE("random/multinomial/one", multinomial, 1, 8, 1, 32000, 1, 0),
};
const bench_list bench_random = {cases, sizeof cases / sizeof cases[0]};

/* attention.c - scaled dot-product attention, forward and backward: an encoder's, a decoder's (causal), small heads.
 * Two products of the scores' size times the width of a head, five in backward; causal: half of them. */
#include "bench.h"

static kn_tensor *attention(kn_tensor *const *x, const double *parameters)
{
    return kn_scaled_dot_product_attention(x[0], x[1], x[2], .is_causal = parameters[0] != 0);
}

#define CASE(group, b, h, n, e, causal, label, products, passes, wanted)                                               \
    {                                                                                                                  \
        .name = group "attention/" #b "x" #h "x" #n "x" #e label, .shape = #b "x" #h "x" #n "x" #e, .dtype = KN_F32,   \
        .flops = 2.0 * products * b * h * n * n * e / (causal ? 2 : 1), .bytes = 4.0 * passes * b * h * n * e,         \
        BENCH_OPERATION,                                                                                               \
        .operation = &(const bench_operation){.name = "attention",                                                     \
                                              .apply = attention,                                                      \
                                              .inputs = {{.ndim = 4, .shape = {b, h, n, e}},                           \
                                                         {.ndim = 4, .shape = {b, h, n, e}},                           \
                                                         {.ndim = 4, .shape = {b, h, n, e}}},                          \
                                              .parameters = {causal},                                                  \
                                              .gradients = wanted},                                                    \
    }
#define BOTH(group, b, h, n, e, causal, label)                                                                         \
    CASE(group, b, h, n, e, causal, label "/fwd", 2, 4, 0), CASE(group, b, h, n, e, causal, label "/bwd", 5, 8, 7)

static const bench_case cases[] = {
    BOTH("", 8, 12, 512, 64, 0, ""),
    BOTH("", 1, 12, 1024, 64, 1, "/causal"),
    BOTH("", 4, 8, 128, 32, 0, ""),
    BOTH("", 16, 3, 65, 64, 0, ""),
    BOTH("", 8, 4, 128, 64, 1, "/causal"),
    BOTH("gpu/", 16, 16, 2048, 64, 0, ""),
    BOTH("gpu/", 16, 16, 2048, 64, 1, "/causal"),
};
const bench_list bench_attention = {cases, sizeof cases / sizeof cases[0]};

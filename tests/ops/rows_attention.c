/* rows_attention.c - scaled dot-product attention. */
#include "ops/rows.h"

static kn_tensor *build_attention(kn_tensor *const *x, const void *params)
{
    kn_scaled_dot_product_attention_params p = {KN_SCALED_DOT_PRODUCT_ATTENTION_DEFAULTS};
    if (params)
        p = *(const kn_scaled_dot_product_attention_params *)params;
    p.attn_mask = x[3];
    return kn_scaled_dot_product_attention_with(x[0], x[1], x[2], &p);
}

static kn_tensor *build_dropout(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_scaled_dot_product_attention(x[0], x[1], x[2], .dropout_p = 0.3);
}

/* clang-format off */
#define CAUSAL &(const kn_scaled_dot_product_attention_params){.is_causal = true}
#define GROUPED &(const kn_scaled_dot_product_attention_params){.enable_gqa = true, .scale = 0.7}
#define TABLES .tables = "attention attention_backward"
#define CASE(name, parameters, ...) \
    {"attention/" name, build_attention, {__VA_ARGS__}, parameters, .reduction = 64, TABLES}
#define FULL(name, parameters, ...) \
    {"attention/" name, build_attention, {__VA_ARGS__}, parameters, .reduction = 64, TABLES, .full = true}

OP_ROWS_BEGIN
static const op_row rows[] = {
    {"attention/heads", build_attention, {FLOATS(2, 3, 37, 16), FLOATS(2, 3, 70, 16), FLOATS(2, 3, 70, 9)},
     .reduction = 70, .layouts = true, TABLES},
    CASE("causal", CAUSAL, FLOATS(2, 67, 8), FLOATS(2, 67, 8), FLOATS(2, 67, 8)),
    CASE("causal_one_left_over", CAUSAL, FLOATS(2, 65, 8), FLOATS(2, 65, 8), FLOATS(2, 65, 8)),
    CASE("causal_more_keys", CAUSAL, FLOATS(1, 2, 5, 7), FLOATS(1, 2, 150, 7), FLOATS(1, 2, 150, 3)),
    CASE("causal_more_queries", CAUSAL, FLOATS(101, 5), FLOATS(13, 5), FLOATS(13, 5)),
    CASE("mask", NULL, FLOATS(2, 2, 19, 4), FLOATS(2, 2, 33, 4), FLOATS(2, 2, 33, 4),
         WHOLE(KN_BOOL, 0, 2, 2, 1, 19, 33)),
    CASE("mask_of_keys", NULL, FLOATS(2, 2, 5, 4), FLOATS(2, 2, 131, 4), FLOATS(2, 2, 131, 4),
         WHOLE(KN_BOOL, 0, 2, 2, 1, 1, 131)),
    CASE("terms", NULL, FLOATS(3, 7, 4), FLOATS(3, 9, 4), FLOATS(3, 9, 5), CONSTANTS_IN(-2, 2, 7, 9)),
    CASE("terms_with_gradient", NULL, FLOATS(2, 3, 4), FLOATS(2, 5, 4), FLOATS(2, 5, 2), FLOATS(3, 5)),
    CASE("grouped", GROUPED, FLOATS(2, 6, 5, 8), FLOATS(2, 2, 11, 8), FLOATS(2, 2, 11, 8)),
    CASE("one_query", NULL, FLOATS(2, 2, 1, 16), FLOATS(2, 2, 300, 16), FLOATS(2, 2, 300, 16)),
    {"attention/dropout", build_dropout, {FLOATS(2, 2, 37, 8), FLOATS(2, 2, 70, 8), FLOATS(2, 2, 70, 8)},
     .reduction = 70, TABLES},
    {"attention/dropout_one_left_over", build_dropout,
     {FLOATS(2, 2, 33, 8), FLOATS(2, 2, 70, 8), FLOATS(2, 2, 70, 8)}, .reduction = 70, TABLES},
    FULL("terms_one_left_over", NULL, FLOATS(3, 17, 4), FLOATS(3, 150, 4), FLOATS(3, 150, 21),
         CONSTANTS_IN(-2, 2, 17, 150)),
    FULL("few_queries_grouped", GROUPED, FLOATS(4, 3, 20), FLOATS(2, 300, 20), FLOATS(2, 300, 20)),
    FULL("blocks", CAUSAL, FLOATS(2, 130, 64), FLOATS(2, 200, 64), FLOATS(2, 200, 33)),
    FULL("blocks_grouped", GROUPED, FLOATS(4, 70, 20), FLOATS(2, 131, 20), FLOATS(2, 131, 20)),
    FULL("widest", NULL, FLOATS(1, 67, 256), FLOATS(1, 65, 256), FLOATS(1, 65, 256)),
    FULL("too_wide_for_groups", NULL, FLOATS(1, 5, 257), FLOATS(1, 6, 257), FLOATS(1, 6, 8)),
    FULL("one_key", NULL, FLOATS(2, 2, 7, 16), FLOATS(2, 2, 1, 16), FLOATS(2, 2, 1, 16)),
    FULL("wide", NULL, FLOATS(1, 1, 17, 128), FLOATS(1, 1, 19, 128), FLOATS(1, 1, 19, 131)),
    FULL("size_one", NULL, FLOATS(2, 17, 1), FLOATS(2, 19, 1), FLOATS(2, 19, 1)),
    FULL("broadcast", NULL, FLOATS(2, 1, 5, 4), FLOATS(3, 6, 4), FLOATS(6, 2)),
    FULL("no_queries", NULL, FLOATS(2, 0, 4), FLOATS(2, 5, 4), FLOATS(2, 5, 3)),
    CASE("no_width", NULL, FLOATS(2, 3, 0), FLOATS(2, 19, 0), FLOATS(2, 19, 3)),
    FULL("no_keys", NULL, FLOATS(2, 3, 4), FLOATS(2, 0, 4), FLOATS(2, 0, 3)),
    FULL("five_dimensions", CAUSAL, FLOATS(2, 1, 3, 5, 4), FLOATS(2, 1, 3, 5, 4), FLOATS(2, 1, 3, 5, 4)),
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(attention_rows, rows, .has_golden = true);

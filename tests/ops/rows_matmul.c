/* rows_matmul.c - matrix products of all ranks, and the linear layer. */
#include "ops/rows.h"

static kn_tensor *build_matmul(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_matmul(x[0], x[1]);
}

static kn_tensor *build_matmul_transposed(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_matmul(kn_t(x[0]), kn_t(x[1]));
}

static kn_tensor *build_linear(kn_tensor *const *x, const void *params)
{
    return params ? kn_linear_with(x[0], x[1], x[2], params) : kn_linear(x[0], x[1], x[2]);
}

/* With weights [in, out]. */
static kn_tensor *build_linear_transposed(kn_tensor *const *x, const void *params)
{
    return kn_linear_with(x[0], kn_t(x[1]), x[2], params);
}

/* clang-format off */
#define RELU &(const kn_linear_params){.activation = KN_ACTIVATION_RELU}
#define RELU6 &(const kn_linear_params){.activation = KN_ACTIVATION_RELU6}
#define PRODUCT(name, k, a, b) {"matmul/" name, build_matmul, {a, b}, .reduction = k, .tables = "gemm"}

OP_ROWS_BEGIN
static const op_row rows[] = {
    {"matmul/matrices", build_matmul, {FLOATS(7, 5), FLOATS(5, 3)}, .reduction = 5, .layouts = true, .tables = "gemm"},
    {"matmul/rows_by_columns", build_matmul, {FLOATS(70, 1, 7), FLOATS(70, 7, 1)}, .reduction = 7},
    {"matmul/batches", build_matmul, {FLOATS(3, 2, 5), FLOATS(3, 5, 4)}, .reduction = 5, .layouts = true,
     .tables = "gemm"},
    {"matmul/batch_of_whole_tiles", build_matmul, {FLOATS(3, 64, 64), FLOATS(3, 64, 64)}, .reduction = 64, .tables = "gemm"},
    {"matmul/batch_of_tiles_in_part", build_matmul, {FLOATS(5, 64), FLOATS(3, 64, 84)}, .reduction = 64, .tables = "gemm"},
    {"matmul/transposed", build_matmul_transposed, {FLOATS(5, 7), FLOATS(3, 5)}, .reduction = 5, .tables = "gemm"},
    PRODUCT("vectors", 17, FLOATS(17), FLOATS(17)),
    PRODUCT("vector_by_matrix", 17, FLOATS(17), FLOATS(17, 3)),
    PRODUCT("matrix_by_vector", 17, FLOATS(3, 17), FLOATS(17)),
    PRODUCT("vector_by_batch", 5, FLOATS(5), FLOATS(2, 5, 3)),
    PRODUCT("batch_by_vector", 5, FLOATS(2, 3, 5), FLOATS(5)),
    PRODUCT("batch_by_matrix", 5, FLOATS(2, 3, 5), FLOATS(5, 4)),
    PRODUCT("matrix_by_batch", 5, FLOATS(3, 5), FLOATS(2, 5, 4)),
    PRODUCT("broadcast_batches", 5, FLOATS(2, 1, 3, 5), FLOATS(4, 5, 2)),
    PRODUCT("one_by_one", 1, FLOATS(1, 1), FLOATS(1, 1)),
    PRODUCT("outer", 1, FLOATS(31, 1), FLOATS(1, 29)),
    PRODUCT("no_rows", 5, FLOATS(0, 5), FLOATS(5, 3)),
    PRODUCT("nothing_inside", 1, FLOATS(3, 0), FLOATS(0, 4)),
    PRODUCT("no_batches", 5, FLOATS(0, 3, 5), FLOATS(0, 5, 2)),
    PRODUCT("primes", 67, FLOATS(61, 67), FLOATS(67, 71)),
    PRODUCT("tiles", 64, FLOATS(64, 64), FLOATS(64, 96)),
    PRODUCT("beyond_tiles", 129, FLOATS(131, 129), FLOATS(129, 257)),
    PRODUCT("long_inside", 10007, FLOATS_IN(-0.1, 0.1, 3, 10007), FLOATS_IN(-0.1, 0.1, 10007, 2)),
    PRODUCT("tall", 3, FLOATS(2049, 3), FLOATS(3, 2)),
    PRODUCT("tall_one_column", 2, FLOATS(4099, 2), FLOATS(2, 1)),
    PRODUCT("wide", 3, FLOATS(2, 3), FLOATS(3, 2049)),
    PRODUCT("row_by_short_columns", 3, FLOATS(1, 3), FLOATS(3, 4099)),
    {"matmul/long_inner_product", build_matmul, {FLOATS_IN(-0.1, 0.1, 70001), FLOATS_IN(-0.1, 0.1, 70001)},
     .reduction = 70001, .tables = "gemm", .on_cpu = true},
    PRODUCT("long_sums_2x3", 40009, FLOATS_IN(-0.1, 0.1, 2, 40009), FLOATS_IN(-0.1, 0.1, 40009, 3)),
    {"matmul/long_sums_transposed", build_matmul_transposed, {FLOATS_IN(-0.1, 0.1, 40009, 2),
     FLOATS_IN(-0.1, 0.1, 1, 40009)},
     .reduction = 40009, .tables = "gemm", .on_cpu = true},
    {"matmul/row_by_transposed", build_matmul_transposed, {FLOATS(103, 1), FLOATS(307, 103)},
     .reduction = 307, .tables = "gemm"},
    {"linear/plain", build_linear, {FLOATS(7, 5), FLOATS(3, 5), FLOATS(3)}, .reduction = 7, .layouts = true,
     .tables = "gemm"},
    {"linear/transposed", build_linear_transposed, {FLOATS(2, 7, 5), FLOATS(5, 3), FLOATS(3)}, .reduction = 14,
     .tables = "gemm"},
    {"linear/transposed_tiles", build_linear_transposed, {FLOATS(300, 70), FLOATS(70, 150), FLOATS(150)},
     .reduction = 300, .tables = "gemm"},
    {"linear/transposed_relu", build_linear_transposed, {FLOATS(37, 70), FLOATS(70, 33), FLOATS(33)}, RELU,
     .reduction = 70, .tables = "gemm"},
    {"linear/wide_bias", build_linear, {FLOATS(9, 5), FLOATS(19, 5), FLOATS(19)}, .reduction = 9, .tables = "gemm"},
    {"linear/no_bias", build_linear, {FLOATS(7, 5), FLOATS(3, 5)}, .reduction = 7, .tables = "gemm"},
    {"linear/vector", build_linear, {FLOATS(5), FLOATS(3, 5), FLOATS(3)}, .reduction = 5, .tables = "gemm"},
    {"linear/three_dimensions", build_linear, {FLOATS(2, 3, 5), FLOATS(4, 5), FLOATS(4)}, .reduction = 6,
     .tables = "gemm"},
    {"linear/no_batch", build_linear, {FLOATS(0, 5), FLOATS(3, 5), FLOATS(3)}},
    {"linear/few_rows", build_linear, {FLOATS(9, 523), FLOATS_IN(-0.2, 0.2, 131, 523), FLOATS(131)}, .reduction = 523,
     .tables = "gemm"},
    {"linear/few_results", build_linear, {FLOATS(101, 300), FLOATS_IN(-0.2, 0.2, 7, 300), FLOATS(7)}, .reduction = 300,
     .tables = "gemm"},
    {"linear/seed_1", build_linear, {FLOATS(128, 64), FLOATS(32, 64), FLOATS(32)}, .reduction = 128, .tables = "gemm"},
    {"linear/seed_2", build_linear, {FLOATS(128, 32), FLOATS(10, 32), FLOATS(10)}, .reduction = 128, .tables = "gemm"},
    {"linear/regression", build_linear, {FLOATS(10007, 2), FLOATS(1, 2), FLOATS(1)}, .reduction = 10007,
     .tables = "gemm"},
    {"linear/relu", build_linear, {FLOATS(7, 5), FLOATS(3, 5), FLOATS(3)}, RELU, .reduction = 7, .layouts = true,
     .tables = "gemm"},
    {"linear/relu_no_bias", build_linear, {FLOATS(37, 70), FLOATS(33, 70)}, RELU, .reduction = 70, .tables = "gemm"},
    {"linear/relu_few_rows", build_linear, {FLOATS(9, 523), FLOATS_IN(-0.2, 0.2, 131, 523), FLOATS(131)}, RELU,
     .reduction = 523, .tables = "gemm", .on_cpu = true},
    {"linear/relu_one_result", build_linear, {FLOATS(1007, 2), FLOATS(1, 2), FLOATS(1)}, RELU, .reduction = 1007,
     .tables = "gemm"},
    {"linear/relu_long_sums", build_linear, {FLOATS(3, 20011), FLOATS_IN(-0.1, 0.1, 2, 20011), FLOATS(2)}, RELU,
     .reduction = 20011, .tables = "gemm", .on_cpu = true},
    {"linear/relu6", build_linear, {FLOATS_IN(-4, 4, 65, 40), FLOATS(51, 40), FLOATS(51)}, RELU6, .reduction = 65,
     .tables = "gemm"},
    {"linear/relu6_three_dimensions", build_linear, {FLOATS_IN(-4, 4, 2, 3, 5), FLOATS(4, 5), FLOATS(4)}, RELU6,
     .reduction = 6, .tables = "gemm"},
    {"linear/f16", build_linear, {WHOLE(KN_F16, -9, 9, 7, 5), WHOLE(KN_F16, -9, 9, 3, 5), WHOLE(KN_F16, -9, 9, 3)},
     .no_gradient = true, .layouts = true, .tables = "matmul_f16"},
    {"linear/f16_relu", build_linear, {WHOLE(KN_F16, -9, 9, 2, 7, 5), WHOLE(KN_F16, -9, 9, 3, 5)}, RELU,
     .no_gradient = true, .tables = "matmul_f16"},
    {"matmul/int64", build_matmul, {WHOLE(KN_I64, -9, 9, 7, 5), WHOLE(KN_I64, -9, 9, 5, 3)}, .no_gradient = true,
     .layouts = true},
    {"matmul/int32_batches", build_matmul, {WHOLE(KN_I32, -9, 9, 2, 7, 35), WHOLE(KN_I32, -9, 9, 35, 130)},
     .no_gradient = true, .layouts = true},
    {"matmul/int16", build_matmul, {WHOLE(KN_I16, -9, 9, 3, 20), WHOLE(KN_I16, -9, 9, 20, 64)}, .no_gradient = true},
    {"matmul/int8_row", build_matmul, {WHOLE(KN_I8, -3, 3, 9), WHOLE(KN_I8, -3, 3, 9, 70)}, .no_gradient = true},
    {"matmul/uint8_column", build_matmul, {WHOLE(KN_U8, 0, 5, 11, 9), WHOLE(KN_U8, 0, 5, 9)}, .no_gradient = true},
    {"matmul/bf16", build_matmul, {WHOLE(KN_BF16, -9, 9, 7, 5), WHOLE(KN_BF16, -9, 9, 5, 3)}, .no_gradient = true,
     .layouts = true, .tables = "matmul_f16"},
    {"matmul/bf16_batches", build_matmul, {WHOLE(KN_BF16, -2, 2, 2, 1, 27, 34), WHOLE(KN_BF16, -2, 2, 3, 34, 70)},
     .no_gradient = true, .tables = "matmul_f16"},
    {"linear/bf16_relu", build_linear, {WHOLE(KN_BF16, -2, 2, 2, 7, 65), WHOLE(KN_BF16, -2, 2, 35, 65),
     WHOLE(KN_BF16, -9, 9, 35)}, RELU, .no_gradient = true, .layouts = true, .tables = "matmul_f16"},
    {"matmul/f16", build_matmul, {WHOLE(KN_F16, -9, 9, 7, 5), WHOLE(KN_F16, -9, 9, 5, 3)}, .no_gradient = true,
     .layouts = true, .tables = "matmul_f16"},
    {"linear/relu_no_batch", build_linear, {FLOATS(0, 5), FLOATS(3, 5), FLOATS(3)}, RELU},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(matmul_rows, rows);

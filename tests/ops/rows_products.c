/* rows_products.c - matrix products of certain ranks, with a further term, and compositions of products. */
#include "ops/rows.h"

#define TWO(name)                                                                                                      \
    static kn_tensor *build_##name(kn_tensor *const *x, const void *params)                                            \
    {                                                                                                                  \
        (void)params;                                                                                                  \
        return kn_##name(x[0], x[1]);                                                                                  \
    }
TWO(mm)
TWO(bmm)
TWO(mv)
TWO(dot)
TWO(vdot)
TWO(outer)
TWO(ger)
TWO(inner)
TWO(kron)

#define THREE(name)                                                                                                    \
    static kn_tensor *build_##name(kn_tensor *const *x, const void *params)                                            \
    {                                                                                                                  \
        return kn_##name##_with(x[0], x[1], x[2], params);                                                             \
    }
THREE(addmm)
THREE(addmv)
THREE(addr)
THREE(baddbmm)
THREE(addbmm)

static int count_of(kn_tensor *const *x)
{
    int count = 0;
    while (count < OP_MAX_INPUTS && x[count])
        count++;
    return count;
}

static kn_tensor *build_einsum(kn_tensor *const *x, const void *params) { return kn_einsum(params, x, count_of(x)); }

static kn_tensor *build_multi_dot(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_linalg_multi_dot(x, count_of(x));
}

static kn_tensor *build_tensordot(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_tensordot(x[0], x[1], (const int[]){1, 0}, (const int[]){0, -1}, 2);
}

static kn_tensor *build_power(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_matrix_power(x[0], 3);
}

/* clang-format off */
#define FACTORS(b, a) &(const kn_addmm_params){.beta = b, .alpha = a}

OP_ROWS_BEGIN
static const op_row rows[] = {
    {"mm/plain", build_mm, {FLOATS(7, 5), FLOATS(5, 3)}, .reduction = 5},
    {"bmm/plain", build_bmm, {FLOATS(3, 2, 5), FLOATS(3, 5, 4)}, .reduction = 5},
    {"mv/plain", build_mv, {FLOATS(7, 5), FLOATS(5)}, .reduction = 5},
    {"dot/plain", build_dot, {FLOATS(17), FLOATS(17)}, .reduction = 17},
    {"dot/long", build_dot, {FLOATS(6003), FLOATS(6003)}, .reduction = 6003, .no_gradient = true},
    {"dot/in_slices", build_dot, {FLOATS(140003), FLOATS(140003)}, .reduction = 140003, .no_gradient = true},
    {"vdot/plain", build_vdot, {FLOATS(17), FLOATS(17)}, .reduction = 17},
    {"outer/plain", build_outer, {FLOATS(7), FLOATS(5)}, .reduction = 7},
    {"ger/plain", build_ger, {FLOATS(7), FLOATS(5)}, .reduction = 7},
    {"inner/plain", build_inner, {FLOATS(3, 5), FLOATS(4, 5)}, .reduction = 5},
    {"inner/many", build_inner, {FLOATS(2, 3, 5), FLOATS(2, 4, 5)}, .reduction = 12, .full = true},
    {"addmm/row", build_addmm, {FLOATS(3), FLOATS(7, 5), FLOATS(5, 3)}, FACTORS(1, 0.5), .reduction = 7},
    {"addmm/factors", build_addmm, {FLOATS(7, 3), FLOATS(7, 5), FLOATS(5, 3)}, FACTORS(-2, 3), .reduction = 7,
     .layouts = true},
    {"addmm/column", build_addmm, {FLOATS(7, 1), FLOATS(7, 5), FLOATS(5, 3)}, NULL, .reduction = 7, .full = true},
    {"addmm/no_input", build_addmm, {FLOATS(7, 3), FLOATS(7, 5), FLOATS(5, 3)}, FACTORS(0, 1), .reduction = 7,
     .full = true},
    {"addmm/nothing_inside", build_addmm, {FLOATS(7, 3), FLOATS(7, 0), FLOATS(0, 3)}, NULL, .full = true},
    {"addmv/plain", build_addmv, {FLOATS(7), FLOATS(7, 5), FLOATS(5)}, FACTORS(0.5, 2), .reduction = 7},
    {"addr/plain", build_addr, {FLOATS(7, 5), FLOATS(7), FLOATS(5)}, FACTORS(0.5, 2), .reduction = 7},
    {"baddbmm/plain", build_baddbmm, {FLOATS(3, 2, 4), FLOATS(3, 2, 5), FLOATS(3, 5, 4)}, FACTORS(0.5, 2),
     .reduction = 5},
    {"addbmm/plain", build_addbmm, {FLOATS(2, 4), FLOATS(3, 2, 5), FLOATS(3, 5, 4)}, FACTORS(0.5, 2), .reduction = 15},
    {"kron/plain", build_kron, {FLOATS(2, 3), FLOATS(4, 5)}, .reduction = 20},
    {"kron/ranks", build_kron, {FLOATS(3), FLOATS(2, 1, 4)}, .reduction = 8, .full = true},
    {"einsum/batched", build_einsum, {FLOATS(3, 2, 5), FLOATS(3, 5, 4)}, "bij,bjk->bik", .reduction = 5},
    {"einsum/three", build_einsum, {FLOATS(3, 5), FLOATS(4, 5, 6), FLOATS(3, 6)}, "bn,anm,bm->ba", .reduction = 30},
    {"einsum/diagonal", build_einsum, {FLOATS(4, 3, 4)}, "iji->ji", .reduction = 4, .full = true},
    {"einsum/ellipsis", build_einsum, {FLOATS(2, 1, 3, 5), FLOATS(4, 5, 6)}, "...ij,...jk", .reduction = 30,
     .full = true},
    {"einsum/elementwise", build_einsum, {FLOATS(4, 3), FLOATS(4, 3)}, "ij,ij->ji", .reduction = 4, .full = true},
    {"einsum/all", build_einsum, {FLOATS(4, 3), FLOATS(4, 3)}, "ij,ij->", .reduction = 12, .full = true},
    {"multi_dot/four", build_multi_dot, {FLOATS(7), FLOATS(7, 5), FLOATS(5, 3), FLOATS(3, 6)}, .reduction = 50},
    {"tensordot/two", build_tensordot, {FLOATS(2, 3, 4), FLOATS(3, 5, 2)}, .reduction = 6},
    {"matrix_power/three", build_power, {FLOATS(2, 4, 4)}, .reduction = 32},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(products_rows, rows, .has_golden = true);

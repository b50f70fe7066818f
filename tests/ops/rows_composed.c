/* rows_composed.c - operators that others compose: no reference of their own, but gradients, layouts and the references
 * of what they are composed of. A row's parameters are the operator and its parameters. */
#include "ops/rows.h"

/* clang-format off */
#define ROW(title, call, ...) {.name = title, .build = apply_named, .inputs = {__VA_ARGS__}, .params = call, .reduction = 100}
#define WITHOUT_GRADIENT(title, call, ...) \
    {.name = title, .build = apply_named, .inputs = {__VA_ARGS__}, .params = call, .reduction = 100, .no_gradient = true}
#define FURTHER(title, call, ...) \
    {.name = title, .build = apply_named, .inputs = {__VA_ARGS__}, .params = call, .reduction = 100, .full = true}
#define READS(title, call, ...) \
    {.name = title, .build = apply_named, .inputs = {__VA_ARGS__}, .params = call, .reduction = 100, .reads = true}
#define FURTHER_READS(title, call, ...) \
    {.name = title, .build = apply_named, .inputs = {__VA_ARGS__}, .params = call, .reduction = 100, .full = true, .reads = true}

OP_ROWS_BEGIN
static const op_row rows[] = {
    ROW("cdist/batch", "cdist", DISTINCT(2, 3, 4), DISTINCT(5, 4)),
    ROW("cdist/products", "cdist", DISTINCT(26, 3), DISTINCT(4, 3)),
    FURTHER("cdist/products_batch", "cdist", DISTINCT(2, 1, 3, 4), DISTINCT(3, 28, 4)),
    FURTHER("cdist/products_no_columns", "cdist", FLOATS(30, 0), FLOATS(2, 0)),
    ROW("cdist/p1", "cdist p=1", DISTINCT(3, 4), DISTINCT(2, 4)),
    ROW("cdist/p3", "cdist p=3", DISTINCT(3, 4), DISTINCT(2, 4)),
    ROW("cdist/inf", "cdist p=inf", DISTINCT(3, 4), DISTINCT(2, 4)),
    FURTHER("cdist/half", "cdist p=0.5", DISTINCT(3, 4), DISTINCT(2, 4)),
    WITHOUT_GRADIENT("cdist/p0", "cdist p=0", DISTINCT(3, 4), DISTINCT(2, 4)),
    ROW("cdist/empty", "cdist", FLOATS(0, 4), FLOATS(2, 4)),
    FURTHER("cdist/no_columns", "cdist", FLOATS(3, 0), FLOATS(2, 0)),
    FURTHER("cdist/panels", "cdist p=1", DISTINCT(2, 9, 66), DISTINCT(35, 66)),
    FURTHER("cdist/few", "cdist", DISTINCT(9, 81), DISTINCT(20, 81)),
    ROW("pdist/rows", "pdist", DISTINCT(5, 3)),
    ROW("pdist/p1", "pdist p=1", DISTINCT(4, 3)),
    ROW("pdist/panels", "pdist", DISTINCT(35, 17)),
    FURTHER("pdist/long", "pdist p=3", DISTINCT(18, 70)),
    FURTHER("pdist/inf", "pdist p=inf", FLOATS(4, 3)),
    WITHOUT_GRADIENT("pdist/p0", "pdist p=0", DISTINCT(6, 3)),
    FURTHER("pdist/no_columns", "pdist", FLOATS(3, 0)),
    ROW("pdist/one", "pdist", FLOATS(1, 3)),
    ROW("multilabel_margin_loss/rows", "multilabel_margin_loss", DISTINCT(4, 7), WHOLE(KN_I64, -1, 7, 4, 7)),
    ROW("cov/matrix", "cov", FLOATS(3, 7)),
    FURTHER("cov/vector", "cov correction=0", FLOATS(7)),
    ROW("cov/weights", "cov", FLOATS(3, 5), WHOLE(KN_I64, 1, 4, 5), CONSTANTS_IN(0.5, 2, 5)),
    ROW("corrcoef/matrix", "corrcoef", FLOATS(3, 7)),
    READS("linalg_matrix_exp/batch", "linalg_matrix_exp", FLOATS(2, 3, 3)),
    FURTHER_READS("linalg_matrix_exp/squared", "linalg_matrix_exp", FLOATS_IN(-3, 3, 4, 4)),
    FURTHER("linalg_matrix_exp/empty", "linalg_matrix_exp", FLOATS(0, 3, 3)),
    ROW("cholesky_inverse/lower", "cholesky_inverse", FLOATS_IN(1, 2, 2, 2, 2)),
    FURTHER("cholesky_inverse/upper", "cholesky_inverse upper=1", FLOATS_IN(1, 2, 3, 3)),
    ROW("diagonal_scatter/below", "diagonal_scatter offset=-1", FLOATS(4, 3), FLOATS(3)),
    FURTHER("diagonal_scatter/batch", "diagonal_scatter dim1=0 dim2=2", FLOATS(3, 2, 4), FLOATS(2, 3)),
    ROW("select_scatter/last", "select_scatter dim=-1 index=-2", FLOATS(3, 4), FLOATS(3)),
    ROW("slice_scatter/steps", "slice_scatter dim=1 start=1 step=2", FLOATS(2, 6), FLOATS(2, 3)),
    FURTHER("slice_scatter/empty", "slice_scatter start=2 stop=2", FLOATS(3, 4), CONSTANTS_IN(0, 1, 0, 4)),
    ROW("as_strided_scatter/steps", "as_strided_scatter shape=2,2 strides=5,2 offset=1", FLOATS(3, 4), FLOATS(2, 2)),
    ROW("linalg_norm/default", "linalg_norm dims=0,2", FLOATS(2, 3, 4)),
    ROW("linalg_norm/vectors", "linalg_norm kind=ord ord=3 dims=1 keepdim=1", DISTINCT(2, 3, 4)),
    ROW("linalg_norm/nuc", "linalg_norm kind=nuc dims=2,0", FLOATS(3, 2, 4)),
    FURTHER("linalg_norm/spectral", "linalg_norm kind=ord dims=0,1 keepdim=1", FLOATS(3, 4, 2)),
    FURTHER("linalg_norm/columns", "linalg_norm kind=ord ord=1", DISTINCT(3, 4)),
    ROW("linalg_householder_product/batch", "linalg_householder_product", FLOATS(2, 4, 3), FLOATS(2, 2)),
    FURTHER("linalg_householder_product/none", "linalg_householder_product", FLOATS(2, 4, 3), CONSTANTS_IN(0, 1, 2, 0)),
    ROW("mvlgamma/three", "mvlgamma p=3", FLOATS_IN(1.5, 4, 3, 5)),
    ROW("gradient/line", "gradient spacing=0.5 dim=0", FLOATS(5, 3)),
    ROW("gradient/parabola", "gradient edge_order=2", FLOATS(2, 5)),
    ROW("gradient/places", "gradient edge_order=2", FLOATS(2, 3), CONSTANTS_IN(1, 2, 3)),
    FURTHER("gradient/two", "gradient", FLOATS(3, 2)),
    ROW("vander/increasing", "vander n=4 increasing=1", FLOATS_IN(0.5, 2, 2, 3)),
    FURTHER("vander/square", "vander", FLOATS_IN(0.5, 2, 5)),
    WITHOUT_GRADIENT("vander/int64", "vander", WHOLE(KN_I64, -4, 5, 5)),
    READS("combinations/pairs", "combinations", FLOATS(5)),
    FURTHER_READS("combinations/again", "combinations r=3 with_replacement=1", FLOATS(3)),
    FURTHER_READS("combinations/none", "combinations r=4", FLOATS(3)),
    ROW("conv_tbc/padded", "conv_tbc pad=1", FLOATS(5, 2, 3), FLOATS(3, 3, 4), FLOATS(4)),
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(composed_rows, rows, .has_golden = true);

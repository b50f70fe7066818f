/* base/dtype.c - the element types and how they combine. */
#include "base/dtype.h"

typedef struct dtype_row {
    const char *name;    /* PyTorch's */
    const char *cl;      /* OpenCL C's */
    const char *options; /* defines T */
    const char *kind;    /* how it is loaded */
    size_t size;
    bool floating;
    int64_t lowest, highest; /* of whole dtypes */
} dtype_row;

static const dtype_row rows[] = {
    [KN_DTYPE_DEFAULT] = {"default", "float", "-DT=float", "PLAIN", 4, true, 0, 0},
    [KN_F64] = {"float64", "double", "-DT=double -DKN_USE_F64", "PLAIN", 8, true, 0, 0},
    [KN_F32] = {"float32", "float", "-DT=float", "PLAIN", 4, true, 0, 0},
    [KN_F16] = {"float16", "half", "-DT=half", "HALF", 2, true, 0, 0},
    [KN_BF16] = {"bfloat16", "ushort", "-DT=ushort", "BFLOAT", 2, true, 0, 0},
    [KN_I64] = {"int64", "long", "-DT=long", "PLAIN", 8, false, INT64_MIN, INT64_MAX},
    [KN_I32] = {"int32", "int", "-DT=int", "PLAIN", 4, false, INT32_MIN, INT32_MAX},
    [KN_I16] = {"int16", "short", "-DT=short", "PLAIN", 2, false, INT16_MIN, INT16_MAX},
    [KN_I8] = {"int8", "char", "-DT=char", "PLAIN", 1, false, INT8_MIN, INT8_MAX},
    [KN_U8] = {"uint8", "uchar", "-DT=uchar", "PLAIN", 1, false, 0, UINT8_MAX},
    [KN_BOOL] = {"bool", "uchar", "-DT=uchar", "PLAIN", 1, false, 0, 1},
};

static const dtype_row *row_of(kn_dtype dtype) { return &rows[kn_dtype_is_valid(dtype) ? dtype : KN_DTYPE_DEFAULT]; }

bool kn_dtype_is_valid(kn_dtype dtype) { return (int)dtype > KN_DTYPE_DEFAULT && (int)dtype <= KN_BOOL; }
const char *kn_dtype_name(kn_dtype dtype) { return row_of(dtype)->name; }
size_t kn_dtype_size(kn_dtype dtype) { return row_of(dtype)->size; }
bool kn_dtype_is_floating(kn_dtype dtype) { return row_of(dtype)->floating; }
const char *kn_dtype_cl(kn_dtype dtype) { return row_of(dtype)->cl; }
const char *kn_dtype_options(kn_dtype dtype) { return row_of(dtype)->options; }
const char *kn_dtype_kind(kn_dtype dtype) { return row_of(dtype)->kind; }
int64_t kn_dtype_lowest(kn_dtype dtype) { return row_of(dtype)->lowest; }
int64_t kn_dtype_highest(kn_dtype dtype) { return row_of(dtype)->highest; }

bool kn_dtype_is_reduced(kn_dtype dtype) { return dtype == KN_F16 || dtype == KN_BF16; }
kn_dtype kn_compute_type(kn_dtype dtype) { return kn_dtype_is_reduced(dtype) ? KN_F32 : dtype; }

kn_dtype kn_promote_types(kn_dtype a, kn_dtype b)
{
    enum { d = KN_F64, f = KN_F32, h = KN_F16, g = KN_BF16, l = KN_I64, i = KN_I32, s = KN_I16, c = KN_I8, u = KN_U8 };
    static const unsigned char promoted[][KN_BOOL] = {
        /* f64 f32 f16 bf16 i64 i32 i16 i8 u8 bool */
        {d, d, d, d, d, d, d, d, d, d}, /* float64 */
        {d, f, f, f, f, f, f, f, f, f}, /* float32 */
        {d, f, h, f, h, h, h, h, h, h}, /* float16 */
        {d, f, f, g, g, g, g, g, g, g}, /* bfloat16 */
        {d, f, h, g, l, l, l, l, l, l}, /* int64 */
        {d, f, h, g, l, i, i, i, i, i}, /* int32 */
        {d, f, h, g, l, i, s, s, s, s}, /* int16 */
        {d, f, h, g, l, i, s, c, s, c}, /* int8 */
        {d, f, h, g, l, i, s, s, u, u}, /* uint8 */
        {d, f, h, g, l, i, s, c, u, KN_BOOL},
    };
    const int row = kn_dtype_is_valid(a) ? a : KN_F32, column = kn_dtype_is_valid(b) ? b : KN_F32;
    return (kn_dtype)promoted[row - KN_F64][column - KN_F64];
}

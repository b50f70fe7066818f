/* base/dtype.c - the element types and how they combine. */
#include "base/dtype.h"

typedef struct dtype_row {
    const char *name;    /* PyTorch's */
    const char *cl;      /* OpenCL C's */
    const char *options; /* defines T */
    size_t size;
    bool floating;
} dtype_row;

static const dtype_row rows[] = {
    [KN_DTYPE_DEFAULT] = {"default", "float", "-DT=float", 4, true},
    [KN_F64] = {"float64", "double", "-DT=double -DKN_USE_F64", 8, true},
    [KN_F32] = {"float32", "float", "-DT=float", 4, true},
    [KN_F16] = {"float16", "half", "-DT=half", 2, true},
    [KN_I64] = {"int64", "long", "-DT=long", 8, false},
    [KN_I32] = {"int32", "int", "-DT=int", 4, false},
    [KN_U8] = {"uint8", "uchar", "-DT=uchar", 1, false},
    [KN_BOOL] = {"bool", "uchar", "-DT=uchar", 1, false},
};

static const dtype_row *row_of(kn_dtype dtype)
{
    size_t index = (size_t)dtype;
    return &rows[index < sizeof rows / sizeof rows[0] ? index : 0];
}

const char *kn_dtype_name(kn_dtype dtype) { return row_of(dtype)->name; }
size_t kn_dtype_size(kn_dtype dtype) { return row_of(dtype)->size; }
bool kn_dtype_is_floating(kn_dtype dtype) { return row_of(dtype)->floating; }
bool kn_dtype_is_valid(kn_dtype dtype) { return (int)dtype > KN_DTYPE_DEFAULT && (int)dtype <= KN_BOOL; }
const char *kn_dtype_cl(kn_dtype dtype) { return row_of(dtype)->cl; }
const char *kn_dtype_options(kn_dtype dtype) { return row_of(dtype)->options; }

/* The order in which PyTorch widens: bool, uint8, int32, int64, float16, float32, float64. */
static int width(kn_dtype dtype)
{
    static const int order[] = {[KN_BOOL] = 0, [KN_U8] = 1,  [KN_I32] = 2, [KN_I64] = 3,
                                [KN_F16] = 4,  [KN_F32] = 5, [KN_F64] = 6, [KN_DTYPE_DEFAULT] = 5};
    return order[dtype];
}

kn_dtype kn_promote_types(kn_dtype a, kn_dtype b) { return width(a) >= width(b) ? a : b; }

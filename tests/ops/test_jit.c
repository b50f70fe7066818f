/* test_jit.c - operations from user code: values, layouts, dtypes, and all kinds of wrong code. */
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/jit_inputs.h"
#include "ops/user/jit_parse.h"
#include "rt/program/user_source.h"
#include "support/as_gpu.h"

/* --- values ------------------------------------------------------------------------------------------------------- */

TENSOR_TEST(test_one_output)
{
    kn_jit *jit = kn_jit_elementwise("T axpy(T x, T y) { return 2 * x + y; }");
    CHECK_OK(jit ? KN_OK : KN_ERR_STATE);
    assert_string_equal(kn_jit_name(jit), "axpy");
    assert_int_equal(kn_jit_num_inputs(jit), 2);
    assert_int_equal(kn_jit_num_outputs(jit), 1);
    kn_tensor *x = numbers(KN_F32, KN_SHAPE(2, 3), 0, 1), *y = numbers(KN_F32, KN_SHAPE(2, 3), 10, 10);
    CHECK_VALUES(kn_jit_call(jit, KN_JIT_INPUTS(x, y)), 10, 22, 34, 46, 58, 70);
    CHECK_VALUES(kn_jit_call(jit, KN_JIT_INPUTS(x, kn_select(y, 0, 0))), 10, 22, 34, 16, 28, 40); /* a row broadcasts */
    CHECK_VALUES(kn_jit_call(jit, KN_JIT_INPUTS(kn_t(x), kn_t(y))), 10, 46, 22, 58, 34, 70);
    kn_tensor *column = kn_narrow(y, 1, 1, 1); /* [2, 1]: 20, 50 */
    CHECK_VALUES(kn_jit_call(jit, KN_JIT_INPUTS(x, column)), 20, 22, 24, 56, 58, 60);
    kn_tensor *outer = kn_jit_call(jit, KN_JIT_INPUTS(column, kn_select(x, 0, 0)));
    CHECK_SHAPE(outer, 2, 3);
    CHECK_VALUES(outer, 40, 41, 42, 100, 101, 102);
    CHECK_VALUES(kn_jit_call(jit, KN_JIT_INPUTS(kn_full(KN_SCALAR, 3), kn_full(KN_SCALAR, 4))), 10);
    kn_tensor *nothing = kn_jit_call(jit, KN_JIT_INPUTS(kn_zeros(KN_SHAPE(0, 3)), kn_zeros(KN_SHAPE(3))));
    CHECK_SHAPE(nothing, 0, 3);
    kn_jit_free(jit);
}

/* Long enough for several work-items and partial vectors, with code that suits vectors and code that does not. */
TENSOR_TEST_F64(test_long)
{
    static const char *const codes[] = {"T f(T x, T y) { return x > y ? exp(x) : fmax(y, (T)0) * 0.5; }",
                                        "T f(T x, T y) { if (x > y) return exp(x); return fmax(y, (T)0) / 2; }"};
    enum { ROWS = 613, COLUMNS = 47 };
    static double values[ROWS * COLUMNS];
    const kn_dtype dtypes[] = {KN_F32, KN_F64};
    for (int i = 0; i < 4; i++) {
        kn_jit *jit = kn_jit_elementwise(codes[i % 2]);
        kn_tensor *x = numbers(dtypes[i / 2], KN_SHAPE(ROWS, COLUMNS), -1, 1e-4);
        kn_tensor *y = numbers(dtypes[i / 2], KN_SHAPE(COLUMNS), -0.5, 0.02);
        kn_tensor *z = kn_to_dtype(kn_jit_call(jit, KN_JIT_INPUTS(x, y)), KN_F64);
        CHECK_OK(kn_read(z, values, sizeof values));
        for (int e = 0; e < ROWS * COLUMNS; e++) {
            double a = -1 + 1e-4 * e, b = -0.5 + 0.02 * (e % COLUMNS);
            if (fabs(a - b) < 1e-5) /* the comparison depends on rounding */
                continue;
            double wanted = a > b ? exp(a) : fmax(b, 0) * 0.5;
            if (fabs(values[e] - wanted) > 1e-5)
                fail_msg("%s: element %d is %g, not %g", codes[i % 2], e, values[e], wanted);
        }
        kn_jit_free(jit);
    }
}

/* Matrices at any offset in a buffer, with rows of whole and partial vectors, and a broadcast row. */
TENSOR_TEST_F64(test_views_at_any_element)
{
    enum { ROWS = 9, MOST = 16 };
    double values[ROWS * MOST];
    kn_jit *jit = kn_jit_elementwise("T f(T x, T y) { return x * y + x; }");
    for (int columns = 11; columns <= 12; columns++) {
        for (int skip = 0; skip <= 4; skip++) {
            kn_tensor *x = numbers(KN_F64, KN_SHAPE(ROWS * columns + 4), -2, 0.125);
            kn_tensor *y = numbers(KN_F64, KN_SHAPE(columns + 4), 1, 0.5);
            kn_tensor *part = kn_reshape(kn_narrow(x, 0, skip, (int64_t)ROWS * columns), KN_SHAPE(ROWS, columns));
            kn_tensor *z = kn_jit_call(jit, KN_JIT_INPUTS(part, kn_narrow(y, 0, 4 - skip, columns)));
            CHECK_OK(kn_read(z, values, (size_t)(ROWS * columns) * sizeof *values));
            for (int e = 0; e < ROWS * columns; e++) {
                double a = -2 + 0.125 * (skip + e), b = 1 + 0.5 * (4 - skip + e % columns);
                if (values[e] != a * b + a)
                    fail_msg("%d columns from element %d on: element %d is %g, not %g", columns, skip, e, values[e],
                             a * b + a);
            }
        }
    }
    kn_jit_free(jit);
}

TENSOR_TEST(test_several_outputs)
{
    kn_jit *jit = kn_jit_elementwise("static T twice(T x) { return x + x; }\n"
                                     "/* the last function counts */\n"
                                     "void both(const T x, T y, T *sum, T *restrict difference)\n"
                                     "{ *sum = x + twice(y); *difference = x - y; }\n");
    kn_tensor *difference, *x = numbers(KN_F32, KN_SHAPE(3), 1, 1);
    assert_int_equal(kn_jit_num_outputs(jit), 2);
    CHECK_VALUES(kn_jit_call(jit, KN_JIT_INPUTS(x, kn_full(KN_SCALAR, 1)), .more = &difference), 3, 4, 5);
    CHECK_VALUES(difference, 0, 1, 2);
    CHECK_VALUES(kn_jit_call(jit, KN_JIT_INPUTS(x, x)), 3, 6, 9); /* the other is dropped */
    kn_jit_free(jit);
}

TENSOR_TEST(test_scalars)
{
    kn_jit *jit = kn_jit_elementwise("T f(T x, T alpha, int n, float beta) { return alpha * x + n * beta; }",
                                     .scalars = {{"alpha", 2}, {"n", 3}, {"beta", 0.5}});
    kn_tensor *x = numbers(KN_F32, KN_SHAPE(2), 1, 1);
    CHECK_VALUES(kn_jit_call(jit, KN_JIT_INPUTS(x)), 3.5, 5.5);
    CHECK_VALUES(kn_jit_call(jit, KN_JIT_INPUTS(x), .scalars = {{"beta", 1}, {"alpha", 0.25}}), 3.25, 3.5);
    CHECK_VALUES(kn_jit_call(jit, KN_JIT_INPUTS(x)), 3.5, 5.5);
    assert_null(kn_jit_call(jit, KN_JIT_INPUTS(x), .scalars = {{"gamma", 1}}));
    CHECK_ERROR(KN_ERR_ARGUMENT, "f", "gamma");
    kn_jit_free(jit);
}

TENSOR_TEST_F64(test_dtypes)
{
    kn_jit *jit = kn_jit_elementwise("template <typename T> T f(T x, T y) { return x * y + (T)1; }");
    kn_tensor *i64 = numbers(KN_I64, KN_SHAPE(3), 1, 1), *i32 = numbers(KN_I32, KN_SHAPE(3), 2, 1);
    kn_tensor *f16 = numbers(KN_F16, KN_SHAPE(3), 0.5, 1), *u8 = numbers(KN_U8, KN_SHAPE(3), 3, 1);
    kn_tensor *z = kn_jit_call(jit, KN_JIT_INPUTS(i64, i32));
    CHECK_DTYPE(z, KN_I64);
    CHECK_VALUES(z, 3, 7, 13);
    z = kn_jit_call(jit, KN_JIT_INPUTS(u8, u8));
    CHECK_DTYPE(z, KN_U8);
    CHECK_VALUES(z, 10, 17, 26);
    z = kn_jit_call(jit, KN_JIT_INPUTS(f16, i64));
    CHECK_DTYPE(z, KN_F16);
    CHECK_VALUES(z, 1.5, 4, 8.5);
    kn_tensor *bf16 = numbers(KN_BF16, KN_SHAPE(3), 0.5, 1), *i8 = numbers(KN_I8, KN_SHAPE(3), -100, 50);
    z = kn_jit_call(jit, KN_JIT_INPUTS(bf16, i8));
    CHECK_DTYPE(z, KN_BF16);
    CHECK_VALUES(z, -49, -74, 1);
    z = kn_jit_call(jit, KN_JIT_INPUTS(i8, i8));
    CHECK_DTYPE(z, KN_I8);
    CHECK_VALUES(z, 17, -59, 1); /* 10001 and 2501, which wrap around */
    z = kn_jit_call(jit, KN_JIT_INPUTS(i8, u8));
    CHECK_DTYPE(z, KN_I16);
    CHECK_VALUES(z, -299, -199, 1);
    z = kn_jit_call(jit, KN_JIT_INPUTS(i32, kn_full(KN_SCALAR, 0.5, .dtype = KN_F64))); /* no dimensions: float wins, */
    CHECK_DTYPE(z, KN_F64);
    z = kn_jit_call(jit, KN_JIT_INPUTS(f16, kn_full(KN_SCALAR, 2, .dtype = KN_F64))); /* but does not widen a float */
    CHECK_DTYPE(z, KN_F16);
    CHECK_VALUES(z, 2, 4, 6);
    kn_jit_free(jit);
    jit = kn_jit_elementwise("T f(T x, T y) { return x && !y; }");
    kn_tensor *yes = kn_gt(i64, kn_full(KN_SCALAR, 1)), *no = kn_eq(i64, kn_full(KN_SCALAR, 3));
    z = kn_jit_call(jit, KN_JIT_INPUTS(yes, no));
    CHECK_DTYPE(z, KN_BOOL);
    CHECK_VALUES(z, 0, 1, 0);
    kn_jit_free(jit);
}

#define EIGHT "T a, T b, T c, T d, T e, T f, T g, T h"
TENSOR_TEST_F64(test_most_of_everything)
{
    kn_jit *jit = kn_jit_elementwise(
        "void many(" EIGHT ", T p, T q, T r, T s, T *A, T *B, T *C, T *D, T *E, T *F, T *G, T *H)\n"
        "{ *A = a * p; *B = b * q; *C = c * r; *D = d * s; *E = e * a; *F = f; *G = g; *H = h * 2; }",
        .derivative = "void back(" EIGHT ", T gA, T gB, T gC, T gD, T gE, T gF, T gG, T gH, T p, T q, T r, T s,\n"
                      "T *ga, T *gb, T *gc, T *gd, T *ge, T *gf, T *gg, T *gh)\n"
                      "{ *ga = gA * p + gE * e; *gb = gB * q; *gc = gC * r; *gd = gD * s; *ge = gE * a; *gf = gF;\n"
                      "*gg = gG; *gh = 2 * gH; }",
        .scalars = {{"p", 2}, {"q", 3}, {"r", 4}, {"s", 5}});
    kn_tensor *x[8], *more[7];
    for (int i = 0; i < 8; i++) {
        x[i] = i % 2 ? kn_t(numbers(KN_F64, KN_SHAPE(3, 2), i, 1)) : numbers(KN_F64, KN_SHAPE(2, 1), i, 1);
        CHECK_OK(kn_set_requires_grad(x[i] = kn_detach(x[i]), true));
    }
    kn_tensor *first = kn_jit_call_with(jit, x, 8, &(kn_jit_call_params){.more = more});
    CHECK_VALUES(first, 0, 0, 0, 2, 2, 2);
    CHECK_VALUES(more[0], 3, 9, 15, 6, 12, 18);
    CHECK_VALUES(more[6], 14, 18, 22, 16, 20, 24);
    CHECK_OK(kn_backward(kn_sum(kn_add(kn_add(first, more[3]), more[6]))));
    CHECK_VALUES(kn_grad(x[0]), 3 * (2 + 4), 3 * (2 + 5)); /* summed over the broadcast dimension */
    CHECK_VALUES(kn_grad(x[4]), 0, 3);
    CHECK_VALUES(kn_grad(x[1]), 0, 0, 0, 0, 0, 0); /* no gradient reached its output */
    CHECK_VALUES(kn_grad(x[7]), 2, 2, 2, 2, 2, 2);
    kn_jit_free(jit);
}

/* --- many tensors ------------------------------------------------------------------------------------------------- */

enum { INPUTS = 20, OUTPUTS = 10 };

/* Appends the text for 0, 1, ... in place of `@`, and OUTPUTS more in place of `#`. */
static void append(char *text, size_t size, const char *pattern, int count)
{
    for (int i = 0; i < count; i++)
        for (const char *at = pattern; *at; at++) {
            const size_t length = strlen(text);
            if (*at == '@' || *at == '#')
                snprintf(text + length, size - length, "%d", i + (*at == '#' ? OUTPUTS : 0));
            else
                snprintf(text + length, size - length, "%c", *at);
        }
}

/* Output i is the product of inputs i and i + 10, times alpha. */
static kn_jit *products(void)
{
    char code[4096] = "void f(T alpha", derivative[4096] = "void df(T alpha";
    append(code, sizeof code, ", T x@", INPUTS);
    append(code, sizeof code, ", T *y@", OUTPUTS);
    strcat(code, ") {");
    append(code, sizeof code, "*y@ = alpha * x@ * x#;", OUTPUTS);
    strcat(code, "}");
    append(derivative, sizeof derivative, ", T x@", INPUTS);
    append(derivative, sizeof derivative, ", T g@", OUTPUTS);
    append(derivative, sizeof derivative, ", T *d@", INPUTS);
    strcat(derivative, ") {");
    append(derivative, sizeof derivative, "*d@ = alpha * g@ * x#; *d# = alpha * g@ * x@;", OUTPUTS);
    strcat(derivative, "}");
    return kn_jit_elementwise(code, .derivative = derivative, .scalars = {{"alpha", 2}});
}

/* The outputs, each with its own weight. */
static kn_tensor *weighted(kn_tensor *const *inputs, void *jit)
{
    kn_tensor *more[OUTPUTS - 1];
    kn_tensor *sum = kn_jit_call_with(jit, inputs, INPUTS, &(kn_jit_call_params){.more = more});
    for (int i = 1; i < OUTPUTS; i++)
        sum = kn_add(sum, kn_mul_scalar(more[i - 1], i + 1));
    return sum;
}

TENSOR_TEST_F64(test_many_tensors)
{
    kn_tensor *x[INPUTS], *more[OUTPUTS - 1];
    kn_jit *jit = products();
    CHECK_NEW(jit);
    assert_true(kn_jit_num_inputs(jit) == INPUTS && kn_jit_num_outputs(jit) == OUTPUTS);
    for (int i = 0; i < INPUTS; i++) {
        x[i] = i % 3 ? kn_t(numbers(KN_F64, KN_SHAPE(3, 2), i, 0.1)) : numbers(KN_F64, KN_SHAPE(2, 1), i, 0.1);
        CHECK_OK(kn_set_requires_grad(x[i] = kn_detach(x[i]), i != 5));
    }
    CHECK_OK(kn_gradcheck(weighted, jit, x, INPUTS, NULL));
    CHECK_VALUES(kn_jit_call_with(jit, x, INPUTS, &(kn_jit_call_params){.more = more, .scalars = {{"alpha", 1}}}), 0, 0,
                 0, 1.01, 1.03, 1.05);
    CHECK_SHAPE(more[OUTPUTS - 2], 2, 3);
    CHECK_VALUES(kn_jit_call_with(jit, x, INPUTS, NULL), 0, 0, 0, 2.02, 2.06, 2.1);
    x[4] = kn_zeros(KN_SHAPE(0, 1), .dtype = KN_F64);
    for (int i = 0; i < INPUTS; i++)
        x[i] = i == 4 ? x[i] : kn_ones(KN_SHAPE(3), .dtype = KN_F64, .requires_grad = i == 3);
    kn_tensor *y = weighted(x, jit);
    CHECK_SHAPE(y, 0, 3);
    CHECK_OK(kn_backward(kn_sum(y)));
    CHECK_VALUES(kn_grad(x[3]), 0, 0, 0);
    assert_null(kn_jit_call_with(jit, x, INPUTS - 1, NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "f takes 20 tensors, not 19");
    kn_jit_free(jit);
}

TENSOR_TEST(test_many_tensors_of_any_dtype)
{
    kn_jit *jit =
        kn_jit_elementwise("#define NINE a + b + c + d + e + f + g + h + i\n"
                           "T sum(T a, T b, T c, T d, T e, T f, T g, T h, T i, int n) { return NINE + (T)n; }",
                           .scalars = {{"n", 1}});
    static const kn_dtype dtypes[] = {KN_F32, KN_BF16, KN_I64, KN_I8};
    for (size_t k = 0; k < sizeof dtypes / sizeof dtypes[0]; k++) {
        kn_tensor *x[9];
        for (int i = 0; i < 9; i++)
            x[i] = i % 2 ? kn_full(KN_SHAPE(2), i, .dtype = dtypes[k]) : kn_full(KN_SCALAR, i, .dtype = dtypes[k]);
        kn_tensor *y = kn_jit_call_with(jit, x, 9, NULL);
        CHECK_DTYPE(y, dtypes[k]);
        CHECK_VALUES(y, 37, 37);
    }
    kn_jit_free(jit);
    jit = kn_jit_elementwise("T all(T a, T b, T c, T d, T e, T f, T g, T h, T i) { return a && b && c && d && !i; }");
    kn_tensor *yes = kn_gt(kn_ones(KN_SHAPE(2)), kn_zeros(KN_SHAPE(2)));
    kn_tensor *x[9] = {yes, yes, yes, yes, yes, yes, yes, yes, kn_eq(kn_arange(0, 2, 1), kn_ones(KN_SHAPE(2)))};
    CHECK_DTYPE(kn_jit_call_with(jit, x, 9, NULL), KN_BOOL);
    CHECK_VALUES(kn_jit_call_with(jit, x, 9, NULL), 1, 0);
    kn_jit_free(jit);
}

TENSOR_TEST(test_too_many_parameters)
{
    static char code[16384];
    strcpy(code, "T f(T a");
    append(code, sizeof code, ", T x@", 512);
    strcat(code, ") { return a; }");
    assert_null(kn_jit_elementwise(code));
    CHECK_ERROR(KN_ERR_ARGUMENT, "`f` has more than 512 parameters");
}

/* --- wrong code --------------------------------------------------------------------------------------------------- */

static void check_refused(const char *code, const char *derivative, const char *piece, const char *other)
{
    kn_jit *jit = kn_jit_elementwise(code, .derivative = derivative, .scalars = {{"alpha", 1}});
    if (jit)
        fail_msg("`%s` is accepted", code);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_jit_elementwise", piece, other);
}

TENSOR_TEST(test_signatures)
{
    check_refused("", NULL, "no function", "T f(T x)");
    check_refused("typedef int number;", NULL, "no function", "");
    check_refused("T f(T x, T alpha)", NULL, "no function", "");
    check_refused("T f(T x, T alpha) {", NULL, "line 1", "has no `}`");
    check_refused("\n} T f(T x, T alpha) { return x; }", NULL, "line 2", "has no `{`");
    check_refused("T f(T x, T alpha) { return x; }\n\n/* ", NULL, "line 3", "comment");
    check_refused("T f(T x, T alpha) { return \"; }\n", NULL, "line 1", "quotation");
    check_refused("T f(T alpha) { return alpha; }", NULL, "0 tensors", "one or more");
    check_refused("T f() { return 1; }", NULL, "at least one tensor", "");
    check_refused("T f(void) { return 1; }", NULL, "at least one tensor", "");
    check_refused("T f(T x, T y) { return 1; }", NULL, "0 parameters called `alpha`", "");
    check_refused("T f(T x, T alpha, ) { return x; }", NULL, "parameter 3", "empty");
    check_refused("T f(T, T alpha) { return x; }", NULL, "parameter 1", "a name");
    check_refused("\nT f(T x, float y, T alpha) { return x; }", NULL, "line 2", "`y`");
    check_refused("T f(T x[], T alpha) { return x; }", NULL, "parameter 1", "`[`");
    check_refused("T f(T **x, T alpha) { return x; }", NULL, "`x`", "T *");
    check_refused("T f(T x, char alpha) { return x; }", NULL, "`alpha`", ".scalars");
    check_refused("float f(T x, T alpha) { return x; }", NULL, "return T", "void");
    check_refused("void f(T x, T alpha) { }", NULL, "no result", "T *y");
    check_refused("T f(T x, T *y, T alpha) { return x; }", NULL, "returns T", "return void");
    check_refused("T f(T x, T alpha) { return x; }", "T df(T x) { return 1; }", "derivative", "`df` takes 1 values");
    check_refused("T f(T x, T alpha) { return x; }", "void df(T x, T g, T *a, T *b) { }", "derivative", "2 results");
    check_refused("T f(T x, T alpha) { return x; }", "nonsense", "derivative", "no function");
    assert_null(kn_jit_elementwise(NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "code");
}

/* Compile errors show the user's line, numbered in the user's text, and everything works afterwards. */
TENSOR_TEST(test_compile_errors)
{
    kn_tensor *x = kn_ones(KN_SHAPE(4));
    kn_jit *jit = kn_jit_elementwise("T helper(T x)\n{\n    return x;\n}\n#define TWO 2\n\nT broken(T x)\n{\n"
                                     "    return helper(x) * bogus_name;\n}");
    for (int i = 0; i < 2; i++) {
        assert_null(kn_jit_call(jit, KN_JIT_INPUTS(x)));
        CHECK_ERROR(KN_ERR_DEVICE, "broken", "line 9 of `broken`", "`return helper(x) * bogus_name;`",
                    "the compiler says");
    }
    kn_jit_free(jit);
    jit = kn_jit_elementwise("T fine(T x) { return x * x; }",
                             .derivative = "\nT awry(T x, T grad)\n{\n    return grad * x x;\n}");
    kn_tensor *w = leaf(x), *y = kn_sum(kn_jit_call(jit, KN_JIT_INPUTS(w)));
    CHECK_VALUES(y, 4);
    assert_int_equal(kn_backward(y), KN_ERR_DEVICE);
    CHECK_ERROR(KN_ERR_DEVICE, "line 4 of `awry`", "`return grad * x x;`");
    CHECK_VALUES(kn_jit_call(jit, KN_JIT_INPUTS(x)), 1, 1, 1, 1);
    kn_jit_free(jit);
}

TENSOR_TEST(test_misuse)
{
    kn_jit *jit = kn_jit_elementwise("T f(T x, T y) { return x + y; }");
    kn_tensor *x = kn_ones(KN_SHAPE(2)), *y = kn_ones(KN_SHAPE(3));
    assert_null(kn_jit_call(jit, KN_JIT_INPUTS(x)));
    CHECK_ERROR(KN_ERR_ARGUMENT, "f takes 2 tensors, not 1");
    assert_null(kn_jit_call(jit, KN_JIT_INPUTS(x, NULL)));
    CHECK_ERROR(KN_ERR_ARGUMENT, "f", "NULL");
    assert_null(kn_jit_call(jit, KN_JIT_INPUTS(x, y)));
    CHECK_ERROR(KN_ERR_SHAPE, "f", "do not broadcast");
    assert_null(kn_jit_call(jit, KN_JIT_INPUTS(x, kn_to(x, kn_device_host()))));
    CHECK_ERROR(KN_ERR_DEVICE, "f", "host");
    assert_null(kn_jit_call(NULL, KN_JIT_INPUTS(x)));
    CHECK_ERROR(KN_ERR_ARGUMENT, "jit");
    kn_jit_free(jit);
    kn_jit_free(NULL);
}

/* --- vectors on CPU devices --------------------------------------------------------------------------------------- */

static void check_suits(bool expected, const char *body)
{
    char code[256];
    snprintf(code, sizeof code, "T f(T x, T y) { %s }", body);
    if (kn_jit_suits_vectors(code) != expected)
        fail_msg("`%s` is taken for one that %s vectors", body, expected ? "does not suit" : "suits");
}

/* A comparison gives 1 for scalars and -1 for vectors: it may only be used as a condition. */
static void test_what_suits_vectors(void **state)
{
    (void)state;
    check_suits(true, "return 2 * x + exp(y);");
    check_suits(true, "return x > 0 ? x : y;");
    check_suits(true, "return (x >= y && !(y == 0)) || x <= 1 ? x * (x != y ? 2 : y) : fmax(x, y);");
    check_suits(true, "T z = x < y ? x : y; z += 1; return z * tanh(x < 0 ? -x : x);");
    check_suits(true, "return select(x, y, x > y) * 2;");
    check_suits(false, "return (x > 0) == 1 ? x : y;");
    check_suits(false, "return x > 0 == 1 ? x : y;");
    check_suits(false, "return 1 == (x > 0) ? x : y;");
    check_suits(false, "return ((x > 0)) != 0 ? x : y;");
    check_suits(false, "return (x > 0) + (y > 0) > 1 ? x : y;");
    check_suits(false, "return 0 < x < 1 ? x : y;");
    check_suits(false, "return -(x > 0) < 0 ? x : y;");
    check_suits(false, "return (x > 0) & 1 ? x : y;");
    check_suits(false, "return max(x > 0, y > 0) ? x : y;");
    check_suits(false, "return max(0, y > 0) ? x : y;");
    check_suits(false, "return isnan(x) == 1 ? x : y;");
    check_suits(false, "if (x > 0) return x; return y;");
    check_suits(false, "for (;;) x += y;");
    check_suits(false, "return (int)x;");
    check_suits(false, "return sizeof(T);");
    check_suits(false, "\n#define GREATER(a, b) ((a) > (b))\n return GREATER(x, y) == 1 ? x : y;");
}

TENSOR_TEST(test_values_of_comparisons)
{
    kn_jit *jit = kn_jit_elementwise("T f(T x) { return (x > 0) == 1 ? x : -2 * x; }");
    double sum;
    CHECK_OK(kn_item(kn_sum(kn_jit_call(jit, KN_JIT_INPUTS(kn_ones(KN_SHAPE(100))))), &sum));
    assert_true(sum == 100);
    kn_jit_free(jit);
}

/* --- caching ------------------------------------------------------------------------------------------------------ */

static void test_sources_are_kept_once(void **state)
{
    (void)state;
    kn_user_source a, b, c;
    CHECK_OK(kn_user_source_add(&a, "one", "kernel void one(int n) { }", true));
    CHECK_OK(kn_user_source_add(&b, "one", "kernel void one(int n) { }", true));
    CHECK_OK(kn_user_source_add(&c, "one", "kernel void one(int n) { } ", true));
    assert_ptr_equal(a.path, b.path);
    assert_ptr_not_equal(a.path, c.path);
    assert_string_equal(c.name, "one");
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(test_one_output),
        TEST(test_long),
        TEST(test_views_at_any_element),
        TEST(test_several_outputs),
        TEST(test_scalars),
        TEST(test_dtypes),
        TEST(test_most_of_everything),
        TEST(test_many_tensors),
        TEST(test_many_tensors_of_any_dtype),
        TEST(test_too_many_parameters),
        TEST(test_signatures),
        TEST(test_compile_errors),
        TEST(test_misuse),
        TEST(test_what_suits_vectors),
        TEST(test_values_of_comparisons),
        TEST(test_sources_are_kept_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

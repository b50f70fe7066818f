/* test_jit_code.c - unusual, careless or hostile code for kn_jit gives correct values or a clear error. */
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/user/jit_parse.h"
#include "support/as_gpu.h"
#include "support/values.h"

/* f(x, 2) for x = 1, 2, ..., 20: more than one vector. */
enum { COUNT = 20 };

static void check_code(const char *code, kn_dtype dtype, double (*wanted)(double x))
{
    kn_jit *jit = kn_jit_elementwise(code);
    CHECK_OK(jit ? KN_OK : kn_error_status());
    {
        KN_SCOPE;
        kn_tensor *x = kn_to_dtype(kn_arange(1, COUNT + 0.5, 1, .dtype = KN_F32), dtype);
        kn_tensor *inputs[] = {x, kn_full(KN_SHAPE(1), 2, .dtype = dtype)};
        kn_tensor *y = kn_jit_call_with(jit, inputs, kn_jit_num_inputs(jit), NULL);
        CHECK_TENSOR(y);
        double *values = read_doubles(y);
        assert_non_null(values);
        for (int i = 0; i < COUNT; i++)
            if (values[i] != wanted(i + 1))
                fail_msg("`%s` gives %g for %d, not %g", code, values[i], i + 1, wanted(i + 1));
        free(values);
    }
    kn_jit_free(jit);
}

static double same(double x) { return x; }
static double twice(double x) { return 2 * x; }
static double twice_beyond_three(double x) { return x > 3 ? x : 2 * x; }

/* `!`, `&&`, `||`, `?` and functions of a whole vector mean the same for scalars and vectors. In f64 a few, unless
 * KOINE_TEST_FULL is set. */
TENSOR_TEST_F64(test_conditions_and_their_values)
{
    static const struct {
        const char *body;
        double (*wanted)(double x);
    } codes[] = {
        {"return !(x - x) == 1 ? x : y;", same},
        {"T z = x - x; return !z > 0 ? x : y;", same},
        {"return (x && y) == 1 ? x : y;", same},
        {"return (x && 1) - 1 ? y : x;", same},
        {"return 2 - !(x > 1) ? x : y;", same},
        {"return (x > 1 ? 2 : 5) - 3 ? x : y;", same},
        {"return ilogb(x) + 9 ? x : y;", same},
        {"return vec_step(T) * x;", same},
        {"return length(x) + dot(x - x, y);", same},
        {"return !(x <= 3) && !(y == 0) ? x : y * x;", twice_beyond_three},
        {"return (x > 3 || x < 0) && y == y ? x : y * x;", twice_beyond_three},
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        char code[128];
        snprintf(code, sizeof code, "T f(T x, T y) { %s }", codes[i].body);
        check_code(code, KN_F32, codes[i].wanted);
        if (i % 5 == 0 || test_full())
            check_code(code, KN_F64, codes[i].wanted);
    }
}

static void check_suits(bool expected, const char *body)
{
    char code[256];
    snprintf(code, sizeof code, "T f(T x, T y) { %s }", body);
    if (kn_jit_suits_vectors(code) != expected)
        fail_msg("`%s` is taken for one that %s vectors", body, expected ? "does not suit" : "suits");
}

static void test_what_suits_vectors(void **state)
{
    (void)state;
    check_suits(true, "return !(x <= 3) && !(y == 0) ? x : y;");
    check_suits(true, "return (x > 3 || x < 0) && y == y ? x : y;");
    check_suits(true, "return x > 0 ? x : y > 0 ? y : x * y;");
    check_suits(true, "return !(x > 0 && y > 0) ? x : y;");
    check_suits(false, "return !x == 1 ? x : y;");
    check_suits(false, "return !x ? x : y;");
    check_suits(false, "return !(x) == 1 ? x : y;");
    check_suits(false, "return !(x > 0 ? x : y) - 1 ? x : y;");
    check_suits(false, "return 2 - !(x > 0) ? x : y;");
    check_suits(false, "return (x && y) == 1 ? x : y;");
    check_suits(false, "return 1 - (x || y) ? x : y;");
    check_suits(false, "return max(0, x && y) ? x : y;");
    check_suits(false, "return (x > 1 ? 2 : 5) - 3 ? x : y;");
    check_suits(false, "return x > 0 ? x : (x > 1 ? 2 : 5) - 3 ? x : y;");
    check_suits(false, "return ilogb(x) ? x : y;");
    check_suits(false, "return length(x);");
    check_suits(false, "return fast_normalize(x);");
    check_suits(false, "return vec_step(T) * x;");
}

/* Names in user code cannot clash with those of the surrounding loops: of the function, of its helpers, of macros. */
TENSOR_TEST(test_names)
{
    static const char *const names[] = {"run",  "at",      "last",  "end",   "position", "cursor", "chunk",
                                        "k",    "element", "plan",  "width", "count",    "value",  "koine",
                                        "name", "kernel_", "index", "step",  "y",        "mirror"};
    enum { NAMES = sizeof names / sizeof *names };
    char functions[2][80 * NAMES], macros[32 * NAMES];
    size_t used[2] = {0, 0}, length = 0;
    for (int i = 0; i < NAMES; i++) { /* alternately one that suits vectors and one that does not */
        const int branches = i % 2;
        used[branches] +=
            (size_t)snprintf(functions[branches] + used[branches], sizeof functions[0] - used[branches],
                             "T %s(T a) { %s return 2 * a; }\n", names[i], branches ? "if (a < 0) a = 0;" : "");
        length += (size_t)snprintf(macros + length, sizeof macros - length, "#define %s 2\n", names[i]);
    }
    snprintf(macros + length, sizeof macros - length, "T f(T a) { return count * a; }");
    check_code(functions[0], KN_F32, twice);
    check_code(functions[1], KN_F32, twice);
    check_code(macros, KN_F32, twice);
}

/* Texts are read alike for all devices. */
TENSOR_TEST(test_texts)
{
    if (simulates_gpu() && !test_full())
        return;
    check_code("T f(T x)\r\n{\r\n    return x;\r\n}\r\n", KN_F32, same);
    check_code("#define HALF(x) \\\r\n    { x\r\n#undef HALF\r\nT f(T x) { return x; }", KN_F32, same);
    check_code("#define ONE 1 /* a comment of\n two lines { */\nT f(T x) { return ONE * x; }", KN_F32, same);
    check_code("T f(T x) \\\n{ return x; }", KN_F32, same);
    check_code("T f(T \\\r\n x) { return x; }", KN_F32, same);
    check_code("T f(T x) { return x; } // } \\\n }", KN_F32, same);
    check_code("/* { */ // {\nT f(T x) { return x + '{' - '\\173'; }", KN_F32, same);
    check_code("/*\n#include \"common/koine.clh\"\n*/\nT f(T x) { return x; }", KN_F32, same);
    check_code("#include \"common/koine.clh\"\nT f(T x) { return x; }", KN_F32, same);
    check_code("typedef struct { T a; } pair;\nT f(T x) { pair p = {x}; return p.a; };", KN_F32, same);
    check_code("constant float table[] = {1, 2};\nT f(T x) { return table[1] * x; }", KN_F32, twice);
}

/* Long enough that quadratic time would be noticeable. */
TENSOR_TEST(test_enormous_text)
{
    enum { LINES = 40000 };
    static const char line[] = "/* nothing to see here, and { nothing } to read */\n", end[] = "T f(T x) { return x; }";
    char *code = malloc(LINES * (sizeof line - 1) + sizeof end), *at = code;
    assert_non_null(code);
    for (int i = 0; i < LINES; i++, at += sizeof line - 1)
        memcpy(at, line, sizeof line - 1);
    memcpy(at, end, sizeof end);
    check_code(code, KN_F32, same);
    free(code);
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

static void check_refused(const char *code, const char *derivative, const char *piece, const char *other)
{
    kn_jit *jit = kn_jit_elementwise(code, .derivative = derivative);
    if (jit)
        fail_msg("`%s` is accepted", code);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_jit_elementwise", piece, other);
}

TENSOR_TEST(test_refused)
{
    check_refused("T f(T x)\n{\n    return x > 0 ? f(x - 1) : x;\n}", NULL, "line 3", "`f` calls itself");
    check_refused("T g(T x) { return g(x); }\nT f(T x) { return x; }", NULL, "line 1", "`g` calls itself");
    check_refused("T f(T x) { return x; }", "T f(T x, T grad) { return grad; }", "derivative", "needs another name");
    check_refused("T f(T x) { \"a\\\n\"; return \"; }", NULL, "line 2", "quotation");
    check_refused("#if 0\n#else /* {\n} */\n#endif\nT f(T x) { return x; } }", NULL, "line 5", "has no `{`");
}

static void check_build_error(const char *code, const char *line, const char *quoted)
{
    kn_jit *jit = kn_jit_elementwise(code);
    kn_tensor *x = kn_ones(KN_SHAPE(3));
    assert_null(kn_jit_call(jit, KN_JIT_INPUTS(x)));
    CHECK_ERROR(KN_ERR_DEVICE, line, quoted);
    kn_jit_free(jit);
}

TENSOR_TEST(test_lines_of_errors)
{
    check_build_error("T f(T x)\r\n{\r\n    return x * bogus;\r\n}\r\n", "line 3 of `f`", "`return x * bogus;`");
    check_build_error("#define A \\\n  1\nT f(T x)\n{\n    return x * bogus;\n}", "line 5 of `f`",
                      "`return x * bogus;`");
    check_build_error(
        "/*\n#include \"common/koine.clh\"\n*/\n#include \"common/koine.clh\"\nT f(T x) { return bogus; }",
        "line 5 of `f`", "`T f(T x) { return bogus; }`");
    check_build_error("template <typename T>\nT f(T x)\n{\n    return x @ 1;\n}", "line 4 of `f`", "`return x @ 1;`");
    check_build_error("T mirror(T x)\n{\n    T *q = 0; q == 3;\n    return bogus;\n}", "line 4 of `mirror`", "bogus");
    check_build_error("T error(T x)\n{\n    T *q = 0; q == 3;\n    return bogus;\n}", "line 4 of `error`", "bogus");
    check_build_error("T f(T x) { return x; }\n#if 1\n", "line 2 of `f`", "`#if 1`");
    check_build_error("#include \"common/koine.clh\"\nT f(T x) { return x; }\nT f(T x) { return -x; }", "line 3 of `f`",
                      "");
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* Pointers to further results are always initialised. */
TENSOR_TEST(test_further_results_of_failures)
{
    kn_jit *jit = kn_jit_elementwise("void f(T x, T *a, T *b) { *a = x; *b = bogus; }");
    kn_tensor *x = kn_ones(KN_SHAPE(2)), *more = x;
    assert_null(kn_jit_call(jit, KN_JIT_INPUTS(x), .more = &more));
    CHECK_ERROR(KN_ERR_DEVICE, "bogus");
    assert_null(more);
    more = x;
    assert_null(kn_jit_call(jit, KN_JIT_INPUTS(x, x), .more = &more));
    CHECK_ERROR(KN_ERR_ARGUMENT, "takes 1 tensor");
    assert_null(more);
    kn_jit_free(jit);
}

/* Numbers that do not fit their type saturate; any nonzero number is true. */
TENSOR_TEST(test_numbers)
{
    kn_jit *whole = kn_jit_elementwise("T f(T x, int i, long l) { return i == 2147483647 && l < 0 ? x : 0; }",
                                       .scalars = {{"i", 1e300}, {"l", -HUGE_VAL}});
    kn_jit *nan = kn_jit_elementwise("T f(T x, int i) { return i == 0 ? x : 0; }", .scalars = {{"i", NAN}});
    kn_jit *truth = kn_jit_elementwise("T f(T x, T t) { return x == t; }", .scalars = {{"t", 0.5}});
    kn_tensor *x = kn_full(KN_SHAPE(2), 7), *yes = kn_gt(x, kn_zeros_like(x));
    CHECK_VALUES(kn_jit_call(whole, KN_JIT_INPUTS(x)), 7, 7);
    CHECK_VALUES(kn_jit_call(nan, KN_JIT_INPUTS(x)), 7, 7);
    CHECK_VALUES(kn_jit_call(truth, KN_JIT_INPUTS(yes)), 1, 1);
    kn_jit_free(whole);
    kn_jit_free(nan);
    kn_jit_free(truth);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(test_conditions_and_their_values),
        TEST(test_what_suits_vectors),
        TEST(test_names),
        TEST(test_texts),
        TEST(test_enormous_text),
        TEST(test_refused),
        TEST(test_lines_of_errors),
        TEST(test_further_results_of_failures),
        TEST(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

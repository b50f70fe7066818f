/* test_builtins.c - a program gets the declarations of what it may call, and few others. */
#include <string.h>

#include "base/memory.h"
#include "rt/program/builtins.h"
#include "support/check.h"

static char text[1 << 16]; /* the last that was made */

static void keep(kn_text *out)
{
    char *made = kn_text_finish(out);
    assert_non_null(made);
    assert_true(strlen(made) < sizeof text);
    strcpy(text, made);
    kn_free(made);
}

static void declared_with(const char *source, const char *options, bool has_f64)
{
    kn_text out = {0};
    kn_declare_builtins(&out, &(kn_program_words){source, options, has_f64});
    keep(&out);
}

static void declared(const char *source) { declared_with(source, "", true); }

static void defined(const char *source)
{
    kn_text out = {0};
    kn_define_vector_access(&out, &(kn_program_words){source, "", true});
    keep(&out);
}

#define HAS(piece) assert_non_null(strstr(text, piece))
#define LACKS(piece) assert_null(strstr(text, piece))

static void functions_of_the_types_that_are_named(void **state)
{
    (void)state;
    declared("float16 v = exp(w);");
    HAS("float16 kn_pure exp(float16);");
    HAS("float kn_pure exp(float);");
    LACKS("exp(double");
    LACKS("sqrt(");
    declared("/* double */ float v = exp(w); // sqrt");
    LACKS("double");
    LACKS("sqrt(");
    declared_with("double d; exp(d);", "", false);
    LACKS("exp(double)");
    declared_with("exp(x);", "-DT=double", true);
    HAS("exp(double16)");
}

static void vectors_where_a_program_may_have_them(void **state)
{
    (void)state;
    declared("ulong n = (ulong)min(a, b);"); /* names alone */
    HAS("ulong kn_pure min(ulong, ulong);");
    LACKS("ulong2");
    declared("KN_JOIN(ulong, 16) n = min(a, b);");
    HAS("min(ulong16, ulong16)");
    declared("#define T ulong\nmin(a, b);");
    HAS("min(ulong16, ulong16)");
    declared("LAY(ulong) min(a, b);");
    HAS("min(ulong16, ulong16)");
    declared("ulong4 n; min(a, b);");
    HAS("min(ulong4, ulong4)");
    declared("float4 v; any(v < w);"); /* comparisons are vectors of int */
    HAS("int kn_pure any(int4);");
}

static void conversions_are_the_compilers(void **state)
{
    (void)state;
    declared("float8 v = convert_float8(i);");
    HAS("#undef convert_float8\n#define convert_float8(v) __builtin_convertvector(v, float8)\n");
    HAS("#define convert_float(v) ((float)(v))\n");
}

static void widths_that_are_named(void **state)
{
    (void)state;
    defined("float16 v = vload16(0, p);");
    HAS("kn_vload16(size_t i, const global float *p)");
    LACKS("float8");
    defined("float16 v = JOIN(vload, W)(0, p);"); /* any */
    HAS("kn_vload2(size_t i, const global float *p)");
    LACKS("local float");
    defined("local float x[4]; v = vload4(0, x);");
    HAS("kn_vload4(size_t i, const local float *p)");
    defined("ushort own[4] = {1, 2}; y = vload2(1, own).x;"); /* types that an array or a pointer names */
    HAS("kn_vload2(size_t i, const private ushort *p)");
    defined("const global short *p = x; y = vload2(1, p).x;");
    HAS("kn_vload2(size_t i, const global short *p)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_the_types_that_are_named),
        cmocka_unit_test(vectors_where_a_program_may_have_them),
        cmocka_unit_test(conversions_are_the_compilers),
        cmocka_unit_test(widths_that_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* rt/program/builtins.c - see builtins.h. */
#include "rt/program/builtins.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

/* --- what can be declared ---------------------------------------------------------------------------------------- */

/* Words that a text may contain: types, with the signed integer as large, and address spaces. */
static const struct {
    const char *name, *as_integer;
} words[] = {
    {"float", "int"}, {"double", "long"}, {"char", "char"}, {"uchar", "char"}, {"short", "short"}, {"ushort", "short"},
    {"int", "int"},   {"uint", "int"},    {"long", "long"}, {"ulong", "long"}, {"local", ""},      {"constant", ""},
};
enum {
    TYPES = 10,
    WORDS = sizeof words / sizeof words[0],
    FLOAT = 1 << 0,
    DOUBLE = 1 << 1,
    REAL = FLOAT | DOUBLE,
    SIGNED = 1 << 2 | 1 << 4 | 1 << 6 | 1 << 8,
    INTS = 1 << 6 | 1 << 7,
    COMMON = INTS | 1 << 8, /* declared always: indices, results of comparisons */
    ANY = (1 << TYPES) - 1,
    WHOLE = ANY & ~REAL,
    LOCAL = 1 << 10,
    CONSTANT = 1 << 11,
    SCALARS = 1 << 12, /* widths; vectors have 2, 4, 8 or 16 elements */
    VECTORS = 1 << 13,
    WIDTHS = SCALARS | VECTORS,
    PAIRS = 1 << 14 /* for each two types */
};

/* A function for the types and widths of `kinds`, if the text names it and the address space. In `text` N is its name,
 * T the type, S that of an element, W the width, F another type, I the integers as wide, R the result of a test. Of a
 * name ending in _, the text has the rest. */
typedef struct declaration {
    const char *name;
    int kinds;
    const char *text;
} declaration;

#define UNARY(name, kinds) {#name, (kinds) | WIDTHS, "T kn_pure N(T);\n"},
#define BINARY(name, kinds) {#name, (kinds) | WIDTHS, "T kn_pure N(T, T);\n"},
#define TERNARY(name, kinds) {#name, (kinds) | WIDTHS, "T kn_pure N(T, T, T);\n"},
#define TEST(name) {#name, REAL | WIDTHS, "R kn_pure N(T);\n"},
#define ANY_OF(name) {#name, SIGNED | WIDTHS, "int kn_pure N(T);\n"},
#define LOAD_HALF(name, space, widths, needs)                                                                          \
    {#name, FLOAT | (widths) | (needs), "T kn_overloaded NW(size_t, const " #space " half *);\n"},
#define STORE_HALF(name, space, needs)                                                                                 \
    {#name, FLOAT | VECTORS | (needs), "void kn_overloaded NW_rte(T, size_t, " #space " half *);\n"},
#define STORE_ONE_HALF(space, needs)                                                                                   \
    {"vstore_half_rte", FLOAT | SCALARS | (needs), "void kn_overloaded N(T, size_t, " #space " half *);\n"},
#define ATOMIC(name, values)                                                                                           \
    {#name, INTS | SCALARS,                                                                                            \
     "T kn_overloaded N(volatile global T *" values ");\n"                                                             \
     "T kn_overloaded N(volatile local T *" values ");\n"},

/* clang-format off */
static const declaration builtins[] = {
    UNARY(acos, REAL) UNARY(acosh, REAL) UNARY(asin, REAL) UNARY(asinh, REAL) UNARY(atan, REAL) UNARY(atanh, REAL)
    UNARY(ceil, REAL) UNARY(cos, REAL) UNARY(cosh, REAL) UNARY(erf, REAL) UNARY(erfc, REAL) UNARY(exp, REAL)
    UNARY(exp2, REAL) UNARY(expm1, REAL) UNARY(fabs, REAL) UNARY(floor, REAL) UNARY(log, REAL) UNARY(log10, REAL)
    UNARY(lgamma, REAL) UNARY(log1p, REAL) UNARY(log2, REAL) UNARY(rint, REAL) UNARY(round, REAL) UNARY(rsqrt, REAL)
    UNARY(sin, REAL) UNARY(sinh, REAL) UNARY(sqrt, REAL) UNARY(tan, REAL) UNARY(tanh, REAL) UNARY(trunc, REAL)
    UNARY(popcount, WHOLE) BINARY(atan2, REAL) BINARY(copysign, REAL) BINARY(fmax, REAL) BINARY(fmin, REAL)
    BINARY(fmod, REAL) BINARY(nextafter, REAL) BINARY(pow, REAL) BINARY(max, ANY) BINARY(min, ANY)
    BINARY(mul_hi, WHOLE)
    TERNARY(fma, REAL) TERNARY(mad, REAL) TERNARY(clamp, ANY)
    TEST(isfinite) TEST(isinf) TEST(isnan) TEST(signbit) ANY_OF(any) ANY_OF(all)
    {"select", ANY | WIDTHS, "T kn_pure N(T, T, I);\nT kn_pure N(T, T, uI);\n"},
    {"convert_", ANY | WIDTHS | PAIRS, "T kn_pure NT(F);\n"},
    {"convert_long_sat", REAL | COMMON | SCALARS, "long kn_pure N(T);\n"},
    {"ilogb", REAL | SCALARS, "int kn_pure N(T);\n"}, {"ldexp", REAL | SCALARS, "T kn_pure N(T, int);\n"},
    LOAD_HALF(vload_half, global, WIDTHS, 0) LOAD_HALF(vload_half, local, WIDTHS, LOCAL)
    LOAD_HALF(vload_half, private, WIDTHS, 0) LOAD_HALF(vloada_half, global, VECTORS, 0)
    LOAD_HALF(vloada_half, local, VECTORS, LOCAL) LOAD_HALF(vloada_half, private, VECTORS, 0)
    STORE_ONE_HALF(global, 0) STORE_ONE_HALF(local, LOCAL) STORE_ONE_HALF(private, 0)
    STORE_HALF(vstore_half, global, 0) STORE_HALF(vstore_half, local, LOCAL) STORE_HALF(vstore_half, private, 0)
    STORE_HALF(vstorea_half, global, 0) STORE_HALF(vstorea_half, local, LOCAL) STORE_HALF(vstorea_half, private, 0)
    ATOMIC(atomic_inc, "") ATOMIC(atomic_add, ", T") ATOMIC(atomic_max, ", T") ATOMIC(atomic_or, ", T")
    ATOMIC(atomic_cmpxchg, ", T, T")
    {"atom_cmpxchg", 1 << 8 | SCALARS, "T kn_overloaded N(volatile global T *, T, T);\n"},
};

/* vload and vstore by other names, with vectors that need the alignment of an element. */
#define LOOSE "{ typedef T loose __attribute__((aligned(sizeof(S)))); "
#define LOAD(space, needs)                                                                                             \
    {"vload", ANY | VECTORS | (needs),                                                                                 \
     "static inline T kn_overloaded kn_NW(size_t i, const " #space " S *p) "                                           \
     LOOSE "return ((const " #space " loose *)(p + i * W))[0]; }\n"},
#define STORE(space, needs)                                                                                            \
    {"vstore", ANY | VECTORS | (needs),                                                                                \
     "static inline void kn_overloaded kn_NW(T v, size_t i, " #space " S *p) "                                         \
     LOOSE "((" #space " loose *)(p + i * W))[0] = v; }\n"},
static const declaration vector_access[] = {
    LOAD(global, 0) LOAD(local, LOCAL) LOAD(private, 0) LOAD(constant, CONSTANT)
    STORE(global, 0) STORE(local, LOCAL) STORE(private, 0)
};
/* clang-format on */
enum { BUILTINS = sizeof builtins / sizeof builtins[0], ACCESSES = sizeof vector_access / sizeof vector_access[0] };

/* The driver may have macros of these names, also for `vload` alone, from which the others are pasted together. */
#define RENAMED(name) "#undef " name "\n#define " name " kn_" name "\n"
#define RENAMED_WIDTHS(name)                                                                                           \
    "#undef " name "\n" RENAMED(name "2") RENAMED(name "4") RENAMED(name "8") RENAMED(name "16")

static const char prologue[] = "#line 1 \"builtins\"\n"
                               "#ifdef cl_khr_fp64\n"
                               "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
                               "#endif\n"
                               "#define kn_overloaded __attribute__((overloadable))\n";

static const char always_declared[] = "#define kn_pure __attribute__((overloadable, const))\n"
                                      "uint kn_pure get_work_dim(void);\n"
                                      "size_t kn_pure get_global_size(uint);\n"
                                      "size_t kn_pure get_global_id(uint);\n"
                                      "size_t kn_pure get_global_offset(uint);\n"
                                      "size_t kn_pure get_local_size(uint);\n"
                                      "size_t kn_pure get_local_id(uint);\n"
                                      "size_t kn_pure get_num_groups(uint);\n"
                                      "size_t kn_pure get_group_id(uint);\n"
                                      "void __attribute__((overloadable, convergent)) barrier(cl_mem_fence_flags);\n";

/* --- which are needed -------------------------------------------------------------------------------------------- */

typedef struct needed {
    const declaration *rows;
    int count;
    bool used[BUILTINS];
    int words;
} needed;

/* Is it the word, alone, with a width, or pasted together from it (KN_JOIN(vload, w), convert_##T)? */
static bool is(const char *identifier, size_t length, const char *word)
{
    const size_t n = strlen(word);
    return length >= n && memcmp(identifier, word, n) == 0 &&
           (length == n || isdigit((unsigned char)identifier[n]) || word[n - 1] == '_');
}

static void note(needed *needs, const char *identifier, size_t length)
{
    for (int i = 0; i < needs->count; i++)
        if (*identifier == *needs->rows[i].name && is(identifier, length, needs->rows[i].name))
            needs->used[i] = true;
    for (int i = 0; i < WORDS; i++)
        if (*identifier == *words[i].name && is(identifier, length, words[i].name))
            needs->words |= 1 << i;
}

/* The end of the comment, the identifier or the character that begins here. */
static const char *token_end(const char *at)
{
    if (at[0] == '/' && at[1] == '/')
        return at + strcspn(at, "\n");
    if (at[0] == '/' && at[1] == '*') {
        const char *end = strstr(at + 2, "*/");
        return end ? end + 2 : at + strlen(at);
    }
    const size_t length = kn_identifier_length(at);
    return at + (length > 0 ? length : 1);
}

static void note_all(needed *needs, const char *text)
{
    bool begins[UCHAR_MAX + 1] = {false}; /* a word that is looked for */
    for (int i = 0; i < needs->count; i++)
        begins[(unsigned char)*needs->rows[i].name] = true;
    for (int i = 0; i < WORDS; i++)
        begins[(unsigned char)*words[i].name] = true;
    for (const char *at = text, *end; *at; at = end) {
        end = token_end(at);
        if (begins[(unsigned char)*at])
            note(needs, at, (size_t)(end - at));
    }
}

/* --- declarations ------------------------------------------------------------------------------------------------ */

static void declare(kn_text *out, const declaration *builtin, int type, int from, const char *width)
{
    const char *name = words[type].name, *integer = words[type].as_integer;
    for (const char *c = builtin->text; *c; c++) {
        if (*c == 'N')
            kn_text_append(out, builtin->name);
        else if (*c == 'T' || *c == 'S')
            kn_text_format(out, "%s%s", name, *c == 'T' ? width : "");
        else if (*c == 'F')
            kn_text_format(out, "%s%s", words[from].name, width);
        else if (*c == 'I')
            kn_text_format(out, "%s%s", integer, width);
        else if (*c == 'R')
            kn_text_format(out, "%s%s", *width ? integer : "int", width);
        else if (*c == 'W')
            kn_text_append(out, width);
        else
            kn_text_append_bytes(out, c, 1);
    }
}

static void declare_widths(kn_text *out, const declaration *builtin, int type, int from)
{
    static const char *const widths[] = {"", "2", "4", "8", "16"};
    const int first = builtin->kinds & SCALARS ? 0 : 1, last = builtin->kinds & VECTORS ? 4 : 0;
    for (int w = first; w <= last; w++)
        declare(out, builtin, type, from, widths[w]);
}

/* The functions that are needed, for one type. */
static void declare_type(kn_text *out, const needed *needs, int type)
{
    for (int i = 0; i < needs->count; i++) {
        const declaration *row = &needs->rows[i];
        const int kinds = row->kinds;
        if (!needs->used[i] || !(kinds & 1 << type) || (kinds & (LOCAL | CONSTANT) & ~needs->words))
            continue;
        if (!(kinds & PAIRS))
            declare_widths(out, row, type, type);
        for (int from = 0; from < TYPES && kinds & PAIRS; from++)
            if (needs->words & 1 << from)
                declare_widths(out, row, type, from);
    }
}

/* Those of the table's rows that the program needs. */
static void declare_all(kn_text *out, const declaration *rows, int count, const kn_program_words *program)
{
    needed needs = {.rows = rows, .count = count, .words = COMMON};
    note_all(&needs, program->source);
    note_all(&needs, program->options);
    if (!program->has_f64) /* though the source may have parts for it */
        needs.words &= ~DOUBLE;
    for (int type = 0; type < TYPES; type++)
        if (needs.words & 1 << type)
            declare_type(out, &needs, type);
}

void kn_declare_builtins(kn_text *out, const kn_program_words *program)
{
    kn_text_append(out, prologue);
    kn_text_append(out, always_declared);
    declare_all(out, builtins, BUILTINS, program);
}

void kn_define_vector_access(kn_text *out, const kn_program_words *program)
{
    kn_text_append(out, prologue);
    kn_text_append(out, RENAMED_WIDTHS("vload") RENAMED_WIDTHS("vstore"));
    declare_all(out, vector_access, ACCESSES, program);
}

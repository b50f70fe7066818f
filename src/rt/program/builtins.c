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
    INT = 1 << 6,
    LONG = 1 << 8,
    SIGNED = 1 << 2 | 1 << 4 | INT | LONG,
    INTS = INT | 1 << 7,
    COMMON = INTS | LONG, /* declared always: indices, results of comparisons */
    ANY = (1 << TYPES) - 1,
    WHOLE = ANY & ~REAL,
    LOCAL = 1 << 10,
    CONSTANT = 1 << 11,
    SCALARS = 1 << 12, /* widths; vectors have 2, 4, 8 or 16 elements */
    VECTORS = 1 << 13,
    WIDTHS = SCALARS | VECTORS
};
static const char *const widths[] = {"", "2", "4", "8", "16"};
enum { NUM_WIDTHS = sizeof widths / sizeof widths[0], ALL_WIDTHS = (1 << NUM_WIDTHS) - 1 };

/* A function for the types and widths of `kinds`, if the text names it and the address space. In `text` N is its name,
 * T the type, S that of an element, W the width, I the integers as wide, R the result of a test. Of a name ending in _,
 * the text has the rest. */
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
    {"convert_", ANY | SCALARS, "#undef NT\n#define NT(v) ((T)(v))\n"},
    {"convert_", ANY | VECTORS, "#undef NT\n#define NT(v) __builtin_convertvector(v, T)\n"},
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
    {"atom_cmpxchg", LONG | SCALARS, "T kn_overloaded N(volatile global T *, T, T);\n"},
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
    unsigned char widths[BUILTINS]; /* of the names of the rows' functions: bit i for widths[i] */
    int words, vectors;             /* those named, and the types whose vectors are */
} needed;

/* The widths with which the identifier names the word, as bits: all if it is the word alone, from which a name may be
 * pasted together (KN_JOIN(vload, w), convert_##T). 0 if it is another word. */
static int widths_named(const char *identifier, size_t length, const char *word)
{
    const size_t n = strlen(word);
    if (length < n || memcmp(identifier, word, n) != 0)
        return 0;
    if (length == n || word[n - 1] == '_')
        return ALL_WIDTHS;
    const size_t digits = strspn(identifier + n, "0123456789");
    for (int i = 1; i < NUM_WIDTHS; i++)
        if (digits == strlen(widths[i]) && memcmp(identifier + n, widths[i], digits) == 0)
            return 1 << i;
    return 0;
}

/* Can a macro or vload make a vector of the type named here? Not where a name other than an array's follows, nor in a
 * cast. */
static bool may_be_vector(const char *text, const char *begin, const char *end)
{
    const char *next = end + strspn(end, " ");
    const size_t name = kn_identifier_length(next);
    if (name > 0)
        return next[name] == '[';
    if (*next != ')' || begin == text || begin[-1] != '(')
        return true;
    return begin - 1 > text && (isalnum((unsigned char)begin[-2]) || begin[-2] == '_');
}

static void note(needed *needs, const char *text, const char *begin, const char *end)
{
    const size_t length = (size_t)(end - begin);
    for (int i = 0; i < needs->count; i++)
        if (*begin == *needs->rows[i].name)
            needs->widths[i] |= (unsigned char)widths_named(begin, length, needs->rows[i].name);
    for (int i = 0; i < WORDS; i++) {
        const int named = *begin == *words[i].name ? widths_named(begin, length, words[i].name) : 0;
        if (named)
            needs->words |= 1 << i;
        if (named && (named != ALL_WIDTHS || may_be_vector(text, begin, end)))
            needs->vectors |= 1 << i;
    }
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
            note(needs, text, at, end);
    }
}

/* --- declarations ------------------------------------------------------------------------------------------------ */

static void declare(kn_text *out, const declaration *builtin, int type, const char *width)
{
    const char *name = words[type].name, *integer = words[type].as_integer;
    for (const char *c = builtin->text; *c; c++) {
        if (*c == 'N')
            kn_text_append(out, builtin->name);
        else if (*c == 'T' || *c == 'S')
            kn_text_format(out, "%s%s", name, *c == 'T' ? width : "");
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

/* The functions that are needed, for one type. */
static void declare_type(kn_text *out, const needed *needs, int type)
{
    const int of_type = SCALARS | (needs->vectors & 1 << type ? VECTORS : 0);
    for (int i = 0; i < needs->count; i++) {
        const declaration *row = &needs->rows[i];
        if (!needs->widths[i] || !(row->kinds & 1 << type) || (row->kinds & (LOCAL | CONSTANT) & ~needs->words))
            continue;
        const int named = strstr(row->text, "NW") ? needs->widths[i] : ALL_WIDTHS;
        for (int w = 0; w < NUM_WIDTHS; w++)
            if (row->kinds & of_type & (w == 0 ? SCALARS : VECTORS) && named & 1 << w)
                declare(out, row, type, widths[w]);
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
    /* Comparisons have integers as wide. */
    needs.vectors |= (needs.vectors & FLOAT ? INT : 0) | (needs.vectors & DOUBLE ? LONG : 0);
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

/* support/inexact_kernels.c - makes PoCL's kernels as inexact as OpenCL allows, and GPUs are: preloaded (LD_PRELOAD) it
 * changes what PoCL's compiler makes of a program, before its own library of functions is linked to that.
 *
 * In f32 a / b becomes a * (1 / b), off by up to 1.5 ulp of the 2.5 that are allowed, as Mesa's drivers do it; sqrt(x)
 * becomes x * (1 / sqrt(x)); and results of exp, log, sin and so on are off by up to 2 ulp, of 3 to 16.
 *
 * For PoCL that links LLVM and clang as shared libraries, on x86-64. The layer support/odd_driver gives these programs
 * an option of their own, because PoCL's cache does not know of the difference. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The parts of LLVM's C API (llvm-c/Core.h) that are used; its headers need not be installed. */
typedef struct type *type;
typedef struct value *value;
typedef struct builder *builder;
typedef struct block *block;
enum { DIVIDE = 16, CALL = 45, FLOAT = 2, VECTOR = 13 };
enum { EQUAL = 1, GREATER = 2, LESS = 4 }; /* and not NaN */
value LLVMGetFirstFunction(void *module);
value LLVMGetNextFunction(value function);
block LLVMGetFirstBasicBlock(value function);
block LLVMGetNextBasicBlock(block at);
value LLVMGetFirstInstruction(block in);
value LLVMGetNextInstruction(value instruction);
int LLVMGetInstructionOpcode(value instruction);
type LLVMTypeOf(value v);
int LLVMGetTypeKind(type t);
type LLVMGetElementType(type t);
unsigned LLVMGetVectorSize(type t);
type LLVMVectorType(type element, unsigned count);
void *LLVMGetTypeContext(type t);
type LLVMInt32TypeInContext(void *context);
value LLVMGetOperand(value instruction, unsigned index);
void LLVMSetOperand(value instruction, unsigned index, value v);
value LLVMGetCalledValue(value instruction);
const char *LLVMGetValueName2(value v, size_t *length);
value LLVMConstReal(type t, double number);
value LLVMConstInt(type t, unsigned long long number, int extend);
value LLVMConstVector(value *elements, unsigned count);
void LLVMReplaceAllUsesWith(value before, value after);
builder LLVMCreateBuilderInContext(void *context);
void LLVMDisposeBuilder(builder b);
void LLVMPositionBuilderBefore(builder b, value instruction);
value LLVMBuildFMul(builder b, value left, value right, const char *name);
value LLVMBuildFDiv(builder b, value left, value right, const char *name);
value LLVMBuildMul(builder b, value left, value right, const char *name);
value LLVMBuildAdd(builder b, value left, value right, const char *name);
value LLVMBuildAnd(builder b, value left, value right, const char *name);
value LLVMBuildLShr(builder b, value left, value right, const char *name);
value LLVMBuildBitCast(builder b, value v, type t, const char *name);
value LLVMBuildFCmp(builder b, int predicate, value left, value right, const char *name);
value LLVMBuildSelect(builder b, value condition, value yes, value no, const char *name);

/* --- what is built ------------------------------------------------------------------------------------------------ */

static bool is_f32(type t)
{
    return LLVMGetTypeKind(LLVMGetTypeKind(t) == VECTOR ? LLVMGetElementType(t) : t) == FLOAT;
}

/* The number in every lane. */
static value splat(type t, value one)
{
    value all[16];
    const unsigned count = LLVMGetTypeKind(t) == VECTOR ? LLVMGetVectorSize(t) : 1;
    for (unsigned i = 0; i < count && i < 16; i++)
        all[i] = one;
    return count == 1 ? one : LLVMConstVector(all, count);
}

static value real(type t, double number)
{
    return splat(t, LLVMConstReal(LLVMGetTypeKind(t) == VECTOR ? LLVMGetElementType(t) : t, number));
}

/* |x| is a number between `low` and `high`, both excluded. */
static value is_between(builder b, value x, double low, double high)
{
    type t = LLVMTypeOf(x);
    value square = LLVMBuildFMul(b, x, x, "");
    return LLVMBuildAnd(b, LLVMBuildFCmp(b, GREATER, square, real(t, low * low), ""),
                        LLVMBuildFCmp(b, LESS, square, real(t, high * high), ""), "");
}

/* `number` * (1 / divisor), in place of `exact`, where neither the reciprocal nor the result is near the ends of f32's
 * range. */
static value by_reciprocal(builder b, value exact, value number, value divisor)
{
    type t = LLVMTypeOf(exact);
    value reciprocal = LLVMBuildFDiv(b, real(t, 1), divisor, "");
    value result = LLVMBuildFMul(b, number, reciprocal, "");
    value is_safe =
        LLVMBuildAnd(b, is_between(b, reciprocal, 0x1p-60, 0x1p60), is_between(b, result, 0x1p-60, 0x1p60), "");
    return LLVMBuildSelect(b, is_safe, result, exact, "");
}

/* -2 to 1 ulp more, by the value's bits; 0, 1, and what is near the ends of the range stay. */
static value blurred(builder b, value exact)
{
    type t = LLVMTypeOf(exact), whole = LLVMInt32TypeInContext(LLVMGetTypeContext(t));
    type wholes = LLVMGetTypeKind(t) == VECTOR ? LLVMVectorType(whole, LLVMGetVectorSize(t)) : whole;
#define WHOLE(number) splat(wholes, LLVMConstInt(whole, (number), 0))
    value bits = LLVMBuildBitCast(b, exact, wholes, "");
    value hash = LLVMBuildLShr(b, LLVMBuildMul(b, bits, WHOLE(0x9E3779B1), ""), WHOLE(30), "");
    value moved = LLVMBuildAdd(b, bits, LLVMBuildAdd(b, hash, WHOLE(0xFFFFFFFE), ""), "");
#undef WHOLE
    value result = LLVMBuildBitCast(b, moved, t, "");
    value magnitude = LLVMBuildFMul(b, exact, exact, "");
    value is_one = LLVMBuildFCmp(b, EQUAL, magnitude, real(t, 1), "");
    return LLVMBuildSelect(b, is_one, exact,
                           LLVMBuildSelect(b, is_between(b, exact, 0x1p-60, 0x1p60), result, exact, ""), "");
}

/* --- where -------------------------------------------------------------------------------------------------------- */

/* The function that the call is to, as OpenCL names it; "" if that is not one of its functions. */
static const char *called_name(value call, char name[32])
{
    size_t length = 0, digits = 0;
    value function = LLVMGetCalledValue(call);
    const char *mangled = function ? LLVMGetValueName2(function, &length) : "";
    name[0] = '\0';
    if (length < 4 || strncmp(mangled, "_Z", 2) != 0)
        return name;
    for (mangled += 2; *mangled >= '0' && *mangled <= '9'; mangled++)
        digits = 10 * digits + (size_t)(*mangled - '0');
    if (digits > 0 && digits < 32 && digits < length) {
        memcpy(name, mangled, digits);
        name[digits] = '\0';
    }
    return name;
}

static bool is_inexact(const char *name)
{
    static const char *const names[] = {"exp",   "exp2",  "expm1", "log",   "log2",  "log10", "log1p", "sin",   "cos",
                                        "tan",   "asin",  "acos",  "atan",  "sinh",  "cosh",  "tanh",  "erf",   "erfc",
                                        "asinh", "acosh", "atanh", "atan2", "rsqrt", "pow",   "cbrt",  "lgamma"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Everything that is built uses `exact`, too, whose uses are replaced: a copy of it stands in meanwhile. */
static void change(builder b, value instruction)
{
    char name[32] = "";
    const bool divides = LLVMGetInstructionOpcode(instruction) == DIVIDE;
    if (!divides)
        called_name(instruction, name);
    if (!divides && strcmp(name, "sqrt") != 0 && !is_inexact(name))
        return;
    value next = LLVMGetNextInstruction(instruction);
    LLVMPositionBuilderBefore(b, next);
    value stand_in = LLVMBuildFMul(b, instruction, real(LLVMTypeOf(instruction), 1), "stand_in");
    value result = divides ? by_reciprocal(b, stand_in, LLVMGetOperand(instruction, 0), LLVMGetOperand(instruction, 1))
                   : strcmp(name, "sqrt") == 0 ? by_reciprocal(b, stand_in, LLVMGetOperand(instruction, 0), stand_in)
                                               : blurred(b, stand_in);
    LLVMReplaceAllUsesWith(instruction, result);
    LLVMSetOperand(stand_in, 0, instruction);
}

static void change_all(void *module)
{
    value function = LLVMGetFirstFunction(module);
    builder b = function ? LLVMCreateBuilderInContext(LLVMGetTypeContext(LLVMTypeOf(function))) : NULL;
    for (; function; function = LLVMGetNextFunction(function))
        for (block at = LLVMGetFirstBasicBlock(function); at; at = LLVMGetNextBasicBlock(at))
            for (value one = LLVMGetFirstInstruction(at), next; one; one = next) {
                const int kind = LLVMGetInstructionOpcode(one);
                next = LLVMGetNextInstruction(one);
                if ((kind == DIVIDE || kind == CALL) && is_f32(LLVMTypeOf(one)))
                    change(b, one);
            }
    if (b)
        LLVMDisposeBuilder(b);
}

/* --- its place in PoCL -------------------------------------------------------------------------------------------- */

/* Libraries that PoCL has loaded for itself; LLVM's functions are then found by all. */
static int find_library(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    if (strstr(info->dlpi_name, "libLLVM"))
        dlopen(info->dlpi_name, RTLD_NOLOAD | RTLD_LAZY | RTLD_GLOBAL);
    if (strstr(info->dlpi_name, "libclang-cpp"))
        *(void **)user = dlopen(info->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
    return 0;
}

/* In the place of std::unique_ptr<llvm::Module> clang::CodeGenAction::takeModule(), whose result goes to the first
 * argument. */
__attribute__((visibility("default"))) void **_ZN5clang13CodeGenAction10takeModuleEv(void **result, void *action);

void **_ZN5clang13CodeGenAction10takeModuleEv(void **result, void *action)
{
    void *clang = NULL, **(*actual)(void **, void *);
    dl_iterate_phdr(find_library, &clang);
    *(void **)&actual = dlsym(clang, "_ZN5clang13CodeGenAction10takeModuleEv");
    actual(result, action);
    if (*result)
        change_all(*result);
    return result;
}

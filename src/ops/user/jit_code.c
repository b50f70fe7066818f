/* ops/user/jit_code.c - turns a user's function into code for the pointwise engine: a call with the engine's names of
 * operands and numbers. */
#include <string.h>

#include "base/text.h"
#include "ops/user/jit.h"
#include "rt/program/user_source.h"

static const char input_letters[] = "abcdefghijklmnop", number_letters[] = "stuvwxyz";
static const char *const results[] = {"kn_result0", "kn_result1", "kn_result2", "kn_result3",
                                      "kn_result4", "kn_result5", "kn_result6", "kn_result7"};

static void name_operands(kn_jit_function *f, bool is_packed)
{
    const kn_jit_signature *s = &f->signature;
    if (!is_packed)
        memcpy(f->inputs, input_letters, (size_t)s->num_values);
    for (int i = 0; i < s->num_parameters; i++) {
        const kn_jit_parameter *p = &s->parameters[i];
        if (p->kind == KN_JIT_NUMBER)
            f->number_types[p->index] = p->type[0];
    }
    for (int i = 0; i < KN_JIT_MAX_SCALARS && f->number_types[i]; i++)
        f->numbers[i] = number_letters[i];
}

static void write_argument(kn_text *out, const kn_jit_parameter *p, bool is_packed)
{
    if (p->kind == KN_JIT_POINTER)
        kn_text_format(out, "&kn_result%d", p->index);
    else if (!is_packed)
        kn_text_format(out, KN_POINTWISE_USER_PREFIX "%c",
                       p->kind == KN_JIT_VALUE ? input_letters[p->index] : number_letters[p->index]);
    else if (p->kind == KN_JIT_VALUE)
        kn_text_format(out, "(T)kn_values[%d * kn_n + kn_i]", p->index);
    else
        kn_text_format(out, "(%s)kn_scalar%d", p->type, p->index);
}

/* Declares the variables that the function writes, and calls it. */
static char *write_call(const kn_jit_signature *s, bool is_packed)
{
    kn_text out = {0};
    for (int i = 0; i < s->num_pointers; i++)
        kn_text_format(&out, "T kn_result%d = (T)0; ", i);
    kn_text_format(&out, "%s%s(", s->returns_value ? "const T kn_result0 = " : "", s->name);
    for (int i = 0; i < s->num_parameters; i++) {
        kn_text_append(&out, i ? ", " : "");
        write_argument(&out, &s->parameters[i], is_packed);
    }
    kn_text_append(&out, ");");
    return kn_text_finish(&out);
}

/* Undefines the code's macros, which could otherwise affect the kernel that follows. */
static void end_macros(kn_text *out, const char *code)
{
    for (const char *at = strchr(code, '#'); at; at = strchr(at, '#')) {
        at += 1 + strspn(at + 1, " \t");
        if (strncmp(at, "define", 6) != 0)
            continue;
        at += 6 + strspn(at + 6, " \t\\\n");
        const size_t length = kn_identifier_length(at);
        if (length > 0)
            kn_text_format(out, "#undef %.*s\n", (int)length, at);
    }
}

/* With #line, so that the compiler's line numbers are the user's. */
static char *join(const char *helpers, const char *helpers_name, const char *code, const char *name)
{
    kn_text out = {0};
    if (helpers)
        kn_text_format(&out, "#line 1 \"%s\"\n%s\n", helpers_name, helpers);
    kn_text_format(&out, "#line 1 \"%s\"\n%s\n", name, code);
    end_macros(&out, code);
    if (helpers)
        end_macros(&out, helpers);
    return kn_text_finish(&out);
}

kn_status kn_jit_function_init(kn_jit_function *f, bool is_packed, const char *helpers, const char *helpers_name,
                               const char *code)
{
    const kn_jit_signature *s = &f->signature;
    kn_user_source source;
    name_operands(f, is_packed);
    f->functions = join(helpers, helpers_name, code, s->name);
    f->statements = f->functions ? write_call(s, is_packed) : NULL;
    if (!f->statements)
        return KN_ERR_MEMORY;
    KN_TRY(kn_user_source_add(&source, s->name, f->functions, true));
    f->elements.name = f->name = source.name;
    if (is_packed)
        return KN_OK;
    f->elements.functions = f->functions;
    f->elements.statements = f->statements;
    f->elements.inputs = f->inputs;
    f->elements.numbers = f->numbers;
    f->elements.number_types = f->number_types;
    f->elements.has_user_code = true;
    for (int i = 0; i < (s->returns_value ? 1 : s->num_pointers); i++)
        f->elements.values[i] = results[i];
    memcpy(&f->vectors, &f->elements, sizeof f->vectors); /* neither has kernels yet */
    f->vectors.vectors = KN_VECTORS;
    return KN_OK;
}

void kn_jit_function_free(kn_jit_function *f)
{
    kn_pointwise_code_free(&f->elements);
    kn_pointwise_code_free(&f->vectors);
    kn_written_kernels_free(&f->packed);
    kn_free(f->functions);
    kn_free(f->statements);
}

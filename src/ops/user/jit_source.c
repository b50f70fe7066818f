/* ops/user/jit_source.c - writes the OpenCL C around a user's function: parameters, one evaluation, the loops' macros.
 */
#include "ops/user/jit_source.h"

#include "base/memory.h"

/* --- pieces ------------------------------------------------------------------------------------------------------- */

/* The user's text, so that the compiler counts its lines as the user does. */
static void write_code(kn_text *out, const char *name, const char *code)
{
    kn_text_format(out, "#line 1 \"%s\"\n%s\n", name, code);
}

/* The library's own functions come before the user's code, whose macros then cannot change them. What comes after it,
 * the macros and the kernel, uses no name but such as begin with jit_, JIT_ and KN_. */
static void write_start(kn_text *out, int inputs)
{
    kn_text_format(out, "#define JIT_INPUTS %d\n#include \"user/elementwise.clh\"\n", inputs);
}

static void write_loops(kn_text *out, int inputs)
{
    kn_text_append(out, "#line 1 \"koine\"\n#define JIT_PLACE");
    for (int i = 0; i < inputs; i++)
        kn_text_format(out, " const global TS *jit_x%d = jit_in%d + jit_at[%d];", i, i, i);
    kn_text_append(out, "\n#define JIT_STEPS const long");
    for (int i = 0; i < inputs; i++)
        kn_text_format(out, "%s jit_s%d = jit_step(&jit_how, %d)", i ? "," : "", i, i);
    kn_text_append(out, ";\n#define JIT_UNIT (");
    for (int i = 0; i < inputs; i++)
        kn_text_format(out, "%sjit_s%d == 1", i ? " && " : "", i);
    kn_text_append(out, ")\n");
}

/* Begins JIT_LOADS: the inputs. */
static void write_loads(kn_text *out, int inputs)
{
    kn_text_append(out, "#define JIT_LOADS");
    for (int i = 0; i < inputs; i++)
        kn_text_format(out, " JIT_LOAD(jit_x%d, jit_in%d, %d)", i, i, i + 1);
}

/* The numbers as kernel parameters: one of type T comes as it lies in memory. */
static void write_number_parameters(kn_text *out, const kn_jit_signature *s)
{
    for (int i = 0; i < s->num_parameters; i++)
        if (s->parameters[i].kind == KN_JIT_NUMBER)
            kn_text_format(out, ", const %s jit_n%d", s->parameters[i].type[0] == 'T' ? "TS" : s->parameters[i].type,
                           s->parameters[i].index);
}

/* Declares what the function writes to, and calls it; result i ends up in jit_r<i>. */
static void write_call(kn_text *out, const kn_jit_signature *s)
{
    for (int i = 0; i < s->num_pointers; i++)
        kn_text_format(out, " T jit_r%d = (T)0;", i);
    kn_text_format(out, " %s%s(", s->returns_value ? "const T jit_r0 = " : "", s->name);
    for (int i = 0; i < s->num_parameters; i++) {
        const kn_jit_parameter *p = &s->parameters[i];
        const char *form = p->kind == KN_JIT_VALUE ? "jit_a" : p->kind == KN_JIT_POINTER ? "&jit_r" : "jit_n";
        const bool convert = p->kind == KN_JIT_NUMBER && p->type[0] == 'T';
        kn_text_format(out, "%s%s%s%d", i ? ", " : "", convert ? "(T)" : "", form, p->index);
    }
    kn_text_append(out, ");");
}

static kn_status finish(kn_user_source *source, const char *name, kn_text *out)
{
    char *text = kn_text_finish(out);
    if (!text)
        return KN_ERR_MEMORY;
    kn_status status = kn_user_source_add(source, name, text);
    kn_free(text);
    return status;
}

/* --- the kernels -------------------------------------------------------------------------------------------------- */

kn_status kn_jit_write_forward(kn_user_source *source, const char *code, const kn_jit_signature *forward)
{
    kn_text out = {0};
    const int inputs = forward->num_values, outputs = forward->returns_value ? 1 : forward->num_pointers;
    write_start(&out, inputs);
    write_code(&out, forward->name, code);
    write_loops(&out, inputs);
    write_loads(&out, inputs);
    for (int i = 0; i < outputs; i++)
        kn_text_format(&out, " JIT_DECLARE(jit_out%d)", i);
    kn_text_append(&out, "\n#define JIT_STORES");
    for (int i = 0; i < outputs; i++)
        kn_text_format(&out, " JIT_STORE(jit_out%d)", i);
    kn_text_append(&out, "\n#define JIT_BODY(IN)");
    for (int i = 0; i < inputs; i++)
        kn_text_format(&out, " const T jit_a%d = IN(jit_x%d, jit_s%d);", i, i, i);
    write_call(&out, forward);
    for (int i = 0; i < outputs; i++)
        kn_text_format(&out, " JIT_GIVE(jit_out%d, jit_r%d)", i, i);
    kn_text_append(&out, "\nkernel void jit_forward(");
    for (int i = 0; i < outputs; i++)
        kn_text_format(&out, "KN_OUT(jit_out%d), ", i);
    for (int i = 0; i < inputs; i++)
        kn_text_format(&out, "KN_IN(jit_in%d), ", i);
    kn_text_append(&out, "const jit_plan jit_how");
    write_number_parameters(&out, forward);
    kn_text_append(&out, ")\n{\n");
    for (int i = 0; i < outputs; i++)
        kn_text_format(&out, "    KN_BIND_OUT(TS, jit_out%d);\n", i);
    for (int i = 0; i < inputs; i++)
        kn_text_format(&out, "    KN_BIND_IN(TS, jit_in%d);\n", i);
    kn_text_append(&out, "    JIT_RUN\n}\n");
    return finish(source, forward->name, &out);
}

/* An output that is not wanted is no parameter, and what it takes to compute it falls away. */
static void write_wanted(kn_text *out, int inputs)
{
    for (int i = 0; i < inputs; i++)
        kn_text_format(out,
                       "#if JIT_WANTED & %d\n#define JIT_OUT%d KN_OUT(jit_out%d),\n"
                       "#define JIT_BIND%d KN_BIND_OUT(TS, jit_out%d);\n#define JIT_GIVE%d JIT_GIVE(jit_out%d, "
                       "jit_r%d)\n#define JIT_DECLARE%d JIT_DECLARE(jit_out%d)\n#define JIT_STORE%d "
                       "JIT_STORE(jit_out%d)\n#else\n#define JIT_OUT%d\n#define JIT_BIND%d\n#define JIT_GIVE%d\n"
                       "#define JIT_DECLARE%d\n#define JIT_STORE%d\n#endif\n",
                       1 << i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i);
}

kn_status kn_jit_write_backward(kn_user_source *source, const char *code, const kn_jit_signature *forward,
                                const char *derivative, const kn_jit_signature *backward)
{
    kn_text out = {0};
    const int inputs = forward->num_values, gradients = backward->num_values - inputs;
    write_start(&out, inputs);
    write_code(&out, forward->name, code);
    write_code(&out, backward->name, derivative);
    write_loops(&out, inputs);
    write_wanted(&out, inputs);
    write_loads(&out, inputs);
    for (int i = 0; i < gradients; i++)
        kn_text_format(&out, " JIT_LOAD_FLAT(jit_grad%d)", i);
    for (int i = 0; i < inputs; i++)
        kn_text_format(&out, " JIT_DECLARE%d", i);
    kn_text_append(&out, "\n#define JIT_STORES");
    for (int i = 0; i < inputs; i++)
        kn_text_format(&out, " JIT_STORE%d", i);
    kn_text_append(&out, "\n#define JIT_BODY(IN)");
    for (int i = 0; i < inputs; i++)
        kn_text_format(&out, " const T jit_a%d = IN(jit_x%d, jit_s%d);", i, i, i);
    for (int i = 0; i < gradients; i++)
        kn_text_format(&out, " const T jit_a%d = JIT_FLAT(jit_grad%d);", inputs + i, i);
    write_call(&out, backward);
    for (int i = 0; i < inputs; i++)
        kn_text_format(&out, " JIT_GIVE%d", i);
    kn_text_append(&out, "\nkernel void jit_backward(");
    for (int i = 0; i < inputs; i++)
        kn_text_format(&out, "JIT_OUT%d ", i);
    for (int i = 0; i < inputs; i++)
        kn_text_format(&out, "KN_IN(jit_in%d), ", i);
    for (int i = 0; i < gradients; i++)
        kn_text_format(&out, "KN_IN(jit_grad%d), ", i);
    kn_text_append(&out, "const jit_plan jit_how");
    write_number_parameters(&out, backward);
    kn_text_append(&out, ")\n{\n");
    for (int i = 0; i < inputs; i++)
        kn_text_format(&out, "    JIT_BIND%d\n    KN_BIND_IN(TS, jit_in%d);\n", i, i);
    for (int i = 0; i < gradients; i++)
        kn_text_format(&out, "    KN_BIND_IN(TS, jit_grad%d);\n", i);
    kn_text_append(&out, "    JIT_RUN\n}\n");
    return finish(source, backward->name, &out);
}

/* loops/pointwise_source.c - writes pointwise kernels.
 *
 * All names in them except the code's letters begin with kn_ or KN_ or belong to OpenCL, so definitions in a user's
 * code, which precedes the kernel, cannot interfere. */
#include "loops/pointwise_writer.h"

#include <ctype.h>
#include <stdio.h>

static int count_numbers(const kn_pointwise_code *code) { return code->numbers ? (int)strlen(code->numbers) : 0; }

static bool has(const char *letters, char letter) { return letters && strchr(letters, letter); }

static bool is_real(int dtype) { return kn_dtype_is_floating((kn_dtype)dtype); }
static bool is_reduced(int dtype) { return kn_dtype_is_reduced((kn_dtype)dtype); }

static bool suits_vectors(const kn_pointwise_code *code, const kn_pointwise_form *form)
{
    if (!is_real(form->compute))
        return false;
    for (int i = 0; code->inputs[i]; i++)
        if (form->inputs[i] && has(code->raw, code->inputs[i]))
            return false;
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (form->outputs[i] && form->outputs[i] != form->compute && !is_reduced(form->outputs[i]))
            return false;
    return true;
}

/* Of numbers and vectors alike, with the same bits. */
static bool is_exact_function(const char *name, size_t length)
{
    static const char *const functions[] = {"kn_floor", "kn_ceil", "kn_trunc", "kn_round"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strlen(functions[i]) == length && memcmp(name, functions[i], length) == 0)
            return true;
    return false;
}

/* Names of one letter are operands, numbers and T; a comparison may decide, but is no value. */
static bool is_arithmetic(const char *text)
{
    bool compares = false, decides = false;
    for (const char *at = text; *at; at++) {
        const size_t name = kn_identifier_length(at);
        if (name > 1 && !isdigit((unsigned char)*at) && !is_exact_function(at, name))
            return false;
        compares |= strchr("<>=!&|", *at) != NULL;
        decides |= *at == '?';
        if (name > 1)
            at += name - 1;
    }
    return decides || !compares;
}

bool kn_pointwise_could_have_vectors(const kn_pointwise_code *code, const kn_pointwise_form *form)
{
    if (code->statements || code->vectors || !suits_vectors(code, form))
        return false;
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (code->values[i] && form->outputs[i] && !is_arithmetic(code->values[i]))
            return false;
    return true;
}

bool kn_pointwise_has(const kn_pointwise_form *form, kn_dtype dtype)
{
    bool has = false;
    for (int i = 0; i < KN_POINTWISE_INPUTS; i++)
        has |= form->inputs[i] == dtype;
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        has |= form->outputs[i] == dtype;
    return has;
}

/* Compilers vectorise a conversion from or to float16 less well than its vectors are written here. */
bool kn_pointwise_has_vectors(const kn_pointwise_code *code, const kn_pointwise_form *form)
{
    if (!code->vectors)
        return kn_pointwise_has(form, KN_F16) && kn_pointwise_could_have_vectors(code, form);
    return suits_vectors(code, form);
}

bool kn_pointwise_could_pack(const kn_pointwise_form *form)
{
    for (int i = 0; i < KN_POINTWISE_INPUTS; i++)
        if (form->aliased[i])
            return false;
    return form->lanes > 1;
}

/* --- elements ----------------------------------------------------------------------------------------------------- */

/* The type of input i in the computation. */
const char *kn_writer_type(const kn_writer *w, int i)
{
    if (!has(w->code->raw, w->code->inputs[i]))
        return "T";
    return kn_storage_type(kn_compute_type((kn_dtype)w->form->inputs[i]));
}

/* Declares input i, read from element `at` of `pointer`. */
void kn_write_load(const kn_writer *w, int i, const char *pointer, const char *at)
{
    const kn_pointwise_form *f = w->form;
    const char *type = kn_writer_type(w, i);
    const bool is_packed = f->walk == KN_WALK_TILES && kn_writer_packs(w, i) && f->inputs[i] == KN_F16;
    kn_text_format(w->out, "const %s %s%c = (%s)KN_ROUND_%s(KN_LOAD_%s%s(%s, %s)); ", type, w->prefix,
                   w->code->inputs[i], type, kn_dtype_kind((kn_dtype)f->rounded[i]), is_packed ? "PACKED_" : "",
                   kn_dtype_kind((kn_dtype)f->inputs[i]), pointer, at);
}

void kn_write_stores(const kn_writer *w, const char *pointer, const char *at)
{
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (kn_writer_wants(w, i))
            kn_text_format(w->out, "KN_STORE_%s(%s, %s, %s%d, %s); ",
                           kn_store_kind(w->form->compute, w->form->outputs[i]), kn_storage_type(w->form->outputs[i]),
                           w->code->values[i], pointer, i, at);
}

void kn_write_statements(const kn_writer *w)
{
    if (w->code->statements)
        kn_text_format(w->out, "%s ", w->code->statements);
}

/* The pointer that input i is read from; `in` is "in" (the whole operand) or "x" (from the current run on). */
const char *kn_writer_pointer(const kn_writer *w, int i, const char *in, const char *out, char name[KN_WRITER_NAME])
{
    if (w->form->aliased[i])
        snprintf(name, KN_WRITER_NAME, "%s%d", out, w->form->aliased[i] - 1);
    else
        snprintf(name, KN_WRITER_NAME, "%s%d", in, i);
    return name;
}

/* --- kernel head -------------------------------------------------------------------------------------------------- */

const char *kn_number_type(char type)
{
    switch (type) {
    case 'f':
        return "float";
    case 'd':
        return "double";
    case 'i':
        return "int";
    case 'l':
        return "long";
    default:
        return "KN_ELEMENT";
    }
}

static const char *number_type(const kn_writer *w, int i)
{
    return kn_number_type(w->code->number_types ? w->code->number_types[i] : 'T');
}

static void write_packing_functions(const kn_writer *w)
{
    for (int i = 0; i < kn_writer_inputs(w); i++)
        if (kn_writer_packs(w, i))
            kn_text_format(w->out, "KN_DEFINE_PACK(kn_pack%d, %s)\n", i, kn_writer_packed_type(w, i));
}

static bool is_converted(const kn_pointwise_form *form, int dtype)
{
    return dtype != 0 && dtype != form->compute && !is_reduced(dtype);
}

const char *kn_writer_vector_load(const kn_writer *w, int i)
{
    const int dtype = w->form->inputs[i];
    return is_converted(w->form, dtype) ? kn_storage_type(dtype) : kn_dtype_kind((kn_dtype)dtype);
}

static void write_vector_types(const kn_writer *w)
{
    kn_text_format(w->out, "#define KN_VECTOR %d\n#define T KN_VECTOR_TYPE\n#include \"pointwise/vectors.clh\"\n",
                   w->form->vector);
    for (int i = 0; i < kn_writer_inputs(w); i++) {
        bool is_new = is_converted(w->form, w->form->inputs[i]);
        for (int n = 0; n < i && is_new; n++)
            is_new = strcmp(kn_writer_vector_load(w, n), kn_writer_vector_load(w, i)) != 0;
        if (is_new)
            kn_text_format(w->out, "KN_DEFINE_CONVERTED(%s)\n", kn_storage_type(w->form->inputs[i]));
    }
}

static void write_types(const kn_writer *w)
{
    static const char *const headers[] = {[KN_WALK_FLAT] = "#include \"pointwise/flat.clh\"\n",
                                          [KN_WALK_RUNS] = "#include \"pointwise/runs.clh\"\n",
                                          [KN_WALK_TILES] = "#include \"pointwise/tiles.clh\"\n"};
    kn_text_format(w->out, "#define KN_ELEMENT %s\n%s%s%s", kn_storage_type(w->form->compute),
                   is_real(w->form->compute) ? "" : "#define KN_WHOLE\n",
                   w->form->compute == KN_F64 ? "#define KN_DOUBLE\n" : "",
                   w->form->bypass ? "#define KN_BYPASS\n" : "");
    if (w->form->vector)
        write_vector_types(w);
    else
        kn_text_format(w->out, "#define T %s\n",
                       w->form->compute == KN_BOOL && w->code->has_user_code ? "bool" : "KN_ELEMENT");
    if (w->form->walk == KN_WALK_VEC4)
        kn_text_format(w->out,
                       "#define KN_OPERANDS %d\n#include \"pointwise/elements.clh\"\n#include \"pointwise/vec4.clh\"\n",
                       w->form->lanes);
    else
        kn_text_format(w->out, "#define KN_PLACES %d\n%s", w->form->lanes, headers[w->form->walk]);
    if (w->form->walk == KN_WALK_TILES)
        write_packing_functions(w);
}

static void write_functions(const kn_writer *w)
{
    if (w->code->functions)
        kn_text_format(w->out, "#line 1 \"%s\"\n%s\n#line 1 \"koine\"\n", w->code->name, w->code->functions);
}

/* `output`, `changed` (an output that is an input, too) and `input` name macros of a buffer. */
static void write_buffers(const kn_writer *w, const char *output, const char *changed, const char *input)
{
    bool in_place[KN_POINTWISE_OUTPUTS] = {false};
    for (int i = 0; i < kn_writer_inputs(w); i++)
        if (w->form->aliased[i])
            in_place[w->form->aliased[i] - 1] = true;
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (kn_writer_wants(w, i))
            kn_text_format(w->out, "%s(kn_out%d), ", in_place[i] ? changed : output, i);
    for (int i = 0; i < kn_writer_inputs(w); i++)
        if (kn_writer_has_parameter(w, i))
            kn_text_format(w->out, "%s(kn_in%d), ", input, i);
}

void kn_write_parameters(const kn_writer *w, const char *plan)
{
    kn_text_format(w->out, "KN_KERNEL_ONCE(%s%s, (", KN_POINTWISE_PREFIX, w->code->name);
    write_buffers(w, "KN_ARG", "KN_ARG", "KN_ARG");
    kn_text_append(w->out, "kn_plan");
    for (int i = 0; i < count_numbers(w->code); i++)
        kn_text_format(w->out, ", kn_scalar%d", i);
    kn_text_append(w->out, "), ");
    write_buffers(w, "KN_OUT", "KN_INOUT", "KN_IN");
    kn_text_format(w->out, "const %s kn_plan", plan);
    for (int i = 0; i < count_numbers(w->code); i++)
        kn_text_format(w->out, ", const %s kn_scalar%d", number_type(w, i), i);
    kn_text_append(w->out, ")\n{\n");
}

void kn_write_numbers(const kn_writer *w)
{
    for (int i = 0; i < count_numbers(w->code); i++) {
        const bool typed = w->code->number_types && w->code->number_types[i] != 'T';
        const char *type = typed ? number_type(w, i) : "T";
        kn_text_format(w->out, "    const %s %s%c = (%s)kn_scalar%d;\n", type, w->prefix, w->code->numbers[i], type, i);
    }
}

void kn_pointwise_write(kn_text *out, const kn_pointwise_code *code, const kn_pointwise_form *form)
{
    const kn_writer w = {.out = out,
                         .code = code,
                         .form = form,
                         .prefix = code->has_user_code || code->is_fused ? KN_POINTWISE_USER_PREFIX : ""};
    write_types(&w);
    write_functions(&w);
    if (form->walk == KN_WALK_VEC4)
        kn_write_vec4(&w);
    else if (form->walk == KN_WALK_RUNS)
        kn_write_runs(&w);
    else if (form->walk == KN_WALK_TILES)
        kn_write_tiles(&w);
    else
        kn_write_flat(&w);
}

/* loops/pointwise_source.c - writes pointwise kernels.
 *
 * All names in them but the code's letters begin with kn_, KN_ or are OpenCL's: what a user's code defines stands before
 * the kernel and changes nothing in it. */
#include "loops/pointwise_source.h"

#include <stdio.h>
#include <string.h>

#include "base/dtype.h"

typedef struct writer {
    kn_text *out;
    const kn_pointwise_code *code;
    const kn_pointwise_form *form;
    const char *prefix; /* of the code's letters: a user's macro may be called `a` */
} writer;

static int count_inputs(const kn_pointwise_code *code) { return (int)strlen(code->inputs); }

static bool is_read(const kn_pointwise_form *form, int i) { return form->inputs[i] != 0; }

/* A parameter of its own: read, and not the output that it is changed into. */
static bool is_parameter(const kn_pointwise_form *form, int i) { return is_read(form, i) && !form->aliased[i]; }

static int count_numbers(const kn_pointwise_code *code) { return code->numbers ? (int)strlen(code->numbers) : 0; }

static bool has(const char *letters, char letter) { return letters && strchr(letters, letter); }

static bool is_real(int dtype) { return kn_dtype_is_floating((kn_dtype)dtype); }

bool kn_pointwise_has_vectors(const kn_pointwise_code *code, const kn_pointwise_form *form)
{
    if (!code->vectors || !is_real(form->compute) || (code->vectors == KN_F32_VECTORS && form->compute != KN_F32))
        return false;
    for (int i = 0; i < count_inputs(code); i++) {
        const bool own = form->inputs[i] == form->compute || form->inputs[i] == KN_F16;
        if (is_read(form, i) && (!own || form->rounded[i] || has(code->raw, code->inputs[i])))
            return false;
    }
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (form->outputs[i] && form->outputs[i] != form->compute && form->outputs[i] != KN_F16)
            return false;
    return true;
}

/* --- elements ------------------------------------------------------------------------------------------------------ */

static const char *storage(int dtype) { return kn_dtype_cl((kn_dtype)dtype); }

/* What input i is while it is computed on. */
static const char *type_of(const writer *w, int i)
{
    if (!has(w->code->raw, w->code->inputs[i]))
        return "T";
    return w->form->inputs[i] == KN_F16 ? "float" : storage(w->form->inputs[i]);
}

/* Declares input i, read from element `at` of `pointer`. */
static void write_load(const writer *w, int i, const char *pointer, const char *at)
{
    const kn_pointwise_form *f = w->form;
    const char *type = type_of(w, i), *load = f->inputs[i] == KN_F16 ? "KN_LOAD_HALF" : "KN_LOAD_PLAIN";
    kn_text_format(w->out, "const %s %s%c = (%s)", type, w->prefix, w->code->inputs[i], type);
    if (f->rounded[i])
        kn_text_format(w->out, "kn_round_to_half((float)%s(%s, %s)); ", load, pointer, at);
    else
        kn_text_format(w->out, "%s(%s, %s); ", load, pointer, at);
}

/* How a value is converted to what output i holds. */
static const char *store_of(const writer *w, int i)
{
    const int dtype = w->form->outputs[i];
    if (dtype == KN_F16)
        return "KN_STORE_HALF";
    if (dtype == KN_BOOL)
        return "KN_STORE_BOOL";
    return is_real(w->form->compute) && !is_real(dtype) ? "KN_STORE_WHOLE" : "KN_STORE_PLAIN";
}

static bool is_wanted(const writer *w, int i) { return w->form->outputs[i] != 0; }

static void write_stores(const writer *w, const char *pointer, const char *at)
{
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (is_wanted(w, i))
            kn_text_format(w->out, "%s(%s, %s, %s%d, %s); ", store_of(w, i), storage(w->form->outputs[i]),
                           w->code->values[i], pointer, i, at);
}

static void write_statements(const writer *w)
{
    if (w->code->statements)
        kn_text_format(w->out, "%s ", w->code->statements);
}

/* --- the beginning ------------------------------------------------------------------------------------------------- */

static const char *number_type(const writer *w, int i)
{
    switch (w->code->number_types ? w->code->number_types[i] : 'T') {
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

static void write_types(const writer *w)
{
    const int vector = w->form->vector;
    kn_text_format(w->out, "#define KN_ELEMENT %s\n%s", storage(w->form->compute),
                   is_real(w->form->compute) ? "" : "#define KN_WHOLE\n");
    if (vector)
        kn_text_format(w->out, "#define KN_VECTOR %d\n#define T KN_VECTOR_TYPE\n#include \"pointwise/vectors.clh\"\n",
                       vector);
    else
        kn_text_format(w->out, "#define T %s\n",
                       w->form->compute == KN_BOOL && w->code->is_users ? "bool" : "KN_ELEMENT");
    if (w->form->walk == KN_WALK_QUADS)
        kn_text_format(
            w->out, "#define KN_OPERANDS %d\n#include \"pointwise/elements.clh\"\n#include \"pointwise/quads.clh\"\n",
            w->form->lanes);
    else
        kn_text_format(w->out, "#define KN_PLACES %d\n#include \"pointwise/runs.clh\"\n", w->form->lanes);
}

static void write_functions(const writer *w)
{
    if (w->code->functions)
        kn_text_format(w->out, "#line 1 \"%s\"\n%s\n#line 1 \"koine\"\n", w->code->name, w->code->functions);
}

static void write_parameters(const writer *w, const char *plan)
{
    const kn_pointwise_form *f = w->form;
    bool in_place[KN_POINTWISE_OUTPUTS] = {false};
    for (int i = 0; i < count_inputs(w->code); i++)
        if (f->aliased[i])
            in_place[f->aliased[i] - 1] = true;
    kn_text_format(w->out, "kernel void %s%s(", KN_POINTWISE_PREFIX, w->code->name);
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (is_wanted(w, i))
            kn_text_format(w->out, "%s(kn_out%d), ", in_place[i] ? "KN_INOUT" : "KN_OUT", i);
    for (int i = 0; i < count_inputs(w->code); i++)
        if (is_parameter(f, i))
            kn_text_format(w->out, "KN_IN(kn_in%d), ", i);
    kn_text_format(w->out, "const %s kn_plan", plan);
    for (int i = 0; i < count_numbers(w->code); i++)
        kn_text_format(w->out, ", const %s kn_number%d", number_type(w, i), i);
    kn_text_append(w->out, ")\n{\n");
}

static void write_numbers(const writer *w)
{
    for (int i = 0; i < count_numbers(w->code); i++) {
        const bool typed = w->code->number_types && w->code->number_types[i] != 'T';
        const char *type = typed ? number_type(w, i) : "T";
        kn_text_format(w->out, "    const %s %s%c = (%s)kn_number%d;\n", type, w->prefix, w->code->numbers[i], type, i);
    }
}

static void write_bindings(const writer *w)
{
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (is_wanted(w, i))
            kn_text_format(w->out, "    KN_BIND_OUT(%s, kn_out%d);\n", storage(w->form->outputs[i]), i);
    for (int i = 0; i < count_inputs(w->code); i++)
        if (is_parameter(w->form, i))
            kn_text_format(w->out, "    KN_BIND_IN(%s, kn_in%d);\n", storage(w->form->inputs[i]), i);
    write_numbers(w);
}

/* --- loops of CPU devices ------------------------------------------------------------------------------------------- */

typedef enum advance { UNIT, SAME, ANY } advance;

#define NAME 48

/* The pointer that input i is read from, `kind` being "in" (the whole) or "x" (from the present run on). */
static const char *pointer_of(const writer *w, int i, const char *in, const char *out, char name[NAME])
{
    if (w->form->aliased[i])
        snprintf(name, NAME, "%s%d", out, w->form->aliased[i] - 1);
    else
        snprintf(name, NAME, "%s%d", in, i);
    return name;
}

/* One element after the other: for (; begin < end; ...). `steps`: of each input; `unit`: of the outputs. */
static void write_loop(const writer *w, const char *begin, const char *end, const char *in, const char *out,
                       const advance *steps, bool unit)
{
    char name[NAME], at[NAME];
    kn_text_append(w->out, "{ ");
    for (int i = 0; i < count_inputs(w->code); i++)
        if (is_read(w->form, i) && steps[i] == SAME)
            write_load(w, i, pointer_of(w, i, in, out, name), "0");
    kn_text_format(w->out, "for (long kn_k = %s; kn_k < %s; kn_k++) { ", begin, end);
    for (int i = 0; i < count_inputs(w->code); i++) {
        if (!is_read(w->form, i) || steps[i] == SAME)
            continue;
        const int lane = w->form->lane[i];
        if (steps[i] == UNIT || (lane == 0 && unit))
            snprintf(at, sizeof at, "kn_k");
        else
            snprintf(at, sizeof at, "kn_k * kn_step%d", lane);
        write_load(w, i, pointer_of(w, i, in, out, name), at);
    }
    write_statements(w);
    write_stores(w, out, unit ? "kn_k" : "kn_k * kn_step0");
    kn_text_append(w->out, "} }\n");
}

/* A vector after the other. `steps` are expressions of each lane's step. */
static void write_vector_loop(const writer *w, const char *begin, const char *end, const char *in, const char *out,
                              char (*steps)[NAME])
{
    char name[NAME];
    kn_text_format(w->out,
                   "for (long kn_k = %s; kn_k < %s; kn_k += KN_VECTOR) { const long kn_width = min((long)KN_VECTOR, "
                   "%s - kn_k);\n",
                   begin, end, end);
    for (int i = 0; i < count_inputs(w->code); i++) {
        if (!is_read(w->form, i))
            continue;
        const char *step = w->form->spread[i] ? "0" : steps[w->form->lane[i]];
        kn_text_format(w->out, "const T %s%c = kn_vector_%s(%s + kn_k * %s, %s, kn_width); ", w->prefix,
                       w->code->inputs[i], w->form->inputs[i] == KN_F16 ? "half" : "plain",
                       pointer_of(w, i, in, out, name), step, step);
    }
    write_statements(w);
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (is_wanted(w, i))
            kn_text_format(w->out, "kn_vector_put_%s(%s, %s%d + kn_k * %s, %s, kn_width); ",
                           w->form->outputs[i] == KN_F16 ? "half" : "plain", w->code->values[i], out, i, steps[0],
                           steps[0]);
    kn_text_append(w->out, "}\n");
}

static void write_flat(const writer *w)
{
    char steps[KN_LAYOUT_LANES][NAME];
    advance unit[KN_POINTWISE_INPUTS];
    for (int n = 0; n < KN_LAYOUT_LANES; n++)
        snprintf(steps[n], NAME, "1");
    for (int i = 0; i < count_inputs(w->code); i++)
        unit[i] = w->form->spread[i] ? SAME : UNIT;
    write_parameters(w, "long");
    write_bindings(w);
    kn_text_append(w->out,
                   "long kn_begin_, kn_end_; kn_part(kn_plan, &kn_begin_, &kn_end_); if (kn_begin_ < kn_end_)\n");
    if (w->form->vector)
        write_vector_loop(w, "kn_begin_", "kn_end_", "kn_in", "kn_out", steps);
    else
        write_loop(w, "kn_begin_", "kn_end_", "kn_in", "kn_out", unit, true);
    kn_text_append(w->out, "}\n");
}

/* Pointers to the present run's elements. */
static void write_run(const writer *w)
{
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (is_wanted(w, i))
            kn_text_format(w->out, "global %s *kn_y%d = kn_out%d + kn_c.at[0]; ", storage(w->form->outputs[i]), i, i);
    for (int i = 0; i < count_inputs(w->code); i++)
        if (is_parameter(w->form, i))
            kn_text_format(w->out, "const global %s *kn_x%d = kn_in%d + kn_c.at[%d]; ", storage(w->form->inputs[i]), i,
                           i, w->form->lane[i]);
    kn_text_append(w->out, "\n");
}

/* The lanes that have a stride of their own; more than two of them share one general loop. */
enum { CASES = 2 };

/* Bit n of `same`: lane 1 + n is the same for the whole run; the others have stride 1. */
static void write_case(const writer *w, int lanes, unsigned same)
{
    advance steps[KN_POINTWISE_INPUTS];
    kn_text_append(w->out, "if (kn_step0 == 1");
    for (int n = 1; n < lanes; n++)
        kn_text_format(w->out, " && kn_step%d == %d", n, same >> (n - 1) & 1 ? 0 : 1);
    for (int i = 0; i < count_inputs(w->code); i++) {
        const int lane = w->form->lane[i];
        steps[i] = lane > 0 && same >> (lane - 1) & 1 ? SAME : UNIT;
    }
    kn_text_append(w->out, ")\n");
    write_loop(w, "0", "kn_length", "kn_x", "kn_y", steps, true);
    kn_text_append(w->out, "else ");
}

static void write_run_loops(const writer *w, int lanes)
{
    const unsigned cases = lanes - 1 <= CASES ? (1u << (lanes - 1)) : 1;
    advance any[KN_POINTWISE_INPUTS];
    for (unsigned same = 0; same < cases; same++)
        write_case(w, lanes, same);
    for (int i = 0; i < count_inputs(w->code); i++)
        any[i] = ANY;
    write_loop(w, "0", "kn_length", "kn_x", "kn_y", any, false);
}

/* Whether short runs are worth laying out: where one of several operands may be broadcast, all of plain storage. */
static bool lays_out(const writer *w, int lanes)
{
    int operands = 0;
    for (int i = 0; i < count_inputs(w->code); i++) {
        if (w->form->inputs[i] == KN_F16 || w->form->aliased[i])
            return false;
        operands += is_read(w->form, i);
    }
    return lanes > 1 && operands > 1;
}

static void write_tiles(const writer *w)
{
    advance unit[KN_POINTWISE_INPUTS] = {UNIT};
    kn_text_append(w->out, "if (kn_in_tiles(&kn_plan)) { kn_cursor kn_c; kn_begin(&kn_plan, &kn_c);\n");
    for (int i = 0; i < count_inputs(w->code); i++) {
        const int lane = w->form->lane[i];
        if (lane > 0)
            kn_text_format(w->out, "%s kn_t%d[KN_TILE_BUFFER]; const long kn_reach%d = kn_reach(&kn_plan, %d); ",
                           storage(w->form->inputs[i]), i, i, lane);
    }
    kn_text_append(w->out, "\nwhile (kn_c.position < kn_c.end) { "
                           "const long kn_size = min((long)KN_TILE, kn_c.end - kn_c.position);\n");
    kn_text_append(w->out, "{ KN_FILL_TILE(kn_size, {");
    for (int i = 0; i < count_inputs(w->code); i++) {
        const int lane = w->form->lane[i];
        if (lane > 0)
            kn_text_format(w->out, " KN_LAY(%s, kn_t%d, kn_in%d, %d, kn_reach%d);", storage(w->form->inputs[i]), i, i,
                           lane, i);
    }
    kn_text_append(w->out, " }) }\n");
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (is_wanted(w, i))
            kn_text_format(w->out, "global %s *kn_y%d = kn_out%d + kn_c.position; ", storage(w->form->outputs[i]), i,
                           i);
    for (int i = 0; i < count_inputs(w->code); i++)
        if (is_read(w->form, i) && w->form->lane[i] == 0)
            kn_text_format(w->out, "const global %s *kn_t%d = kn_in%d + kn_c.position; ", storage(w->form->inputs[i]),
                           i, i);
    write_loop(w, "0", "kn_size", "kn_t", "kn_y", unit, true);
    kn_text_append(w->out, "kn_c.position += kn_size; }\nreturn; }\n");
}

static void write_runs(const writer *w)
{
    char steps[KN_LAYOUT_LANES][NAME];
    const int lanes = w->form->lanes;
    write_parameters(w, "kn_runs");
    write_bindings(w);
    if (!w->form->vector && lays_out(w, lanes))
        write_tiles(w);
    for (int n = 0; n < lanes; n++) {
        snprintf(steps[n], NAME, "kn_step%d", n);
        kn_text_format(w->out, "const long %s = kn_plan.stride[%d][kn_plan.ndim - 1]; ", steps[n], n);
    }
    kn_text_append(w->out, "\nKN_RUNS(kn_plan, kn_c, kn_length) {\n");
    write_run(w);
    if (w->form->vector)
        write_vector_loop(w, "0", "kn_length", "kn_x", "kn_y", steps);
    else
        write_run_loops(w, lanes);
    kn_text_append(w->out, "} }\n");
}

/* --- GPUs ------------------------------------------------------------------------------------------------------------ */

/* KN_BODY: one of the four elements. */
static void write_body(const writer *w)
{
    char name[NAME];
    kn_text_append(w->out, "#define KN_BODY ");
    for (int i = 0; i < count_inputs(w->code); i++) {
        if (!is_read(w->form, i))
            continue;
        snprintf(name, NAME, "kn_v%d", i);
        const char *type = type_of(w, i);
        kn_text_format(w->out,
                       w->form->rounded[i] ? "const %s %s%c = (%s)kn_round_to_half((float)%s[kn_k]); "
                                           : "const %s %s%c = (%s)%s[kn_k]; ",
                       type, w->prefix, w->code->inputs[i], type, name);
    }
    write_statements(w);
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (is_wanted(w, i))
            kn_text_format(
                w->out, "%s(%s, %s, kn_r%d, kn_k); ", w->form->outputs[i] == KN_F16 ? "KN_STORE_PLAIN" : store_of(w, i),
                w->form->outputs[i] == KN_F16 ? "float" : storage(w->form->outputs[i]), w->code->values[i], i);
    kn_text_append(w->out, "\n");
}

static void write_quads(const writer *w)
{
    char name[NAME];
    write_body(w);
    write_parameters(w, "kn_quads");
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (is_wanted(w, i))
            kn_text_format(w->out, "KN_QUAD_OUT(%s, kn_out%d, 0)\n", storage(w->form->outputs[i]), i);
    for (int i = 0; i < count_inputs(w->code); i++)
        if (is_parameter(w->form, i))
            kn_text_format(w->out, "KN_QUAD_IN(%s, kn_in%d, %d)\n", storage(w->form->inputs[i]), i, w->form->lane[i]);
    write_numbers(w);
    kn_text_append(w->out, "KN_QUADS(kn_plan, kn_task) { kn_quad kn_q; kn_quad_of(&kn_plan, kn_task, &kn_q); "
                           "if (kn_q.left == 0) continue;\n");
    for (int i = 0; i < count_inputs(w->code); i++) {
        if (!is_read(w->form, i))
            continue;
        const char *from = pointer_of(w, i, "kn_in", "kn_out", name);
        const int lane = w->form->lane[i];
        if (w->form->inputs[i] == KN_F16)
            kn_text_format(w->out, "KN_QUAD_LOAD_HALF(kn_v%d, %s, %d) ", i, from, lane);
        else
            kn_text_format(w->out, "KN_QUAD_LOAD(%s, kn_v%d, %s, %d) ", storage(w->form->inputs[i]), i, from, lane);
    }
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (is_wanted(w, i))
            kn_text_format(w->out, "%s kn_r%d[4]; ",
                           w->form->outputs[i] == KN_F16 ? "float" : storage(w->form->outputs[i]), i);
    kn_text_append(w->out, "\n{ enum { kn_k = 0 }; KN_BODY } { enum { kn_k = 1 }; KN_BODY } "
                           "{ enum { kn_k = 2 }; KN_BODY } { enum { kn_k = 3 }; KN_BODY }\n");
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (is_wanted(w, i) && w->form->outputs[i] == KN_F16)
            kn_text_format(w->out, "KN_QUAD_STORE_HALF(kn_r%d, kn_out%d) ", i, i);
        else if (is_wanted(w, i))
            kn_text_format(w->out, "KN_QUAD_STORE(%s, kn_r%d, kn_out%d) ", storage(w->form->outputs[i]), i, i);
    kn_text_append(w->out, "} }\n");
}

void kn_pointwise_write(kn_text *out, const kn_pointwise_code *code, const kn_pointwise_form *form)
{
    const writer w = {.out = out, .code = code, .form = form, .prefix = code->is_users ? KN_POINTWISE_USERS : ""};
    write_types(&w);
    write_functions(&w);
    if (form->walk == KN_WALK_QUADS)
        write_quads(&w);
    else if (form->walk == KN_WALK_RUNS)
        write_runs(&w);
    else
        write_flat(&w);
}

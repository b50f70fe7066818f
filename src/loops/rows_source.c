/* loops/rows_source.c - writes kernels for rows: a code's texts as functions on scalars and on vectors, for the walks
 * of cl/rows. All names in them except the code's letters, T and C begin with kn_ or KN_ or belong to OpenCL. */
#include "loops/rows_source.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"

enum { MAX_INPUTS = KN_ROWS_STATE + KN_ROWS_INPUTS, MAX_OUTPUTS = KN_ROWS_STATE + 1 };

/* A kernel input. */
typedef struct rows_input {
    char letter; /* fields have capital letters */
    kn_dtype dtype;
    bool per_row, is_field;
} rows_input;

/* A kernel output; the place is stored as int64. */
typedef struct rows_output {
    const char *value;
    int length; /* of its text */
    kn_dtype dtype;
    bool is_place;
} rows_output;

typedef struct rows_writer {
    kn_text *out;
    const kn_rows_code *code;
    const kn_rows_form *form;
    rows_input inputs[MAX_INPUTS];
    rows_output outputs[MAX_OUTPUTS];
    int num_inputs, num_outputs;
    char place[2]; /* as a string; empty: unwanted */
} rows_writer;

/* Functions and types of one width. */
typedef struct rows_width {
    int width;
    const char *suffix;
} rows_width;

static const char *letters(const char *text) { return text ? text : ""; }
static bool has(const char *text, char letter) { return strchr(letters(text), letter) != NULL; }

/* --- inputs and outputs ------------------------------------------------------------------------------------------- */

/* The fields from an earlier launch: elements of the second stage, but not of a scan. */
static void list_fields(rows_writer *w)
{
    for (int i = 0; w->code->state[i]; i++)
        w->inputs[w->num_inputs++] = (rows_input){.letter = (char)toupper(w->code->state[i]),
                                                  .dtype = (kn_dtype)w->form->compute,
                                                  .is_field = w->form->stage == KN_ROWS_SCAN};
}

static void list_inputs(rows_writer *w)
{
    const kn_rows_code *code = w->code;
    const bool combines = w->form->stage == KN_ROWS_COMBINED;
    if (combines)
        list_fields(w);
    for (int i = 0; code->inputs[i]; i++) {
        const bool per_row = has(code->per_row, code->inputs[i]);
        if (!combines || per_row)
            w->inputs[w->num_inputs++] =
                (rows_input){.letter = code->inputs[i], .dtype = (kn_dtype)w->form->inputs[i], .per_row = per_row};
    }
    if (w->form->stage == KN_ROWS_SCAN)
        list_fields(w);
}

static void list_outputs(rows_writer *w)
{
    const kn_rows_code *code = w->code;
    if (w->form->stage != KN_ROWS_PARTIAL) {
        for (int i = 0; i < KN_ROWS_OUTPUTS; i++)
            if (w->form->outputs[i])
                w->outputs[w->num_outputs++] =
                    (rows_output){code->values[i], (int)strlen(code->values[i]), (kn_dtype)w->form->outputs[i],
                                  w->place[0] && strcmp(code->values[i], w->place) == 0};
        return;
    }
    for (int i = 0; code->state[i]; i++)
        w->outputs[w->num_outputs++] = (rows_output){code->state + i, 1, (kn_dtype)w->form->compute, false};
    if (w->place[0])
        w->outputs[w->num_outputs++] = (rows_output){w->place, 1, KN_I64, true};
}

static bool is_real(const rows_writer *w) { return kn_dtype_is_floating((kn_dtype)w->form->compute); }
static bool compensates(const rows_writer *w) { return w->code->is_sum && is_real(w); }
static bool finds_places(const rows_writer *w) { return w->place[0] && w->form->stage == KN_ROWS_COMBINED; }

/* --- definitions -------------------------------------------------------------------------------------------------- */

static const char *bounds_of(int dtype)
{
    if (kn_dtype_is_floating((kn_dtype)dtype))
        return "#define KN_LOWEST ((T)-INFINITY)\n#define KN_HIGHEST ((T)INFINITY)\n";
    return dtype == KN_I64 ? "#define KN_LOWEST ((T)LONG_MIN)\n#define KN_HIGHEST ((T)LONG_MAX)\n"
                           : "#define KN_LOWEST ((T)INT_MIN)\n#define KN_HIGHEST ((T)INT_MAX)\n";
}

/* With a single field, a sum's lanes have the layout of elements. */
static bool fits_side_by_side(const rows_writer *w)
{
    return w->code->is_sum && strlen(w->code->state) == 1 && !w->code->per_row && w->form->stage != KN_ROWS_COMBINED;
}

static void write_definitions(const rows_writer *w)
{
    const kn_rows_form *f = w->form;
    kn_text_format(w->out, "#define KN_ELEMENT %s\n%s%s", kn_dtype_cl((kn_dtype)f->compute),
                   is_real(w) ? "" : "#define KN_WHOLE\n", bounds_of(f->compute));
    if (f->compute == KN_F64)
        kn_text_append(w->out, "#define KN_DOUBLE\n");
    if (compensates(w))
        kn_text_append(w->out, "#define KN_IS_SUM\n");
    if (f->stage == KN_ROWS_PARTIAL)
        kn_text_append(w->out, "#define KN_IN_CHUNKS\n");
    if (f->walk == KN_ALONG_ROWS)
        kn_text_append(w->out, "#define KN_ALONG_ROWS\n");
    if (f->walk == KN_DOWN_FEW_ROWS)
        kn_text_append(w->out, "#define KN_FEW_ROWS\n");
    if (fits_side_by_side(w))
        kn_text_append(w->out, "#define KN_SIDE_BY_SIDE\n");
    if (f->width != 16 || f->stage == KN_ROWS_SCAN)
        kn_text_format(w->out, "#define KN_W %d\n", f->width);
    kn_text_append(w->out, "#include \"rows/rows.clh\"\n");
}

static void write_operands(const rows_writer *w)
{
    kn_text_append(w->out, "typedef struct kn_operands { ");
    for (int i = 0; i < w->num_inputs; i++)
        kn_text_format(w->out, "const global %s *in%d; ", kn_dtype_cl(w->inputs[i].dtype), i);
    kn_text_append(w->out, "} kn_operands;\n");
}

/* --- loads -------------------------------------------------------------------------------------------------------- */

static const char *kind_of(const rows_input *input) { return kn_dtype_kind(input->dtype); }

/* Loads `width` elements of input i from element `at` of `pointer`. */
static void write_load(const rows_writer *w, int i, int width, const char *pointer, const char *at)
{
    const rows_input *input = &w->inputs[i];
    if (width == 1)
        kn_text_format(w->out, "KN_TAKE_%s(%sin%d, %s)", kind_of(input), pointer, i, at);
    else if (w->form->is_aligned && !input->per_row && !kn_dtype_is_reduced(input->dtype))
        kn_text_format(w->out, "KN_TAKE_ALIGNED_VECTOR(%d, %s, %sin%d, %s)", width, kn_dtype_cl(input->dtype), pointer,
                       i, at);
    else
        kn_text_format(w->out, "KN_TAKE_%s_VECTOR(%d, %sin%d, %s)", kind_of(input), width, pointer, i, at);
}

/* --- functions of one width --------------------------------------------------------------------------------------- */

static void write_types(const rows_writer *w, rows_width v)
{
    const bool is_long = kn_dtype_size((kn_dtype)w->form->compute) == 8;
    if (v.width == 1)
        kn_text_format(w->out, "#define T KN_ELEMENT\n#define C int\ntypedef int kn_place%s;\n", v.suffix);
    else
        kn_text_format(w->out, "#define T KN_VECTOR_OF(KN_ELEMENT, %d)\n#define C %s%d\ntypedef C kn_place%s;\n",
                       v.width, is_long ? "long" : "int", v.width, v.suffix);
    kn_text_append(w->out, "typedef struct { ");
    for (int i = 0; w->code->state[i]; i++)
        kn_text_format(w->out, "T %c; ", w->code->state[i]);
    if (w->place[0])
        kn_text_format(w->out, "kn_place%s %s; ", v.suffix, w->place);
    kn_text_format(w->out, "} kn_state%s;\n", v.suffix);
}

/* Declares the fields as locals, including an unwanted place, which the texts may use. */
static void write_fields(const rows_writer *w, rows_width v)
{
    for (int i = 0; w->code->state[i]; i++)
        kn_text_format(w->out, "T %c = kn_s->%c; ", w->code->state[i], w->code->state[i]);
    if (w->place[0])
        kn_text_format(w->out, "kn_place%s %s = kn_s->%s; ", v.suffix, w->place, w->place);
    else if (w->code->place)
        kn_text_format(w->out, "kn_place%s %c = 0; ", v.suffix, w->code->place);
}

static void write_fields_back(const rows_writer *w)
{
    for (int i = 0; w->code->state[i]; i++)
        kn_text_format(w->out, "kn_s->%c = %c; ", w->code->state[i], w->code->state[i]);
    if (w->place[0])
        kn_text_format(w->out, "kn_s->%s = %s; ", w->place, w->place);
    kn_text_append(w->out, "}\n");
}

static void write_init(const rows_writer *w, rows_width v)
{
    kn_text_format(w->out, "KN_INLINE void kn_init%s(kn_state%s *kn_s) { ", v.suffix, v.suffix);
    for (int i = 0; w->code->state[i]; i++)
        kn_text_format(w->out, "T %c; ", w->code->state[i]);
    if (w->code->place)
        kn_text_format(w->out, "kn_place%s %c; ", v.suffix, w->code->place);
    kn_text_format(w->out, "%s ", w->code->init);
    write_fields_back(w);
}

static void write_merge(const rows_writer *w, rows_width v)
{
    kn_text_format(w->out, "KN_INLINE void kn_merge%s(kn_state%s *kn_s, const kn_state%s *kn_o) { ", v.suffix, v.suffix,
                   v.suffix);
    write_fields(w, v);
    for (int i = 0; w->code->state[i]; i++)
        kn_text_format(w->out, "const T %c = kn_o->%c; ", toupper(w->code->state[i]), w->code->state[i]);
    if (w->code->place)
        kn_text_format(w->out, w->place[0] ? "const kn_place%s %c = kn_o->%s; " : "const kn_place%s %c = 0; ", v.suffix,
                       toupper(w->code->place), w->place);
    kn_text_format(w->out, "%s ", w->code->merge);
    write_fields_back(w);
}

/* Constants of a row: numbers and per-row inputs. */
static void write_fixed(const rows_writer *w, rows_width v)
{
    kn_text_append(w->out, "typedef struct { int kn_unused; ");
    for (int i = 0; letters(w->code->numbers)[i]; i++)
        kn_text_format(w->out, "T %c; ", w->code->numbers[i]);
    for (int i = 0; i < w->num_inputs; i++)
        if (w->inputs[i].per_row)
            kn_text_format(w->out, "T %c; ", w->inputs[i].letter);
    kn_text_format(w->out, "} kn_fixed%s;\n", v.suffix);
}

static void write_fixed_locals(const rows_writer *w)
{
    for (int i = 0; letters(w->code->numbers)[i]; i++)
        kn_text_format(w->out, "const T %c = kn_f->%c; ", w->code->numbers[i], w->code->numbers[i]);
    for (int i = 0; i < w->num_inputs; i++)
        if (w->inputs[i].per_row)
            kn_text_format(w->out, "const T %c = kn_f->%c; ", w->inputs[i].letter, w->inputs[i].letter);
}

/* kn_take: loads elements and adds them; `part`: a partial vector of `count` elements. */
static void write_take(const rows_writer *w, rows_width v, bool part)
{
    const bool combines = w->form->stage == KN_ROWS_COMBINED;
    kn_text_format(w->out,
                   "KN_INLINE void kn_take%s%s(kn_state%s *kn_s, const kn_fixed%s *kn_f, const kn_operands *kn_x, "
                   "const long kn_at, const kn_place%s i%s) { ",
                   part ? "_part" : "", v.suffix, v.suffix, v.suffix, v.suffix,
                   part ? ", const long kn_step, const long kn_count" : "");
    write_fields(w, v);
    write_fixed_locals(w);
    for (int i = 0; i < w->num_inputs; i++) {
        if (w->inputs[i].per_row || w->inputs[i].is_field)
            continue;
        kn_text_format(w->out, "const T %c = ", w->inputs[i].letter);
        if (part && v.width > 1)
            kn_text_format(w->out, "kn_part%d(kn_x->in%d, kn_at, kn_step, kn_count)", i, i);
        else
            write_load(w, i, v.width, "kn_x->", "kn_at");
        kn_text_append(w->out, "; ");
    }
    if (combines && w->code->place)
        kn_text_format(w->out, "const kn_place%s %c = i; ", v.suffix, toupper(w->code->place));
    kn_text_format(w->out, "%s ", combines ? w->code->merge : w->code->step);
    write_fields_back(w);
}

/* The sum of many parts. */
static void write_total(const rows_writer *w, rows_width v)
{
    const char *s = v.suffix;
    if (!compensates(w)) {
        kn_text_format(w->out,
                       "typedef kn_state%s kn_total%s;\n"
                       "KN_INLINE void kn_clear%s(kn_total%s *kn_t) { kn_init%s(kn_t); }\n"
                       "KN_INLINE void kn_add%s(kn_total%s *kn_t, const kn_state%s *kn_o) { kn_merge%s(kn_t, kn_o); }\n"
                       "KN_INLINE void kn_settle%s(const kn_total%s *kn_t, kn_state%s *kn_s) { *kn_s = *kn_t; }\n",
                       s, s, s, s, s, s, s, s, s, s, s, s);
        return;
    }
    kn_text_format(w->out,
                   "typedef struct { kn_state%s sum, error; } kn_total%s;\n"
                   "KN_INLINE void kn_clear%s(kn_total%s *kn_t) { kn_init%s(&kn_t->sum); kn_init%s(&kn_t->error); }\n"
                   "KN_INLINE void kn_add%s(kn_total%s *kn_t, const kn_state%s *kn_o) { ",
                   s, s, s, s, s, s, s, s, s);
    for (int i = 0; w->code->state[i]; i++)
        kn_text_format(w->out, "KN_TWO_SUM(T, kn_t->sum.%c, kn_t->error.%c, kn_o->%c); ", w->code->state[i],
                       w->code->state[i], w->code->state[i]);
    kn_text_format(w->out, "}\nKN_INLINE void kn_settle%s(const kn_total%s *kn_t, kn_state%s *kn_s) { ", s, s, s);
    for (int i = 0; w->code->state[i]; i++)
        kn_text_format(w->out, "kn_s->%c = KN_SUM_AND_ERROR(kn_t->sum.%c, kn_t->error.%c); ", w->code->state[i],
                       w->code->state[i], w->code->state[i]);
    kn_text_append(w->out, "}\n");
}

/* --- results ------------------------------------------------------------------------------------------------------ */

/* The destinations of results, as parameters (`declared`) or as arguments. */
static void write_targets(const rows_writer *w, bool declared)
{
    for (int i = 0; i < w->num_outputs; i++) {
        if (declared)
            kn_text_format(w->out, ", global %s *kn_out%d", kn_dtype_cl(w->outputs[i].dtype), i);
        else
            kn_text_format(w->out, ", kn_out%d", i);
    }
    if (finds_places(w))
        kn_text_append(w->out,
                       declared ? ", const global long *kn_places, const long kn_inner" : ", kn_places, kn_plan.inner");
}

static const char *place_of(const rows_writer *w)
{
    return finds_places(w) ? "kn_places[kn_from + kn_j * kn_apart + kn_p * kn_inner]" : "kn_first + (long)kn_p";
}

/* Stores kn_value, a vector, to output i. */
static void write_vector_store(const rows_writer *w, int i, int width)
{
    const rows_output *o = &w->outputs[i];
    if (!o->is_place && o->dtype == (kn_dtype)w->form->compute && width == 16) {
        kn_text_format(w->out, "kn_store_first16(kn_value, kn_out%d + kn_to, kn_count); ", i);
        return;
    }
    if (!o->is_place && o->dtype == (kn_dtype)w->form->compute && w->form->is_aligned) {
        kn_text_format(w->out, "*(global T *)(kn_out%d + kn_to) = kn_value; ", i);
        return;
    }
    kn_text_format(w->out, "%s kn_each[%d]; vstore%d(kn_value, 0, kn_each); ",
                   !o->is_place                                     ? "KN_ELEMENT"
                   : kn_dtype_size((kn_dtype)w->form->compute) == 8 ? "long"
                                                                    : "int",
                   width, width);
    kn_text_append(w->out, "for (int kn_j = 0; kn_j < kn_count; kn_j++) ");
    if (o->is_place)
        kn_text_format(w->out, "{ const long kn_p = kn_each[kn_j]; kn_out%d[kn_to + kn_j] = %s; } ", i, place_of(w));
    else
        kn_text_format(w->out, "KN_STORE_%s(%s, kn_each[kn_j], kn_out%d, kn_to + kn_j); ",
                       kn_store_kind(w->form->compute, o->dtype), kn_dtype_cl(o->dtype), i);
}

static void write_store(const rows_writer *w, int i)
{
    const rows_output *o = &w->outputs[i];
    if (o->is_place)
        kn_text_format(w->out, "const long kn_p = kn_value, kn_j = 0; (void)kn_j; kn_out%d[kn_to] = %s; ", i,
                       place_of(w));
    else
        kn_text_format(w->out, "KN_STORE_%s(%s, kn_value, kn_out%d, kn_to); ",
                       kn_store_kind(w->form->compute, o->dtype), kn_dtype_cl(o->dtype), i);
}

/* kn_put: stores the results of `count` rows. The first element has index `first`; element 0 of the first row is at
 * `from`, that of the next row `apart` further. */
static void write_put(const rows_writer *w, rows_width v)
{
    kn_text_format(w->out,
                   "KN_INLINE void kn_put%s(const kn_state%s *kn_s, const kn_fixed%s *kn_f, const long kn_to, "
                   "const long kn_count, const long kn_first, const long kn_from, const long kn_apart",
                   v.suffix, v.suffix, v.suffix);
    write_targets(w, true);
    kn_text_append(w->out, ") { ");
    write_fields(w, v);
    if (w->form->stage != KN_ROWS_PARTIAL)
        write_fixed_locals(w);
    for (int i = 0; i < w->num_outputs; i++) {
        if (w->outputs[i].is_place)
            kn_text_format(w->out, "{ const kn_place%s kn_value = %.*s; ", v.suffix, w->outputs[i].length,
                           w->outputs[i].value);
        else
            kn_text_format(w->out, "{ const T kn_value = %.*s; ", w->outputs[i].length, w->outputs[i].value);
        if (v.width == 1)
            write_store(w, i);
        else
            write_vector_store(w, i, v.width);
        kn_text_append(w->out, "} ");
    }
    kn_text_append(w->out, "}\n");
}

static void write_width(const rows_writer *w, rows_width v)
{
    write_types(w, v);
    write_init(w, v);
    write_merge(w, v);
    write_fixed(w, v);
    write_take(w, v, false);
    if (v.width == 16 || w->form->stage == KN_ROWS_SCAN)
        write_take(w, v, true);
    write_total(w, v);
    write_put(w, v);
    kn_text_append(w->out, "#undef T\n#undef C\n");
}

/* kn_join: merges a vector's halves repeatedly, down to one lane. */
static void write_join(const rows_writer *w)
{
    for (int width = 8; width > 1; width /= 2) {
        char suffix[4];
        snprintf(suffix, sizeof suffix, "%d", width);
        write_types(w, (rows_width){width, suffix});
        write_merge(w, (rows_width){width, suffix});
        kn_text_append(w->out, "#undef T\n#undef C\n");
    }
    kn_text_append(w->out, "KN_INLINE void kn_join(const kn_state16 *kn_v, kn_state1 *kn_s) { "
                           "const kn_state16 kn_16 = *kn_v; ");
    for (int width = 8; width > 0; width /= 2) {
        for (int half = 0; half < 2; half++) {
            kn_text_format(w->out, "%skn_state%d kn_%d%s = { ", half ? "const " : "", width, width, half ? "b" : "");
            for (int i = 0; w->code->state[i]; i++)
                kn_text_format(w->out, "kn_%d.%c.%s, ", 2 * width, w->code->state[i], half ? "hi" : "lo");
            if (w->place[0])
                kn_text_format(w->out, "kn_%d.%s.%s, ", 2 * width, w->place, half ? "hi" : "lo");
            kn_text_append(w->out, "}; ");
        }
        kn_text_format(w->out, "kn_merge%d(&kn_%d, &kn_%db); ", width, width, width);
    }
    kn_text_append(w->out, "*kn_s = kn_1; }\n");
}

/* --- kernel frame ------------------------------------------------------------------------------------------------- */

static void write_parameters(const rows_writer *w)
{
    kn_text_append(w->out, "#define KN_PARAMETERS ");
    for (int i = 0; i < w->num_outputs; i++)
        kn_text_format(w->out, "KN_OUT(kn_out%d), ", i);
    for (int i = 0; i < w->num_inputs; i++)
        kn_text_format(w->out, "KN_IN(kn_in%d), ", i);
    if (finds_places(w))
        kn_text_append(w->out, "KN_IN(kn_places), ");
    kn_text_append(w->out, "const kn_rows_plan kn_given");
    for (int i = 0; letters(w->code->numbers)[i]; i++)
        kn_text_format(w->out, ", const %s kn_number%d", w->form->compute == KN_F64 ? "double" : "float", i);
    kn_text_append(w->out, "\n#define KN_BIND ");
    for (int i = 0; i < w->num_outputs; i++)
        kn_text_format(w->out, "KN_BIND_OUT(%s, kn_out%d); ", kn_dtype_cl(w->outputs[i].dtype), i);
    for (int i = 0; i < w->num_inputs; i++)
        kn_text_format(w->out, "KN_BIND_IN(%s, kn_in%d); ", kn_dtype_cl(w->inputs[i].dtype), i);
    if (finds_places(w))
        kn_text_append(w->out, "KN_BIND_IN(long, kn_places); ");
    /* A copy that no store can alias: its fields stay in registers. */
    kn_text_append(w->out, "const kn_rows_plan kn_plan = kn_given; const kn_operands kn_x = {");
    for (int i = 0; i < w->num_inputs; i++)
        kn_text_format(w->out, "kn_in%d, ", i);
    kn_text_append(w->out, "};\n");
}

/* KN_FIX and variants: the row's constants, for `width` neighbouring rows (`across`) or the same in all lanes. */
static void write_fix(const rows_writer *w, const char *name, rows_width v, bool across)
{
    char type[40] = "KN_ELEMENT";
    if (v.width > 1)
        snprintf(type, sizeof type, "KN_VECTOR_OF(KN_ELEMENT, %d)", v.width);
    kn_text_format(w->out, "#define %s ((kn_fixed%s){0, ", name, v.suffix);
    for (int i = 0; letters(w->code->numbers)[i]; i++)
        kn_text_format(w->out, "(%s)kn_number%d, ", type, i);
    for (int i = 0; i < w->num_inputs; i++) {
        if (!w->inputs[i].per_row)
            continue;
        if (!across && v.width > 1)
            kn_text_format(w->out, "(%s)", type);
        if (across && v.width == 16)
            kn_text_format(w->out, "kn_part%d(kn_in%d, kn_row, 1, kn_count)", i, i);
        else
            write_load(w, i, across ? v.width : 1, "kn_", "(kn_row)");
        kn_text_append(w->out, ", ");
    }
    kn_text_append(w->out, "})\n");
}

/* KN_PUT; for vectors with the element count and the distance between rows. */
static void write_put_macro(const rows_writer *w, rows_width v, bool counts)
{
    kn_text_format(w->out,
                   "#define KN_PUT%s(kn_s, kn_f, kn_to, %skn_first, kn_from%s) "
                   "kn_put%s(&(kn_s), &(kn_f), kn_to, ",
                   v.suffix, counts ? "kn_count, " : "", counts ? ", kn_apart" : "", v.suffix);
    kn_text_format(w->out, counts ? "kn_count, " : "%d, ", v.width);
    kn_text_append(w->out, counts ? "kn_first, kn_from, kn_apart" : "kn_first, kn_from, 1");
    write_targets(w, false);
    kn_text_append(w->out, ")\n");
}

/* Partial vector loads, for each input. */
static void write_parts(const rows_writer *w)
{
    for (int i = 0; i < w->num_inputs; i++)
        kn_text_format(w->out, "KN_DEFINE_PART(kn_part%d, 16, %s, KN_TAKE_%s, KN_TAKE_%s_VECTOR)\n", i,
                       kn_dtype_cl(w->inputs[i].dtype), kind_of(&w->inputs[i]), kind_of(&w->inputs[i]));
}

static void write_for_cpu(const rows_writer *w)
{
    const rows_width one = {1, "1"}, lanes = {16, "16"};
    write_parts(w);
    write_width(w, one);
    write_width(w, lanes);
    if (w->form->walk == KN_ALONG_ROWS)
        write_join(w);
    write_fix(w, "KN_FIX1(kn_row)", one, true);
    write_fix(w, "KN_FIX16(kn_row)", lanes, false);
    write_fix(w, "KN_FIX_COLUMNS16(kn_row, kn_count)", lanes, true);
    write_put_macro(w, one, false);
    write_put_macro(w, lanes, true);
    kn_text_append(w->out, "#include \"rows/cpu.clh\"\n");
}

/* KN_EARLIER: loads a state of the earlier launch, from element `at` of the fields. */
static void write_earlier(const rows_writer *w)
{
    kn_text_append(w->out, "#define KN_EARLIER(kn_s, kn_at, kn_count) ");
    for (int i = 0; i < w->num_inputs; i++) {
        if (!w->inputs[i].is_field)
            continue;
        kn_text_format(w->out, "(kn_s).%c = ", tolower(w->inputs[i].letter));
        if (w->form->width > 1)
            kn_text_format(w->out, "kn_part%d(kn_in%d, kn_at, 1, kn_count); ", i, i);
        else
            kn_text_format(w->out, "kn_in%d[kn_at]; ", i);
    }
    kn_text_append(w->out, "\n");
}

static void write_for_scan(const rows_writer *w)
{
    const rows_width v = {w->form->width, "W"};
    if (v.width > 1)
        write_parts(w);
    write_width(w, v);
    write_earlier(w);
    write_fix(w, "KN_FIXW(kn_row)", v, false);
    write_put_macro(w, v, true);
    kn_text_append(w->out, "#include \"rows/scan.clh\"\n");
}

static void write_for_gpu(const rows_writer *w)
{
    const rows_width v = {w->form->width, "W"};
    write_width(w, v);
    write_fix(w, "KN_FIXW(kn_row)", v, true);
    write_put_macro(w, v, false);
    kn_text_append(w->out, "#include \"rows/gpu.clh\"\n");
}

void kn_rows_write(kn_text *out, const void *code_, const void *form_)
{
    const kn_rows_code *code = code_;
    const kn_rows_form *form = form_;
    rows_writer w = {.out = out, .code = code, .form = form, .place = {form->has_place ? code->place : '\0'}};
    list_inputs(&w);
    list_outputs(&w);
    write_definitions(&w);
    write_operands(&w);
    write_parameters(&w);
    kn_text_format(out, "#define KN_KERNEL " KN_ROWS_PREFIX "%s\n", code->name);
    if (form->stage == KN_ROWS_SCAN)
        write_for_scan(&w);
    else if (form->width == 16)
        write_for_cpu(&w);
    else
        write_for_gpu(&w);
}

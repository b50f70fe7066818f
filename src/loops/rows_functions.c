/* loops/rows_functions.c - a code's texts as functions of one width, on scalars or on vectors.
 *
 * Functions on a state take the number of the pass, a constant wherever they are called. */
#include "loops/rows_writer.h"

static bool compensates(const rows_writer *w, int pass) { return w->passes[pass]->is_sum && is_real(w); }

static bool compensates_any(const rows_writer *w)
{
    bool any = false;
    for (int pass = 0; pass < w->num_all_passes; pass++)
        any |= compensates(w, pass);
    return any;
}

void kn_rows_begin_pass(const rows_writer *w, int pass)
{
    if (w->num_all_passes > 1)
        kn_text_format(w->out, "if (kn_pass == %d) { ", pass);
}

void kn_rows_end_pass(const rows_writer *w)
{
    if (w->num_all_passes > 1)
        kn_text_append(w->out, "} ");
}

/* --- types -------------------------------------------------------------------------------------------------------- */

void kn_rows_write_types(const rows_writer *w, rows_width v)
{
    const bool is_long = kn_dtype_size((kn_dtype)w->form->compute) == 8;
    if (v.width == 1)
        kn_text_format(w->out, "#define T KN_ELEMENT\n#define C int\ntypedef int kn_place%s;\n", v.suffix);
    else
        kn_text_format(w->out, "#define T KN_VECTOR_OF(KN_ELEMENT, %d)\n#define C %s%d\ntypedef C kn_place%s;\n",
                       v.width, is_long ? "long" : "int", v.width, v.suffix);
    int fields = 0;
    kn_text_append(w->out, "typedef struct { ");
    for (int pass = 0; pass < w->num_all_passes; pass++)
        for (int i = 0; w->passes[pass]->state[i]; i++, fields++)
            kn_text_format(w->out, "T %c; ", w->passes[pass]->state[i]);
    if (w->place[0])
        kn_text_format(w->out, "kn_place%s %s; ", v.suffix, w->place);
    kn_text_format(w->out, "%s} kn_state%s;\n", fields ? "" : "T kn_unused; ", v.suffix);
}

void kn_rows_write_end_of_types(const rows_writer *w) { kn_text_append(w->out, "#undef T\n#undef C\n"); }

/* The letters of a row's constants that are known before `pass`: numbers, inputs, results of earlier passes. */
static void list_fixed(const rows_writer *w, int pass, char letters_[32])
{
    int count = 0;
    for (int i = 0; letters(w->code->numbers)[i]; i++)
        letters_[count++] = w->code->numbers[i];
    for (int i = 0; i < w->num_inputs; i++)
        if (is_fixed(&w->inputs[i]))
            letters_[count++] = w->inputs[i].letter;
    for (int p = 0; p < pass; p++)
        for (int i = 0; letters(w->passes[p]->row)[i]; i++)
            letters_[count++] = w->passes[p]->row[i];
    letters_[count] = '\0';
}

/* The type of a row's constant. */
static char type_of(const rows_writer *w, char letter) { return letter == w->code->index ? 'C' : 'T'; }

void kn_rows_write_fixed(const rows_writer *w, rows_width v)
{
    char fixed[32];
    int loaded = 0;
    list_fixed(w, w->num_passes, fixed);
    kn_text_append(w->out, "typedef struct { int kn_unused; ");
    for (int i = 0; fixed[i]; i++)
        kn_text_format(w->out, "%c %c; ", type_of(w, fixed[i]), fixed[i]);
    kn_text_format(w->out, "} kn_fixed%s;\ntypedef struct { ", v.suffix);
    for (int i = 0; i < w->num_inputs; i++)
        if (is_loaded(&w->inputs[i]) && ++loaded)
            kn_text_format(w->out, "T %c; ", w->inputs[i].letter);
    kn_text_format(w->out, "%s} kn_element%s;\n", loaded ? "" : "int kn_unused; ", v.suffix);
}

/* --- locals ------------------------------------------------------------------------------------------------------- */

/* Including an unwanted place, which the texts may use. */
void kn_rows_write_fields(const rows_writer *w, rows_width v, int pass)
{
    const char *state = w->passes[pass]->state;
    for (int i = 0; state[i]; i++)
        kn_text_format(w->out, "T %c = kn_s->%c; ", state[i], state[i]);
    if (w->place[0])
        kn_text_format(w->out, "kn_place%s %s = kn_s->%s; ", v.suffix, w->place, w->place);
    else if (w->code->place)
        kn_text_format(w->out, "kn_place%s %c = 0; ", v.suffix, w->code->place);
}

static void write_fields_back(const rows_writer *w, int pass)
{
    const char *state = w->passes[pass]->state;
    for (int i = 0; state[i]; i++)
        kn_text_format(w->out, "kn_s->%c = %c; ", state[i], state[i]);
    if (w->place[0])
        kn_text_format(w->out, "kn_s->%s = %s; ", w->place, w->place);
}

void kn_rows_write_fixed_locals(const rows_writer *w, int pass)
{
    char fixed[32];
    list_fixed(w, pass, fixed);
    for (int i = 0; fixed[i]; i++)
        kn_text_format(w->out, "const %c %c = kn_f->%c; ", type_of(w, fixed[i]), fixed[i], fixed[i]);
    for (int i = 0; w->missing[i]; i++)
        kn_text_format(w->out, "const T %c = 1; ", w->missing[i]);
}

void kn_rows_write_element_locals(const rows_writer *w)
{
    for (int i = 0; i < w->num_inputs; i++)
        if (is_loaded(&w->inputs[i]))
            kn_text_format(w->out, "%sT %c = kn_e->%c; ", w->code->keep ? "" : "const ", w->inputs[i].letter,
                           w->inputs[i].letter);
}

/* --- loads -------------------------------------------------------------------------------------------------------- */

const char *kn_rows_kind_of(const rows_input *input) { return kn_dtype_kind(input->dtype); }

void kn_rows_write_load(const rows_writer *w, int i, int width, const char *pointer, const char *at)
{
    const rows_input *input = &w->inputs[i];
    if (width == 1)
        kn_text_format(w->out, "KN_TAKE_%s(%sin%d, %s)", kn_rows_kind_of(input), pointer, i, at);
    else if (w->form->is_aligned && input->extent == PER_ELEMENT && !kn_dtype_is_reduced(input->dtype))
        kn_text_format(w->out, "KN_TAKE_ALIGNED_VECTOR(%d, %s, %sin%d, %s)", width, kn_dtype_cl(input->dtype), pointer,
                       i, at);
    else
        kn_text_format(w->out, "KN_TAKE_%s_VECTOR(%d, %sin%d, %s)", kn_rows_kind_of(input), width, pointer, i, at);
}

/* Neighbouring elements are mostly of one segment. */
static void write_segment_load(const rows_writer *w, int i, int width, bool part)
{
    if (width == 1)
        kn_rows_write_load(w, i, 1, "kn_x->",
                           "kn_number_of(KN_SEGMENTS_IN(kn_x), kn_segment_at(KN_SEGMENTS_IN(kn_x), kn_at))");
    else
        kn_text_format(w->out, "kn_segments%d(kn_x->in%d, KN_SEGMENTS_IN(kn_x), kn_at, %s)", i, i,
                       part ? "kn_count" : "16");
}

typedef enum load_kind { LOAD_WHOLE, LOAD_PART, LOAD_OWN } load_kind;

/* kn_load: the element at `at`, index `k` of its row; kn_load_part: `count` of them, `step` apart, where `room`
 * elements may be read; kn_load_own: as kn_load, but what belongs to segments stays as it is. Down columns all lanes
 * have the same index. */
static void write_element_load(const rows_writer *w, rows_width v, load_kind kind)
{
    static const char *const names[] = {"", "_part", "_own"};
    const bool part = kind == LOAD_PART;
    kn_text_format(w->out,
                   "KN_INLINE void kn_load%s%s(kn_element%s *kn_e, const kn_operands *kn_x, const long kn_at, "
                   "const long kn_k%s) { ",
                   names[kind], v.suffix, v.suffix,
                   part ? ", const long kn_step, const long kn_count, const long kn_room" : "");
    for (int i = 0; i < w->num_inputs; i++) {
        const rows_input *input = &w->inputs[i];
        const bool varies = input->extent == PER_ELEMENT || w->form->walk == KN_ALONG_ROWS;
        const char *at = input->extent == PER_ELEMENT ? "kn_at" : "kn_k";
        if (!is_loaded(input) || (kind == LOAD_OWN && input->extent == PER_SEGMENT))
            continue;
        kn_text_format(w->out, "kn_e->%c = ", input->letter);
        if (input->extent == PER_SEGMENT)
            write_segment_load(w, i, v.width, part);
        else if (part && varies && v.width > 1)
            kn_text_format(w->out, "kn_part%d(kn_x->in%d, %s, kn_step, kn_count, %s)", i, i, at,
                           input->extent == PER_ELEMENT ? "kn_room" : "kn_count");
        else
            kn_rows_write_load(w, i, varies ? v.width : 1, "kn_x->", at);
        kn_text_append(w->out, "; ");
    }
    kn_text_append(w->out, "}\n");
}

/* --- passes ------------------------------------------------------------------------------------------------------- */

static void write_init(const rows_writer *w, rows_width v)
{
    kn_text_format(w->out, "KN_INLINE void kn_init%s(const int kn_pass, kn_state%s *kn_s) { ", v.suffix, v.suffix);
    for (int pass = 0; pass < w->num_all_passes; pass++) {
        kn_rows_begin_pass(w, pass);
        for (int i = 0; w->passes[pass]->state[i]; i++)
            kn_text_format(w->out, "T %c; ", w->passes[pass]->state[i]);
        if (w->code->place)
            kn_text_format(w->out, "kn_place%s %c; ", v.suffix, w->code->place);
        kn_text_format(w->out, "%s ", w->passes[pass]->init);
        write_fields_back(w, pass);
        kn_rows_end_pass(w);
    }
    kn_text_append(w->out, "}\n");
}

static void write_merge(const rows_writer *w, rows_width v)
{
    kn_text_format(w->out, "KN_INLINE void kn_merge%s(const int kn_pass, kn_state%s *kn_s, const kn_state%s *kn_o) { ",
                   v.suffix, v.suffix, v.suffix);
    for (int pass = 0; pass < w->num_all_passes; pass++) {
        const char *state = w->passes[pass]->state;
        kn_rows_begin_pass(w, pass);
        kn_rows_write_fields(w, v, pass);
        for (int i = 0; state[i]; i++)
            kn_text_format(w->out, "const T %c = kn_o->%c; ", toupper(state[i]), state[i]);
        if (w->code->place)
            kn_text_format(w->out, w->place[0] ? "const kn_place%s %c = kn_o->%s; " : "const kn_place%s %c = 0; ",
                           v.suffix, toupper(w->code->place), w->place);
        kn_text_format(w->out, "%s ", w->passes[pass]->merge);
        write_fields_back(w, pass);
        kn_rows_end_pass(w);
    }
    kn_text_append(w->out, "}\n");
}

/* kn_step: adds the element with index i; the last pass may change it for the map. */
static void write_step(const rows_writer *w, rows_width v)
{
    const bool combines = w->form->stage == KN_ROWS_COMBINED;
    kn_text_format(w->out,
                   "KN_INLINE void kn_step%s(const int kn_pass, kn_state%s *kn_s, const kn_fixed%s *kn_f, "
                   "kn_element%s *kn_e, const kn_place%s i) { ",
                   v.suffix, v.suffix, v.suffix, v.suffix, v.suffix);
    for (int pass = 0; pass < w->num_all_passes; pass++) {
        const bool keeps = w->code->keep && pass + 1 == w->num_passes;
        kn_rows_begin_pass(w, pass);
        kn_rows_write_fields(w, v, pass);
        kn_rows_write_fixed_locals(w, pass);
        if (pass < w->num_passes)
            kn_rows_write_element_locals(w);
        if (combines && w->code->place)
            kn_text_format(w->out, "const kn_place%s %c = i; ", v.suffix, toupper(w->code->place));
        kn_text_format(w->out, "%s %s ", keeps ? w->code->keep : "",
                       combines ? w->passes[pass]->merge : w->passes[pass]->step);
        write_fields_back(w, pass);
        for (int i = 0; keeps && i < w->num_inputs; i++)
            if (is_loaded(&w->inputs[i]))
                kn_text_format(w->out, "kn_e->%c = %c; ", w->inputs[i].letter, w->inputs[i].letter);
        kn_rows_end_pass(w);
    }
    kn_text_append(w->out, "}\n");
}

/* kn_take: loads elements and adds them; `part`: a partial vector of `count` elements. */
static void write_take(const rows_writer *w, rows_width v, bool part)
{
    kn_text_format(w->out,
                   "KN_INLINE void kn_take%s%s(const int kn_pass, kn_state%s *kn_s, const kn_fixed%s *kn_f, "
                   "const kn_operands *kn_x, const long kn_at, const kn_place%s i%s) { kn_element%s kn_e; "
                   "kn_load%s%s(&kn_e, kn_x, kn_at, %s%s); kn_step%s(kn_pass, kn_s, kn_f, &kn_e, i); }\n",
                   part ? "_part" : "", v.suffix, v.suffix, v.suffix, v.suffix,
                   part ? ", const long kn_step, const long kn_count" : "", v.suffix, part ? "_part" : "", v.suffix,
                   v.width > 1 ? "i.s0" : "i", part ? ", kn_step, kn_count, kn_step == 1 ? kn_count : 0" : "",
                   v.suffix);
}

/* The sum of many parts. */
static void write_total(const rows_writer *w, rows_width v)
{
    const char *s = v.suffix;
    if (!compensates_any(w)) {
        kn_text_format(w->out,
                       "typedef kn_state%s kn_total%s;\n"
                       "KN_INLINE void kn_clear%s(const int kn_pass, kn_total%s *kn_t) { kn_init%s(kn_pass, kn_t); }\n"
                       "KN_INLINE void kn_add%s(const int kn_pass, kn_total%s *kn_t, const kn_state%s *kn_o) "
                       "{ kn_merge%s(kn_pass, kn_t, kn_o); }\n"
                       "KN_INLINE void kn_settle%s(const int kn_pass, const kn_total%s *kn_t, kn_state%s *kn_s) "
                       "{ *kn_s = *kn_t; }\n",
                       s, s, s, s, s, s, s, s, s, s, s, s);
        return;
    }
    kn_text_format(w->out,
                   "typedef struct { kn_state%s sum, error; } kn_total%s;\n"
                   "KN_INLINE void kn_clear%s(const int kn_pass, kn_total%s *kn_t) "
                   "{ kn_init%s(kn_pass, &kn_t->sum); kn_init%s(kn_pass, &kn_t->error); }\n"
                   "KN_INLINE void kn_add%s(const int kn_pass, kn_total%s *kn_t, const kn_state%s *kn_o) { ",
                   s, s, s, s, s, s, s, s, s);
    for (int pass = 0; pass < w->num_all_passes; pass++) {
        const char *state = w->passes[pass]->state;
        kn_rows_begin_pass(w, pass);
        if (!compensates(w, pass))
            kn_text_format(w->out, "kn_merge%s(kn_pass, &kn_t->sum, kn_o); ", s);
        for (int i = 0; compensates(w, pass) && state[i]; i++)
            kn_text_format(w->out, "KN_TWO_SUM(T, kn_t->sum.%c, kn_t->error.%c, kn_o->%c); ", state[i], state[i],
                           state[i]);
        kn_rows_end_pass(w);
    }
    kn_text_format(w->out,
                   "}\nKN_INLINE void kn_settle%s(const int kn_pass, const kn_total%s *kn_t, kn_state%s *kn_s) { ", s,
                   s, s);
    for (int pass = 0; pass < w->num_all_passes; pass++) {
        const char *state = w->passes[pass]->state;
        kn_rows_begin_pass(w, pass);
        if (!compensates(w, pass))
            kn_text_append(w->out, "*kn_s = kn_t->sum; ");
        for (int i = 0; compensates(w, pass) && state[i]; i++)
            kn_text_format(w->out, "kn_s->%c = KN_SUM_AND_ERROR(kn_t->sum.%c, kn_t->error.%c); ", state[i], state[i],
                           state[i]);
        kn_rows_end_pass(w);
    }
    kn_text_append(w->out, "}\n");
}

void kn_rows_write_functions(const rows_writer *w, rows_width v)
{
    const bool in_parts = v.width == 16 || w->form->stage == KN_ROWS_SCAN;
    kn_rows_write_types(w, v);
    const rows_vector_functions called = kn_rows_begin_vector_functions(w, v);
    write_init(w, v);
    write_merge(w, v);
    kn_rows_write_fixed(w, v);
    write_element_load(w, v, LOAD_WHOLE);
    if (in_parts)
        write_element_load(w, v, LOAD_PART);
    if (v.width == 16 && has_segments(w))
        write_element_load(w, v, LOAD_OWN);
    write_step(w, v);
    write_take(w, v, false);
    if (in_parts)
        write_take(w, v, true);
    write_total(w, v);
    if (w->form->stage == KN_ROWS_MAP)
        kn_rows_write_map(w, v);
    kn_rows_write_put(w, v);
    if (scans_in_tiles(w))
        kn_rows_write_tiles(w, v);
    kn_rows_end_vector_functions(w, called);
    kn_rows_write_end_of_types(w);
}

void kn_rows_write_join(const rows_writer *w)
{
    for (int width = 8; width > 1; width /= 2) {
        char suffix[4];
        snprintf(suffix, sizeof suffix, "%d", width);
        kn_rows_write_types(w, (rows_width){width, suffix});
        write_merge(w, (rows_width){width, suffix});
        if (width == 4 && w->form->stage == KN_ROWS_MAP)
            kn_rows_write_conclude(w, (rows_width){width, suffix});
        kn_rows_write_end_of_types(w);
    }
    kn_text_append(w->out, "KN_INLINE void kn_join(const int kn_pass, const kn_state16 *kn_v, kn_state1 *kn_s) { "
                           "const kn_state16 kn_16 = *kn_v; ");
    for (int width = 8; width > 0; width /= 2) {
        for (int half = 0; half < 2; half++) {
            kn_text_format(w->out, "%skn_state%d kn_%d%s = { ", half ? "const " : "", width, width, half ? "b" : "");
            for (int pass = 0; pass < w->num_all_passes; pass++)
                for (int i = 0; w->passes[pass]->state[i]; i++)
                    kn_text_format(w->out, "kn_%d.%c.%s, ", 2 * width, w->passes[pass]->state[i], half ? "hi" : "lo");
            if (w->place[0])
                kn_text_format(w->out, "kn_%d.%s.%s, ", 2 * width, w->place, half ? "hi" : "lo");
            kn_text_append(w->out, "}; ");
        }
        kn_text_format(w->out, "kn_merge%d(kn_pass, &kn_%d, &kn_%db); ", width, width, width);
    }
    kn_text_append(w->out, "*kn_s = kn_1; }\n");
}

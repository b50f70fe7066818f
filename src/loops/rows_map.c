/* loops/rows_map.c - writes the functions of rows with a map or a total: finish, map, choose, and pick, which selects
 * elements by an index. */
#include "loops/rows_writer.h"

/* kn_finish: the row's constants, from the state of the whole row. */
static void write_finish(const rows_writer *w, rows_width v)
{
    kn_text_format(w->out, "KN_INLINE void kn_finish%s(const int kn_pass, const kn_state%s *kn_s, kn_fixed%s *kn_f) { ",
                   v.suffix, v.suffix, v.suffix);
    for (int pass = 0; pass < w->num_passes; pass++) {
        const char *row = letters(w->passes[pass]->row);
        kn_rows_begin_pass(w, pass);
        kn_rows_write_fields(w, v, pass);
        kn_rows_write_fixed_locals(w, pass);
        for (int i = 0; row[i]; i++)
            kn_text_format(w->out, "T %c; ", row[i]);
        kn_text_format(w->out, "%s ", letters(w->passes[pass]->finish));
        for (int i = 0; row[i]; i++)
            kn_text_format(w->out, "kn_f->%c = %c; ", row[i], row[i]);
        kn_rows_end_pass(w);
    }
    kn_text_append(w->out, "}\n");
}

/* kn_map: the result of the element with index i; `kept`: the element is as the last pass left it. */
static void write_map(const rows_writer *w, rows_width v)
{
    kn_text_format(w->out,
                   "KN_INLINE T kn_map%s(const kn_fixed%s *kn_f, const kn_element%s *kn_e, const kn_place%s i, "
                   "const int kn_kept) { ",
                   v.suffix, v.suffix, v.suffix, v.suffix);
    kn_rows_write_fixed_locals(w, w->num_passes);
    kn_rows_write_element_locals(w);
    if (w->code->keep)
        kn_text_format(w->out, "if (!kn_kept) { %s } ", w->code->keep);
    kn_text_format(w->out, "return %s; }\n", w->code->map);
}

/* kn_choose: takes the other state in the lanes that exist. */
static void write_choose(const rows_writer *w, rows_width v)
{
    kn_text_format(w->out,
                   "KN_INLINE void kn_choose%s(const int kn_pass, kn_state%s *kn_s, const kn_state%s *kn_o, "
                   "const C kn_there) { ",
                   v.suffix, v.suffix, v.suffix);
    for (int pass = 0; pass < w->num_all_passes; pass++) {
        kn_rows_begin_pass(w, pass);
        for (int i = 0; w->passes[pass]->state[i]; i++)
            kn_text_format(w->out, "kn_s->%c = select(kn_s->%c, kn_o->%c, kn_there); ", w->passes[pass]->state[i],
                           w->passes[pass]->state[i], w->passes[pass]->state[i]);
        kn_rows_end_pass(w);
    }
    kn_text_append(w->out, "}\n");
}

/* kn_pick: the indices of `count` neighbouring rows, and the elements that they select; for a map along rows those of
 * one row, in all lanes. */
static void write_pick(const rows_writer *w, rows_width v)
{
    const char *s = v.suffix, *place = kn_dtype_size((kn_dtype)w->form->compute) == 8 && v.width > 1 ? "long" : "int";
    const int rows = w->form->walk == KN_ALONG_ROWS && w->form->mapped ? 1 : v.width;
    kn_text_format(w->out,
                   "KN_INLINE kn_fixed%s kn_pick%s(kn_fixed%s kn_f, const kn_operands *kn_x, const kn_rows_plan *kn_p, "
                   "const long kn_row, const long kn_count, const long kn_ignored, KN_FAULT) { "
                   "const long kn_first = kn_start(kn_p, kn_row), kn_apart = kn_p->inner == 1 ? kn_p->n : 1; ",
                   s, s, s);
    for (int i = 0; i < w->num_inputs; i++)
        if (is_picked(&w->inputs[i]) || w->inputs[i].extent == INDEX)
            kn_text_format(w->out, "%s kn_own_%c[%d]; ", w->inputs[i].extent == INDEX ? place : "KN_ELEMENT",
                           w->inputs[i].letter, rows);
    kn_text_format(
        w->out, "for (int kn_j = 0; kn_j < %d; kn_j++) { const long kn_next = min((long)kn_j, kn_count - 1); ", rows);
    for (int i = 0; i < w->num_inputs; i++)
        if (w->inputs[i].extent == INDEX)
            kn_text_format(w->out,
                           "const long kn_i = kn_index(kn_x->in%d[kn_row + kn_next], kn_p->n, kn_ignored, fault, "
                           "fault_operation); kn_own_%c[kn_j] = (%s)kn_i; ",
                           i, w->inputs[i].letter, place);
    for (int i = 0; i < w->num_inputs; i++) {
        if (!is_picked(&w->inputs[i]))
            continue;
        kn_text_format(w->out, "kn_own_%c[kn_j] = kn_i < 0 ? (KN_ELEMENT)0 : ", w->inputs[i].letter);
        kn_rows_write_load(w, i, 1, "kn_x->",
                           w->inputs[i].extent == PICKED ? "kn_first + kn_next * kn_apart + kn_i * kn_p->inner"
                                                         : "kn_i");
        kn_text_append(w->out, "; ");
    }
    kn_text_append(w->out, "} ");
    for (int i = 0; i < w->num_inputs; i++) {
        const char letter = w->inputs[i].letter;
        if (!is_picked(&w->inputs[i]) && w->inputs[i].extent != INDEX)
            continue;
        if (rows > 1)
            kn_text_format(w->out, "kn_f.%c = vload%d(0, kn_own_%c); ", letter, rows, letter);
        else
            kn_text_format(w->out, "kn_f.%c = kn_own_%c[0]; ", letter, letter);
    }
    kn_text_append(w->out, "return kn_f; }\n");
}

/* kn_add_columns: adds the elements of 16 neighbouring columns to the columns' states in memory. */
static void write_columns(const rows_writer *w, rows_width v)
{
    const kn_rows_code *code = w->code->columns;
    kn_text_format(w->out,
                   "KN_INLINE void kn_add_columns(const kn_fixed%s *kn_f, const kn_element%s *kn_e, "
                   "const int kn_is_first, const long kn_at, const long kn_count",
                   v.suffix, v.suffix);
    kn_rows_write_targets(w, OF_COLUMNS, true);
    kn_text_append(w->out, ") { ");
    kn_rows_write_fixed_locals(w, w->num_passes);
    kn_rows_write_element_locals(w);
    for (int i = 0; code->state[i]; i++)
        kn_text_format(w->out, "T %c; ", code->state[i]);
    kn_text_format(w->out, "if (kn_is_first) { %s } else { ", code->init);
    for (int i = 0; i < w->num_outputs; i++)
        if (w->outputs[i].target == OF_COLUMNS)
            kn_text_format(w->out, "%c = vload%d(0, kn_out%d + kn_at); ", *w->outputs[i].value, v.width, i);
    kn_text_format(w->out, "} %s ", code->step);
    for (int i = 0; i < w->num_outputs; i++)
        if (w->outputs[i].target == OF_COLUMNS)
            kn_text_format(w->out, "kn_store_first%d(%c, kn_out%d + kn_at, kn_count); ", v.width, *w->outputs[i].value,
                           i);
    kn_text_append(w->out, "}\n#define KN_ADD_COLUMNS(kn_f, kn_e, kn_is_first, kn_at, kn_count) "
                           "kn_add_columns(&(kn_f), &(kn_e), kn_is_first, kn_at, kn_count");
    kn_rows_write_targets(w, OF_COLUMNS, false);
    kn_text_append(w->out, ");\n");
}

void kn_rows_write_map(const rows_writer *w, rows_width v)
{
    write_finish(w, v);
    if (w->code->map)
        write_map(w, v);
    if (w->code->index)
        write_pick(w, v);
    if (v.width == 16)
        write_choose(w, v);
    if (v.width == 16 && w->form->has_columns)
        write_columns(w, v);
    if (v.width == 1 && has_total(w))
        kn_rows_write_put_total(w, v);
}

/* From one row's states, in vectors of `width`, to its constants in both. */
static void write_conclusion(const rows_writer *w, const kn_rows_pass *pass, int width)
{
    const char *row = letters(pass->row);
    kn_text_format(w->out, "kn_state%d kn_s; ", width);
    for (int i = 0; pass->state[i]; i++)
        kn_text_format(w->out, "kn_s.%c = (KN_VECTOR_OF(KN_ELEMENT, %d))(kn_o->%c); ", pass->state[i], width,
                       pass->state[i]);
    kn_text_format(w->out, "kn_finish%d(kn_pass, &kn_s, %s); ", width, width == 16 ? "kn_f" : "kn_few");
    for (int i = 0; row[i]; i++)
        kn_text_format(w->out, width == 16 ? "kn_few->%c = kn_f->%c.s0; " : "kn_f->%c = kn_few->%c.x; ", row[i],
                       row[i]);
}

void kn_rows_write_conclude(const rows_writer *w, rows_width four)
{
    kn_rows_write_fixed(w, four);
    write_finish(w, four);
    if (w->code->index && w->form->mapped)
        write_pick(w, four);
    kn_text_append(w->out, "KN_INLINE void kn_conclude(const int kn_pass, const kn_state1 *kn_o, kn_fixed4 *kn_few, "
                           "kn_fixed16 *kn_f) { ");
    for (int pass = 0; pass < w->num_passes; pass++) {
        kn_rows_begin_pass(w, pass);
        write_conclusion(w, w->passes[pass], kn_rows_calls_elementary(w, w->passes[pass]->finish) ? 16 : 4);
        kn_rows_end_pass(w);
    }
    kn_text_append(w->out, "}\n");
}

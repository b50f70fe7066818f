/* loops/rows_results.c - stores the results of rows, converted to the outputs' dtypes. */
#include "loops/rows_writer.h"

void kn_rows_write_targets(const rows_writer *w, rows_target target, bool declared)
{
    for (int i = 0; i < w->num_outputs; i++) {
        if (w->outputs[i].target != target)
            continue;
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
    if (!o->is_place && o->dtype == (kn_dtype)w->form->compute && width >= 8) {
        kn_text_format(w->out, "kn_store_first%d(kn_value, kn_out%d + kn_to, kn_count); ", width, i);
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

/* Declares kn_value, the value of output i. */
static void write_value(const rows_writer *w, rows_width v, int i)
{
    if (w->outputs[i].is_place)
        kn_text_format(w->out, "{ const kn_place%s kn_value = ", v.suffix);
    else
        kn_text_append(w->out, "{ const T kn_value = ");
    kn_text_format(w->out, "%.*s; ", w->outputs[i].length, w->outputs[i].value);
}

/* The results of a row, or a total. */
static void write_values(const rows_writer *w, rows_width v, rows_target target)
{
    for (int i = 0; i < w->num_outputs; i++) {
        if (w->outputs[i].target != target)
            continue;
        write_value(w, v, i);
        if (v.width == 1)
            write_store(w, i);
        else
            write_vector_store(w, i, v.width);
        kn_text_append(w->out, "} ");
    }
    kn_text_append(w->out, "}\n");
}

void kn_rows_write_put_total(const rows_writer *w, rows_width v)
{
    kn_text_format(w->out, "KN_INLINE void kn_put_total(const kn_state%s *kn_s, const long kn_to", v.suffix);
    kn_rows_write_targets(w, OF_TOTAL, true);
    kn_text_append(w->out, ") { ");
    kn_rows_write_fields(w, v, w->num_passes);
    write_values(w, v, OF_TOTAL);
    kn_text_append(w->out, "#define KN_PUT_TOTAL(kn_s, kn_to) kn_put_total(&(kn_s), kn_to");
    kn_rows_write_targets(w, OF_TOTAL, false);
    kn_text_append(w->out, ")\n");
}

/* kn_put: stores the results of `count` rows. The first element has index `first`; element 0 of the first row is at
 * `from`, that of the next row `apart` further. */
void kn_rows_write_put(const rows_writer *w, rows_width v)
{
    kn_text_format(w->out,
                   "KN_INLINE void kn_put%s(const kn_state%s *kn_s, const kn_fixed%s *kn_f, const long kn_to, "
                   "const long kn_count, const long kn_first, const long kn_from, const long kn_apart",
                   v.suffix, v.suffix, v.suffix);
    kn_rows_write_targets(w, OF_ROW, true);
    kn_text_append(w->out, ") { ");
    kn_rows_write_fields(w, v, w->num_passes - 1);
    if (w->form->stage != KN_ROWS_PARTIAL)
        kn_rows_write_fixed_locals(w, w->num_passes);
    write_values(w, v, OF_ROW);
}

void kn_rows_write_put_macro(const rows_writer *w, rows_width v, bool counts)
{
    kn_text_format(w->out,
                   "#define KN_PUT%s(kn_s, kn_f, kn_to, %skn_first, kn_from%s) "
                   "kn_put%s(&(kn_s), &(kn_f), kn_to, ",
                   v.suffix, counts ? "kn_count, " : "", counts ? ", kn_apart" : "", v.suffix);
    kn_text_format(w->out, counts ? "kn_count, " : "%d, ", v.width);
    kn_text_append(w->out, counts ? "kn_first, kn_from, kn_apart" : "kn_first, kn_from, 1");
    kn_rows_write_targets(w, OF_ROW, false);
    kn_text_append(w->out, ")\n");
}

/* Places are kept as elements, which have the same size. */
void kn_rows_write_tiles(const rows_writer *w, rows_width v)
{
    const char *as = "KN_JOIN(as_, KN_VECTOR_OF(KN_ELEMENT, KN_W))";
    kn_text_format(w->out,
                   "#define KN_ROW(kn_at, kn_count, kn_room) kn_part0(x->in0, kn_at, 1, kn_count, kn_room)\n"
                   "#define KN_RESULTS %d\n"
                   "KN_INLINE void kn_results(const kn_state%s *kn_s, const kn_fixed%s *kn_f, T kn_tiles[][KN_W], "
                   "const int kn_column) { ",
                   w->num_outputs, v.suffix, v.suffix);
    kn_rows_write_fields(w, v, 0);
    kn_rows_write_fixed_locals(w, 1);
    for (int i = 0; i < w->num_outputs; i++) {
        write_value(w, v, i);
        kn_text_format(w->out, "kn_tiles[%d][kn_column] = %s(kn_value); } ", i, as);
    }
    kn_text_append(w->out, "}\nKN_INLINE void kn_put_row(T kn_tiles[][KN_W], const int kn_row, const long kn_to, "
                           "const long kn_count");
    kn_rows_write_targets(w, OF_ROW, true);
    kn_text_append(w->out, ") { const long kn_first = 0; (void)kn_first; ");
    for (int i = 0; i < w->num_outputs; i++) {
        kn_text_format(w->out,
                       w->outputs[i].is_place ? "{ const kn_place%s kn_value = KN_JOIN(as_, C)"
                                              : "{ const T%s kn_value = ",
                       w->outputs[i].is_place ? v.suffix : "");
        kn_text_format(w->out, "(kn_tiles[%d][kn_row]); ", i);
        write_vector_store(w, i, v.width);
        kn_text_append(w->out, "} ");
    }
    kn_text_append(
        w->out,
        "}\n#define KN_PUT_ROW(kn_tiles, kn_row, kn_to, kn_count) kn_put_row(kn_tiles, kn_row, kn_to, kn_count");
    kn_rows_write_targets(w, OF_ROW, false);
    kn_text_append(w->out, ")\n#define KN_TARGETS ");
    kn_rows_write_targets(w, OF_ROW, true);
    kn_text_append(w->out, "\n#define KN_TARGETS_OF_KERNEL ");
    kn_rows_write_targets(w, OF_ROW, false);
    kn_text_append(w->out, "\n");
}

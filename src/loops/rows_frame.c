/* loops/rows_frame.c - what surrounds a code's functions in a kernel for rows: definitions, parameters and the row's
 * constants. */
#include "loops/rows_writer.h"

static bool compensates(const rows_writer *w) { return w->code->is_sum && is_real(w); }
static bool picks(const rows_writer *w) { return w->code->index && w->form->stage == KN_ROWS_MAP; }

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
    return w->code->is_sum && strlen(w->code->state) == 1 && !w->code->per_row && !w->code->per_place &&
           w->form->stage != KN_ROWS_COMBINED;
}

static bool reads_halves(const rows_writer *w)
{
    for (int i = 0; i < w->num_inputs; i++)
        if (w->inputs[i].dtype == KN_F16)
            return true;
    return false;
}

void kn_rows_write_definitions(const rows_writer *w)
{
    const kn_rows_form *f = w->form;
    kn_text_format(w->out, "#define KN_ELEMENT %s\n%s%s", kn_dtype_cl((kn_dtype)f->compute),
                   is_real(w) ? "" : "#define KN_WHOLE\n", bounds_of(f->compute));
    if (f->compute == KN_F64)
        kn_text_append(w->out, "#define KN_DOUBLE\n");
    if (compensates(w))
        kn_text_append(w->out, "#define KN_IS_SUM\n");
    if (w->code->takes_long)
        kn_text_append(w->out, "#define KN_TAKES_LONG\n");
    if (w->code->place)
        kn_text_append(w->out, "#define KN_HAS_PLACE\n");
    if (f->stage == KN_ROWS_PARTIAL)
        kn_text_append(w->out, "#define KN_IN_CHUNKS\n");
    if (f->walk == KN_ALONG_ROWS)
        kn_text_append(w->out, "#define KN_ALONG_ROWS\n");
    if (f->walk == KN_DOWN_FEW_ROWS)
        kn_text_append(w->out, "#define KN_FEW_ROWS\n");
    if (fits_side_by_side(w))
        kn_text_append(w->out, "#define KN_SIDE_BY_SIDE\n");
    if (f->mapped)
        kn_text_append(w->out, "#define KN_MAPS\n");
    if (f->bypass)
        kn_text_append(w->out, "#define KN_BYPASS\n");
    if (w->code->keep)
        kn_text_format(w->out, "#define KN_KEPT(e) (e).%c\n", w->code->inputs[0]);
    if (f->stage == KN_ROWS_MAP)
        kn_text_format(w->out, "#define KN_PASSES %d\n#define KN_HELD %d\n", w->num_passes, f->held);
    if (w->code->step)
        kn_text_append(w->out, "#define KN_VISITS\n");
    if (f->has_columns)
        kn_text_append(w->out, "#define KN_COLUMNS\n");
    if (has_total(w))
        kn_text_format(w->out, "#define KN_TOTAL %d\n", w->num_passes);
    if (f->width != 16 || f->stage == KN_ROWS_SCAN)
        kn_text_format(w->out, "#define KN_W %d\n", f->width);
    if (f->length)
        kn_text_format(w->out, "#define KN_LENGTH %d\n", f->length);
    if (reads_halves(w))
        kn_text_append(w->out, "#define KN_HAS_HALVES\n");
    kn_text_append(w->out, "#include \"rows/rows.clh\"\n");
}

/* The kernel's buffers, each as a macro's argument. */
static void write_buffers(const rows_writer *w, const char *output, const char *input)
{
    if (w->form->mapped)
        kn_text_format(w->out, "%s(kn_mapped), ", output);
    for (int i = 0; i < w->num_outputs; i++)
        kn_text_format(w->out, "%s(kn_out%d), ", output, i);
    for (int i = 0; i < w->num_inputs; i++)
        kn_text_format(w->out, "%s(kn_in%d), ", input, i);
    if (finds_places(w) || scans_places(w))
        kn_text_format(w->out, "%s(kn_places), ", input);
}

static void write_bindings(const rows_writer *w)
{
    if (w->form->mapped)
        kn_text_format(w->out, "KN_BIND_OUT(%s, kn_mapped); ", kn_dtype_cl((kn_dtype)w->form->mapped));
    for (int i = 0; i < w->num_outputs; i++)
        kn_text_format(w->out, "KN_BIND_OUT(%s, kn_out%d); ", kn_dtype_cl(w->outputs[i].dtype), i);
    for (int i = 0; i < w->num_inputs; i++)
        kn_text_format(w->out, "KN_BIND_IN(%s, kn_in%d); ", kn_dtype_cl(w->inputs[i].dtype), i);
    if (finds_places(w) || scans_places(w))
        kn_text_append(w->out, "KN_BIND_IN(long, kn_places); ");
}

/* KN_PARAMETERS and, with the same ones as arguments, KN_ROWS_KERNEL. */
static void write_head(const rows_writer *w)
{
    kn_text_append(w->out, "#define KN_PARAMETERS ");
    write_buffers(w, "KN_OUT", "KN_IN");
    kn_text_append(w->out, "const kn_rows_plan kn_given");
    for (int i = 0; letters(w->code->numbers)[i]; i++)
        kn_text_format(w->out, ", const %s kn_number%d", w->form->compute == KN_F64 ? "double" : "float", i);
    kn_text_format(w->out, "%s\n", picks(w) ? ", const long kn_ignored, KN_FAULT" : "");
    kn_text_append(w->out, "#define KN_ROWS_KERNEL KN_ROWS_KERNEL_(KN_KERNEL)\n"
                           "#define KN_ROWS_KERNEL_(name) KN_KERNEL_ONCE(name, (");
    write_buffers(w, "KN_ARG", "KN_ARG");
    kn_text_append(w->out, "kn_given");
    for (int i = 0; letters(w->code->numbers)[i]; i++)
        kn_text_format(w->out, ", kn_number%d", i);
    kn_text_format(w->out, "%s), KN_PARAMETERS)\n", picks(w) ? ", kn_ignored, fault, fault_operation" : "");
}

void kn_rows_write_parameters(const rows_writer *w)
{
    const bool by_segment = w->code->per_segment && w->form->stage == KN_ROWS_MAP;
    write_head(w);
    kn_text_append(w->out, "typedef struct kn_operands { ");
    for (int i = 0; i < w->num_inputs; i++)
        kn_text_format(w->out, "const global %s *in%d; ", kn_dtype_cl(w->inputs[i].dtype), i);
    kn_text_format(w->out, "%s} kn_operands;\n#define KN_BIND ", by_segment ? "kn_segments_of_x segments; " : "");
    write_bindings(w);
    /* A copy that no store can alias: its fields stay in registers. */
    kn_text_format(w->out, "const kn_rows_plan kn_plan = kn_given; %sconst kn_operands kn_x = {",
                   by_segment ? "kn_segments kn_found = KN_SEGMENTS_OF(kn_plan); " : "");
    for (int i = 0; i < w->num_inputs; i++)
        kn_text_format(w->out, "kn_in%d, ", i);
    kn_text_format(w->out, "%s};\n#define KN_FROM(kn_element, kn_first) {",
                   by_segment ? "KN_SEGMENTS_HELD(kn_found)" : "");
    for (int i = 0; i < w->num_inputs; i++)
        kn_text_format(w->out,
                       w->inputs[i].extent == PER_PLACE     ? "kn_in%d + kn_first, "
                       : w->inputs[i].extent == PER_ELEMENT ? "kn_in%d + kn_element, "
                                                            : "kn_in%d, ",
                       i);
    kn_text_append(w->out, "}\n");
}

void kn_rows_write_fix(const rows_writer *w, const char *name, rows_width v, bool across)
{
    char type[40] = "KN_ELEMENT";
    if (v.width > 1)
        snprintf(type, sizeof type, "KN_VECTOR_OF(KN_ELEMENT, %d)", v.width);
    const bool picked = picks(w) && (across || w->form->mapped); /* finish and map need them */
    kn_text_format(w->out, "#define %s ", name);
    if (picked)
        kn_text_format(w->out, "kn_pick%s(", v.suffix);
    kn_text_format(w->out, "((kn_fixed%s){0, ", v.suffix);
    for (int i = 0; letters(w->code->numbers)[i]; i++)
        kn_text_format(w->out, "(%s)kn_number%d, ", type, i);
    for (int i = 0; i < w->num_inputs; i++) {
        const rows_extent extent = w->inputs[i].extent;
        if (!is_fixed(&w->inputs[i]))
            continue;
        if (extent == INDEX)
            kn_text_format(w->out, "(kn_place%s)", v.suffix);
        else if (!across || extent != PER_ROW)
            kn_text_format(w->out, "(%s)", type);
        if (extent == INDEX || is_picked(&w->inputs[i]))
            kn_text_append(w->out, "0");
        else if (extent == SINGLE)
            kn_rows_write_load(w, i, 1, "kn_", "0");
        else if (across && v.width == 16)
            kn_text_format(w->out, "kn_part%d(kn_in%d, kn_row, 1, kn_count, kn_count)", i, i);
        else
            kn_rows_write_load(w, i, across ? v.width : 1, "kn_", "(kn_row)");
        kn_text_append(w->out, ", ");
    }
    kn_text_append(w->out, "})");
    if (picked)
        kn_text_format(w->out, ", &kn_x, &kn_plan, kn_row, %s, kn_ignored, fault, fault_operation)",
                       across && v.width == 16 ? "kn_count" : "1");
    kn_text_append(w->out, "\n");
}

void kn_rows_write_earlier(const rows_writer *w)
{
    const char *place = kn_dtype_size((kn_dtype)w->form->compute) == 8 ? "long" : "int";
    kn_text_append(w->out, "#define KN_EARLIER(kn_s, kn_at, kn_count) ");
    for (int i = 0; i < w->num_inputs; i++) {
        if (w->inputs[i].extent != FIELD_BEFORE)
            continue;
        kn_text_format(w->out, "(kn_s).%c = ", tolower(w->inputs[i].letter));
        if (w->form->width > 1)
            kn_text_format(w->out, "kn_part%d(kn_in%d, kn_at, 1, kn_count, kn_count); ", i, i);
        else
            kn_text_format(w->out, "kn_in%d[kn_at]; ", i);
    }
    if (w->place[0] && w->form->width > 1)
        kn_text_format(
            w->out,
            "{ %s kn_each[KN_W]; for (long kn_j = 0; kn_j < KN_W; kn_j++) kn_each[kn_j] = "
            "(%s)kn_places[(kn_at) + min(kn_j, (kn_count) - 1)]; (kn_s).%s = KN_JOIN(vload, KN_W)(0, kn_each); }",
            place, place, w->place);
    else if (w->place[0])
        kn_text_format(w->out, "(kn_s).%s = (kn_placeW)kn_places[kn_at]; ", w->place);
    kn_text_append(w->out, "\n");
}

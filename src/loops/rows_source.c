/* loops/rows_source.c - writes kernels for rows: a code's texts as functions on scalars and on vectors, for the walks
 * of cl/rows. All names in them except the code's letters, T and C begin with kn_ or KN_ or belong to OpenCL. */
#include "loops/rows_writer.h"

/* --- inputs and outputs ------------------------------------------------------------------------------------------- */

/* The fields from an earlier launch: elements of the second stage, but not of a scan. */
static void list_fields(rows_writer *w)
{
    for (int i = 0; w->code->state[i]; i++)
        w->inputs[w->num_inputs++] =
            (rows_input){.letter = (char)toupper(w->code->state[i]),
                         .dtype = (kn_dtype)w->form->compute,
                         .extent = w->form->stage == KN_ROWS_SCAN ? FIELD_BEFORE : PER_ELEMENT};
}

rows_extent kn_rows_extent_of(const kn_rows_code *code, char letter)
{
    if (letter == code->index)
        return INDEX;
    if (has(code->picked, letter))
        return has(code->per_place, letter) ? PICKED_PLACE : PICKED;
    return has(code->per_row, letter)       ? PER_ROW
           : has(code->single, letter)      ? SINGLE
           : has(code->per_place, letter)   ? PER_PLACE
           : has(code->per_segment, letter) ? PER_SEGMENT
                                            : PER_ELEMENT;
}

static void list_inputs(rows_writer *w)
{
    const kn_rows_code *code = w->code;
    const bool combines = w->form->stage == KN_ROWS_COMBINED;
    if (combines)
        list_fields(w);
    for (int i = 0, missing = 0; code->inputs[i]; i++) {
        const char letter = code->inputs[i];
        const rows_extent extent = kn_rows_extent_of(code, letter);
        if (combines && extent != PER_ROW)
            continue;
        if (!w->form->inputs[i])
            w->missing[missing++] = letter;
        else
            w->inputs[w->num_inputs++] = (rows_input){letter, (kn_dtype)w->form->inputs[i], extent};
    }
    if (w->form->stage == KN_ROWS_SCAN)
        list_fields(w);
}

/* The values of a code, or the fields of its state. */
static void list_values(rows_writer *w, const kn_rows_code *code, const uint8_t *dtypes, rows_target target)
{
    for (int i = 0; i < KN_ROWS_OUTPUTS; i++)
        if (dtypes[i])
            w->outputs[w->num_outputs++] =
                (rows_output){code->values[i], (int)strlen(code->values[i]), (kn_dtype)dtypes[i], target,
                              w->place[0] && strcmp(code->values[i], w->place) == 0};
}

static void list_state(rows_writer *w, const kn_rows_code *code, rows_target target)
{
    for (int i = 0; code->state[i]; i++)
        w->outputs[w->num_outputs++] = (rows_output){code->state + i, 1, (kn_dtype)w->form->compute, target, false};
    if (w->place[0])
        w->outputs[w->num_outputs++] = (rows_output){w->place, 1, KN_I64, target, true};
}

static void list_outputs(rows_writer *w)
{
    if (w->form->stage == KN_ROWS_PARTIAL)
        list_state(w, w->code, OF_ROW);
    else
        list_values(w, w->code, w->form->outputs, OF_ROW);
    if (has_total(w) && w->form->in_parts)
        list_state(w, w->code->total, OF_TOTAL);
    else if (has_total(w))
        list_values(w, w->code->total, w->form->totals, OF_TOTAL);
    if (w->form->has_columns)
        list_state(w, w->code->columns, OF_COLUMNS);
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

/* Partial vector loads, and loads by segments, for each input. */
static void write_parts(const rows_writer *w, int width)
{
    for (int i = 0; i < w->num_inputs; i++)
        kn_text_format(w->out, "KN_DEFINE_PART(kn_part%d, %d, %s, KN_TAKE_%s, KN_TAKE_%s_VECTOR)\n", i, width,
                       kn_dtype_cl(w->inputs[i].dtype), kn_rows_kind_of(&w->inputs[i]), kn_rows_kind_of(&w->inputs[i]));
    for (int i = 0; i < w->num_inputs; i++)
        if (w->inputs[i].extent == PER_SEGMENT)
            kn_text_format(w->out, "KN_DEFINE_SEGMENTS(kn_segments%d, %d, %s, KN_TAKE_%s)\n", i, width,
                           kn_dtype_cl(w->inputs[i].dtype), kn_rows_kind_of(&w->inputs[i]));
    if (has_segments(w))
        kn_text_append(w->out, "#define KN_HAS_SEGMENTS\n");
}

/* Can the elements of neighbouring rows with the same index be loaded into a vector? */
static bool are_loaded_together(const rows_writer *w)
{
    for (int i = 0; i < w->num_inputs; i++)
        if (is_loaded(&w->inputs[i]) && w->inputs[i].extent != PER_ELEMENT)
            return false;
    return true;
}

static void write_for_cpu(const rows_writer *w)
{
    const rows_width one = {1, "1"}, lanes = {16, "16"};
    const bool maps = w->form->stage == KN_ROWS_MAP, along_rows = w->form->walk == KN_ALONG_ROWS;
    write_parts(w, 16);
    kn_rows_write_functions(w, one);
    kn_rows_write_functions(w, lanes);
    if (along_rows || has_total(w))
        kn_rows_write_join(w);
    kn_rows_write_fix(w, "KN_FIX1(kn_row)", one, true);
    kn_rows_write_fix(w, "KN_FIX4(kn_row)", (rows_width){4, "4"}, false);
    kn_rows_write_fix(w, "KN_FIX16(kn_row)", lanes, false);
    kn_rows_write_fix(w, "KN_FIX_COLUMNS16(kn_row, kn_count)", lanes, true);
    kn_rows_write_put_macro(w, one, false);
    kn_rows_write_put_macro(w, lanes, true);
    if (w->form->below == KN_ROWS_TINY && are_loaded_together(w))
        kn_text_append(w->out, "#define KN_ROWS_TOGETHER\n");
    else if (w->form->below > 0)
        kn_text_append(w->out, "#define KN_SHORT_ROWS\n");
    kn_text_append(w->out, !maps        ? "#include \"rows/cpu.clh\"\n"
                           : along_rows ? "#include \"rows/map_along_rows.clh\"\n"
                                        : "#include \"rows/map_down_columns.clh\"\n");
}

static void write_for_scan(const rows_writer *w)
{
    const rows_width v = {w->form->width, "W"};
    if (v.width > 1)
        write_parts(w, v.width);
    kn_rows_write_functions(w, v);
    kn_rows_write_earlier(w);
    kn_rows_write_fix(w, "KN_FIXW(kn_row)", v, false);
    kn_rows_write_put_macro(w, v, true);
    kn_text_append(w->out, "#include \"rows/scan.clh\"\n");
}

static void write_for_gpu(const rows_writer *w)
{
    const rows_width v = {w->form->width, "W"};
    const bool maps = w->form->stage == KN_ROWS_MAP;
    kn_rows_write_functions(w, v);
    kn_rows_write_fix(w, "KN_FIXW(kn_row)", v, true);
    kn_rows_write_put_macro(w, v, false);
    kn_text_append(w->out, maps ? "#include \"rows/map_gpu.clh\"\n" : "#include \"rows/gpu.clh\"\n");
}

static kn_rows_pass pass_of(const kn_rows_code *code)
{
    return (kn_rows_pass){letters(code->state), letters(code->init), letters(code->step),
                          letters(code->merge), code->row,           code->finish,
                          code->is_sum};
}

/* The parts' totals are merged by a launch of the total's own code. */
void kn_rows_write(kn_text *out, const void *code_, const void *form_)
{
    const kn_rows_code *code = code_;
    const kn_rows_form *form = form_;
    const bool has_total = form->totals[0] || form->totals[1] || form->totals[2];
    const kn_rows_pass last = pass_of(code), total = pass_of(has_total ? code->total : code);
    rows_writer w = {.out = out, .code = code, .form = form, .place = {form->has_place ? code->place : '\0'}};
    if (code->prepass)
        w.passes[w.num_passes++] = code->prepass;
    w.passes[w.num_passes++] = &last;
    w.passes[w.num_passes] = &total;
    w.num_all_passes = w.num_passes + has_total;
    list_inputs(&w);
    list_outputs(&w);
    kn_rows_write_definitions(&w);
    kn_rows_write_parameters(&w);
    kn_text_format(out, "#define KN_KERNEL " KN_ROWS_PREFIX "%s\n", code->name);
    if (form->stage == KN_ROWS_SCAN)
        write_for_scan(&w);
    else if (form->width == 16)
        write_for_cpu(&w);
    else
        write_for_gpu(&w);
}

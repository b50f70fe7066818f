/* loops/pointwise_cpu.c - kernels for CPU devices: a work-item takes a contiguous range of the elements, flat if all
 * operands are contiguous, otherwise run by run (cl/pointwise/runs.clh), short ones packed first
 * (cl/pointwise/tiles.clh), one element at a time or with explicit vectors. */
#include <stdio.h>

#include "loops/pointwise_writer.h"

static void write_bindings(const kn_writer *w)
{
    kn_text_format(w->out, "    const uchar kn_one = (uchar)min(kn_plan%s, 1L);\n",
                   w->form->walk == KN_WALK_FLAT ? "" : ".count");
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (kn_writer_wants(w, i))
            kn_text_format(w->out, "    KN_BIND_OUT(%s, kn_out%d);\n", kn_storage_type(w->form->outputs[i]), i);
    for (int i = 0; i < kn_writer_inputs(w); i++)
        if (kn_writer_has_parameter(w, i))
            kn_text_format(w->out, "    KN_BIND_IN(%s, kn_in%d);\n", kn_storage_type(w->form->inputs[i]), i);
    kn_write_numbers(w);
}

typedef enum advance { UNIT, SAME, BACK, ANY } advance;

/* A scalar loop: for (; begin < end; ...). `steps`: of each input; `unit`: outputs have step 1. */
static void write_loop(const kn_writer *w, const char *begin, const char *end, const char *in, const char *out,
                       const advance *steps, bool unit)
{
    char name[KN_WRITER_NAME], at[KN_WRITER_NAME];
    kn_text_append(w->out, "{ ");
    for (int i = 0; i < kn_writer_inputs(w); i++)
        if (kn_writer_reads(w, i) && steps[i] == SAME)
            kn_write_load(w, i, kn_writer_pointer(w, i, in, out, name), "0");
    kn_text_format(w->out, "for (long kn_k = %s; kn_k < %s; kn_k++) { ", begin, end);
    for (int i = 0; i < kn_writer_inputs(w); i++) {
        if (!kn_writer_reads(w, i) || steps[i] == SAME)
            continue;
        const int lane = w->form->lane[i];
        if (steps[i] == UNIT || (lane == 0 && unit))
            snprintf(at, sizeof at, "kn_k");
        else if (steps[i] == BACK)
            snprintf(at, sizeof at, "-kn_k");
        else
            snprintf(at, sizeof at, "kn_k * kn_step%d", lane);
        kn_write_load(w, i, kn_writer_pointer(w, i, in, out, name), at);
    }
    kn_write_statements(w);
    kn_write_stores(w, out, unit ? "kn_k" : "kn_k * kn_step0");
    kn_text_append(w->out, "} }\n");
}

/* What a vector of elements takes, of which `left` are left. `steps` are the expressions of each lane's step; packed
 * inputs have none. */
static void write_vector(const kn_writer *w, const char *left, const char *in, const char *out,
                         char (*steps)[KN_WRITER_NAME])
{
    char name[KN_WRITER_NAME];
    for (int i = 0; i < kn_writer_inputs(w); i++) {
        if (!kn_writer_reads(w, i))
            continue;
        const char *step = w->form->spread[i] ? "0" : steps[w->form->lane[i]];
        kn_text_format(w->out, "const T %s%c = KN_VECTOR_ROUND_%s(", w->prefix, w->code->inputs[i],
                       kn_dtype_kind((kn_dtype)w->form->rounded[i]));
        if (w->form->walk == KN_WALK_TILES && kn_writer_packs(w, i))
            kn_text_format(w->out, "kn_vector_packed_%s(%s%d + kn_k)); ", kn_writer_vector_load(w, i), in, i);
        else
            kn_text_format(w->out, "kn_vector_%s(%s + kn_k * %s, %s, %s)); ", kn_writer_vector_load(w, i),
                           kn_writer_pointer(w, i, in, out, name), step, step, left);
    }
    kn_write_statements(w);
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (kn_writer_wants(w, i))
            kn_text_format(w->out, "kn_vector_put_%s(%s, %s%d + kn_k * %s, %s, %s); ",
                           kn_dtype_kind((kn_dtype)w->form->outputs[i]), w->code->values[i], out, i, steps[0], steps[0],
                           left);
}

/* A loop over vectors. Of cheap code, which is float16's, whole vectors have a loop of their own: asking for each
 * whether it is whole takes longer than a sum. */
static void write_vector_loop(const kn_writer *w, const char *begin, const char *end, const char *in, const char *out,
                              char (*steps)[KN_WRITER_NAME])
{
    kn_text_format(w->out, "{ long kn_k = %s;\n", begin);
    if (!w->code->vectors) {
        kn_text_format(w->out, "for (; kn_k + KN_VECTOR <= %s; kn_k += KN_VECTOR) { ", end);
        write_vector(w, "KN_VECTOR", in, out, steps);
        kn_text_append(w->out, "}\n");
    }
    kn_text_format(w->out, "for (; kn_k < %s; kn_k += KN_VECTOR) { const long kn_left = %s - kn_k; ", end, end);
    write_vector(w, "kn_left", in, out, steps);
    kn_text_append(w->out, "} }\n");
}

/* Piece by piece: computed in memory that stays in the level-1 cache, and stored past the caches from there. (Compilers
 * do not make vectors of loops with such stores.) */
static void write_bypassing_loop(const kn_writer *w, const advance *unit)
{
    int first = 0;
    while (!kn_writer_wants(w, first))
        first++;
    for (int i = first; i < KN_POINTWISE_OUTPUTS; i++)
        if (kn_writer_wants(w, i))
            kn_text_format(w->out, "%s kn_y%d[KN_PIECE] __attribute__((aligned(KN_LINE))); ",
                           kn_storage_type(w->form->outputs[i]), i);
    kn_text_format(w->out,
                   "\nfor (long kn_first = kn_begin_, kn_size; kn_first < kn_end_; kn_first += kn_size) { "
                   "kn_size = kn_piece(kn_out%d + kn_first, kn_end_ - kn_first, sizeof *kn_y%d);\n",
                   first, first);
    for (int i = 0; i < kn_writer_inputs(w); i++)
        if (kn_writer_has_parameter(w, i))
            kn_text_format(w->out, "const global %s *kn_x%d = kn_in%d%s; ", kn_storage_type(w->form->inputs[i]), i, i,
                           unit[i] == SAME ? "" : " + kn_first");
    write_loop(w, "0", "kn_size", "kn_x", "kn_y", unit, true);
    for (int i = first; i < KN_POINTWISE_OUTPUTS; i++)
        if (kn_writer_wants(w, i))
            kn_text_format(
                w->out,
                "kn_store_piece((global uchar *)(kn_out%d + kn_first), (const uchar *)kn_y%d, kn_size * sizeof "
                "*kn_y%d); ",
                i, i, i);
    kn_text_append(w->out, "}\n");
}

void kn_write_flat(const kn_writer *w)
{
    char steps[KN_LAYOUT_LANES][KN_WRITER_NAME];
    advance unit[KN_POINTWISE_INPUTS];
    for (int n = 0; n < KN_LAYOUT_LANES; n++)
        snprintf(steps[n], KN_WRITER_NAME, "1");
    for (int i = 0; i < kn_writer_inputs(w); i++)
        unit[i] = w->form->spread[i] ? SAME : UNIT;
    kn_write_parameters(w, "long");
    write_bindings(w);
    kn_text_append(w->out, "long kn_begin_, kn_end_; kn_part(kn_plan, KN_ID(0), KN_SIZE(0), &kn_begin_, &kn_end_); "
                           "if (kn_begin_ < kn_end_) {\n");
    if (w->form->vector)
        write_vector_loop(w, "kn_begin_", "kn_end_", "kn_in", "kn_out", steps);
    else if (w->form->bypass)
        write_bypassing_loop(w, unit);
    else
        write_loop(w, "kn_begin_", "kn_end_", "kn_in", "kn_out", unit, true);
    kn_text_append(w->out, w->form->bypass ? "KN_END_OF_BYPASS; } }\n" : "} }\n");
}

/* Pointers to the current run's elements. */
static void write_run(const kn_writer *w)
{
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (kn_writer_wants(w, i))
            kn_text_format(w->out, "global %s *kn_y%d = kn_out%d + kn_c.at[0] + kn_row * kn_row_step0; ",
                           kn_storage_type(w->form->outputs[i]), i, i);
    for (int i = 0; i < kn_writer_inputs(w); i++)
        if (kn_writer_has_parameter(w, i))
            kn_text_format(w->out, "const global %s *kn_x%d = kn_in%d + kn_c.at[%d] + kn_row * kn_row_step%d; ",
                           kn_storage_type(w->form->inputs[i]), i, i, w->form->lane[i], w->form->lane[i]);
    kn_text_append(w->out, "\n");
}

/* Up to this many lanes get specialised loops; more use the general loop. */
enum { CASES = 2 };

/* Bit n of `same`: lane 1 + n has stride 0 along the run; the others have stride 1. */
static void write_case(const kn_writer *w, int lanes, unsigned same)
{
    advance steps[KN_POINTWISE_INPUTS];
    kn_text_append(w->out, "if (kn_step0 == 1");
    for (int n = 1; n < lanes; n++)
        kn_text_format(w->out, " && kn_step%d == %d", n, same >> (n - 1) & 1 ? 0 : 1);
    for (int i = 0; i < kn_writer_inputs(w); i++) {
        const int lane = w->form->lane[i];
        steps[i] = lane > 0 && same >> (lane - 1) & 1 ? SAME : UNIT;
    }
    kn_text_append(w->out, ")\n");
    write_loop(w, "0", "kn_length", "kn_x", "kn_y", steps, true);
    kn_text_append(w->out, "else ");
}

/* For a code with one input. */
static void write_case_backwards(const kn_writer *w)
{
    static const advance steps[KN_POINTWISE_INPUTS] = {BACK};
    kn_text_append(w->out, "if (kn_step0 == 1 && kn_step1 == -1)\n");
    write_loop(w, "0", "kn_length", "kn_x", "kn_y", steps, true);
    kn_text_append(w->out, "else ");
}

static void write_run_loops(const kn_writer *w, int lanes)
{
    const unsigned cases = lanes - 1 <= CASES ? (1u << (lanes - 1)) : 1;
    advance any[KN_POINTWISE_INPUTS];
    for (unsigned same = 0; same < cases; same++)
        write_case(w, lanes, same);
    if (w->code->backwards && lanes == 2)
        write_case_backwards(w);
    for (int i = 0; i < kn_writer_inputs(w); i++)
        any[i] = ANY;
    write_loop(w, "0", "kn_length", "kn_x", "kn_y", any, false);
}

void kn_write_tiles(const kn_writer *w)
{
    const advance unit[KN_POINTWISE_INPUTS] = {UNIT};
    char steps[KN_LAYOUT_LANES][KN_WRITER_NAME] = {"1"};
    kn_write_parameters(w, "kn_runs");
    write_bindings(w);
    kn_text_append(w->out, "kn_cursor kn_c; kn_begin(&kn_plan, KN_ID(0), KN_SIZE(0), &kn_c);\n");
    for (int i = 0; i < kn_writer_inputs(w); i++)
        if (kn_writer_packs(w, i))
            kn_text_format(w->out, "%s kn_t%d[KN_TILE_BUFFER]; const long kn_reach%d = kn_reach(&kn_plan, %d); ",
                           kn_writer_packed_type(w, i), i, i, w->form->lane[i]);
    kn_text_append(w->out, "\nwhile (kn_c.position < kn_c.end) { "
                           "const long kn_size = min((long)KN_TILE, kn_c.end - kn_c.position);\nKN_PIECES(kn_size) {");
    for (int i = 0; i < kn_writer_inputs(w); i++)
        if (kn_writer_packs(w, i))
            kn_text_format(w->out, " KN_PACK(kn_pack%d, kn_t%d, (const global %s *)kn_in%d, %d, kn_reach%d);", i, i,
                           kn_writer_packed_type(w, i), i, w->form->lane[i], i);
    kn_text_append(w->out, " }\n");
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (kn_writer_wants(w, i))
            kn_text_format(w->out, "global %s *kn_y%d = kn_out%d + kn_c.position; ",
                           kn_storage_type(w->form->outputs[i]), i, i);
    for (int i = 0; i < kn_writer_inputs(w); i++)
        if (kn_writer_reads(w, i) && w->form->lane[i] == 0)
            kn_text_format(w->out, "const global %s *kn_t%d = kn_in%d + kn_c.position; ",
                           kn_storage_type(w->form->inputs[i]), i, i);
    if (w->form->vector)
        write_vector_loop(w, "0", "kn_size", "kn_t", "kn_y", steps);
    else
        write_loop(w, "0", "kn_size", "kn_t", "kn_y", unit, true);
    kn_text_append(w->out, "kn_c.position += kn_size; } }\n");
}

void kn_write_runs(const kn_writer *w)
{
    char steps[KN_LAYOUT_LANES][KN_WRITER_NAME];
    const int lanes = w->form->lanes;
    kn_write_parameters(w, "kn_runs");
    write_bindings(w);
    for (int n = 0; n < lanes; n++) {
        snprintf(steps[n], KN_WRITER_NAME, "kn_step%d", n);
        kn_text_format(w->out,
                       "const long %s = kn_plan.strides[%d][kn_plan.ndim - 1], "
                       "kn_row_step%d = kn_plan.strides[%d][max(kn_plan.ndim - 2, 0L)]; ",
                       steps[n], n, n, n);
    }
    kn_text_append(w->out, "\nKN_RUNS(kn_plan, kn_c, kn_row, kn_length) {\n");
    write_run(w);
    if (w->form->vector)
        write_vector_loop(w, "0", "kn_length", "kn_x", "kn_y", steps);
    else
        write_run_loops(w, lanes);
    kn_text_append(w->out, "} }\n");
}

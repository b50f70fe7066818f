/* loops/pointwise_gpu.c - kernels for GPUs: a work-item takes four elements at a time (cl/pointwise/vec4.clh), as
 * vectors where they are contiguous. */

#include "loops/pointwise_writer.h"

/* Halves are converted four at a time as they are loaded and stored. */
static const char *type_of(int dtype) { return dtype == KN_F16 ? "float" : kn_storage_type(dtype); }
static const char *kind_of(int dtype) { return dtype == KN_F16 ? "PLAIN" : kn_dtype_kind((kn_dtype)dtype); }

/* KN_BODY: one of the four elements. */
static void write_body(const kn_writer *w)
{
    kn_text_append(w->out, "#define KN_BODY ");
    for (int i = 0; i < kn_writer_inputs(w); i++) {
        if (!kn_writer_reads(w, i))
            continue;
        const char *type = kn_writer_type(w, i);
        kn_text_format(w->out, "const %s %s%c = (%s)KN_ROUND_%s(KN_LOAD_%s(kn_v%d, kn_k)); ", type, w->prefix,
                       w->code->inputs[i], type, kn_dtype_kind((kn_dtype)w->form->rounded[i]),
                       kind_of(w->form->inputs[i]), i);
    }
    kn_write_statements(w);
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (kn_writer_wants(w, i))
            kn_text_format(w->out, "KN_STORE_%s(%s, %s, kn_r%d, kn_k); ",
                           w->form->outputs[i] == KN_F16 ? "PLAIN"
                                                         : kn_store_kind(w->form->compute, w->form->outputs[i]),
                           type_of(w->form->outputs[i]), w->code->values[i], i);
    kn_text_append(w->out, "\n");
}

void kn_write_vec4(const kn_writer *w)
{
    char name[KN_WRITER_NAME];
    write_body(w);
    kn_write_parameters(w, "kn_vec4_plan");
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (kn_writer_wants(w, i))
            kn_text_format(w->out, "KN_VEC4_OUT(%s, kn_out%d, 0)\n", kn_storage_type(w->form->outputs[i]), i);
    for (int i = 0; i < kn_writer_inputs(w); i++)
        if (kn_writer_has_parameter(w, i))
            kn_text_format(w->out, "KN_VEC4_IN(%s, kn_in%d, %d)\n", kn_storage_type(w->form->inputs[i]), i,
                           w->form->lane[i]);
    kn_write_numbers(w);
    kn_text_append(w->out, "KN_FOR_VEC4_TASKS(kn_plan, kn_task) { kn_vec4 kn_q; kn_vec4_of(&kn_plan, kn_task, &kn_q); "
                           "if (kn_q.left == 0) continue;\n");
    for (int i = 0; i < kn_writer_inputs(w); i++) {
        if (!kn_writer_reads(w, i))
            continue;
        const char *from = kn_writer_pointer(w, i, "kn_in", "kn_out", name);
        const int lane = w->form->lane[i];
        if (w->form->inputs[i] == KN_F16)
            kn_text_format(w->out, "KN_VEC4_LOAD_HALF(kn_v%d, %s, %d) ", i, from, lane);
        else
            kn_text_format(w->out, "KN_VEC4_LOAD(%s, kn_v%d, %s, %d) ", kn_storage_type(w->form->inputs[i]), i, from,
                           lane);
    }
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (kn_writer_wants(w, i))
            kn_text_format(w->out, "%s kn_r%d[4]; ", type_of(w->form->outputs[i]), i);
    kn_text_append(w->out, "\n{ enum { kn_k = 0 }; KN_BODY } { enum { kn_k = 1 }; KN_BODY } "
                           "{ enum { kn_k = 2 }; KN_BODY } { enum { kn_k = 3 }; KN_BODY }\n");
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
        if (kn_writer_wants(w, i) && w->form->outputs[i] == KN_F16)
            kn_text_format(w->out, "KN_VEC4_STORE_HALF(kn_r%d, kn_out%d) ", i, i);
        else if (kn_writer_wants(w, i))
            kn_text_format(w->out, "KN_VEC4_STORE(%s, kn_r%d, kn_out%d) ", kn_storage_type(w->form->outputs[i]), i, i);
    kn_text_append(w->out, "} }\n");
}

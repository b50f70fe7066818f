/* loops/rows_vectors.c - the functions of vectors of floats and doubles that take the place of the driver's
 * (cl/pointwise/vector_math.clh). */
#include "loops/rows_writer.h"

static const char *const exponential[] = {"KN_EXP(", NULL};
static const char *const elementary[] = {"exp(", "log(", "log1p(", "pow(", "KN_POWER(", NULL};

static bool calls_any(const char *text, const char *const *functions)
{
    for (; *functions; functions++)
        if (strstr(letters(text), *functions))
            return true;
    return false;
}

static bool texts_call_any(const rows_writer *w, const char *const *functions)
{
    bool any = calls_any(w->code->map, functions) || calls_any(w->code->keep, functions);
    for (int i = 0; i < KN_ROWS_OUTPUTS; i++)
        any |= calls_any(w->code->values[i], functions);
    for (int pass = 0; pass < w->num_all_passes; pass++)
        any |= calls_any(w->passes[pass]->step, functions) || calls_any(w->passes[pass]->merge, functions) ||
               calls_any(w->passes[pass]->finish, functions);
    return any;
}

bool kn_rows_calls_elementary(const rows_writer *w, const char *text)
{
    return kn_dtype_is_floating((kn_dtype)w->form->compute) && calls_any(text, elementary);
}

rows_vector_functions kn_rows_begin_vector_functions(const rows_writer *w, rows_width v)
{
    const bool is_f64 = w->form->compute == KN_F64;
    const bool is_vector = v.width == 16 && kn_dtype_is_floating((kn_dtype)w->form->compute);
    const rows_vector_functions called = {is_vector && texts_call_any(w, exponential),
                                          is_vector && texts_call_any(w, elementary)};
    if (called.exponential || called.elementary)
        kn_text_format(w->out,
                       "#define KN_VECTOR 16\n#include \"pointwise/vector_type.clh\"\n"
                       "#include \"pointwise/vector_%s.clh\"\n#include \"pointwise/vector_%s.clh\"\n",
                       is_f64 ? "f64" : "f32", called.elementary ? "math" : "exp");
    if (called.exponential)
        kn_text_append(w->out, "#undef KN_EXP\n#define KN_EXP kn_vector_exp_of_normal\n");
    if (called.elementary)
        kn_text_append(w->out, "#include \"pointwise/vector_names.clh\"\n");
    return called;
}

void kn_rows_end_vector_functions(const rows_writer *w, rows_vector_functions called)
{
    if (called.exponential)
        kn_text_append(w->out, "#undef KN_EXP\n#define KN_EXP exp\n");
    if (called.elementary)
        kn_text_append(w->out, "#include \"pointwise/vector_names_end.clh\"\n");
}

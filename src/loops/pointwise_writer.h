/* loops/pointwise_writer.h - shared by the kernel writers for CPU devices and GPUs. */
#pragma once

#include <string.h>

#include "base/dtype.h"
#include "loops/pointwise_source.h"

typedef struct kn_writer {
    kn_text *out;
    const kn_pointwise_code *code;
    const kn_pointwise_form *form;
    const char *prefix; /* for the code's letters, because a user's macro may be called `a` */
} kn_writer;

static inline int kn_writer_inputs(const kn_writer *w) { return (int)strlen(w->code->inputs); }
static inline bool kn_writer_reads(const kn_writer *w, int i) { return w->form->inputs[i] != 0; }
static inline bool kn_writer_wants(const kn_writer *w, int i) { return w->form->outputs[i] != 0; }

/* Does input i have its own parameter, that is: is it read, and not an output changed in place? */
static inline bool kn_writer_has_parameter(const kn_writer *w, int i)
{
    return kn_writer_reads(w, i) && !w->form->aliased[i];
}

/* Has input i a layout of its own, so that a walk by tiles packs it? */
static inline bool kn_writer_packs(const kn_writer *w, int i) { return kn_writer_reads(w, i) && w->form->lane[i] > 0; }

/* The OpenCL C storage type of a dtype. */
static inline const char *kn_storage_type(int dtype) { return kn_dtype_cl((kn_dtype)dtype); }

/* That of an operand that is packed: the bits of float16. */
static inline const char *kn_writer_packed_type(const kn_writer *w, int i)
{
    return w->form->inputs[i] == KN_F16 ? "ushort" : kn_storage_type(w->form->inputs[i]);
}

/* The type of input i in the computation. */
const char *kn_writer_type(const kn_writer *w, int i);

/* What loads vectors of input i: kn_vector_ and this. */
const char *kn_writer_vector_load(const kn_writer *w, int i);

/* The pointer for input i: `in` and its number or, if it is changed in place, `out` and the output's number. */
#define KN_WRITER_NAME 48
const char *kn_writer_pointer(const kn_writer *w, int i, const char *in, const char *out, char name[KN_WRITER_NAME]);

/* Declares input i, read from element `at` of `pointer`. */
void kn_write_load(const kn_writer *w, int i, const char *pointer, const char *at);
void kn_write_stores(const kn_writer *w, const char *pointer, const char *at);
void kn_write_statements(const kn_writer *w);

/* The kernel's head, including its opening brace, and declarations of its numbers. */
void kn_write_parameters(const kn_writer *w, const char *plan);
void kn_write_numbers(const kn_writer *w);

/* The kernels: pointwise_cpu.c, pointwise_gpu.c. */
void kn_write_flat(const kn_writer *w);
void kn_write_runs(const kn_writer *w);
void kn_write_tiles(const kn_writer *w);
void kn_write_vec4(const kn_writer *w);

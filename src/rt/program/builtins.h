/* rt/program/builtins.h - OpenCL C functions for compilers whose own cost much time: text that goes before a program's.
 *
 * It covers what the library's own kernels call. A function missing here costs a program that calls it a second build,
 * with the full header (src/rt/program/build.c): add it. */
#pragma once

#include "base/text.h"

/* A program. What is appended depends on the functions that the source names, and on the types that it or the options
 * name; double is none unless the device has_f64. */
typedef struct kn_program_words {
    const char *source, *options;
    bool has_f64;
} kn_program_words;

/* Appends declarations of all functions but vload and vstore, for compilers that otherwise parse a header with all
 * functions for all types in every program: 18,000 lines with PoCL, most of the time to load a program from the cache
 * (quirk reads_long_header in rt/device/quirks.h). */
void kn_declare_builtins(kn_text *out, const kn_program_words *program);

/* Appends vloadN and vstoreN that are one access each, in place of the driver's (quirk splits_vectors). */
void kn_define_vector_access(kn_text *out, const kn_program_words *program);

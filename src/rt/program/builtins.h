/* rt/program/builtins.h - declares the OpenCL C functions that a program calls, for compilers that otherwise parse a
 * header with all functions for all types in every program: 18,000 lines with PoCL, most of the time to load a program
 * from the cache (quirk reads_long_header in rt/device/quirks.h).
 *
 * It covers what the library's own kernels call. A function missing here costs a program that calls it a second build,
 * with the full header (src/rt/program/program.c): add it. */
#pragma once

#include "base/text.h"

/* Appends declarations of the functions that `source` names, for the types that it or `options` name; double is none
 * unless the device has_f64. */
void kn_declare_builtins(kn_text *out, const char *source, const char *options, bool has_f64);

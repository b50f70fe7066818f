/* rt/compile/compile.h - compiling a launch's kernel without the launch. */
#pragma once

#include "rt/command/launch.h"

/* Builds the kernel's program and, where the driver compiles when a kernel first runs, runs one work-group, or all of
 * them where their number decides what is compiled, on zeros in place of the launch's buffers and of the stream's fault
 * record. Buffers may be given as KN_ARG_MEMORY. */
kn_status kn_compile_launch(kn_stream *stream, const kn_launch_params *params, const size_t global[3],
                            const size_t local[3]);

/* For tests: a kernel that zeros lead out of its buffers is a signal. Else it may stray by 64 KiB. */
extern bool kn_compile_is_strict;

/* rt/compile/zeros.h - running a kernel only so that the driver compiles it. */
#pragma once

#include "rt/command/launch.h"

/* Runs one work-group of the launch, or all of them where their number decides what is compiled, on zeros in place of
 * its buffers and of the stream's fault record, and waits. A buffer may be given as KN_ARG_MEMORY, with its size. */
kn_status kn_run_on_zeros(kn_stream *stream, const kn_launch_params *params, const size_t global[3],
                          const size_t local[3]);

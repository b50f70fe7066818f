/* ops/reduce/scan.h - shared by cumulative operators: running values along a dimension. */
#pragma once

#include "ops/dispatch/backward.h"
#include "ops/shape/reduce.h"

/* y, and `indices` if not NULL, = the running values of `code` along dimension `dim` of x, from the front or from the
 * back. */
kn_status kn_scan_run(kn_stream *stream, kn_rows_code *code, const char *operation, kn_tensor *x, int dim,
                      bool backwards, const kn_tensor *y, const kn_tensor *indices);

/* Forward of an operator with kn_dim_args: output 0, and output 1 if there is one, from input 0. */
kn_status kn_scan_forward(kn_call *call, kn_rows_code *code);

/* One output of input 0's shape, integers and bool as int64. */
kn_status kn_scan_shape_wide(kn_call *call);

extern kn_rows_code kn_running_sum;

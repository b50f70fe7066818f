/* base/gnuplot.h - running gnuplot. */
#pragma once

#include <koine/common.h>
#include <koine/status.h>

/* Runs `script`, which must not set an output: the image is written to the descriptor `picture`. KN_ERR_IO if gnuplot
 * is not installed, fails (with its message) or draws nothing. It is killed after 30 seconds, or after 5 once
 * `is_exiting` (may be NULL) returns true. */
kn_status kn_gnuplot_run(const char *script, int picture, bool (*is_exiting)(void));

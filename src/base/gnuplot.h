/* base/gnuplot.h - running gnuplot. */
#ifndef KN_BASE_GNUPLOT_H
#define KN_BASE_GNUPLOT_H

#include <koine/common.h>
#include <koine/status.h>

/* Runs `script`, which sets no output: the picture goes to `picture`, a descriptor. KN_ERR_IO when gnuplot is not
 * installed, fails (with what it said), or draws nothing; a gnuplot that does not end is killed after half a minute,
 * or, when `hurry` (NULL: never) says so, after some seconds. */
kn_status kn_gnuplot_run(const char *script, int picture, bool (*hurry)(void));

#endif

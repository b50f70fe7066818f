/* base/plot.h - plots drawn by gnuplot. If it is not installed, the error names the package to install. */
#pragma once

#include "base/text.h"

/* A plot: its size in pixels and the function that writes its gnuplot commands. When `write` is called, the output, the
 * terminal and the style common to all of Koine's plots (border, tics, grid, key) are set. */
typedef struct kn_plot {
    int width, height;
    void (*write)(kn_text *script, const void *subject);
    const void *subject;      /* passed to `write` */
    bool (*is_exiting)(void); /* true once the user is waiting to exit: shortens gnuplot's time limit; may be NULL */
} kn_plot;

/* KN_ERR_ARGUMENT unless the name ends in .svg or .png. */
kn_status kn_plot_check_path(const char *path);

/* Runs `script`, which must not set an output: the image is written to the descriptor `picture`. KN_ERR_IO if gnuplot
 * is not installed, fails (with its message) or draws nothing. It is killed after 30 seconds, or after 5 once
 * `is_exiting` (may be NULL) returns true. */
kn_status kn_gnuplot_run(const char *script, int picture, bool (*is_exiting)(void));

/* Draws the plot; the file is written completely or not at all. KN_ERR_IO if gnuplot is missing, hangs or fails (with
 * its message). No part of `path` reaches gnuplot. */
kn_status kn_plot_save(const kn_plot *plot, const char *path);

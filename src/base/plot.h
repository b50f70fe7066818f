/* base/plot.h - pictures drawn by gnuplot, which need not be there: then the error names the package to install. */
#ifndef KN_BASE_PLOT_H
#define KN_BASE_PLOT_H

#include "base/text.h"

/* A picture: its size in pixels and what writes gnuplot's commands for it. When `write` is called, the output, the
 * terminal, and the looks that all of Koine's pictures share (border, tics, grid, key) are set. */
typedef struct kn_plot {
    int width, height;
    void (*write)(kn_text *script, const void *subject);
    const void *subject; /* handed to `write` */
    bool (*hurry)(void); /* says that somebody waits for the end: a gnuplot that hangs gets less time; NULL: nobody */
} kn_plot;

/* KN_ERR_ARGUMENT unless the name ends in .svg or .png. */
kn_status kn_plot_check_path(const char *path);

/* Draws the picture, whole or not at all. KN_ERR_IO when gnuplot is missing, fails, with what it said, or hangs. No
 * part of `path` reaches gnuplot. */
kn_status kn_plot_save(const kn_plot *plot, const char *path);

#endif

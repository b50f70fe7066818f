/* base/plot.c - plots drawn by gnuplot, written atomically like all files (base/files.h). */
#include "base/plot.h"

#include <locale.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/gnuplot.h"

/* --- the script ------------------------------------------------------------------------------------------------ */

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && kn_text_equals_nocase(text + length - tail, ending);
}

/* The gnuplot terminal and the common style. */
static void append_terminal(kn_text *script, bool png, int width, int height)
{
    if (png)
        kn_text_format(
            script,
            "if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) { set terminal pngcairo size %d,%d font 'Sans,10' } "
            "else { set terminal png size %d,%d }\n",
            width, height, width, height);
    else
        kn_text_format(script, "set terminal svg size %d,%d name 'Koine' font 'Helvetica,13' background rgb 'white'\n",
                       width, height);
    kn_text_append(script, "set datafile missing 'nan'\n"
                           "set border 3 lc rgb '#555555'\n"
                           "set tics nomirror out textcolor rgb '#333333'\n"
                           "set grid ytics lc rgb '#e4e4e4' lw 1\n"
                           "set key noautotitle samplen 2 textcolor rgb '#333333'\n");
}

/* --- the picture ----------------------------------------------------------------------------------------------- */

static char *script_of(const kn_plot *plot, bool png)
{
    kn_text text = {0};
    /* printf uses the host program's locale, but gnuplot's numbers need a decimal point. */
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), before = uselocale(plain);
    append_terminal(&text, png, plot->width, plot->height);
    plot->write(&text, plot->subject);
    uselocale(before);
    if (plain != (locale_t)0)
        freelocale(plain);
    return kn_text_finish(&text);
}

static kn_status draw(const char *script, const kn_plot *plot, const char *path)
{
    kn_atomic_file file;
    KN_TRY(kn_file_begin(&file, path));
    return kn_file_end(&file, kn_gnuplot_run(script, file.descriptor, plot->is_exiting));
}

kn_status kn_plot_check_path(const char *path)
{
    if (ends_with(path, ".svg") || ends_with(path, ".png"))
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "plot: %s must end in .svg or .png", path);
}

kn_status kn_plot_save(const kn_plot *plot, const char *path)
{
    KN_TRY(kn_plot_check_path(path));
    char *script = script_of(plot, ends_with(path, ".png"));
    if (script == NULL)
        return KN_ERR_MEMORY;
    kn_status status = draw(script, plot, path);
    kn_free(script);
    return status;
}

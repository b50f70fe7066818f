/* base/terminal.c - see base/terminal.h. */
#include "base/terminal.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDEST 10000 /* anything larger is a mistake */

static int width_by_environment(void)
{
    const char *text = getenv("COLUMNS");
    char *end = NULL;
    long columns = text ? strtol(text, &end, 10) : 0;
    return text && end != text && *end == '\0' && columns > 0 && columns <= WIDEST ? (int)columns : 0;
}

static int width_of(int descriptor, bool terminal)
{
    struct winsize size;
    int width = width_by_environment();
    if (width > 0 || !terminal)
        return width;
    return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : KN_TERMINAL_COLUMNS;
}

static bool is_dumb(void)
{
    const char *kind = getenv("TERM");
    return kind != NULL && strcmp(kind, "dumb") == 0;
}

kn_page kn_page_of(int descriptor)
{
    const char *refused = getenv("NO_COLOR");
    bool terminal = isatty(descriptor) == 1;
    return (kn_page){.width = width_of(descriptor, terminal),
                     .colour = terminal && !is_dumb() && (refused == NULL || *refused == '\0')};
}

kn_page kn_page_for(int width)
{
    return (kn_page){.width = width == 0 ? kn_page_of(STDOUT_FILENO).width : width > 0 ? width : 0};
}

bool kn_terminal_redraws(int descriptor) { return isatty(descriptor) == 1 && !is_dumb(); }

/* The sixteen standard colours, in the shades the user's terminal is set to. */
const char *kn_colour_on(kn_page page, kn_colour colour)
{
    static const char *const sequences[] = {[KN_COLOUR_BOLD] = "\033[1m",
                                            [KN_COLOUR_GOOD] = "\033[32m",
                                            [KN_COLOUR_WARNING] = "\033[33m",
                                            [KN_COLOUR_BAD] = "\033[31m"};
    return page.colour ? sequences[colour] : "";
}

const char *kn_colour_off(kn_page page) { return page.colour ? "\033[0m" : ""; }

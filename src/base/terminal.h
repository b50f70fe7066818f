/* base/terminal.h - what the output goes to: how wide it is, whether it shows colours, whether lines can be drawn over.
 */
#ifndef KN_BASE_TERMINAL_H
#define KN_BASE_TERMINAL_H

#include <stdbool.h>

#define KN_TERMINAL_COLUMNS 80 /* of a terminal that does not tell */

typedef struct kn_page {
    int width; /* in characters; 0: no limit */
    bool colour;
} kn_page;

/* The page behind a file descriptor. Its width is the environment's COLUMNS if that is set, else the terminal's; what
 * is no terminal (a file, a pipe) has no limit, so that whoever reads it finds every column. Colours are for terminals,
 * and not where NO_COLOR is set (https://no-color.org) or TERM is "dumb". */
kn_page kn_page_of(int descriptor);

/* The page for a text that the library returns, by a parameter `width` of its interface: 0: as wide as what is behind
 * stdout; KN_WIDE: no limit. Without colours, since the text may end up anywhere. */
kn_page kn_page_for(int width);

/* A terminal on which a line can be drawn over. */
bool kn_terminal_redraws(int descriptor);

typedef enum kn_colour { KN_COLOUR_BOLD, KN_COLOUR_GOOD, KN_COLOUR_WARNING, KN_COLOUR_BAD } kn_colour;

/* The sequences that begin a colour and end all of them; "" on a page without colours. */
const char *kn_colour_on(kn_page page, kn_colour colour);
const char *kn_colour_off(kn_page page);

#endif

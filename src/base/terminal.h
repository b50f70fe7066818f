/* base/terminal.h - properties of the output: its width, whether it shows colours, whether lines can be redrawn. */
#pragma once

#include <stdbool.h>

#define KN_TERMINAL_COLUMNS 80 /* if a terminal does not report its width */

typedef struct kn_page {
    int width; /* in characters; 0: no limit */
    bool colour;
} kn_page;

/* The page behind a file descriptor. Its width is the environment's COLUMNS if that is set, else the terminal's; a file
 * or a pipe has no limit, so that no column is lost. Colours are used on terminals only, and not if NO_COLOR is set
 * (https://no-color.org) or TERM is "dumb". */
kn_page kn_page_of(int descriptor);

/* The page for a text that the library returns, from the public parameter `width`: 0: the width of stdout; KN_WIDE: no
 * limit. Without colours, since the text may be used anywhere. */
kn_page kn_page_for(int width);

/* Whether this is a terminal on which lines can be redrawn. */
bool kn_terminal_redraws(int descriptor);

typedef enum kn_colour { KN_COLOUR_BOLD, KN_COLOUR_GOOD, KN_COLOUR_WARNING, KN_COLOUR_BAD } kn_colour;

/* The escape sequences that turn a colour on, and all colours off; "" on a page without colours. */
const char *kn_colour_on(kn_page page, kn_colour colour);
const char *kn_colour_off(kn_page page);

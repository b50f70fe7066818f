/* base/load.h - code that runs when the library is loaded, in which a layer registers functions that a lower one
 * calls. */
#pragma once

/* KN_AT_LOAD do_it(void) { ... }
 *
 * These functions run before the program can call the library, in undefined order, so they should only set pointers. */
#define KN_AT_LOAD __attribute__((constructor)) static void

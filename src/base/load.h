/* base/load.h - code that runs when the library is loaded: there an upper layer registers what a lower one calls. */
#ifndef KN_BASE_LOAD_H
#define KN_BASE_LOAD_H

/* KN_AT_LOAD do_it(void) { ... }
 *
 * Before any other code of the program that may call the library, in no order among themselves: such a function sets a
 * pointer and no more. */
#define KN_AT_LOAD __attribute__((constructor)) static void

#endif

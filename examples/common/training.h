/* common/training.h - what the programs that use kn_trainer share. */
#pragma once

#include <koine/koine.h>

/* Opens the device that an option names, makes it the current one and prints its name. NULL with an error. */
kn_device *training_device(const char *name);

#define PRECISIONS "f32|f16|bf16" /* the choices of --precision */
kn_dtype training_precision(const char *choice);

/* The exit status of main: 0, 1 with the error on stderr, or 128 plus the number of the signal that ended the fit.
 * `trainer` may be NULL. */
int training_status(const char *program, kn_status status, const kn_trainer *trainer);

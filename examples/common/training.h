/* common/training.h - what the programs that use kn_trainer share. */
#pragma once

#include <koine/koine.h>

#define PRECISIONS "f32|f16|bf16" /* the choices of --precision */
kn_dtype training_precision(const char *choice);

/* The exit status of main: 0, 1 with the error on stderr, or 128 plus the number of the signal that ended the fit.
 * `trainer` may be NULL. */
int training_status(const char *program, kn_status status, const kn_trainer *trainer);

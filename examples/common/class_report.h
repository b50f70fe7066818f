/* common/class_report.h - what a trained network confuses: precision, recall and F1 of each class, and the confusion
 * matrix. */
#pragma once

#include <koine/koine.h>

/* Prints the figures of `data`, and draws the matrix as `folder`/confusion.svg, if gnuplot is installed; NULL: no
 * picture. `names` of the classes, `classes` of them. */
kn_status class_report(kn_trainer *trainer, kn_loader *data, const char *const *names, int classes, const char *folder);

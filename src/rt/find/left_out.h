/* rt/find/left_out.h - the platforms and devices that were found and cannot or need not be used, with the reasons. */
#pragma once

#include <koine/common.h>

/* Logs the sentence as a warning and keeps it, for `koine doctor` and for the error if no device is left. */
void KN_PRINTF(1, 2) kn_leave_out(const char *format, ...);

int kn_left_out(void); /* how many sentences there are */
const char *kn_left_out_at(int i);
void kn_left_out_clear(void);

/* base/log.h - messages for the person who runs the program; see koine/status.h for where they go. */
#ifndef KN_BASE_LOG_H
#define KN_BASE_LOG_H

#include <koine/status.h>

void kn_log_message(kn_log_level level, const char *format, ...) KN_PRINTF(2, 3);
bool kn_log_enabled(kn_log_level level);

#endif

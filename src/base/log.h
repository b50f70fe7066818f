/* base/log.h - messages for the person who runs the program; see koine/status.h for where they go. */
#ifndef KN_BASE_LOG_H
#define KN_BASE_LOG_H

#include <koine/status.h>

/* What is not printable is quoted, whoever receives the message: its pieces come from files and the environment. */
void kn_log_message(kn_log_level level, const char *format, ...) KN_PRINTF(2, 3);
/* A text of several lines, a compiler's say, below its title. */
void kn_log_lines(kn_log_level level, const char *title, const char *lines);
bool kn_log_enabled(kn_log_level level);

#endif

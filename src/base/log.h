/* base/log.h - log messages; see koine/status.h for where they are sent. */
#pragma once

#include <koine/status.h>

/* Unprintable characters are escaped for every handler: messages contain text from files and the environment. */
void kn_log_message(kn_log_level level, const char *format, ...) KN_PRINTF(2, 3);
/* Multi-line text, such as compiler output, below a title. */
void kn_log_lines(kn_log_level level, const char *title, const char *lines);
bool kn_log_enabled(kn_log_level level);

/* Tells, once, of a level in KOINE_LOG that there is not. */
void kn_log_check_environment(void);

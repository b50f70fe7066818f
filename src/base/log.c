/* base/log.c - messages to stderr or to the user's handler. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/threads.h"

static struct {
    pthread_once_t once;
    kn_log_level level;
    bool level_set;
    kn_log_handler handler;
    void *user;
} settings = {.once = PTHREAD_ONCE_INIT, .level = KN_LOG_WARNING};

static const char *const level_names[] = {"debug", "info", "warning", "error", "off"};

static void read_environment(void)
{
    const char *wanted = getenv("KOINE_LOG");
    if (!wanted || settings.level_set)
        return;
    for (int level = KN_LOG_DEBUG; level <= KN_LOG_OFF; level++)
        if (kn_text_equals_nocase(wanted, level_names[level]))
            settings.level = (kn_log_level)level;
}

void kn_log_set_level(kn_log_level level)
{
    settings.level = level;
    settings.level_set = true;
}

void kn_log_set_handler(kn_log_handler handler, void *user)
{
    settings.handler = handler;
    settings.user = user;
}

bool kn_log_enabled(kn_log_level level)
{
    pthread_once(&settings.once, read_environment);
    return level >= settings.level && level < KN_LOG_OFF;
}

void kn_log_message(kn_log_level level, const char *format, ...)
{
    if (!kn_log_enabled(level))
        return;
    char message[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (settings.handler)
        settings.handler(level, message, settings.user);
    else
        fprintf(stderr, "koine: %s: %s\n", level_names[level], message);
}

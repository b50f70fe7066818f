/* base/log.c - messages to stderr or to the user's handler. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/threads.h"
#include "base/utf8.h"

#define MESSAGE_BYTES 2048

static struct {
    pthread_once_t once;
    kn_log_level level;
    bool level_set;
    _Atomic(const char *) unknown; /* a level that there is not; NULL once it is told */
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
        if (kn_text_equals_nocase(wanted, level_names[level])) {
            settings.level = (kn_log_level)level;
            return;
        }
    if (*wanted)
        atomic_store(&settings.unknown, wanted);
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

static void emit(kn_log_level level, char *message, size_t size, bool keep_lines)
{
    kn_make_printable(message, size, keep_lines);
    if (settings.handler)
        settings.handler(level, message, settings.user);
    else
        fprintf(stderr, "koine: %s: %s\n", level_names[level], message);
}

void kn_log_check_environment(void)
{
    pthread_once(&settings.once, read_environment);
    const char *unknown = atomic_exchange(&settings.unknown, NULL);
    if (unknown)
        kn_log_message(KN_LOG_WARNING, "KOINE_LOG=%s is ignored: the levels are debug, info, warning, error and off",
                       unknown);
}

void kn_log_message(kn_log_level level, const char *format, ...)
{
    if (!kn_log_enabled(level))
        return;
    char message[MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    emit(level, message, sizeof message, false);
}

void kn_log_lines(kn_log_level level, const char *title, const char *lines)
{
    if (!kn_log_enabled(level))
        return;
    char message[MESSAGE_BYTES];
    snprintf(message, sizeof message, "%s:\n%s", title, lines);
    emit(level, message, sizeof message, true);
}

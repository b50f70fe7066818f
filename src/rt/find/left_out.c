/* rt/find/left_out.c - see rt/find/left_out.h. */
#include "rt/find/left_out.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"
#include "rt/device/device.h"

static struct {
    char sentences[KN_MAX_DEVICES][320];
    int count;
} left_out;

void kn_leave_out(const char *format, ...)
{
    if (left_out.count >= KN_MAX_DEVICES)
        return;
    char *sentence = left_out.sentences[left_out.count++];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof left_out.sentences[0], format, args);
    va_end(args);
    kn_log_message(KN_LOG_WARNING, "%s", sentence);
}

int kn_left_out(void) { return left_out.count; }
const char *kn_left_out_at(int i) { return left_out.sentences[i]; }
void kn_left_out_clear(void) { left_out.count = 0; }

/* rt/find/visible.c - reads KOINE_VISIBLE_DEVICES; see rt/find/visible.h. */
#include "rt/find/visible.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "rt/device/device_struct.h"
#include "rt/find/match.h"

#define ENTRY_SIZE 128

/* The next entry, trimmed; `list` moves past it, to NULL after the last. False when it is too long to be any device's
 * name. */
static bool next_entry(const char **list, char entry[ENTRY_SIZE])
{
    const char *start = *list + strspn(*list, " \t"), *end = start + strcspn(start, ",");
    *list = *end == ',' ? end + 1 : NULL;
    while (end > start && isspace((unsigned char)end[-1]))
        end--;
    size_t length = (size_t)(end - start);
    bool fits = length < ENTRY_SIZE;
    if (!fits)
        length = ENTRY_SIZE - 1;
    memcpy(entry, start, length);
    entry[length] = '\0';
    return fits;
}

static bool is_among(kn_device *const *devices, int count, const kn_device *device)
{
    for (int i = 0; i < count; i++)
        if (devices[i] == device)
            return true;
    return false;
}

int kn_visible_choose(kn_device *chosen[KN_MAX_DEVICES])
{
    const char *list = getenv("KOINE_VISIBLE_DEVICES");
    if (!list)
        return -1;
    int count = 0;
    if (*list == '\0' || kn_text_equals_nocase(list, "none"))
        return 0;
    while (list) {
        char entry[ENTRY_SIZE];
        kn_device *matches[KN_MAX_DEVICES];
        bool fits = next_entry(&list, entry);
        if (strcmp(entry, "-1") == 0)
            break;
        int found = fits ? kn_match_all(entry, matches) : 0;
        if (found == 0) {
            kn_log_message(KN_LOG_WARNING,
                           "KOINE_VISIBLE_DEVICES: no device matches `%s`; it and all later entries are ignored",
                           entry);
            break;
        }
        for (int i = 0; i < found; i++) /* a device named twice keeps its first place */
            if (!is_among(chosen, count, matches[i]))
                chosen[count++] = matches[i];
    }
    return count;
}

/* rt/find/match.c - what device strings mean (kn_device_open in koine/device.h), and KOINE_VISIBLE_DEVICES. */
#include "rt/find/match.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "rt/device/device_struct.h"
#include "rt/device/table.h"

/* Names that stand for a vendor or a platform: `alias` or `alias:N`. */
typedef struct alias_row {
    const char *alias;
    const char *vendor;   /* part of the vendor's name, or NULL */
    const char *platform; /* part of the platform's name, or NULL */
} alias_row;

static const alias_row aliases[] = {
    {"nvidia", "NVIDIA", NULL},
    {"cuda", "NVIDIA", NULL},
    {"amd", "Advanced Micro Devices", NULL},
    {"amd", "AMD", NULL},
    {"intel", "Intel", NULL},
    {"apple", "Apple", NULL},
    {"pocl", NULL, "Portable Computing Language"},
    {"mesa", NULL, "rusticl"},
    {"mesa", NULL, "Clover"},
    {"rusticl", NULL, "rusticl"},
};

/* "gpu:1" is ("gpu", 1); "gpu" is ("gpu", 0). False when `text` has another form. */
static bool split_name(const char *text, char name[32], int *number)
{
    size_t length = strcspn(text, ":");
    if (length == 0 || length >= 32)
        return false;
    memcpy(name, text, length);
    name[length] = '\0';
    *number = 0;
    if (text[length] == '\0')
        return true;
    const char *digits = text + length + 1;
    char *end;
    long value = strtol(digits, &end, 10);
    if (!isdigit((unsigned char)*digits) || *end || value > KN_MAX_DEVICES)
        return false;
    *number = (int)value;
    return true;
}

static bool matches_alias(const kn_device *device, const char *alias)
{
    /* A CPU device reports the processor's vendor; "amd" and "intel" there mean GPUs only when the platform is the
     * vendor's own. */
    bool borrowed_vendor = kn_text_contains_nocase(device->properties.platform, "Portable Computing Language");
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        const alias_row *row = &aliases[i];
        if (!kn_text_equals_nocase(alias, row->alias))
            continue;
        if (row->vendor && !borrowed_vendor && kn_text_contains_nocase(device->properties.vendor, row->vendor))
            return true;
        if (row->platform && kn_text_contains_nocase(device->properties.platform, row->platform))
            return true;
    }
    return false;
}

kn_device *kn_match_type(kn_device_type type, int number)
{
    for (int slot = 1; slot < kn_device_slots(); slot++) {
        kn_device *device = kn_device_slot_at(slot);
        if (device->properties.type != type)
            continue;
        if (type == KN_DEVICE_GPU ? device->gpu_rank == number : number-- == 0)
            return device;
    }
    return NULL;
}

static kn_device *nth_of_alias(const char *alias, int number)
{
    for (int slot = 1; slot < kn_device_slots(); slot++) {
        kn_device *device = kn_device_slot_at(slot);
        if (matches_alias(device, alias) && number-- == 0)
            return device;
    }
    return NULL;
}

static kn_device *at_platform(int platform, int index)
{
    for (int slot = 1; slot < kn_device_slots(); slot++) {
        kn_device *device = kn_device_slot_at(slot);
        if (device->properties.platform_index == platform && device->properties.device_index == index)
            return device;
    }
    return NULL;
}

static kn_device *by_part_of_name(const char *part)
{
    for (int slot = 1; slot < kn_device_slots(); slot++)
        if (kn_text_contains_nocase(kn_device_slot_at(slot)->properties.name, part))
            return kn_device_slot_at(slot);
    return NULL;
}

kn_device *kn_match_name(const char *text)
{
    char name[32];
    int number, platform, index, used = 0;
    if (sscanf(text, "%d:%d%n", &platform, &index, &used) == 2 && text[used] == '\0')
        return at_platform(platform, index);
    if (split_name(text, name, &number)) {
        if (kn_text_equals_nocase(text, "host"))
            return kn_device_slot_at(0);
        if (kn_text_equals_nocase(name, "gpu"))
            return kn_match_type(KN_DEVICE_GPU, number);
        if (kn_text_equals_nocase(name, "cpu"))
            return kn_match_type(KN_DEVICE_CPU, number);
        kn_device *device = nth_of_alias(name, number);
        if (device)
            return device;
    }
    return *text ? by_part_of_name(text) : NULL;
}

/* --- KOINE_VISIBLE_DEVICES -------------------------------------------------------------------- */

/* Is it the device's UUID, with or without the prefix of NVIDIA's tools? */
static bool is_uuid(const kn_device *device, const char *text)
{
    if (strncmp(text, "GPU-", 4) == 0)
        text += 4;
    return *device->properties.uuid && kn_text_equals_nocase(device->properties.uuid, text);
}

/* Does a word without a number describe the device: its type, vendor, platform, UUID, part of its name? */
static bool is_described(const kn_device *device, const char *text)
{
    if (kn_text_equals_nocase(text, "gpu") || kn_text_equals_nocase(text, "cpu"))
        return device->properties.type == (kn_text_equals_nocase(text, "gpu") ? KN_DEVICE_GPU : KN_DEVICE_CPU);
    return matches_alias(device, text) || is_uuid(device, text) ||
           kn_text_contains_nocase(device->properties.name, text);
}

/* The devices that an entry means, in their order; returns how many. */
static int match_all(const char *entry, kn_device *matches[KN_MAX_DEVICES])
{
    int count = 0;
    kn_device *one = NULL;
    if (*entry == '\0' || kn_text_equals_nocase(entry, "host"))
        return 0;
    if (entry[strspn(entry, "0123456789")] == '\0') {
        long index = strtol(entry, NULL, 10);
        one = index < KN_MAX_DEVICES ? kn_device_slot_at((int)index + 1) : NULL;
    } else if (strchr(entry, ':')) {
        one = kn_match_name(entry);
    } else {
        for (int slot = 1; slot < kn_device_slots(); slot++)
            if (is_described(kn_device_slot_at(slot), entry))
                matches[count++] = kn_device_slot_at(slot);
        return count;
    }
    if (one)
        matches[count++] = one;
    return count;
}

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
        int found = fits ? match_all(entry, matches) : 0;
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

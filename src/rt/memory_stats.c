/* rt/memory_stats.c - the pool's figures as koine/memory.h gives them. */
#include <inttypes.h>
#include <koine/memory.h>

#include "base/text.h"
#include "rt/internal.h"

kn_status kn_mem_get_info(kn_device *device, uint64_t *free_bytes, uint64_t *total_bytes)
{
    if (!device || !free_bytes || !total_bytes)
        return kn_fail_argument_null("kn_mem_get_info", device ? "free_bytes or total_bytes" : "device");
    kn_pool_figures figures = kn_pool_read_figures(device);
    uint64_t total = device->pool.limit ? device->pool.limit : device->limits.global_memory;
    *total_bytes = total;
    *free_bytes = total > figures.reserved ? total - figures.reserved : 0;
    return KN_OK;
}

uint64_t kn_memory_allocated(kn_device *device) { return kn_pool_read_figures(device).allocated; }
uint64_t kn_max_memory_allocated(kn_device *device) { return kn_pool_read_figures(device).peak_allocated; }
uint64_t kn_memory_reserved(kn_device *device) { return kn_pool_read_figures(device).reserved; }
uint64_t kn_max_memory_reserved(kn_device *device) { return kn_pool_read_figures(device).peak_reserved; }

void kn_reset_peak_memory_stats(kn_device *device)
{
    kn_lock(&device->pool.lock);
    kn_pool_figures *f = &device->pool.figures;
    f->peak_allocated = f->allocated;
    f->peak_reserved = f->reserved;
    f->peak_blocks = f->blocks;
    kn_unlock(&device->pool.lock);
}

kn_status kn_empty_cache(kn_device *device)
{
    if (!device)
        return kn_fail_argument_null("kn_empty_cache", "device");
    return atomic_load(&device->is_open) ? kn_pool_empty_cache(device) : KN_OK;
}

static void bytes_row(kn_text *text, const char *label, uint64_t now, uint64_t peak)
{
    char now_text[32], peak_text[32];
    kn_text_format(text, "| %-18s | %12s | %12s |\n", label, kn_format_bytes(now_text, sizeof now_text, now),
                   kn_format_bytes(peak_text, sizeof peak_text, peak));
}

char *kn_memory_summary(kn_device *device)
{
    if (!device) {
        kn_fail_argument_null("kn_memory_summary", "device");
        return NULL;
    }
    kn_pool_figures f = kn_pool_read_figures(device);
    kn_text text = {0};
    kn_text_format(&text, "Memory of %s, %s\n", device->label, device->properties.name);
    kn_text_append(&text, "|--------------------|--------------|--------------|\n");
    kn_text_append(&text, "|                    |          now |         peak |\n");
    kn_text_append(&text, "|--------------------|--------------|--------------|\n");
    bytes_row(&text, "allocated", f.allocated, f.peak_allocated);
    bytes_row(&text, "reserved", f.reserved, f.peak_reserved);
    kn_text_format(&text, "| %-18s | %12" PRIu64 " | %12" PRIu64 " |\n", "live blocks", f.blocks, f.peak_blocks);
    kn_text_format(&text, "| %-18s | %12" PRIu64 " | %12s |\n", "segments", f.segments, "");
    kn_text_format(&text, "| %-18s | %12" PRIu64 " | %12s |\n", "allocations", f.allocations, "");
    kn_text_format(&text, "| %-18s | %12" PRIu64 " | %12s |\n", "driver allocations", f.driver_allocations, "");
    kn_text_format(&text, "| %-18s | %12" PRIu64 " | %12s |\n", "retries", f.retries, "");
    kn_text_append(&text, "|--------------------|--------------|--------------|\n");
    return kn_text_finish(&text);
}

/* cli/devices.c - `koine devices`: every OpenCL device, as a table or as JSON. */
#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/layout.h"
#include "cli/cli.h"
#include "rt/rt.h"

/* Extensions that decide what Koine can use or how fast it runs; --json has the full list. */
static const char *const extensions_that_matter[] = {
    "cl_khr_fp64",
    "cl_khr_fp16",
    "cl_khr_subgroups",
    "cl_khr_subgroup_shuffle",
    "cl_intel_subgroups",
    "cl_khr_int64_base_atomics",
    "cl_ext_float_atomics",
    "cl_khr_integer_dot_product",
    "cl_khr_command_buffer",
    "cl_khr_il_program",
    "cl_khr_pci_bus_info",
    "cl_khr_external_memory",
    "cl_intel_unified_shared_memory",
    "cl_intel_subgroup_matrix_multiply_accumulate",
    "cl_arm_import_memory",
    "cl_amd_device_attribute_query",
    "cl_nv_device_attribute_query",
};

static const char *type_name(kn_device_type type)
{
    static const char *const names[] = {"host", "cpu", "gpu", "accelerator"};
    return names[type];
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

enum { INDEX, DEVICE, NUMBER, NAME, MEMORY, UNITS, CLOCK, F64, F16, SUBGROUPS, COLUMNS };
static const kn_table_column columns[COLUMNS] = {
    [INDEX] = {.title = "INDEX", .rank = 5},
    [DEVICE] = {.title = "DEVICE"},
    [NUMBER] = {.title = "P:D", .rank = 4},
    [NAME] = {.title = "NAME", .shortest = 24},
    [MEMORY] = {.title = "MEMORY", .is_number = true},
    [UNITS] = {.title = "UNITS", .is_number = true},
    [CLOCK] = {.title = "CLOCK", .is_number = true, .rank = 1},
    [F64] = {.title = "FP64", .rank = 2},
    [F16] = {.title = "FP16", .rank = 2},
    [SUBGROUPS] = {.title = "SUBGROUPS", .rank = 3},
};

static void put_row(kn_table *table, const kn_device *device, const kn_device_properties *p)
{
    char bytes[32];
    kn_table_put(table, "%d", kn_device_index(device));
    kn_table_put(table, "%s", kn_device_string(device));
    kn_table_put(table, "%d:%d", p->platform_index, p->device_index);
    kn_table_put(table, "%s", p->name);
    kn_table_put(table, "%s", kn_format_bytes(bytes, sizeof bytes, p->total_memory));
    kn_table_put(table, "%d", p->multi_processor_count);
    kn_table_put(table, "%d MHz", p->clock_mhz);
    kn_table_put(table, "%s", p->has_f64 ? "yes" : "no");
    kn_table_put(table, "%s", p->has_f16 ? "yes" : "no");
    kn_table_put(table, "%s", p->has_subgroups ? "yes" : "no");
}

/* A line of the details, wrapped: "  driver      3.1 (OpenCL 3.0)". */
enum { DETAIL_INDENT = 14 };
static void detail(kn_text *out, kn_page page, const char *label, const char *format, ...) KN_PRINTF(4, 5);
static void detail(kn_text *out, kn_page page, const char *label, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    kn_text_format(out, "  %-*s", DETAIL_INDENT - 2, label);
    kn_append_wrapped(out, text, DETAIL_INDENT, DETAIL_INDENT, page.width);
    kn_text_append(out, "\n");
}

static void append_limits(kn_text *out, kn_page page, const kn_device_properties *p)
{
    char allocation[32], local[32], constant[32], cache[32], lockstep[48] = "";
    if (p->warp_size > 0)
        snprintf(lockstep, sizeof lockstep, ", warps of %d", p->warp_size);
    detail(out, page, "limits", "work-groups of %d, %s of local memory, allocations of up to %s",
           p->max_work_group_size, kn_format_bytes(local, sizeof local, p->local_memory),
           kn_format_bytes(allocation, sizeof allocation, p->max_allocation));
    detail(out, page, "work-items", "up to %d x %d x %d per work-group%s", p->max_work_items[0], p->max_work_items[1],
           p->max_work_items[2], lockstep);
    detail(out, page, "memory", "%s of cache in lines of %d bytes, constants of %s, buffers aligned to %d bytes, %s",
           kn_format_bytes(cache, sizeof cache, p->global_cache), p->cache_line,
           kn_format_bytes(constant, sizeof constant, p->constant_memory), p->memory_align,
           p->error_correction ? "error correction" : "no error correction");
}

static void append_extensions(kn_text *out, kn_page page, const kn_device *device)
{
    char names[1024] = "";
    size_t length = 0;
    for (size_t i = 0; i < sizeof extensions_that_matter / sizeof extensions_that_matter[0]; i++)
        if (kn_has_word(kn_device_extensions(device), extensions_that_matter[i]))
            length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", length > 0 ? " " : "",
                                       extensions_that_matter[i]);
    detail(out, page, "extensions", "%s", names[0] ? names : "none of those that Koine uses");
}

/* Details that the table has no room for. */
static void append_details(kn_text *out, kn_page page, const kn_device *device, const kn_device_properties *p)
{
    int major = 0, minor = 0;
    kn_device_capability(device, &major, &minor);
    kn_text_format(out, "\n%s%s%s  %s\n", kn_colour_on(page, KN_COLOUR_BOLD), kn_device_string(device),
                   kn_colour_off(page), p->name);
    detail(out, page, "vendor", "%s", p->vendor);
    detail(out, page, "platform", "%s", p->platform);
    detail(out, page, "driver", "%s (%s)", p->driver_version, p->opencl_version);
    detail(out, page, "capability", "%d.%d", major, minor);
    append_limits(out, page, p);
    if (*p->pci_address)
        detail(out, page, "PCI", "%s", p->pci_address);
    if (*p->uuid)
        detail(out, page, "UUID", "%s", p->uuid);
    char *programs = kn_device_arch_list(device);
    if (programs)
        detail(out, page, "programs", "%s", programs);
    kn_free(programs);
    append_extensions(out, page, device);
}

static int print_table(kn_device *const *devices, const kn_device_properties *properties, int count, bool wide)
{
    kn_page page = kn_page_of(STDOUT_FILENO);
    kn_table table = {.columns = columns, .num_columns = COLUMNS};
    kn_text out = {0};
    page.width = wide ? 0 : page.width;
    for (int i = 0; i < count; i++)
        put_row(&table, devices[i], &properties[i]);
    if (kn_table_append(&out, &table, page) > 0)
        kn_text_append(&out, "(more columns: koine devices --wide)\n");
    kn_table_free(&table);
    for (int i = 0; i < count; i++)
        append_details(&out, page, devices[i], &properties[i]);
    return kn_print_text(&out);
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

/* An array of the words in `list`. */
static void add_words(cJSON *object, const char *key, const char *list)
{
    cJSON *array = cJSON_AddArrayToObject(object, key);
    while (*list) {
        size_t length = strcspn(list, " ");
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)length, list);
        if (length > 0)
            cJSON_AddItemToArray(array, cJSON_CreateString(name));
        list += length + strspn(list + length, " ");
    }
}

static void add_programs(cJSON *object, const kn_device *device)
{
    char *programs = kn_device_arch_list(device);
    if (programs)
        add_words(object, "programs", programs);
    kn_free(programs);
}

static void add_device(cJSON *array, const kn_device *device, const kn_device_properties *p)
{
    char number[32], capability[32];
    int major = 0, minor = 0;
    kn_device_capability(device, &major, &minor);
    snprintf(number, sizeof number, "%d:%d", p->platform_index, p->device_index);
    snprintf(capability, sizeof capability, "%d.%d", major, minor);

    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(array, object);
    cJSON_AddNumberToObject(object, "index", kn_device_index(device));
    cJSON_AddStringToObject(object, "device", kn_device_string(device));
    cJSON_AddStringToObject(object, "number", number);
    cJSON_AddStringToObject(object, "type", type_name(p->type));
    cJSON_AddStringToObject(object, "name", p->name);
    cJSON_AddStringToObject(object, "vendor", p->vendor);
    cJSON_AddStringToObject(object, "platform", p->platform);
    cJSON_AddStringToObject(object, "driver_version", p->driver_version);
    cJSON_AddStringToObject(object, "opencl_version", p->opencl_version);
    cJSON_AddStringToObject(object, "capability", capability);
    cJSON_AddNumberToObject(object, "total_memory", (double)p->total_memory);
    cJSON_AddNumberToObject(object, "max_allocation", (double)p->max_allocation);
    cJSON_AddNumberToObject(object, "local_memory", (double)p->local_memory);
    cJSON_AddNumberToObject(object, "compute_units", p->multi_processor_count);
    cJSON_AddNumberToObject(object, "clock_mhz", p->clock_mhz);
    cJSON_AddNumberToObject(object, "max_work_group_size", p->max_work_group_size);
    cJSON_AddNumberToObject(object, "vector_width", p->vector_width);
    cJSON_AddItemToObject(object, "max_work_items", cJSON_CreateIntArray(p->max_work_items, 3));
    cJSON_AddNumberToObject(object, "warp_size", p->warp_size);
    cJSON_AddNumberToObject(object, "global_cache", (double)p->global_cache);
    cJSON_AddNumberToObject(object, "cache_line", p->cache_line);
    cJSON_AddNumberToObject(object, "constant_memory", (double)p->constant_memory);
    cJSON_AddNumberToObject(object, "memory_align", p->memory_align);
    cJSON_AddBoolToObject(object, "error_correction", p->error_correction);
    cJSON_AddNumberToObject(object, "vendor_id", p->vendor_id);
    cJSON_AddStringToObject(object, "pci_address", p->pci_address);
    cJSON_AddStringToObject(object, "uuid", p->uuid);
    add_programs(object, device);
    cJSON_AddBoolToObject(object, "f64", p->has_f64);
    cJSON_AddBoolToObject(object, "f16", p->has_f16);
    cJSON_AddBoolToObject(object, "subgroups", p->has_subgroups);
    cJSON_AddBoolToObject(object, "unified_memory", p->unified_memory);
    add_words(object, "extensions", kn_device_extensions(device));
}

static int print_json(kn_device *const *devices, const kn_device_properties *properties, int count)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "version", kn_version());
    cJSON *array = cJSON_AddArrayToObject(root, "devices");
    for (int i = 0; i < count; i++)
        add_device(array, devices[i], &properties[i]);
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (!text) {
        fprintf(stderr, "koine: out of host memory\n");
        return KN_EXIT_FAILED;
    }
    printf("%s\n", text);
    cJSON_free(text);
    return KN_EXIT_DONE;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int run(int argc, char **argv)
{
    bool json = false, wide = false;
    const char *wanted = NULL;
    const kn_option options[] = {{.name = "--json", .flag = &json}, {.name = "--wide", .flag = &wide}};
    int status = kn_parse_options(&kn_command_devices, argc, argv, options, 2, &wanted, 1);
    if (status >= 0)
        return status;

    kn_device *devices[KN_MAX_DEVICES];
    kn_device_properties properties[KN_MAX_DEVICES];
    const kn_status found = wanted ? KN_OK : kn_init(); /* says which package to install */
    int count = wanted ? 1 : found == KN_OK ? kn_device_count() : 0;
    if (wanted && kn_device_find(&devices[0], wanted) != KN_OK)
        return kn_report_error();
    for (int i = 0; i < count; i++) {
        if (!wanted)
            devices[i] = kn_device_at(i);
        kn_device_get_properties(devices[i], &properties[i]);
    }
    if (json)
        status = print_json(devices, properties, count);
    else if (count > 0)
        status = print_table(devices, properties, count, wide);
    if (found != KN_OK)
        return kn_report_error();
    return status < 0 ? KN_EXIT_DONE : status;
}

const kn_command kn_command_devices = {
    .name = "devices",
    .summary = "list the OpenCL devices that Koine can use",
    .usage = "usage: koine devices [--json] [--wide] [DEVICE]\n\n"
             "Lists every OpenCL device: its name for --device and KOINE_DEVICE, its memory, compute units, clock and "
             "features.\n\n"
             "  DEVICE   only this device: gpu, gpu:1, cpu, nvidia, amd, intel, pocl, 0:1 (platform and device), or "
             "part of its name\n"
             "  --json   print JSON, with all extensions\n"
             "  --wide   print all columns and full lines, however narrow the terminal is\n\n"
             "Exit status: 0 done, 1 no (such) device, 2 wrong usage.\n",
    .run = run,
};

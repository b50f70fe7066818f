/* cli/devices.c - `koine devices`: every OpenCL device, as a table or as JSON. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"
#include "rt/rt.h"

/* Extensions that decide what Koine can use or how fast it runs; the full list is in the JSON. */
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

/* --- the table ------------------------------------------------------------------------------------------------------
 */

enum { INDEX, DEVICE, NUMBER, NAME, MEMORY, UNITS, CLOCK, F64, F16, SUBGROUPS, COLUMNS };
static const char *const headings[COLUMNS] = {"INDEX", "DEVICE", "P:D",  "NAME", "MEMORY",
                                              "UNITS", "CLOCK",  "FP64", "FP16", "SUBGROUPS"};

#define CELL 96
typedef struct row {
    char cells[COLUMNS][CELL];
} row;

static void fill_row(row *r, const kn_device *device, const kn_device_properties *p)
{
    snprintf(r->cells[INDEX], CELL, "%d", kn_device_index(device));
    snprintf(r->cells[DEVICE], CELL, "%s", kn_device_string(device));
    snprintf(r->cells[NUMBER], CELL, "%d:%d", p->platform_index, p->device_index);
    snprintf(r->cells[NAME], CELL, "%s", p->name);
    kn_format_bytes(r->cells[MEMORY], CELL, p->total_memory);
    snprintf(r->cells[UNITS], CELL, "%d", p->multi_processor_count);
    snprintf(r->cells[CLOCK], CELL, "%d MHz", p->clock_mhz);
    snprintf(r->cells[F64], CELL, "%s", p->has_f64 ? "yes" : "no");
    snprintf(r->cells[F16], CELL, "%s", p->has_f16 ? "yes" : "no");
    snprintf(r->cells[SUBGROUPS], CELL, "%s", p->has_subgroups ? "yes" : "no");
}

static void print_row(const char *const cells[COLUMNS], const int widths[COLUMNS])
{
    for (int c = 0; c < COLUMNS - 1; c++)
        printf("%-*s  ", widths[c], cells[c]);
    printf("%s\n", cells[COLUMNS - 1]); /* no blanks at a line's end */
}

/* Is `name` one of the names in `list`, which blanks separate? */
static bool lists(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = strstr(list, name); at; at = strstr(at + 1, name))
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

/* What a table of one line per device has no room for. */
static void print_details(const kn_device *device, const kn_device_properties *p)
{
    int major = 0, minor = 0;
    char allocation[32], local[32], constant[32], cache[32];
    kn_device_capability(device, &major, &minor);
    printf("\n%s  %s\n", kn_device_string(device), p->name);
    printf("  vendor      %s\n", p->vendor);
    printf("  platform    %s\n", p->platform);
    printf("  driver      %s (%s)\n", p->driver_version, p->opencl_version);
    printf("  capability  %d.%d\n", major, minor);
    printf("  limits      work-groups of %d, %s of local memory, allocations of %s\n", p->max_work_group_size,
           kn_format_bytes(local, sizeof local, p->local_memory),
           kn_format_bytes(allocation, sizeof allocation, p->max_allocation));
    printf("  work-items  %d x %d x %d at most in a work-group", p->max_work_items[0], p->max_work_items[1],
           p->max_work_items[2]);
    if (p->warp_size > 0)
        printf(", %d in lockstep", p->warp_size);
    printf("\n  memory      %s of cache in lines of %d bytes, constants of %s, buffers aligned to %d bytes, %s\n",
           kn_format_bytes(cache, sizeof cache, p->global_cache), p->cache_line,
           kn_format_bytes(constant, sizeof constant, p->constant_memory), p->memory_align,
           p->error_correction ? "error correction" : "no error correction");
    if (*p->pci_address)
        printf("  PCI         %s\n", p->pci_address);
    if (*p->uuid)
        printf("  UUID        %s\n", p->uuid);
    char *programs = NULL;
    if (kn_device_arch_list(&programs, device) == KN_OK)
        printf("  programs    %s\n", programs);
    kn_free(programs);
    printf("  extensions ");
    for (size_t i = 0; i < sizeof extensions_that_matter / sizeof extensions_that_matter[0]; i++)
        if (lists(kn_device_extensions(device), extensions_that_matter[i]))
            printf(" %s", extensions_that_matter[i]);
    printf("\n");
}

static void print_table(kn_device *const *devices, const kn_device_properties *properties, int count)
{
    row rows[KN_MAX_DEVICES];
    int widths[COLUMNS];
    for (int c = 0; c < COLUMNS; c++)
        widths[c] = (int)strlen(headings[c]);
    for (int i = 0; i < count; i++) {
        fill_row(&rows[i], devices[i], &properties[i]);
        for (int c = 0; c < COLUMNS; c++)
            if ((int)strlen(rows[i].cells[c]) > widths[c])
                widths[c] = (int)strlen(rows[i].cells[c]);
    }
    print_row(headings, widths);
    for (int i = 0; i < count; i++) {
        const char *cells[COLUMNS];
        for (int c = 0; c < COLUMNS; c++)
            cells[c] = rows[i].cells[c];
        print_row(cells, widths);
    }
    for (int i = 0; i < count; i++)
        print_details(devices[i], &properties[i]);
}

/* --- JSON -----------------------------------------------------------------------------------------------------------
 */

/* An array of the words of `list`. */
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
    char *programs = NULL;
    if (kn_device_arch_list(&programs, device) == KN_OK)
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

/* --- the command ----------------------------------------------------------------------------------------------------
 */

static int run(int argc, char **argv)
{
    bool json = false;
    const char *wanted = NULL;
    const kn_option options[] = {{.name = "--json", .flag = &json}};
    int status = kn_parse_options(&kn_command_devices, argc, argv, options, 1, &wanted);
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
        print_table(devices, properties, count);
    if (found != KN_OK)
        return kn_report_error();
    return status < 0 ? KN_EXIT_DONE : status;
}

const kn_command kn_command_devices = {
    .name = "devices",
    .summary = "lists the OpenCL devices that Koine can use",
    .usage = "usage: koine devices [--json] [DEVICE]\n\n"
             "Lists every OpenCL device: the name that --device and KOINE_DEVICE take, memory, compute units, clock, "
             "and what it can do.\n\n"
             "  DEVICE   only this one: gpu, gpu:1, cpu, nvidia, amd, intel, pocl, 0:1 (platform and device), or part "
             "of its name\n"
             "  --json   as JSON, with all extensions\n\n"
             "Exit status: 0 done, 1 there is no (such) device, 2 wrong usage.\n",
    .run = run,
};

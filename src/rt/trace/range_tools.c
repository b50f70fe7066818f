/* rt/trace/range_tools.c - finding NVTX and ITT in the process, and calling them.
 *
 * There are two versions of NVTX. Version 2 is a library, libnvToolsExt, whose functions are looked up by name: in the
 * process, in libnvToolsExt.so.1 if it is loaded, or in the library that KOINE_NVTX_LIBRARY names. Version 3 has no
 * library: the tool names its own in NVTX_INJECTION64_PATH, and that library fills a table of functions which the
 * program gives it (NVTX's nvtxTypes.h has the layout). ITT's functions are those of the collector that VTune names in
 * INTEL_LIBITTNOTIFY64, or of whatever in the process has them. */
#include "rt/trace/range_tools.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "base/log.h"
#include "base/system.h"
#include "base/threads.h"

atomic_int kn_range_tools = KN_TOOLS_UNKNOWN;

typedef void (*any_function)(void);

/* ISO C has no conversion from an object pointer, which dlsym returns, to a function pointer; POSIX has. */
static any_function function_of(void *library, const char *name)
{
    any_function function = NULL;
    void *symbol = library ? dlsym(library, name) : NULL;
    memcpy(&function, &symbol, sizeof function);
    return function;
}

/* --- NVTX ------------------------------------------------------------------------------------- */

/* The functions' places in NVTX's table "core". */
enum { NVTX_MARK = 2, NVTX_RANGE_START = 5, NVTX_RANGE_END = 7, NVTX_PUSH = 9, NVTX_POP = 11, NVTX_CORE_SIZE = 16 };
enum { NVTX_MODULE_CORE = 1, NVTX_TABLE_CALLBACKS = 1, NVTX_TABLE_VERSION = 3 };

static any_function nvtx[NVTX_CORE_SIZE];

static bool find_nvtx_in(void *library)
{
    any_function push = function_of(library, "nvtxRangePushA"), pop = function_of(library, "nvtxRangePop");
    if (!push || !pop)
        return false;
    nvtx[NVTX_PUSH] = push;
    nvtx[NVTX_POP] = pop;
    nvtx[NVTX_MARK] = function_of(library, "nvtxMarkA");
    nvtx[NVTX_RANGE_START] = function_of(library, "nvtxRangeStartA");
    nvtx[NVTX_RANGE_END] = function_of(library, "nvtxRangeEnd");
    if (!nvtx[NVTX_RANGE_START] || !nvtx[NVTX_RANGE_END])
        nvtx[NVTX_RANGE_START] = nvtx[NVTX_RANGE_END] = NULL;
    return true;
}

/* Called by an injected library to get pointers to the function pointers that it may set. */
static int nvtx_module_functions(int module, any_function ***table, unsigned *size)
{
    static any_function *places[NVTX_CORE_SIZE + 1]; /* the last is NULL */
    if (module != NVTX_MODULE_CORE)
        return 0;
    for (int i = 1; i < NVTX_CORE_SIZE; i++)
        places[i] = &nvtx[i];
    if (table)
        *table = places;
    if (size)
        *size = NVTX_CORE_SIZE;
    return 1;
}

static void nvtx_take_version(uint32_t version) { (void)version; }

static const void *nvtx_export_table(uint32_t which)
{
    static const struct {
        size_t size;
        int (*module_functions)(int module, any_function ***table, unsigned *size);
    } callbacks = {sizeof callbacks, nvtx_module_functions};
    static const struct {
        size_t size;
        uint32_t version, reserved;
        void (*set_injection_version)(uint32_t version);
    } version = {sizeof version, 3, 0, nvtx_take_version};
    if (which == NVTX_TABLE_CALLBACKS)
        return &callbacks;
    return which == NVTX_TABLE_VERSION ? &version : NULL;
}

static bool inject_nvtx(const char *path)
{
    void *library = path && *path ? dlopen(path, RTLD_LAZY) : NULL;
    any_function start = function_of(library, "InitializeInjectionNvtx2");
    int (*initialize)(const void *(*)(uint32_t)) = (int (*)(const void *(*)(uint32_t)))start;
    if (initialize && initialize(nvtx_export_table) && nvtx[NVTX_PUSH] && nvtx[NVTX_POP])
        return true;
    memset(nvtx, 0, sizeof nvtx);
    if (library)
        dlclose(library);
    return false;
}

static bool find_nvtx(void *process)
{
    const char *named = kn_trusted_environment("KOINE_NVTX_LIBRARY");
    if (named && *named) {
        void *library = dlopen(named, RTLD_LAZY);
        if (find_nvtx_in(library))
            return true;
        kn_log_message(KN_LOG_WARNING, "KOINE_NVTX_LIBRARY=%s: %s", named,
                       library ? "it has no nvtxRangePushA and nvtxRangePop" : dlerror());
        if (library)
            dlclose(library);
    }
    return find_nvtx_in(process) || find_nvtx_in(dlopen("libnvToolsExt.so.1", RTLD_LAZY | RTLD_NOLOAD)) ||
           inject_nvtx(kn_trusted_environment(sizeof(void *) == 8 ? "NVTX_INJECTION64_PATH" : "NVTX_INJECTION32_PATH"));
}

/* --- ITT -------------------------------------------------------------------------------------- */

typedef struct itt_id {
    unsigned long long d1, d2, d3;
} itt_id;

#define ITT_SCOPE_GLOBAL 1

static struct {
    void *domain;
    void *(*string)(const char *name);
    void (*begin)(const void *domain, itt_id id, itt_id parent, void *name);
    void (*end)(const void *domain);
    void (*marker)(const void *domain, itt_id id, void *name, int scope); /* may be NULL, as the next two */
    void (*begin_overlapped)(const void *domain, itt_id id, itt_id parent, void *name);
    void (*end_overlapped)(const void *domain, itt_id id);
} itt;

static const itt_id itt_null = {0, 0, 0};

static bool find_itt_in(void *library)
{
    void *(*make_domain)(const char *) = (void *(*)(const char *))function_of(library, "__itt_domain_create");
    itt.string = (void *(*)(const char *))function_of(library, "__itt_string_handle_create");
    itt.begin = (void (*)(const void *, itt_id, itt_id, void *))function_of(library, "__itt_task_begin");
    itt.end = (void (*)(const void *))function_of(library, "__itt_task_end");
    itt.marker = (void (*)(const void *, itt_id, void *, int))function_of(library, "__itt_marker");
    itt.begin_overlapped =
        (void (*)(const void *, itt_id, itt_id, void *))function_of(library, "__itt_task_begin_overlapped");
    itt.end_overlapped = (void (*)(const void *, itt_id))function_of(library, "__itt_task_end_overlapped");
    if (!make_domain || !itt.string || !itt.begin || !itt.end)
        return false;
    itt.domain = make_domain("koine");
    return itt.domain != NULL;
}

static bool find_itt(void *process)
{
    const char *collector = kn_trusted_environment("INTEL_LIBITTNOTIFY64");
    return find_itt_in(process) || find_itt_in(dlopen("libittnotify.so", RTLD_LAZY | RTLD_NOLOAD)) ||
           (collector && *collector && find_itt_in(dlopen(collector, RTLD_LAZY)));
}

/* --- the interface ---------------------------------------------------------------------------- */

/* A tool that was found is kept: tools are not unloaded, and ranges must be closed by the tool that opened them. The
 * tables are complete before the state changes. */
void kn_range_tools_find(void)
{
    static kn_mutex lock = KN_MUTEX_INIT;
    kn_lock(&lock);
    if (atomic_load(&kn_range_tools) != KN_TOOLS_PRESENT) {
        void *process = dlopen(NULL, RTLD_LAZY);
        bool has_nvtx = find_nvtx(process), has_itt = find_itt(process);
        if (!has_itt)
            itt.domain = NULL;
        atomic_store(&kn_range_tools, has_nvtx || has_itt ? KN_TOOLS_PRESENT : KN_TOOLS_NONE);
    }
    kn_unlock(&lock);
}

void kn_range_tools_push(const char *name)
{
    if (nvtx[NVTX_PUSH])
        ((int (*)(const char *))nvtx[NVTX_PUSH])(name);
    if (itt.domain)
        itt.begin(itt.domain, itt_null, itt_null, itt.string(name));
}

void kn_range_tools_pop(void)
{
    if (itt.domain)
        itt.end(itt.domain);
    if (nvtx[NVTX_POP])
        ((int (*)(void))nvtx[NVTX_POP])();
}

void kn_range_tools_mark(const char *name)
{
    if (nvtx[NVTX_MARK])
        ((void (*)(const char *))nvtx[NVTX_MARK])(name);
    if (itt.domain && itt.marker)
        itt.marker(itt.domain, itt_null, itt.string(name), ITT_SCOPE_GLOBAL);
}

uint64_t kn_range_tools_start(uint64_t number, const char *name)
{
    if (itt.domain && itt.begin_overlapped && itt.end_overlapped)
        itt.begin_overlapped(itt.domain, (itt_id){number, 1, 0}, itt_null, itt.string(name));
    return nvtx[NVTX_RANGE_START] ? ((uint64_t(*)(const char *))nvtx[NVTX_RANGE_START])(name) : 0;
}

void kn_range_tools_end(uint64_t number, uint64_t id)
{
    if (nvtx[NVTX_RANGE_END] && nvtx[NVTX_RANGE_START])
        ((void (*)(uint64_t))nvtx[NVTX_RANGE_END])(id);
    if (itt.domain && itt.begin_overlapped && itt.end_overlapped)
        itt.end_overlapped(itt.domain, (itt_id){number, 1, 0});
}

/* profiler/fake_tool.c - a fake timeline tool of three kinds: NVTX 2's functions (FAKE_NVTX2), a library injected by
 * NVTX 3 (FAKE_NVTX3), an ITT collector (FAKE_ITT). Each records its calls. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

const char *fake_tool_log(void);

static char calls[4096];

const char *fake_tool_log(void) { return calls; }

static void note(const char *call, const char *name)
{
    size_t used = strlen(calls);
    snprintf(calls + used, sizeof calls - used, "%s %s;", call, name);
}

static int push(const char *name)
{
    note("push", name);
    return 0;
}
static int pop(void)
{
    note("pop", "");
    return 0;
}
static void mark(const char *name) { note("mark", name); }
static uint64_t start(const char *name)
{
    note("start", name);
    return 42;
}
static void end(uint64_t id) { note("end", id == 42 ? "42" : "another"); }

#ifdef FAKE_NVTX2
int nvtxRangePushA(const char *name);
int nvtxRangePop(void);
void nvtxMarkA(const char *name);
uint64_t nvtxRangeStartA(const char *name);
void nvtxRangeEnd(uint64_t id);
int nvtxRangePushA(const char *name) { return push(name); }
int nvtxRangePop(void) { return pop(); }
void nvtxMarkA(const char *name) { mark(name); }
uint64_t nvtxRangeStartA(const char *name) { return start(name); }
void nvtxRangeEnd(uint64_t id) { end(id); }
#endif

#ifdef FAKE_NVTX3
typedef void (*any_function)(void);
typedef struct callbacks {
    size_t size;
    int (*module_functions)(int module, any_function ***table, unsigned *size);
} callbacks;

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t which));
int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t which))
{
    const callbacks *table = export_table(1);
    any_function **functions = NULL;
    unsigned size = 0;
    if (!table || table->size < sizeof *table || !table->module_functions(1, &functions, &size) || size < 16)
        return 0;
    *functions[2] = (any_function)mark;
    *functions[5] = (any_function)start;
    *functions[7] = (any_function)end;
    *functions[9] = (any_function)push;
    *functions[11] = (any_function)pop;
    return 1;
}
#endif

#ifdef FAKE_ITT
typedef struct itt_id {
    unsigned long long d1, d2, d3;
} itt_id;
void *__itt_domain_create(const char *name);
void *__itt_string_handle_create(const char *name);
void __itt_task_begin(const void *domain, itt_id id, itt_id parent, void *name);
void __itt_task_end(const void *domain);
void __itt_marker(const void *domain, itt_id id, void *name, int scope);
void __itt_task_begin_overlapped(const void *domain, itt_id id, itt_id parent, void *name);
void __itt_task_end_overlapped(const void *domain, itt_id id);

static char last_name[64];
static unsigned long long started;
void *__itt_domain_create(const char *name)
{
    (void)name;
    return calls;
}
void *__itt_string_handle_create(const char *name)
{
    snprintf(last_name, sizeof last_name, "%s", name);
    return last_name;
}
void __itt_task_begin(const void *domain, itt_id id, itt_id parent, void *name)
{
    (void)domain, (void)id, (void)parent;
    push(name);
}
void __itt_task_end(const void *domain)
{
    (void)domain;
    pop();
}
void __itt_marker(const void *domain, itt_id id, void *name, int scope)
{
    (void)domain, (void)id, (void)scope;
    mark(name);
}
void __itt_task_begin_overlapped(const void *domain, itt_id id, itt_id parent, void *name)
{
    (void)domain, (void)parent;
    started = id.d1;
    start(name);
}
void __itt_task_end_overlapped(const void *domain, itt_id id)
{
    (void)domain;
    end(id.d1 == started ? 42 : 0);
}
#else
/* Unused by some kinds. */
void fake_tool_unused(void);
void fake_tool_unused(void) { (void)push, (void)pop, (void)mark, (void)start, (void)end; }
#endif

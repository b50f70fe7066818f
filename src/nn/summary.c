/* nn/summary.c - a module as text: the tree that print(net) shows, with columns of figures for each module. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/layout.h"
#include "base/memory.h"
#include "base/plain_numbers.h"
#include "nn/summary.h"
#include "tensor/tensor.h"

/* --- the tree -------------------------------------------------------------------------------------------------- */

/* One line of the tree. Consecutive identical subtrees are shown once, with a count. */
typedef struct summary_line {
    int depth;
    const char *name, *last_name;     /* NULL: unnamed. last_name: of the last repetition */
    int repeats;                      /* how many identical subtrees */
    size_t start, length;             /* the rest of the line within `tree`: "ReLU()", "Sequential(", ")" */
    int64_t parameters;               /* without its children's */
    const kn_module_figures *figures; /* NULL: unknown */
} summary_line;

typedef struct summary {
    kn_text tree;
    summary_line *lines;
    int count, capacity;
    bool failed, expand;
    const kn_figures_list *figures; /* NULL: no forward pass was run */
    kn_tensor *const *inputs;       /* of that pass */
    int num_inputs;
} summary;

static int64_t own_count(const kn_module *module)
{
    int64_t count = 0;
    for (int i = 0; i < module->num_tensors; i++) {
        if (!module->tensors[i].is_buffer)
            count += kn_numel(module->tensors[i].tensor);
    }
    return count;
}

/* Finishes a line whose text, from `start` on, has been appended. */
static void end_line(summary *out, summary_line line)
{
    if (KN_GROW(out->lines, out->count, out->capacity) != KN_OK) {
        out->failed = true;
        return;
    }
    line.length = out->tree.length - line.start;
    line.repeats = 1;
    out->lines[out->count++] = line;
}

static bool same_figures(const kn_module_figures *a, const kn_module_figures *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return strcmp(a->output, b->output) == 0 && a->multiply_adds == b->multiply_adds;
}

static bool same_name(const char *a, const char *b) { return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0; }

/* Compares everything but the modules' own names. */
static bool are_alike(const summary *out, int first, int second, int count)
{
    for (int i = 0; i < count; i++) {
        const summary_line *a = &out->lines[first + i], *b = &out->lines[second + i];
        if (a->length != b->length || a->depth != b->depth || a->parameters != b->parameters ||
            memcmp(out->tree.data + a->start, out->tree.data + b->start, a->length) != 0 ||
            !same_figures(a->figures, b->figures))
            return false;
        if (i > 0 &&
            (!same_name(a->name, b->name) || !same_name(a->last_name, b->last_name) || a->repeats != b->repeats))
            return false;
    }
    return true;
}

static void append_module(summary *out, kn_module *module, const char *name, int depth);

/* Appends the children; one identical to its predecessor is removed again and counted there. */
static void append_children(summary *out, kn_module *module, int depth)
{
    int before = -1; /* first line of the previous child */
    for (int i = 0; i < module->num_children; i++) {
        int first = out->count;
        append_module(out, module->children[i].module, module->children[i].name, depth);
        if (out->failed || out->tree.failed)
            return;
        int lines = out->count - first;
        if (!out->expand && before >= 0 && first - before == lines && are_alike(out, before, first, lines)) {
            out->lines[before].repeats++;
            out->lines[before].last_name = module->children[i].name;
            out->count = first;
        } else {
            before = first;
        }
    }
}

/* The entries of a ParameterList. */
static void append_tensors(summary *out, kn_module *module, int depth)
{
    for (int i = 0; i < module->num_tensors && module->kind.lists_tensors; i++) {
        const kn_tensor *tensor = module->tensors[i].tensor;
        const size_t start = out->tree.length;
        kn_text_format(&out->tree, "Parameter containing: [%s of size ", kn_dtype_name(tensor->dtype));
        for (int d = 0; d < tensor->ndim; d++)
            kn_text_format(&out->tree, "%s%lld", d > 0 ? "x" : "", (long long)tensor->shape[d]);
        kn_text_append(&out->tree, "]");
        end_line(out, (summary_line){.depth = depth, .name = module->tensors[i].name, .start = start});
    }
}

static void append_module(summary *out, kn_module *module, const char *name, int depth)
{
    summary_line line = {.depth = depth, .name = name, .start = out->tree.length, .parameters = own_count(module)};
    if (out->figures != NULL)
        line.figures = kn_figures_find(out->figures, module);
    kn_text_format(&out->tree, "%s(", module->type_name);
    if (module->num_children == 0 && !module->kind.lists_tensors) {
        if (module->kind.describe != NULL)
            module->kind.describe(module, &out->tree);
        kn_text_append(&out->tree, ")");
        end_line(out, line);
        return;
    }
    end_line(out, line);
    /* a layer has children only if parametrized */
    if (module->kind.describe != NULL && (module->computed.count > 0 || module->extra_repr != NULL)) {
        line = (summary_line){.depth = depth + 1, .start = out->tree.length};
        module->kind.describe(module, &out->tree);
        end_line(out, line);
    }
    append_tensors(out, module, depth + 1);
    append_children(out, module, depth + 1);
    line = (summary_line){.depth = depth, .start = out->tree.length};
    kn_text_append(&out->tree, ")");
    end_line(out, line);
}

/* --- the columns ----------------------------------------------------------------------------------------------- */

/* 54314 as "54,314". */
static const char *grouped(char buffer[32], int64_t number)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)number), written = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            buffer[written++] = ',';
        buffer[written++] = digits[i];
    }
    buffer[written] = '\0';
    return buffer;
}

/* 346112000 as "346.1 M". */
static const char *scaled(char buffer[32], double number)
{
    static const char *const units[] = {"", " K", " M", " G", " T", " P"};
    size_t unit = 0;
    for (; number >= 999.95 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        number /= 1000;
    snprintf(buffer, 32, unit == 0 ? "%.0f%s" : "%.1f%s", number, units[unit]);
    return buffer;
}

enum { MODULE, OUTPUT, PARAMETERS, MULTIPLY_ADDS, COLUMNS };
static const kn_table_column columns_of_pass[COLUMNS] = {
    [MODULE] = {.title = "", .shortest = 24},
    [OUTPUT] = {.title = "output"},
    [PARAMETERS] = {.title = "params", .is_number = true, .rank = 1},
    [MULTIPLY_ADDS] = {.title = "mult-adds", .is_number = true, .rank = 2},
};
static const kn_table_column columns_of_tree[] = {{.title = "", .shortest = 24},
                                                  {.title = "", .is_number = true, .least = 10}};

/* A row's cells; "" if empty. */
typedef struct figures_text {
    const char *output;
    char parameters[32], multiply_adds[32];
} figures_text;

static figures_text figures_of(const summary_line *line)
{
    figures_text text = {.output = line->figures != NULL ? line->figures->output : ""};
    if (line->parameters > 0)
        grouped(text.parameters, line->parameters);
    if (line->figures != NULL && line->figures->multiply_adds > 0)
        scaled(text.multiply_adds, line->figures->multiply_adds);
    return text;
}

static const char *cell(const figures_text *text, int column)
{
    return column == OUTPUT ? text->output : column == PARAMETERS ? text->parameters : text->multiply_adds;
}

/* The width left for the tree; 0: unlimited. */
static int room_for_tree(const summary *out, kn_page page)
{
    int widths[COLUMNS] = {0}, room = page.width;
    for (int c = OUTPUT; out->figures != NULL && c < COLUMNS; c++)
        widths[c] = (int)strlen(columns_of_pass[c].title);
    widths[PARAMETERS] = out->figures != NULL ? widths[PARAMETERS] : columns_of_tree[1].least;
    for (int i = 0; i < out->count; i++) {
        figures_text text = figures_of(&out->lines[i]);
        for (int c = OUTPUT; c < COLUMNS; c++) {
            const int width = (int)strlen(cell(&text, c));
            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
    for (int c = OUTPUT; c < COLUMNS; c++)
        room -= widths[c] > 0 ? widths[c] + 2 : 0;
    return page.width == 0 ? 0 : room > columns_of_pass[MODULE].shortest ? room : columns_of_pass[MODULE].shortest;
}

/* "Conv2d(1, 32, kernel_size=(3, 3), stride=(1, 1))" as "Conv2d(1, 32, kernel_size=(3, 3), ...)": as many arguments as
 * fit. `head`: the number of characters before it on the line. */
static void append_description(kn_text *line, const char *text, size_t length, int head, int room)
{
    static const char *const rest = "...)";
    size_t kept = 0; /* up to the end of the last argument kept, including comma and space */
    int depth = 0;
    if (room <= 0 || head + (int)length <= room) {
        kn_text_append_bytes(line, text, length);
        return;
    }
    for (size_t i = 0; i < length && head + (int)(i + 1 + strlen(rest)) <= room; i++) {
        depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
        if ((text[i] == '(' && depth == 1) || (text[i] == ' ' && depth == 1 && i > 0 && text[i - 1] == ','))
            kept = i + 1;
    }
    kn_text_append_bytes(line, text, kept > 0 ? kept : length);
    kn_text_append(line, kept > 0 ? rest : "");
}

/* "    (0-2): 3 x ReLU()"; the caller frees it. */
static char *tree_line(const summary *out, const summary_line *line, int room)
{
    kn_text text = {0};
    kn_text_format(&text, "%*s", 2 * line->depth, "");
    if (line->repeats > 1)
        kn_text_format(&text, "(%s-%s): %d x ", line->name, line->last_name, line->repeats);
    else if (line->name != NULL)
        kn_text_format(&text, "(%s): ", line->name);
    if (text.data != NULL)
        append_description(&text, out->tree.data + line->start, line->length, kn_text_width(text.data), room);
    return kn_text_finish(&text);
}

static void put_lines(kn_table *table, const summary *out, kn_page page)
{
    int room = room_for_tree(out, page);
    for (int i = 0; i < out->count; i++) {
        figures_text figures = figures_of(&out->lines[i]);
        char *line = tree_line(out, &out->lines[i], room);
        table->failed |= line == NULL;
        kn_table_put(table, "%s", line != NULL ? line : "");
        kn_free(line);
        for (int c = OUTPUT; c < COLUMNS; c++)
            if (out->figures != NULL || c == PARAMETERS)
                kn_table_put(table, "%s", cell(&figures, c));
    }
}

static void append_totals(kn_text *text, const summary *out, kn_parameter_list list)
{
    int64_t count = 0;
    uint64_t bytes = 0;
    char number[32], size[32];
    for (int i = 0; i < list.count; i++) {
        count += kn_numel(list.tensors[i]);
        bytes += (uint64_t)kn_numel(list.tensors[i]) * kn_dtype_size(kn_dtype_of(list.tensors[i]));
    }
    kn_text_format(text, "Parameters: %s (%s)\n", grouped(number, count), kn_format_bytes(size, sizeof size, bytes));
    if (out->figures == NULL)
        return;
    char *shapes = kn_describe_shapes(out->inputs, out->num_inputs);
    kn_text_format(text, "Multiply-adds: %s for %s %s\n", scaled(number, out->figures->multiply_adds),
                   out->num_inputs == 1 ? "an input" : "inputs", shapes != NULL ? shapes : "");
    text->failed = text->failed || shapes == NULL;
    kn_free(shapes);
}

static char *lay_out(const summary *out, kn_module *module, const kn_module_summary_params *params)
{
    const bool with_pass = out->figures != NULL;
    kn_page page = kn_page_for(params->width);
    kn_table table = {.columns = with_pass ? columns_of_pass : columns_of_tree, .num_columns = with_pass ? COLUMNS : 2};
    kn_text text = {0};
    kn_parameter_list list;
    if (kn_module_find_parameters(&list, module) != KN_OK)
        return NULL;
    put_lines(&table, out, page);
    kn_table_append(&text, &table, page);
    kn_table_free(&table);
    append_totals(&text, out, list);
    return kn_text_finish(&text);
}

/* --- the interface --------------------------------------------------------------------------------------------- */

static char *summarise(kn_module *module, const kn_module_summary_params *params)
{
    kn_figures_list figures = {0};
    summary out = {.expand = params->expand, .inputs = params->inputs, .num_inputs = params->num_inputs};
    if (out.inputs == NULL) {
        out.inputs = &params->input;
        out.num_inputs = params->input != NULL ? 1 : 0;
    }
    out.figures = out.num_inputs > 0 ? &figures : NULL;
    kn_status status = out.figures != NULL ? kn_module_dry_run(&figures, module, out.inputs, out.num_inputs) : KN_OK;
    KN_PLAIN_NUMBERS;
    if (status == KN_OK)
        append_module(&out, module, NULL, 0);
    char *text = status != KN_OK || out.failed || out.tree.failed ? NULL : lay_out(&out, module, params);
    kn_free(out.lines);
    kn_figures_free(&figures);
    kn_text_free(&out.tree);
    return text;
}

kn_module_summary_params kn_module_summary_params_init(void)
{
    return (kn_module_summary_params){KN_MODULE_SUMMARY_DEFAULTS};
}

char *kn_module_summary_with(kn_module *module, const kn_module_summary_params *params)
{
    params = params != NULL ? params : &(kn_module_summary_params){KN_MODULE_SUMMARY_DEFAULTS};
    if (module == NULL) {
        kn_fail_argument_null("module_summary", "module");
        return kn_error_make_sticky();
    }
    char *text = summarise(module, params);
    return text != NULL ? text : kn_error_make_sticky();
}

char *kn_module_summary(kn_module *module) { return kn_module_summary_with(module, NULL); }

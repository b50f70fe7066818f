/* nn/summary.c - a module as text: the tree that print(net) shows, with the parameters' counts beside it. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/module.h"

/* One line of the tree, its count printed in a column to the right once the longest line is known. */
typedef struct summary_line {
    size_t start, length; /* in the tree's text */
    int64_t count;        /* -1: none to show */
} summary_line;

typedef struct summary {
    kn_text tree;
    summary_line *lines;
    int count, capacity;
    bool failed;
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

static void end_line(summary *out, size_t start, int64_t count)
{
    if (out->count == out->capacity) {
        int capacity = out->capacity > 0 ? 2 * out->capacity : 32;
        summary_line *lines = kn_realloc(out->lines, (size_t)capacity * sizeof *lines);
        if (lines == NULL) {
            out->failed = true;
            return;
        }
        out->lines = lines;
        out->capacity = capacity;
    }
    out->lines[out->count++] = (summary_line){start, out->tree.length - start, count};
}

static void append_module(summary *out, kn_module *module, const char *name, int depth)
{
    size_t start = out->tree.length;
    kn_text_format(&out->tree, "%*s", 2 * depth, "");
    if (name != NULL)
        kn_text_format(&out->tree, "(%s): ", name);
    kn_text_format(&out->tree, "%s(", module->type_name);
    int64_t count = own_count(module);
    if (module->num_children == 0) {
        if (module->describe != NULL)
            module->describe(module, &out->tree);
        kn_text_append(&out->tree, ")");
        end_line(out, start, count > 0 ? count : -1);
        return;
    }
    end_line(out, start, count > 0 ? count : -1);
    for (int i = 0; i < module->num_children; i++)
        append_module(out, module->children[i].module, module->children[i].name, depth + 1);
    start = out->tree.length;
    kn_text_format(&out->tree, "%*s)", 2 * depth, "");
    end_line(out, start, -1);
}

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

static char *lay_out(const summary *out, kn_module *module)
{
    size_t width = 0;
    for (int i = 0; i < out->count; i++)
        width = out->lines[i].length > width ? out->lines[i].length : width;
    kn_text text = {0};
    char number[32], size[32];
    for (int i = 0; i < out->count; i++) {
        const summary_line *line = &out->lines[i];
        kn_text_append_bytes(&text, out->tree.data + line->start, line->length);
        if (line->count >= 0)
            kn_text_format(&text, "%*s", (int)(width - line->length) + 12, grouped(number, line->count));
        kn_text_append(&text, "\n");
    }
    kn_parameter_list list = kn_module_parameters(module);
    uint64_t bytes = 0;
    for (int i = 0; i < list.count; i++)
        bytes += (uint64_t)kn_numel(list.tensors[i]) * kn_dtype_size(kn_dtype_of(list.tensors[i]));
    kn_text_format(&text, "Parameters: %s (%s)\n", grouped(number, kn_module_parameter_count(module)),
                   kn_format_bytes(size, sizeof size, bytes));
    return kn_text_finish(&text);
}

char *kn_module_summary(kn_module *module)
{
    if (module == NULL) {
        kn_fail_argument_null("module_summary", "module");
        return kn_stick();
    }
    summary out = {0};
    append_module(&out, module, NULL, 0);
    char *text = out.failed || out.tree.failed ? NULL : lay_out(&out, module);
    kn_free(out.lines);
    kn_text_free(&out.tree);
    return text;
}

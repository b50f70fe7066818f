#!/bin/sh
# Writes a C function for each function of the public headers, which calls it with the chosen pointers NULL, and a table
# of them: null_calls.sh INCLUDE_DIR... >null_calls.h. See test_null_arguments.c.
set -eu
for include; do
    cat $(find "$include/koine" -name "*.h")
done | awk '/^#/ || more { more = /\\$/; next } 1' | tr '\n' ' ' | sed 's|/\*|\n/*|g; s|\*/|*/\n|g' |
    sed '/^\/\*/d' | tr '\n' ' ' | sed 's/KN_API/\n&/g' | awk '
    BEGIN {
        list = "device stream event graph mem_pool module optim dataset loader trainer tensor tensor_file " \
            "user_kernel jit sampler metric device_log history memory_block storage op rng_fork lr_scheduler " \
            "grad_scaler averaged_model transforms tokenizer group work"
        split(list, names, " ")
        for (n in names) objects["kn_" names[n]]
        large["kn_models_gpt2_with"]; large["kn_models_bert_with"] # NULL means half a gigabyte of parameters
        callbacks_only["kn_function_context"]; callbacks_only["kn_batch"] # the library makes them
    }
    # The arguments, at commas outside brackets.
    function split_arguments(text,    i, c, depth) {
        count = 0; piece = ""
        for (i = 1; i <= length(text); i++) {
            c = substr(text, i, 1)
            depth += (c == "(") - (c == ")")
            if (c == "," && depth == 0) { args[count++] = piece; piece = "" } else piece = piece c
        }
        args[count++] = piece
    }
    /^KN_API/ {
        sub(/^KN_API /, ""); sub(/;.*/, ""); sub(/ KN_PRINTF.*/, ""); gsub(/  +/, " ")
        open = index($0, "(")
        name = substr($0, 1, open - 1); sub(/.*[ *]/, "", name)
        rest = substr($0, open + 1); sub(/\)$/, "", rest)
        if (name in large) next
        split_arguments(rest)
        call = ""
        mask = 0
        for (i = 0; i < count; i++) {
            type = args[i]; sub(/^ +/, "", type); sub(/ +$/, "", type)
            if (type == "void" || type == "...") continue
            if (type ~ /\(\*/ || type ~ /\[/) { value = "NULL"; mask += 2 ^ i }
            else {
                sub(/[a-z_0-9]+$/, "", type); sub(/ +$/, "", type)
                base = type; gsub(/const|[ *]/, "", base)
                stars = gsub(/\*/, "*", type)
                if (stars == 0)
                    value = base ~ /^(int|int64_t|size_t|double|bool|unsigned|uint64_t|kn_dtype)$/ ? "1" : \
                        "(" type "[1]){0}[0]"
                else {
                    mask += 2 ^ i
                    valid = stars == 1 && base in objects ? "make_" base "()" : \
                        type == "kn_tensor *const *" ? "make_list()" : type == "const char *" ? "\"x\"" : \
                        base in callbacks_only ? "NULL" : "(" type ")scratch()"
                    value = "NULL_AT(" i ") ? NULL : " valid
                }
            }
            call = call (call == "" ? "" : ", ") value
        }
        printf "static void call_%s(unsigned nulls)\n{\n    (void)nulls;\n    (void)%s(%s);\n}\n", name, name, call
        rows = rows sprintf("    {\"%s\", call_%s, %d},\n", name, name, mask)
    }
    END { printf "static const call calls[] = {\n%s};\n", rows }'
